//! Leader of a shard, for threads that pass requests on to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::store::Standing;

/// Value that stands for this node.
const HERE: u64 = u64::MAX;
/// Value that stands for this node while it hands the leadership over.
const LEAVING: u64 = u64::MAX - 1;
/// Value that stands for no leader.
const UNKNOWN: u64 = u64::MAX - 2;

/// Node that leads a shard; clones share it. The shard sets it when its place changes, and any thread reads
/// it without waiting, so it may be out of date: who acts on it is told by the shard.
#[derive(Clone, Debug)]
pub struct Leader {
    node: Arc<AtomicU64>,
    only_epoch: Arc<OnceLock<u64>>,
}

impl Leader {
    /// The leader as the place of this node tells it.
    pub(super) fn new(standing: Standing) -> Leader {
        Leader { node: Arc::new(AtomicU64::new(node_of(standing))), only_epoch: Arc::default() }
    }

    /// Number of the epoch of a shard without other replicas: there is one for each start. `None`: other
    /// nodes may lead, and only the shard itself can tell.
    pub fn only_epoch(&self) -> Option<u64> {
        self.only_epoch.get().copied()
    }

    /// Says that the epoch of a shard without other replicas has begun.
    pub fn begin_only_epoch(&self, epoch: u64) {
        self.only_epoch.get_or_init(|| epoch);
    }

    /// Number of the other node that leads. `None`: this node leads, or no leader is known, so that requests
    /// wait here for one.
    #[inline]
    pub fn elsewhere(&self) -> Option<u64> {
        Some(self.node.load(Ordering::Relaxed)).filter(|node| *node < UNKNOWN)
    }

    /// True when this node leads.
    pub fn is_here(&self) -> bool {
        matches!(self.node.load(Ordering::Relaxed), HERE | LEAVING)
    }

    /// True when no leader is known, or this node hands the leadership over: a request that came to the shard
    /// now would be refused soon.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        matches!(self.node.load(Ordering::Relaxed), UNKNOWN | LEAVING)
    }

    /// Number of the node that leads, where this node has the number `own`. `None`: no leader is known.
    pub fn number(&self, own: u64) -> Option<u64> {
        match self.node.load(Ordering::Relaxed) {
            HERE | LEAVING => Some(own),
            UNKNOWN => None,
            elsewhere => Some(elsewhere),
        }
    }

    /// Sets it by the place of this node.
    pub fn set(&self, standing: Standing) {
        self.node.store(node_of(standing), Ordering::Relaxed);
    }

    /// Says whether this node, if it leads, hands the leadership over.
    pub fn hands_over(&self, hands_over: bool) {
        if self.is_here() {
            self.node.store(if hands_over { LEAVING } else { HERE }, Ordering::Relaxed);
        }
    }
}

fn node_of(standing: Standing) -> u64 {
    match standing {
        Standing::Follower { leader: Some(node) } => node,
        Standing::Follower { leader: None } => UNKNOWN,
        Standing::Leader { .. } | Standing::Alone => HERE,
    }
}
