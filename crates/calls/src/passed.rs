//! Requests that this server has passed on to the leaders of their shards on other nodes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::time::now_ms;

/// Time for which a failure is told, in milliseconds.
const TOLD_MS: u64 = 60_000;

/// Counters of requests that were passed on, since the start.
#[derive(Debug, Default)]
pub struct Passed {
    answered: AtomicU64,
    unanswered: AtomicU64,
    /// Nodes that were not reached, with the time of the last failure in milliseconds since the Unix epoch.
    unreached: Mutex<BTreeMap<u64, u64>>,
}

impl Passed {
    /// Counts a request that another node has answered.
    pub fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request to a node without an answer. `is_unsent`: the node was not reached.
    pub fn unanswered(&self, node: u64, is_unsent: bool) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        if is_unsent {
            self.unreached.lock().unwrap_or_else(PoisonError::into_inner).insert(node, now_ms());
        }
    }

    /// Number of requests that another node has answered, and of those without an answer.
    pub fn totals(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed))
    }

    /// The nodes that were not reached within the last minute.
    pub fn unreached(&self) -> Vec<u64> {
        let since = now_ms().saturating_sub(TOLD_MS);
        let unreached = self.unreached.lock().unwrap_or_else(PoisonError::into_inner);
        unreached.iter().filter(|(_, at_ms)| **at_ms >= since).map(|(node, _)| *node).collect()
    }
}
