//! Virtual time. It stands still until the scheduler moves it; the wall clock may also jump.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use sluice_node::clock::Clock;

/// First time of the wall clock: 2026-01-01, in microseconds since the Unix epoch.
pub(crate) const START_US: u64 = 1_767_225_600_000_000;

/// The clocks of one machine; clones share them.
#[derive(Clone, Debug, Default)]
pub struct SimClock {
    monotonic_us: Arc<AtomicU64>,
    wall_ahead_us: Arc<AtomicI64>,
}

impl SimClock {
    /// Lets time pass.
    pub fn advance(&self, us: u64) {
        self.monotonic_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Sets the wall clock forward or back.
    pub fn jump(&self, us: i64) {
        self.wall_ahead_us.fetch_add(us, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn monotonic_us(&self) -> u64 {
        self.monotonic_us.load(Ordering::Relaxed)
    }

    fn wall_us(&self) -> u64 {
        let passed = START_US + self.monotonic_us();
        passed.saturating_add_signed(self.wall_ahead_us.load(Ordering::Relaxed))
    }
}
