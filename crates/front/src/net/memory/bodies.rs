//! The memory that bodies of requests take.

use std::sync::atomic::{AtomicUsize, Ordering};

use sluice_engine::Error;

/// The refusal of a body for which there is no memory.
pub(crate) fn no_room() -> Error {
    Error::Overloaded { what: "request bodies", retry_after_ms: 1_000 }
}

/// The bytes of request bodies in memory, over all requests.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    used: AtomicUsize,
    max: usize,
}

impl BodyBudget {
    pub(crate) fn new(max: usize) -> BodyBudget {
        BodyBudget { used: AtomicUsize::new(0), max }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes so many bytes; tells whether there was room. They are taken in any case.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.used.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    /// Takes so many bytes; false when there is no room, and then nothing is taken.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let fits = self.take(bytes);
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    /// Gives bytes back that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
