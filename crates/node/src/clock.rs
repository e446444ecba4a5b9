//! Time as the log knows it: it starts where the log ended, runs with monotonic time, and is slewed gently towards the
//! wall clock. It never runs backwards, across restarts too.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from; the simulator has its own.
pub trait Clock: Send {
    /// Microseconds since some fixed moment; never runs backwards while the process lives.
    fn monotonic_us(&self) -> u64;
    /// Microseconds since the Unix epoch, as the machine believes; may jump.
    fn wall_us(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts the monotonic clock at zero.
    pub fn new() -> SystemClock {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn monotonic_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    fn wall_us(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }
}

/// 2026-01-01, in microseconds since the Unix epoch: where terms begin.
const TERMS_BEGIN_US: u64 = 1_767_225_600_000_000;
/// Half of the numbers that an epoch may have: those of 69 years. A clock that is further ahead (or behind,
/// before terms begin) says nothing; each start then takes one of the other half, or goes on from the last
/// term.
const TERM_MIN_MAX: u64 = 1 << 41;

/// The term of a start at this time: milliseconds since 2026. So a copy of a journal, an original that went
/// on after it was copied, and a server that keeps nothing, give other ids and tokens than each other.
pub fn term_min(clock: &dyn Clock) -> u64 {
    (clock.wall_us().saturating_sub(TERMS_BEGIN_US) / 1_000).min(TERM_MIN_MAX)
}

/// A wall clock that is so far ahead of the log at start needs the operator's consent: leases, delays and windows
/// would all end at once.
pub const START_AHEAD_US_MAX: u64 = 366 * 24 * 3600 * 1_000_000;
/// Two looks at the wall clock that differ from monotonic time by more than this are a jump: alarmed, not followed.
const JUMP_US: i64 = 1_000_000;
/// Slewing: at most one part in this many of the time that has passed.
const SLEW_DIVISOR: i64 = 2_000;

/// What was seen when time was last looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alarm {
    /// The wall clock jumped by so many microseconds.
    Jumped(i64),
}

/// The log's clock.
#[derive(Debug)]
pub struct LogClock {
    now_us: u64,
    monotonic_us: u64,
    wall_us: u64,
    /// How far the wall clock is ahead of the log's, less the jumps that are not followed.
    drift_us: i64,
    /// Monotonic time up to which slewing has been done.
    slewed_us: u64,
}

impl LogClock {
    /// Starts at the wall clock, or at the last logged time where the wall clock is behind it.
    ///
    /// # Errors
    /// How many microseconds the wall clock is ahead, when that is more than a year and not consented to.
    pub fn start(clock: &dyn Clock, last_logged_us: u64, consent: bool) -> Result<LogClock, u64> {
        let wall_us = clock.wall_us();
        let ahead = wall_us.saturating_sub(last_logged_us);
        if last_logged_us > 0 && ahead > START_AHEAD_US_MAX && !consent {
            return Err(ahead);
        }
        let now_us = wall_us.max(last_logged_us + 1);
        let drift_us = wall_us as i64 - now_us as i64;
        let monotonic_us = clock.monotonic_us();
        Ok(LogClock { now_us, monotonic_us, wall_us, drift_us, slewed_us: monotonic_us })
    }

    /// The time now, and what was odd about it.
    pub fn now(&mut self, clock: &dyn Clock) -> (u64, Option<Alarm>) {
        let (monotonic_us, wall_us) = (clock.monotonic_us(), clock.wall_us());
        let elapsed = monotonic_us.saturating_sub(self.monotonic_us) as i64;
        let stray = (wall_us as i64 - self.wall_us as i64) - elapsed;
        let alarm = (stray.abs() > JUMP_US).then_some(Alarm::Jumped(stray));
        if alarm.is_none() {
            self.drift_us += stray;
        }
        self.now_us += (elapsed + self.slew(monotonic_us)).max(0) as u64;
        self.wall_us = wall_us;
        self.monotonic_us = monotonic_us;
        (self.now_us, alarm)
    }

    /// Monotonic time when time was last looked at.
    pub fn monotonic_us(&self) -> u64 {
        self.monotonic_us
    }

    /// The correction that has become due; time too short for a whole microsecond is kept for the next look.
    fn slew(&mut self, monotonic_us: u64) -> i64 {
        let most = monotonic_us.saturating_sub(self.slewed_us) as i64 / SLEW_DIVISOR;
        if most == 0 {
            return 0;
        }
        self.slewed_us = monotonic_us;
        let slew = self.drift_us.clamp(-most, most);
        self.drift_us -= slew;
        slew
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Hands {
        monotonic: Cell<u64>,
        wall: Cell<u64>,
    }

    impl Clock for Hands {
        fn monotonic_us(&self) -> u64 {
            self.monotonic.get()
        }
        fn wall_us(&self) -> u64 {
            self.wall.get()
        }
    }

    fn hands(wall: u64) -> Hands {
        Hands { monotonic: Cell::new(0), wall: Cell::new(wall) }
    }

    const SECOND: u64 = 1_000_000;

    #[test]
    fn it_never_runs_backwards_across_a_restart() {
        let clock = hands(100 * SECOND);
        let mut log = LogClock::start(&clock, 500 * SECOND, false).unwrap();
        assert!(log.now(&clock).0 > 500 * SECOND);
    }

    #[test]
    fn a_jump_is_alarmed_and_not_followed() {
        let clock = hands(100 * SECOND);
        let mut log = LogClock::start(&clock, 0, false).unwrap();
        clock.monotonic.set(SECOND);
        clock.wall.set(3_600 * SECOND);
        let (now, alarm) = log.now(&clock);
        assert_eq!(now, 101 * SECOND);
        assert!(matches!(alarm, Some(Alarm::Jumped(by)) if by > 3_000 * SECOND as i64));
        clock.monotonic.set(2 * SECOND);
        clock.wall.set(3_601 * SECOND);
        assert_eq!(log.now(&clock), (102 * SECOND, None));
    }

    #[test]
    fn drift_is_slewed_gently() {
        let clock = hands(100 * SECOND);
        let mut log = LogClock::start(&clock, 0, false).unwrap();
        clock.monotonic.set(10 * SECOND);
        clock.wall.set(110 * SECOND + 100_000); // 100 ms fast after 10 s
        let (now, alarm) = log.now(&clock);
        assert_eq!(alarm, None);
        assert_eq!(now, 110 * SECOND + 5_000, "half a millisecond a second");
    }

    #[test]
    fn a_start_a_year_ahead_needs_consent() {
        let clock = hands(2 * START_AHEAD_US_MAX);
        assert!(LogClock::start(&clock, SECOND, false).is_err());
        assert!(LogClock::start(&clock, SECOND, true).is_ok());
        assert!(LogClock::start(&clock, 0, false).is_ok(), "an empty log has no opinion");
    }
}
