//! Consumers that come back, in half of all runs: whose leader is lost attaches again at the next one, within
//! its time of grace or too late, and goes on with what it holds.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::DETACH_GRACE_MS;
use sluice_engine::id::{ConsumerId, Receipt};
use sluice_node::shard::channel::Channel;

use super::{ClusterWorld, Event, SECOND_US};
use crate::model::Checked;
use crate::rng::Rng;

/// Times of grace, in milliseconds: shorter than a lease, and longer.
const GRACES_MS: [u64; 3] = [2_000, 6_000, DETACH_GRACE_MS];

/// A worker that is attached, one consumer after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Worker {
    pub(super) grace_ms: u64,
    /// The consumers that it was, the latest last.
    pub(super) consumers: Vec<ConsumerId>,
}

/// A worker with the channel of its latest consumer.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) node: usize,
    pub(super) channel: Arc<Channel>,
    pub(super) worker: Worker,
}

/// Workers that come back.
#[derive(Debug)]
pub(super) struct Returns {
    rng: Rng,
    /// False: nobody does.
    comes_back: bool,
    /// Number of workers that are about to.
    pub(super) away: usize,
}

impl Returns {
    pub(super) fn new(seed: u64) -> Returns {
        let mut rng = Rng::new(seed.rotate_left(32));
        let comes_back = rng.chance(1, 2);
        Returns { rng, comes_back, away: 0 }
    }

    /// A worker that was not attached yet.
    pub(super) fn worker(&mut self) -> Worker {
        let grace_ms = if self.comes_back { *self.rng.pick(&GRACES_MS) } else { DETACH_GRACE_MS };
        Worker { grace_ms, consumers: Vec::new() }
    }
}

impl ClusterWorld {
    /// A worker has lost its leader: it comes back soon, or late.
    pub(super) fn loses_leader(&mut self, worker: Worker) {
        let Returns { rng, comes_back, away } = &mut self.returns;
        if *comes_back && !worker.consumers.is_empty() {
            let longest = if rng.chance(3, 4) { SECOND_US } else { 2_000 * worker.grace_ms };
            let delay = rng.below(longest);
            *away += 1;
            self.at(delay, Event::Return(worker));
        }
    }

    /// Lets a worker attach at a leader, once there is one.
    pub(super) fn comes_back(&mut self, worker: Worker) -> Checked {
        let is_there = |node: &usize| self.nodes[*node].leads() && self.pause(*node).is_none();
        let leading: Vec<usize> = (0..self.nodes.len()).filter(is_there).collect();
        if leading.is_empty() || self.is_closing {
            let delay = self.returns.rng.between(50_000, 300_000);
            self.at(delay, Event::Return(worker));
            return Ok(());
        }
        self.returns.away -= 1;
        let node = *self.returns.rng.pick(&leading);
        self.ask(node, |client| client.attach(worker));
        self.input(node, |_| {})
    }

    /// A worker is attached: it goes on with what it held before.
    pub(super) fn resumes(&mut self, node: usize, worker: &Worker) {
        let Some((consumer, before)) = worker.consumers.split_last() else { return };
        let receipts = self.judge.held_by(before);
        if !receipts.is_empty() {
            self.ask(node, |client| client.resume(*consumer, receipts));
        }
    }

    /// A worker has heard what it may go on with: it is done with some.
    pub(super) fn has_resumed(&mut self, node: usize, receipts: &[Receipt], results: &[Result<(), Error>]) {
        for (receipt, _) in receipts.iter().zip(results).filter(|(_, result)| result.is_ok()) {
            if self.returns.rng.chance(1, 2) {
                self.ask(node, |client| client.ack(*receipt));
            }
        }
    }
}
