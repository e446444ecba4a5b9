//! Leader of a shard, for threads that pass requests on to it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
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
    led: Arc<Led>,
}

/// The leadership of this node. It has a line of the cache for itself: the shard writes it while others read
/// what is beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Led {
    /// Number of its epoch among other replicas; 0: it has none, or that has not begun.
    epoch: AtomicU64,
    /// Lead of the time of the log over the monotonic clock, in microseconds.
    log_lead_us: AtomicI64,
}

impl Leader {
    /// The leader as the place of this node tells it.
    pub(super) fn new(standing: Standing) -> Leader {
        let node = Arc::new(AtomicU64::new(node_of(standing)));
        Leader { node, only_epoch: Arc::default(), led: Arc::default() }
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

    /// True if this node has begun to lead in an epoch, and is not known to have ended: another one never
    /// has its number.
    pub(crate) fn leads_in(&self, epoch: u64) -> bool {
        self.only_epoch() == Some(epoch) || self.led.epoch.load(Ordering::Relaxed) == epoch
    }

    /// Says in which epoch this node leads among other replicas; 0: it does not.
    pub(super) fn set_epoch(&self, epoch: u64) {
        self.led.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Time of the log by this monotonic time, both in microseconds: as the shard has read it last, and gone
    /// on by the monotonic clock since.
    pub(crate) fn log_us(&self, monotonic_us: u64) -> u64 {
        monotonic_us.saturating_add_signed(self.led.log_lead_us.load(Ordering::Relaxed))
    }

    /// Says what time of the log it was at a monotonic time, both in microseconds.
    #[inline]
    pub(super) fn set_log_us(&self, log_us: u64, monotonic_us: u64) {
        let lead_us = log_us.wrapping_sub(monotonic_us).cast_signed();
        if self.led.log_lead_us.load(Ordering::Relaxed) != lead_us {
            self.led.log_lead_us.store(lead_us, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_threads_know_the_epoch_and_the_time_of_the_log() {
        let leader = Leader::new(Standing::Leader { term: 3 });
        let other = leader.clone();
        assert!(!other.leads_in(7));
        leader.set_epoch(7);
        assert!(other.leads_in(7) && !other.leads_in(6));
        leader.set_epoch(0);
        assert!(!other.leads_in(7));
        for (log_us, monotonic_us) in [(5_000, 1_000), (1_000, 5_000)] {
            leader.set_log_us(log_us, monotonic_us);
            assert_eq!(other.log_us(monotonic_us + 300), log_us + 300);
        }
        let alone = Leader::new(Standing::Alone);
        alone.begin_only_epoch(9);
        assert!(alone.leads_in(9) && !alone.leads_in(8));
    }
}
