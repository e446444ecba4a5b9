//! Members of a cluster, and states of the shard that name them.

use crate::MEMBERS_MAX;
use crate::entry::{NodeId, Position};

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

    /// True: the node was a member and was removed.
    pub fn is_removed(&self, node: NodeId) -> bool {
        node.get() <= self.highest && !self.contains(node)
    }
}

/// Place in the log up to which a state has applied it, and the members that are in force there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    /// Position of the last entry that is applied.
    pub position: Position,
    /// Members in force behind that entry.
    pub members: Members,
}
