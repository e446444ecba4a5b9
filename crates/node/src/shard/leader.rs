//! Leader of a shard, for threads that pass requests on to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::store::Standing;

/// Value that stands for no other node.
const HERE: u64 = u64::MAX;

/// Number of the other node that leads a shard; clones share it. The shard sets it when its place changes, and
/// any thread reads it without waiting, so it may be out of date: who acts on it is told by the shard.
#[derive(Clone, Debug)]
pub struct Leader(Arc<AtomicU64>);

impl Default for Leader {
    /// No other node leads.
    fn default() -> Leader {
        Leader(Arc::new(AtomicU64::new(HERE)))
    }
}

impl Leader {
    /// Number of the other node that leads. `None`: this node leads, or no leader is known, so that requests
    /// wait here for one.
    #[inline]
    pub fn elsewhere(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|node| *node != HERE)
    }

    /// Sets it by the place of this node.
    pub fn set(&self, standing: Standing) {
        let node = match standing {
            Standing::Follower { leader: Some(node) } => node,
            Standing::Follower { leader: None } | Standing::Leader { .. } | Standing::Alone => HERE,
        };
        self.0.store(node, Ordering::Relaxed);
    }
}
