//! Rate limit of one line of the process's log, for conditions that a caller can repeat as often as it likes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two lines that one limiter lets through.
const PAUSE: Duration = Duration::from_secs(10);

/// Rate limiter of one kind of log line: at most one line in 10 s, and the number of those suppressed in
/// between.
///
/// Shared by reference between threads; `new` is `const`, so that a `static` can hold one.
#[derive(Debug)]
pub struct LogLimiter(Mutex<Option<Window>>);

/// Period after the last line that was let through.
#[derive(Debug)]
struct Window {
    began: Instant,
    suppressed: u64,
}

impl LogLimiter {
    /// A limiter that lets its first line through.
    pub const fn new() -> LogLimiter {
        LogLimiter(Mutex::new(None))
    }

    /// Asks for a line now: as [`LogLimiter::due_at`] with the monotonic clock's time.
    pub fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    /// Asks for a line at `now`. `Some`: write it; the number is how many were suppressed since the line
    /// before. `None`: this one is suppressed, and counted.
    pub fn due_at(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *window {
            Some(window) if now.duration_since(window.began) < PAUSE => {
                window.suppressed += 1;
                None
            }
            window => {
                let before = window.replace(Window { began: now, suppressed: 0 });
                Some(before.map_or(0, |before| before.suppressed))
            }
        }
    }
}

impl Default for LogLimiter {
    fn default() -> Self {
        LogLimiter::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_a_pause_with_the_number_of_those_suppressed() {
        let (limiter, now) = (LogLimiter::new(), Instant::now());
        assert_eq!(limiter.due_at(now), Some(0));
        assert!((0..1_000).all(|_| limiter.due_at(now).is_none()));
        assert_eq!(limiter.due_at(now + PAUSE), Some(1_000));
        assert_eq!(limiter.due_at(now + PAUSE), None);
    }
}
