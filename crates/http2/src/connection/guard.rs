//! Counts what costs us more than the peer, and says when it is too much.

use crate::error::{ErrorCode, Fault};
use crate::limits::{Allowance, Limits};

/// A kind of event whose rate is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Costly {
    Reset,
    Ping,
    Settings,
    EmptyFrame,
    IdleFrame,
    SmallWindow,
    SmallUpdate,
    LateFrame,
}

/// One counter for each [`Costly`] thing.
#[derive(Debug)]
pub(super) struct Guard {
    buckets: [Bucket; 8],
}

/// A rate limit: each event takes up some time, at most a burst ahead of the present.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The time of one, and of a burst.
    one_ns: u64,
    burst_ns: u64,
    /// Up to when time is taken up.
    taken_ns: u64,
    /// Number of streams in answer when that was last computed.
    answers: u64,
}

impl Guard {
    pub(super) fn new(limits: &Limits) -> Self {
        // In the order of the enum.
        Self {
            buckets: [
                limits.resets,
                limits.pings,
                limits.settings,
                limits.empty_frames,
                limits.idle_frames,
                limits.small_windows,
                limits.small_updates,
                limits.late_frames,
            ]
            .map(Bucket::new),
        }
    }

    /// Counts one, or ends the connection with ENHANCE_YOUR_CALM (RFC 9113 §10.5).
    pub(super) fn count(&mut self, what: Costly, now_us: u64) -> Result<(), Fault> {
        self.count_answer(what, 0, now_us)
    }

    /// Counts one of which `answers` have been in answer since the connection began: those are allowed beyond
    /// the allowance, though never more than a burst at once.
    pub(super) fn count_answer(&mut self, what: Costly, answers: u64, now_us: u64) -> Result<(), Fault> {
        if self.buckets[what as usize].take(answers, now_us * 1_000) {
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
                Costly::SmallWindow | Costly::SmallUpdate => "too many windows opened by too little",
                Costly::LateFrame => "too many frames on streams that have ended",
            },
        ))
    }
}

impl Bucket {
    fn new(Allowance { burst, per_second }: Allowance) -> Self {
        // Without any a second, a burst lasts longer than a connection.
        let never_ns = u64::MAX / 4 / (u64::from(burst) + 1);
        let one_ns = 1_000_000_000_u64.checked_div(per_second.into()).unwrap_or(never_ns);
        Self { one_ns, burst_ns: one_ns * u64::from(burst), taken_ns: 0, answers: 0 }
    }

    fn take(&mut self, answers: u64, now_ns: u64) -> bool {
        self.fits(now_ns) || self.fits_with_answers(answers, now_ns)
    }

    fn fits(&mut self, now_ns: u64) -> bool {
        let taken_ns = self.taken_ns.max(now_ns) + self.one_ns;
        let fits = taken_ns - now_ns <= self.burst_ns;
        if fits {
            self.taken_ns = taken_ns;
        }
        fits
    }

    /// Only reckoned when nothing is left: until then nobody needs to know.
    #[cold]
    fn fits_with_answers(&mut self, answers: u64, now_ns: u64) -> bool {
        let earned = answers - std::mem::replace(&mut self.answers, answers);
        self.taken_ns = self.taken_ns.saturating_sub(earned.saturating_mul(self.one_ns));
        self.fits(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(burst: u32, per_second: u32) -> Guard {
        Guard::new(&Limits { pings: Allowance { burst, per_second }, ..Limits::default() })
    }

    #[test]
    fn a_burst_passes_then_so_many_a_second() {
        let mut guard = guard(3, 2);
        let mut pass = |now_us| guard.count(Costly::Ping, now_us).is_ok();
        assert_eq!([(); 4].map(|()| pass(1_000)), [true, true, true, false]);
        assert_eq!([(); 2].map(|()| pass(501_000)), [true, false]);
        assert_eq!([(); 4].map(|()| pass(60_000_000)), [true, true, true, false]);
        // One long before does not make room for two bursts.
        assert!(pass(100_000_000));
        assert_eq!([(); 4].map(|()| pass(160_000_000)), [true, true, true, false]);
    }

    #[test]
    fn a_burst_may_be_all() {
        let mut guard = guard(2, 0);
        let mut pass = |now_us| guard.count(Costly::Ping, now_us).is_ok();
        assert_eq!([(); 3].map(|()| pass(1_000)), [true, true, false]);
        assert!(!pass(1_000_000_000_000));
    }

    #[test]
    fn those_in_answer_pass_beyond_though_not_more_than_a_burst_at_once() {
        let mut guard = guard(3, 2);
        let mut pass = |answers| guard.count_answer(Costly::Ping, answers, 1_000).is_ok();
        assert_eq!([(); 4].map(|()| pass(0)), [true, true, true, false]);
        assert_eq!([(); 3].map(|()| pass(2)), [true, true, false]);
        assert_eq!([(); 4].map(|()| pass(1_000)), [true, true, true, false]);
        assert!((1_001..10_000).all(pass));
    }
}
