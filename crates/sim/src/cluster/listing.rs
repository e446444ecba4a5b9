//! The list of nodes, and what nodes make of it by the code of the server.
//!
//! In a server the list is a part of the log. Here it is a row of versions, each of which a node knows that
//! has applied the log up to where the version would stand.

use std::collections::BTreeSet;

use sluice_node::NotChanged;
use sluice_node::steering::{Part, Place, Step, Wanted, former, gone, next, replaced};
use sluice_replica::NodeId;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver};

use super::node::Away;
use super::{ClusterWorld, Event};
use crate::disk::Crash;
use crate::model::Checked;

/// The list of nodes.
#[derive(Debug)]
pub(super) struct Listing {
    /// Its versions, each with the number of the batch that brings it.
    versions: Vec<(u64, Vec<Part>)>,
    /// Changes of the members that were asked for.
    asked: Vec<Receiver<Result<(), NotChanged>>>,
}

impl Listing {
    /// The list of the first nodes of a cluster.
    pub(super) fn new(nodes: usize) -> Listing {
        let part = |number| Part { number, replaces: None, wanted: Wanted::Voter };
        Listing { versions: vec![(0, (1..=nodes as u64).map(part).collect())], asked: Vec::new() }
    }

    /// The newest version.
    pub(super) fn newest(&self) -> &[Part] {
        self.versions.last().map_or(&[], |(_, parts)| parts)
    }

    /// The version that a node knows which has applied the batch with this number last.
    fn known(&self, applied: u64) -> &[Part] {
        let known = self.versions.iter().rfind(|(since, _)| *since <= applied);
        known.map_or(&[], |(_, parts)| parts)
    }

    /// Enters a version, which comes with the batch of this number.
    pub(super) fn enter(&mut self, since: u64, parts: Vec<Part>) {
        self.versions.push((since, parts));
    }

    /// The nodes that are to stay, each but those in whose places others come.
    pub(super) fn staying(&self) -> Vec<Part> {
        let voters = || self.newest().iter().filter(|part| part.wanted == Wanted::Voter);
        let goes = |part: &Part| {
            voters().any(|new| former(self.newest(), new.replaces).any(|former| former.number == part.number))
        };
        voters().filter(|part| !goes(part)).copied().collect()
    }

    /// True: nothing is left to be done.
    fn is_settled(&self) -> bool {
        let is_left = |part: &&Part| part.wanted != Wanted::Removed;
        self.staying().len() == self.newest().iter().filter(is_left).count()
    }
}

/// True: the list says that this node was removed.
fn is_removed(listed: &[Part], id: NodeId) -> bool {
    listed.iter().any(|part| part.number == id.get() && part.wanted == Wanted::Removed)
}

impl ClusterWorld {
    /// Places of the nodes that are to be members.
    pub(super) fn present(&self) -> impl Iterator<Item = usize> {
        let staying = self.operator.as_ref().map(|operator| operator.listing.staying());
        (0..self.nodes.len()).filter(move |node| {
            let id = self.nodes[*node].id().get();
            staying.as_ref().is_none_or(|staying| staying.iter().any(|part| part.number == id))
        })
    }

    /// True: the members are those of the list.
    pub(super) fn has_its_members(&self) -> bool {
        let Some(operator) = &self.operator else { return true };
        let members = self.checker.members();
        let is_voter = |part: &Part| members.voters().iter().any(|id| id.get() == part.number);
        let staying = operator.listing.staying();
        operator.listing.is_settled()
            && members.iter().count() == staying.len()
            && staying.iter().all(is_voter)
    }

    /// Lets a node look at the list, now and then.
    pub(super) fn follow_list(&mut self, node: usize) -> Checked {
        let Some(operator) = &mut self.operator else { return Ok(()) };
        if !operator.rng.chance(1, 5) || self.pause(node).is_some() {
            return Ok(());
        }
        if self.hears_of_removal(node) {
            self.retire(node);
            return Ok(());
        }
        if !self.nodes[node].leads() {
            return Ok(());
        }
        let (sender, mut answer) = oneshot::channel();
        self.input(node, |server| server.inbox.members(sender))?;
        let (applied, life, own) = (self.nodes[node].applied, self.nodes[node].life, self.nodes[node].id());
        let (Ok(shard), Some(operator)) = (answer.try_recv(), &mut self.operator) else { return Ok(()) };
        let listed = operator.listing.known(applied).to_vec();
        if let Some(step) = next(&listed, &shard, own, Place::First(&BTreeSet::new())) {
            let longest = if operator.rng.chance(1, 10) { 400_000 } else { 2_000 };
            let delay = operator.rng.below(longest);
            self.at(delay, Event::Steer { node, life, step });
        }
        let shards = [shard];
        gone(&listed, &shards).into_iter().for_each(|number| self.set_wanted(number, Wanted::Removed));
        if let Some(number) = replaced(&listed, &shards) {
            self.remove(node, number);
        }
        self.hear_of_changes();
        Ok(())
    }

    /// Lets a leader do the next step.
    pub(super) fn steer(&mut self, node: usize, life: u64, step: Step) -> Checked {
        if !self.is_life(node, life) {
            return Ok(());
        }
        let Step::Change(change) = step else { return self.input(node, |server| server.inbox.hand_over()) };
        let (sender, answer) = oneshot::channel();
        if let Some(operator) = &mut self.operator {
            operator.listing.asked.push(answer);
        }
        self.input(node, |server| server.inbox.change_members(change, sender))
    }

    /// Counts the changes that were answered.
    fn hear_of_changes(&mut self) {
        let Some(operator) = &mut self.operator else { return };
        let stats = &mut self.stats;
        operator.listing.asked.retain_mut(|answer| {
            match answer.try_recv() {
                Ok(Ok(())) => stats.changes += 1,
                Ok(Err(_)) => stats.refused += 1,
                Err(TryRecvError::Closed) => {}
                Err(TryRecvError::Empty) => return true,
            }
            false
        });
    }

    /// Changes the wanted part of a node.
    pub(super) fn set_wanted(&mut self, number: u64, wanted: Wanted) {
        let since = self.checker.last() + 1;
        let Some(operator) = &mut self.operator else { return };
        let mut parts = operator.listing.newest().to_vec();
        if let Some(part) = parts.iter_mut().find(|part| part.number == number && part.wanted != wanted) {
            part.wanted = wanted;
            operator.listing.enter(since, parts);
            self.trace(|| format!("  node number {number} is to be {wanted:?}"));
        }
    }

    /// True: a node knows that it was removed, or one that it reaches knows it.
    fn hears_of_removal(&self, node: usize) -> bool {
        let Some(operator) = &self.operator else { return false };
        let id = self.nodes[node].id();
        let knows = |other: usize| is_removed(operator.listing.known(self.nodes[other].applied), id);
        let is_reached = |other: &usize| {
            let is_up = self.nodes[*other].server.is_some() && self.pause(*other).is_none();
            is_up && !self.network.is_cut(node, *other) && !self.network.is_cut(*other, node)
        };
        (0..self.nodes.len()).filter(is_reached).any(knows)
    }

    /// Ends the server of a node that was removed.
    fn retire(&mut self, node: usize) {
        self.trace(|| format!("  node {node} hears that it was removed"));
        self.crash_by(node, Crash::Kill);
        self.nodes[node].away = Some(Away::Removed);
    }
}
