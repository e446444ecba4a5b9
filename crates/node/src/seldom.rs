//! Lines of the log that whoever asks again and again would fill it with.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Lets a line through in a while, and counts those that are left out.
#[derive(Debug)]
pub(crate) struct Seldom(Mutex<Option<(Instant, u64)>>);

impl Seldom {
    pub(crate) const fn new() -> Seldom {
        Seldom(Mutex::new(None))
    }

    /// How many were left out since the last line, if it is time for another; else this one is left out.
    pub(crate) fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some((at, left_out)) if now.duration_since(*at) < PAUSE => {
                *left_out += 1;
                None
            }
            last => Some(last.replace((now, 0)).map_or(0, |(_, left_out)| left_out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_in_a_while_and_counts_the_others() {
        let (seldom, now) = (Seldom::new(), Instant::now());
        assert_eq!(seldom.due_at(now), Some(0));
        assert!((0..1_000).all(|_| seldom.due_at(now).is_none()));
        assert_eq!(seldom.due_at(now + PAUSE), Some(1_000));
        assert_eq!(seldom.due_at(now + PAUSE), None);
    }
}
