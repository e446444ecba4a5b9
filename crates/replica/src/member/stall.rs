//! Watch over the disk: a write that takes too long ends the part that this node has in the cluster, until it
//! is done. A leader whose disk hangs would otherwise go on sending heartbeats, and hold up everybody.

use crate::plant::{self, Plant};

/// Number of ticks before a stall at which a leader hands over: the others need not miss it first.
const TICKS_TO_HAND_OVER: usize = 2;

/// Age of the oldest write that is not synced.
#[derive(Debug)]
pub(super) struct Stall {
    /// Order of that write, when the clock ticked last.
    oldest: Option<u64>,
    /// Number of ticks that it has seen.
    ticks: usize,
    /// Number of ticks from which it is a stall.
    ticks_max: usize,
}

impl Stall {
    pub(super) fn new(ticks_max: usize) -> Stall {
        Stall { oldest: None, ticks: 0, ticks_max }
    }

    /// Lets a tick pass; `oldest` is the order of the oldest write that is not synced.
    pub(super) fn tick(&mut self, oldest: Option<u64>) {
        let hangs = oldest.is_some() && oldest == self.oldest && !plant::is(Plant::LeadThroughStall);
        self.ticks = if hangs { self.ticks + 1 } else { 0 };
        self.oldest = oldest;
    }

    /// True at the tick at which a leader hands over, since its disk is about to take too long.
    pub(super) fn is_next(&self) -> bool {
        self.ticks + TICKS_TO_HAND_OVER == self.ticks_max
    }

    /// True when this write, the oldest that is not synced, takes too long.
    pub(super) fn is_one(&self, oldest: Option<u64>) -> bool {
        self.ticks >= self.ticks_max && oldest.is_some() && oldest == self.oldest
    }
}
