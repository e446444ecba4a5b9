//! The bytes of messages that the pushers of a node hold together.
//!
//! A queue may hold as much as is left for all, so that some is always left for others (dynamic thresholds:
//! Choudhury and Hahne, 1998). Since large messages can take all, each may always hold a few bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of messages that the pushers of a node hold, beside [`HELD_BYTES_ALWAYS`] of each queue.
pub const HELD_BYTES_OF_ALL_MAX: u64 = 64 << 20;
/// Most bytes of messages of a queue that are held; one more message may exceed them.
pub const HELD_BYTES_MAX: u64 = 16 << 20;
/// Bytes of messages that each queue may hold in any case; one more message may exceed them.
pub const HELD_BYTES_ALWAYS: u64 = 64 << 10;

/// The bytes that are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<AtomicU64>);

impl Budget {
    /// The share of a queue, which holds nothing yet.
    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), held: 0 }
    }

    fn left(&self) -> u64 {
        HELD_BYTES_OF_ALL_MAX.saturating_sub(self.0.load(Ordering::Relaxed))
    }
}

/// The bytes that a queue holds, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    held: u64,
}

impl Share {
    /// Bytes that it may take more; 0: it has to give some first.
    pub(crate) fn room(&self) -> u64 {
        let most = self.budget.left().clamp(HELD_BYTES_ALWAYS, HELD_BYTES_MAX);
        most.saturating_sub(self.held)
    }

    pub(crate) fn take(&mut self, bytes: u64) {
        self.held += bytes;
        self.budget.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give(&mut self, bytes: u64) {
        self.held -= bytes;
        self.budget.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_takes_no_more_than_is_left_for_all() {
        let budget = Budget::default();
        let mut shares: Vec<Share> = (0..40).map(|_| budget.share()).collect();
        assert_eq!(shares[0].room(), HELD_BYTES_MAX);
        // All take a message of 1 MiB in turn, as long as they may.
        while shares.iter_mut().filter(|share| share.room() > 0).map(|share| share.take(1 << 20)).count() > 0
        {
        }
        let held: u64 = shares.iter().map(|share| share.held).sum();
        assert!(held <= HELD_BYTES_OF_ALL_MAX, "{held}");
        let room = (HELD_BYTES_OF_ALL_MAX - held).max(HELD_BYTES_ALWAYS);
        assert_eq!(budget.share().room(), room, "some is left for one that comes");
        drop(shares);
        assert_eq!(budget.left(), HELD_BYTES_OF_ALL_MAX);
    }

    #[test]
    fn who_holds_little_may_take_more() {
        let budget = Budget::default();
        let mut all = budget.share();
        all.take(HELD_BYTES_OF_ALL_MAX + 5);
        let mut other = budget.share();
        assert_eq!((all.room(), other.room()), (0, HELD_BYTES_ALWAYS));
        other.take(3);
        assert_eq!(other.room(), HELD_BYTES_ALWAYS - 3);
        all.give(HELD_BYTES_OF_ALL_MAX);
        assert_eq!(other.room(), HELD_BYTES_MAX - 3);
    }
}
