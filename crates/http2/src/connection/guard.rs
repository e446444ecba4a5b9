//! Counts what costs us more than the peer, and says when it is too much.

use crate::error::{ErrorCode, Fault};
use crate::limits::{Allowance, Limits};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Costly {
    Reset,
    Ping,
    Settings,
    EmptyFrame,
    IdleFrame,
    SmallWindow,
    LateFrame,
}

/// One counter for each [`Costly`] thing.
#[derive(Debug)]
pub(super) struct Guard {
    buckets: [Bucket; 7],
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    allowance: Allowance,
    left: u32,
    /// Up to when the refill is reckoned in `left`.
    refilled_us: u64,
}

impl Guard {
    pub(super) fn new(limits: &Limits, now_us: u64) -> Self {
        let bucket = |allowance: Allowance| Bucket { allowance, left: allowance.burst, refilled_us: now_us };
        // In the order of the enum.
        Self {
            buckets: [
                bucket(limits.resets),
                bucket(limits.pings),
                bucket(limits.settings),
                bucket(limits.empty_frames),
                bucket(limits.idle_frames),
                bucket(limits.small_windows),
                bucket(limits.late_frames),
            ],
        }
    }

    /// Counts one, or ends the connection with ENHANCE_YOUR_CALM (RFC 9113 §10.5).
    pub(super) fn count(&mut self, what: Costly, now_us: u64) -> Result<(), Fault> {
        if self.buckets[what as usize].take(now_us) {
            return Ok(());
        }
        Err(Fault::connection(
            ErrorCode::ENHANCE_YOUR_CALM,
            match what {
                Costly::Reset => "too many streams that end early",
                Costly::Ping => "too many pings",
                Costly::Settings => "too many settings",
                Costly::EmptyFrame => "too many empty frames",
                Costly::IdleFrame => "too many frames that change nothing",
                Costly::SmallWindow => "too many windows opened by too little",
                Costly::LateFrame => "too many frames on streams that have ended",
            },
        ))
    }
}

impl Bucket {
    fn take(&mut self, now_us: u64) -> bool {
        if self.left == 0 {
            self.refill(now_us);
        }
        let one_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        one_left
    }

    /// Only done when nothing is left: until then nobody needs to know.
    #[cold]
    fn refill(&mut self, now_us: u64) {
        let elapsed_us = u128::from(now_us.saturating_sub(self.refilled_us));
        let refill = elapsed_us * u128::from(self.allowance.per_second) / 1_000_000;
        if refill > 0 {
            self.left = refill.min(self.allowance.burst.into()) as u32;
            self.refilled_us = now_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_so_many_a_second() {
        let limits = Limits { pings: Allowance { burst: 3, per_second: 2 }, ..Limits::default() };
        let mut guard = Guard::new(&limits, 1_000);
        let mut pass = |now_us| guard.count(Costly::Ping, now_us).is_ok();
        assert_eq!([(); 4].map(|()| pass(1_000)), [true, true, true, false]);
        assert_eq!([(); 2].map(|()| pass(501_000)), [true, false]);
        assert_eq!([(); 4].map(|()| pass(60_000_000)), [true, true, true, false]);
    }
}
