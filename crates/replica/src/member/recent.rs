//! Batches that were committed lately: followers that are a little behind need them.

use std::collections::VecDeque;

use bytes::Bytes;
use sluice_journal::Committed;

/// Length of the batches that are kept, in bytes.
const BYTES_MAX: usize = 4 << 20;

/// Batches with consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct Recent {
    batches: VecDeque<Bytes>,
    /// Number of the first.
    first: u64,
    bytes: usize,
}

impl Recent {
    /// Adds the next batch, and forgets the first ones when there are too many.
    pub(super) fn push(&mut self, committed: &Committed) {
        if self.batches.is_empty() {
            self.first = committed.number;
        }
        self.bytes += committed.bytes.len();
        self.batches.push_back(committed.bytes.clone());
        while self.bytes > BYTES_MAX
            && let Some(bytes) = self.batches.pop_front()
        {
            self.bytes -= bytes.len();
            self.first += 1;
        }
    }

    /// The encoded records of the batch with this number.
    pub(super) fn get(&self, number: u64) -> Option<Bytes> {
        self.batches.get(usize::try_from(number.checked_sub(self.first)?).ok()?).cloned()
    }
}
