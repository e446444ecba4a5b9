//! Losses of power where nodes acknowledge what is not synced yet: a machine forgets the end of its log, and
//! comes back under another number.
//!
//! An operator that knows nothing but the members of a leader and who is silent gives the numbers. At most a
//! minority of the machines has lost power, or may have, at a time: one counts until it votes again, by a
//! change of the members that is not under way any more. A disk whose sync fails loses as much.

use sluice_journal::Options;
use sluice_replica::{Change, Members, NodeId};

use super::ClusterWorld;
use super::node::Node;
use crate::disk::Crash;
use crate::model::Checked;

/// Machines that lose power.
#[derive(Debug)]
pub(super) struct Power {
    /// True: nodes acknowledge what is written, so that a loss of power loses some of it.
    is_lax: bool,
    /// Highest number that a node was given.
    highest: u64,
}

impl Power {
    /// The machines of so many nodes with these settings.
    pub(super) fn new(nodes: usize, options: &Options) -> Power {
        Power { is_lax: !super::node::syncs_first(options), highest: nodes as u64 }
    }

    /// True: nodes may have other numbers than at first.
    pub(super) fn renumbers(&self) -> bool {
        self.is_lax
    }

    /// The next number for the node at this place: its places are a number of nodes apart.
    fn next(&mut self, place: usize, nodes: usize) -> Option<NodeId> {
        let is_its_own = |number: &u64| *number as usize % nodes == (place + 1) % nodes;
        self.highest = (self.highest + 1..).find(is_its_own)?;
        NodeId::new(self.highest)
    }
}

impl ClusterWorld {
    /// Lets a node lose what it has not synced; false: too many have, or it has what others have damaged.
    pub(super) fn may_lose(&mut self, node: usize) -> bool {
        let is_lost = |other: &usize| *other == node || self.nodes[*other].has_lost_power;
        let lost = (0..self.nodes.len()).filter(is_lost).count();
        let may_lose = !self.power.is_lax || 2 * lost < self.nodes.len() && self.has_copies_besides(node);
        self.nodes[node].has_lost_power |= may_lose && self.power.is_lax;
        may_lose
    }

    /// The way in which a process ends that is about to end in this one.
    pub(super) fn ending(&mut self, node: usize, how: Crash) -> Crash {
        match how {
            Crash::Power if self.may_lose(node) => Crash::Power,
            Crash::Power | Crash::Kill => Crash::Kill,
        }
    }

    /// True when all nodes vote that have lost power.
    pub(super) fn has_power(&self) -> bool {
        self.nodes.iter().all(|node| !node.has_lost_power)
    }

    /// Does what the operator has to do by now.
    pub(super) fn operate(&mut self) -> Checked {
        if self.has_power() {
            return Ok(());
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_silent() && self.rng.chance(1, 20) {
                self.renumber(node);
            }
        }
        let Some(leader) = self.leader() else { return Ok(()) };
        let Some(members) = self.nodes[leader].members() else { return Ok(()) };
        self.count_back(&members);
        if let Some(change) = self.due(&members) {
            // Whatever is refused now is proposed again.
            self.input(leader, |server| {
                let _ = server.shard.store().store.member().propose_members(change);
            })?;
        }
        Ok(())
    }

    /// Lets a node start under another number.
    fn renumber(&mut self, node: usize) {
        if let Some(id) = self.power.next(node, self.nodes.len()) {
            self.trace(|| format!("  node {node} has the number {} now", id.get()));
            self.nodes[node].rename(id);
            self.crash_by(node, Crash::Kill);
            self.stats.renumbered += 1;
        }
    }

    /// Takes note of the nodes that vote again.
    fn count_back(&mut self, members: &Members) {
        for node in &mut self.nodes {
            let may_fail = self.faulty && node.disk.may_fail();
            if node.server.is_some()
                && !may_fail
                && !node.is_silent()
                && members.voters().contains(&node.id())
            {
                node.has_lost_power = false;
            }
        }
    }

    /// The change that brings the members nearer to the present numbers, the lowest of which comes first.
    fn due(&self, members: &Members) -> Option<Change> {
        let new = self.nodes.iter().map(Node::id).filter(|id| !members.contains(*id)).min();
        let Some(new) = new else {
            return members.learners().first().map(|learner| Change::Promote(*learner));
        };
        let former = members.iter().find(|id| self.place(*id) == self.place(new));
        Some(former.map_or(Change::Add(new), |old| Change::Replace { old, new }))
    }
}
