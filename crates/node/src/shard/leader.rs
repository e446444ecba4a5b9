//! Leader of a shard, for threads that pass requests on to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::store::Standing;

/// Value that stands for this node.
const HERE: u64 = u64::MAX;
/// Value that stands for no leader.
const UNKNOWN: u64 = u64::MAX - 1;

/// Node that leads a shard; clones share it. The shard sets it when its place changes, and any thread reads
/// it without waiting, so it may be out of date: who acts on it is told by the shard.
#[derive(Clone, Debug)]
pub struct Leader(Arc<AtomicU64>);

impl Leader {
    /// The leader as the place of this node tells it.
    pub(super) fn new(standing: Standing) -> Leader {
        Leader(Arc::new(AtomicU64::new(node_of(standing))))
    }

    /// Number of the other node that leads. `None`: this node leads, or no leader is known, so that requests
    /// wait here for one.
    #[inline]
    pub fn elsewhere(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|node| *node < UNKNOWN)
    }

    /// True when this node leads.
    pub fn is_here(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HERE
    }

    /// Number of the node that leads, where this node has the number `own`. `None`: no leader is known.
    pub fn number(&self, own: u64) -> Option<u64> {
        match self.0.load(Ordering::Relaxed) {
            HERE => Some(own),
            UNKNOWN => None,
            elsewhere => Some(elsewhere),
        }
    }

    /// Sets it by the place of this node.
    pub fn set(&self, standing: Standing) {
        self.0.store(node_of(standing), Ordering::Relaxed);
    }
}

fn node_of(standing: Standing) -> u64 {
    match standing {
        Standing::Follower { leader: Some(node) } => node,
        Standing::Follower { leader: None } => UNKNOWN,
        Standing::Leader { .. } | Standing::Alone => HERE,
    }
}
