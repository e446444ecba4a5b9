//! Items that wait to be sent, with a bound, and the counts of what has become of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Items in a request.
pub(crate) const BATCH_ITEMS_MAX: usize = 512;
/// Bytes of a request, though at least one item.
pub(crate) const BATCH_BYTES_MAX: usize = 1 << 20;

/// Encoded items that wait to be sent. Beyond so many bytes, what comes is dropped and counted.
#[derive(Debug)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    bytes_max: usize,
    filled: Notify,
    /// Counts of what has become of the items.
    pub counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Items since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Items that the collector has taken.
    pub sent: AtomicU64,
    /// Items that were dropped: there was no room for them, or the collector refused them.
    pub dropped: AtomicU64,
    /// Requests that failed; items of some of them were sent again.
    pub failed: AtomicU64,
}

impl Queue {
    /// A queue of at most so many bytes.
    pub fn new(bytes_max: usize) -> Queue {
        Queue { waiting: Mutex::default(), bytes_max, filled: Notify::new(), counts: Arc::default() }
    }

    /// Adds an item, if there is room.
    pub fn push(&self, item: Vec<u8>) {
        let mut waiting = self.waiting();
        if waiting.bytes + item.len() > self.bytes_max {
            drop(waiting);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes += item.len();
        waiting.items.push_back(item);
        let is_full = waiting.items.len() == BATCH_ITEMS_MAX;
        drop(waiting);
        if is_full {
            self.filled.notify_one();
        }
    }

    /// Takes the items of the next request; none if nothing waits.
    pub(crate) fn take(&self) -> Vec<Vec<u8>> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let fitting = waiting.items.iter().take(BATCH_ITEMS_MAX).take_while(|item| {
            bytes += item.len();
            bytes <= BATCH_BYTES_MAX
        });
        let count = fitting.count().max(1).min(waiting.items.len());
        let items: Vec<Vec<u8>> = waiting.items.drain(..count).collect();
        waiting.bytes -= items.iter().map(Vec::len).sum::<usize>();
        items
    }

    /// Resolves when there are enough items for a request.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let queue = Queue::new(10);
        for _ in 0..4 {
            queue.push(vec![7; 3]);
        }
        queue.push(vec![7; 1]);
        assert_eq!(queue.counts.dropped.load(Ordering::Relaxed), 1);
        assert_eq!(queue.take(), [vec![7; 3], vec![7; 3], vec![7; 3], vec![7; 1]]);
        assert!(queue.take().is_empty());
        // Its room is free again.
        queue.push(vec![7; 10]);
        assert_eq!(queue.take(), [vec![7; 10]]);
    }

    #[test]
    fn requests_are_bounded_in_items_and_bytes_and_have_one_at_least() {
        let queue = Queue::new(8 << 20);
        (0..BATCH_ITEMS_MAX + 3).for_each(|_| queue.push(vec![0]));
        assert_eq!((queue.take().len(), queue.take().len()), (BATCH_ITEMS_MAX, 3));
        [BATCH_BYTES_MAX + 1, BATCH_BYTES_MAX, 1, 5].iter().for_each(|bytes| queue.push(vec![0; *bytes]));
        assert_eq!([queue.take().len(), queue.take().len(), queue.take().len()], [1, 1, 2]);
    }
}
