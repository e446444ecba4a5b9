//! Members of a cluster, and states of the shard that name them.

use crate::MEMBERS_MAX;
use crate::entry::{Change, NodeId, Position};

/// Members of a cluster. Voters elect leaders and commit entries; learners only follow.
///
/// A number is given to one node only, and never again: a node that has lost its state returns with a new
/// one. Numbers of new nodes grow, so one that is not above all that were given, and is no member's,
/// belongs to a node that was removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Members {
    voters: Vec<NodeId>,
    learners: Vec<NodeId>,
    highest: u64,
}

impl Members {
    /// The members with these voters and learners, each in ascending order; `highest` is the highest number
    /// that was ever given to a node. `None`: there is no voter, a node stands twice or above `highest`, the
    /// order is another, or there are more than [`MEMBERS_MAX`].
    pub fn new(voters: Vec<NodeId>, learners: Vec<NodeId>, highest: u64) -> Option<Members> {
        let ascends = |nodes: &[NodeId]| nodes.is_sorted_by(|a, b| a < b);
        let is_whole = !voters.is_empty()
            && voters.len() + learners.len() <= MEMBERS_MAX
            && ascends(&voters)
            && ascends(&learners)
            && !voters.iter().any(|node| learners.contains(node))
            && voters.iter().chain(&learners).all(|node| node.get() <= highest);
        is_whole.then_some(Members { voters, learners, highest })
    }

    /// The voters, in ascending order; empty: the members are not known yet.
    pub fn voters(&self) -> &[NodeId] {
        &self.voters
    }

    /// The learners, in ascending order.
    pub fn learners(&self) -> &[NodeId] {
        &self.learners
    }

    /// The highest number that was ever given to a node; 0: the members are not known yet.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.voters.iter().chain(&self.learners).copied()
    }

    /// True: the node is a member.
    pub fn contains(&self, node: NodeId) -> bool {
        self.iter().any(|member| member == node)
    }

    /// The members behind a change. `None`: it adds a number that is not new, or more than [`MEMBERS_MAX`],
    /// concerns a node that is not there as it should be, or leaves no voter.
    pub fn after(&self, change: Change) -> Option<Members> {
        let mut after = self.clone();
        match change {
            Change::Add(node) => after.add(node)?,
            Change::Promote(node) => {
                take(&mut after.learners, node)?;
                insert(&mut after.voters, node);
            }
            Change::Demote(node) => {
                take(&mut after.voters, node)?;
                insert(&mut after.learners, node);
            }
            Change::Remove(node) => after.remove(node)?,
            Change::Replace { old, new } => {
                after.remove(old)?;
                after.add(new)?;
            }
        }
        let is_whole = !after.voters.is_empty() && after.iter().count() <= MEMBERS_MAX;
        is_whole.then_some(after)
    }

    fn add(&mut self, node: NodeId) -> Option<()> {
        let is_new = node.get() > self.highest;
        self.highest = node.get();
        insert(&mut self.learners, node);
        is_new.then_some(())
    }

    fn remove(&mut self, node: NodeId) -> Option<()> {
        take(&mut self.learners, node).or_else(|| take(&mut self.voters, node))
    }

    /// True: the node was a member and was removed.
    pub fn is_removed(&self, node: NodeId) -> bool {
        node.get() <= self.highest && !self.contains(node)
    }
}

fn take(nodes: &mut Vec<NodeId>, node: NodeId) -> Option<()> {
    let at = nodes.binary_search(&node).ok()?;
    nodes.remove(at);
    Some(())
}

fn insert(nodes: &mut Vec<NodeId>, node: NodeId) {
    let at = nodes.partition_point(|other| *other < node);
    nodes.insert(at, node);
}

/// Place in the log up to which a state has applied it, and the members that are in force there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    /// Position of the last entry that is applied.
    pub position: Position,
    /// Members in force behind that entry.
    pub members: Members,
}
