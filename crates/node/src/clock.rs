//! Time of the log: it starts where the log ended, runs with monotonic time, and is slewed gently towards the
//! wall clock. It never runs backwards, across restarts too.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Source of time; the simulator has its own.
pub trait Clock: Send {
    /// Monotonic time in microseconds, from an arbitrary origin.
    fn monotonic_us(&self) -> u64;
    /// Wall-clock time in microseconds since the Unix epoch; may jump.
    fn wall_us(&self) -> u64;
}

/// Origin of the monotonic clock of all threads.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The clocks of the machine.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// The clocks of the machine: the monotonic one began at zero with the first of them in the process.
    pub fn new() -> SystemClock {
        SystemClock { origin: *ORIGIN }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn monotonic_us(&self) -> u64 {
        self.origin.elapsed().as_micros() as u64
    }

    fn wall_us(&self) -> u64 {
        wall_us()
    }
}

/// Monotonic clock of the machine, as every [`SystemClock`] tells it, in microseconds.
pub(crate) fn monotonic_us() -> u64 {
    ORIGIN.elapsed().as_micros() as u64
}

/// Wall clock of the machine, in microseconds since the Unix epoch; may jump.
pub(crate) fn wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Origin of terms: 2026-01-01, in microseconds since the Unix epoch.
const TERMS_BEGIN_US: u64 = 1_767_225_600_000_000;
/// Upper limit of a term by time: half of the numbers that an epoch may have, those of 69 years. A clock
/// further ahead, or before the origin, gives no usable time; each start then takes a number of the other
/// half, or continues from the last term.
const TERM_MIN_MAX: u64 = 1 << 41;

/// Term of a start at this time, in milliseconds since 2026. So a copy of a journal, an original that went on
/// after it was copied, and a server that keeps nothing give other ids and tokens than each other.
pub fn term_min(clock: &dyn Clock) -> u64 {
    (clock.wall_us().saturating_sub(TERMS_BEGIN_US) / 1_000).min(TERM_MIN_MAX)
}

/// Largest lead of the wall clock over the log at a start, in microseconds. More needs the operator's
/// consent: leases, delays and windows would all end at once.
pub const START_AHEAD_US_MAX: u64 = 366 * 24 * 3600 * 1_000_000;
/// Difference from monotonic time between two readings of the wall clock that counts as a jump, in
/// microseconds: alarmed, not followed.
const JUMP_US: i64 = 1_000_000;
/// Divisor of elapsed time: upper limit of slewing.
const SLEW_DIVISOR: i64 = 2_000;

/// Irregularity found when reading the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alarm {
    /// The wall clock jumped by this many microseconds.
    Jumped(i64),
}

/// The clock of a log.
#[derive(Debug)]
pub struct LogClock {
    now_us: u64,
    monotonic_us: u64,
    wall_us: u64,
    /// Lead of the wall clock over the log's time, less the jumps that are not followed, in microseconds.
    drift_us: i64,
    /// Monotonic time up to which slewing has been done.
    slewed_us: u64,
}

impl LogClock {
    /// Starts at the wall clock, or at the last logged time where the wall clock is behind it.
    ///
    /// # Errors
    /// The lead of the wall clock in microseconds, when it is more than a year and there is no consent.
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

    /// Begins at the last logged time. For a replica, which does not know what time it is before it hears of
    /// others.
    pub fn follow(clock: &dyn Clock, last_logged_us: u64) -> LogClock {
        let (wall_us, monotonic_us) = (clock.wall_us(), clock.monotonic_us());
        LogClock { now_us: last_logged_us, monotonic_us, wall_us, drift_us: 0, slewed_us: monotonic_us }
    }

    /// Goes on from this time, in microseconds since the Unix epoch, by the monotonic clock.
    pub fn go_on(&mut self, clock: &dyn Clock, now_us: u64) {
        *self = LogClock::follow(clock, now_us);
    }

    /// Moves the time forward at once, by this many microseconds, and for good: it is not slewed back.
    pub fn skip(&mut self, by_us: u64) {
        self.now_us = self.now_us.saturating_add(by_us);
    }

    /// Lets the time be slewed towards this wall-clock time, in microseconds since the Unix epoch.
    pub fn aim(&mut self, wall_us: u64) {
        self.drift_us = wall_us as i64 - self.now_us as i64;
    }

    /// Reads the time, in microseconds since the Unix epoch, with any irregularity.
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

    /// Monotonic time at the last reading, in microseconds.
    pub fn monotonic_us(&self) -> u64 {
        self.monotonic_us
    }

    /// Correction that is due, in microseconds; fractions are kept for the next reading.
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
    fn a_skip_is_for_good() {
        let clock = hands(100 * SECOND);
        let mut log = LogClock::start(&clock, 0, false).unwrap();
        log.skip(3_600 * SECOND);
        for seconds in [0, 10, 10_000] {
            clock.monotonic.set(seconds * SECOND);
            clock.wall.set((100 + seconds) * SECOND);
            assert_eq!(log.now(&clock), ((3_700 + seconds) * SECOND, None));
        }
    }

    #[test]
    fn a_follower_goes_on_from_the_logs_time_whatever_its_wall_clock_says() {
        for wall in [SECOND, 9_000_000 * SECOND] {
            let clock = hands(wall);
            let pass = |seconds| {
                clock.monotonic.set(clock.monotonic.get() + seconds * SECOND);
                clock.wall.set(clock.wall.get() + seconds * SECOND);
            };
            let mut log = LogClock::follow(&clock, 500 * SECOND);
            pass(10);
            assert_eq!(log.now(&clock).0, 510 * SECOND, "nobody has told the time");
            log.go_on(&clock, 505 * SECOND);
            pass(10);
            assert_eq!(log.now(&clock).0, 515 * SECOND, "as the node that leads, though it was ahead");
            log.aim(516 * SECOND);
            pass(2_000);
            assert_eq!(log.now(&clock).0, 2_516 * SECOND, "slewed as ever, and not towards the clock here");
        }
    }

    #[test]
    fn a_start_a_year_ahead_needs_consent() {
        let clock = hands(2 * START_AHEAD_US_MAX);
        assert!(LogClock::start(&clock, SECOND, false).is_err());
        assert!(LogClock::start(&clock, SECOND, true).is_ok());
        assert!(LogClock::start(&clock, 0, false).is_ok(), "an empty log has no opinion");
    }
}
