//! Ends of leases and delays, as callers were promised them.

use std::collections::{BTreeMap, BTreeSet};

use super::node::RIGHT_US;
use crate::clock::START_US;

/// Part of a lease or delay that may be missing: clocks are slewed by 1/2000.
const SLEWED: u64 = 1_000;
/// Time that may be missing besides, in microseconds: when all nodes have started anew the time goes on by
/// wall clocks, which differ, and of which the time that went before was behind.
const CLOCKS_US: u64 = 5 * RIGHT_US;

/// End of a lease or a delay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    /// Time at which it was asked for; 0: it is not known.
    begun_us: u64,
    /// Time before which it does not end while any voter goes on.
    until_us: u64,
}

impl End {
    /// The end of what was asked for now, and takes this long.
    pub(super) fn after(begun_us: u64, span_us: u64) -> End {
        let until_us = (begun_us + span_us - span_us / SLEWED).saturating_sub(CLOCKS_US);
        if begun_us == 0 { End::default() } else { End { begun_us, until_us } }
    }

    /// True if it comes first.
    pub(super) fn is_before(self, other: End) -> bool {
        self.until_us < other.until_us
    }

    /// The later one of two.
    pub(super) fn max(self, other: End) -> End {
        if self.is_before(other) { other } else { self }
    }
}

/// Starts of the nodes.
#[derive(Debug, Default)]
pub(super) struct Starts {
    latest: BTreeMap<usize, u64>,
    /// The voters, of whom a majority elects a leader and so knows the time of the log.
    voters: BTreeSet<usize>,
    /// Latest time since which a majority of those that were voters then has started anew, in microseconds;
    /// who is a voter changes.
    majority_us: u64,
}

impl Starts {
    /// Takes in that a node has started.
    pub(super) fn add(&mut self, node: usize, now_us: u64) {
        self.latest.insert(node, now_us);
        self.see_majority();
    }

    /// Takes in that these nodes are the voters from now on.
    pub(super) fn set_voters(&mut self, voters: BTreeSet<usize>) {
        self.voters = voters;
        self.see_majority();
    }

    fn see_majority(&mut self) {
        let latest = |voter| self.latest.get(voter).copied().unwrap_or_default();
        let mut started: Vec<u64> = self.voters.iter().map(latest).collect();
        started.sort_unstable_by(|a, b| b.cmp(a));
        let of_majority = started.get(started.len() / 2).copied().unwrap_or_default();
        self.majority_us = self.majority_us.max(of_majority);
    }

    /// Time by which it is too soon for this end, in microseconds. `told_us` is the end by the time of the
    /// log, in microseconds since the Unix epoch. Where a majority of the voters has started anew since, that
    /// time may have gone on by their wall clocks: then the end may come when these have passed it.
    pub(super) fn early_us(&self, end: End, told_us: u64, now_us: u64) -> u64 {
        let is_past = START_US + now_us + RIGHT_US >= told_us;
        if self.majority_us > end.begun_us && is_past { 0 } else { end.until_us.saturating_sub(now_us) }
    }
}
