//! The wall clock on which the nodes of a cluster agree: what they decide by the time of day does not depend
//! on which of them decides, nor on one whose own clock is wrong. A test moves that of its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::wall_us;

/// Wall clock of the server: that of the machine, and in a cluster the time of the log of shard 0 as soon as
/// this node has heard it; on a server for tests it is ahead by what these have moved it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AgreedClock {
    /// Time by which it is ahead of the machine's wall clock, in microseconds.
    ahead_us: Arc<AtomicI64>,
}

impl AgreedClock {
    /// The time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        wall_us().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed)) / 1_000
    }

    /// Sets it to the time of the log, which was read together with the machine's wall clock; both in
    /// microseconds since the Unix epoch.
    pub(crate) fn set(&self, log_us: u64, wall_us: u64) {
        self.ahead_us.store(log_us.wrapping_sub(wall_us).cast_signed(), Ordering::Relaxed);
    }

    /// Moves it forward, by this many microseconds.
    pub(crate) fn skip(&self, by_us: u64) {
        self.ahead_us.fetch_add(by_us.cast_signed(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: u64 = 3_600_000_000;

    #[test]
    fn the_clock_is_as_far_from_the_machines_as_the_log_was_when_it_was_heard() {
        let clock = AgreedClock::default();
        let is_off_by = |expected_us: i64| {
            let off_us = (clock.now_ms() * 1_000).wrapping_sub(wall_us()).cast_signed();
            (off_us - expected_us).abs() < 10_000_000
        };
        assert!(is_off_by(0), "nothing was heard");
        clock.clone().set(HOUR_US, 3 * HOUR_US);
        assert!(is_off_by(-2 * HOUR_US.cast_signed()), "clones share it");
        clock.set(4 * HOUR_US, 3 * HOUR_US);
        assert!(is_off_by(HOUR_US.cast_signed()));
        clock.skip(HOUR_US);
        assert!(is_off_by(2 * HOUR_US.cast_signed()));
        clock.set(0, u64::MAX / 2);
        assert_eq!(clock.now_ms(), 0, "not before the epoch");
    }
}
