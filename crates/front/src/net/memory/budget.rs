//! A bound of bytes in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes in memory, and how many there may be.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Budget {
        Budget { used: AtomicUsize::new(0), max }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that there may be.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Bytes that may still be taken.
    pub(super) fn free(&self) -> usize {
        self.max.saturating_sub(self.used())
    }

    /// Takes `new` bytes and gives `old` ones back; tells whether it fits. It is done in any case.
    pub(super) fn change(&self, old: usize, new: usize) -> bool {
        let used = self.used.fetch_add(new, Ordering::Relaxed) + new - old;
        self.used.fetch_sub(old, Ordering::Relaxed);
        used <= self.max || new <= old
    }
}
