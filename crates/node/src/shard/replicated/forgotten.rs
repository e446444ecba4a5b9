//! Word that a node may have forgotten what it has acknowledged: shared by its shards, since it has one
//! number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Word that the node may have forgotten something. Clones share it; once noted, it stays.
#[derive(Clone, Debug, Default)]
pub struct Forgotten(Arc<AtomicBool>);

impl Forgotten {
    /// Notes that it has.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True: it may have.
    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
