//! Endpoints that want nothing for a while, and the number of pushes at a time behind that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluice_node::AgreedClock;

use crate::answer::DELAY_MAX;

/// Longest sleep until the clock is looked at again: a test may move it.
pub(crate) const CLOCK_PAUSE: Duration = Duration::from_millis(500);

/// The time until which an endpoint wants nothing, by the server's clock. It outlives changes of settings
/// that leave the endpoint as it is.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// In milliseconds since the Unix epoch; 0: the endpoint takes pushes, as far as is known.
    until_ms: AtomicU64,
}

impl Hold {
    /// Holds for a time from now on, unless it is held for longer.
    pub(crate) fn extend(&self, clock: &AgreedClock, delay: Duration) {
        let delay_ms = delay.as_millis() as u64;
        if self.left_ms(clock) < delay_ms {
            self.until_ms.store(clock.now_ms().saturating_add(delay_ms), Ordering::Relaxed);
        }
    }

    /// True from a hold until the endpoint has taken pushes again.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.until_ms.load(Ordering::Relaxed) > 0
    }

    /// Notes that the endpoint takes pushes again.
    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
    }

    /// Time until the next look at it, where nothing may be pushed now.
    pub(crate) fn pause(&self, clock: &AgreedClock) -> Option<Duration> {
        let left_ms = self.left_ms(clock);
        (left_ms > 0).then(|| Duration::from_millis(left_ms).min(CLOCK_PAUSE))
    }

    /// Time until it is over, in milliseconds; 0: nothing is held. More than any hold is left when the clock
    /// was set back: that holds nothing.
    fn left_ms(&self, clock: &AgreedClock) -> u64 {
        let left_ms = self.until_ms.load(Ordering::Relaxed).saturating_sub(clock.now_ms());
        if left_ms > DELAY_MAX.as_millis() as u64 { 0 } else { left_ms }
    }

    /// Waits until it is over.
    pub(crate) async fn wait(&self, clock: &AgreedClock) {
        while let Some(pause) = self.pause(clock) {
            tokio::time::sleep(pause).await;
        }
    }
}

/// The number of pushes at a time. After a hold one push tries the endpoint; each that is answered with
/// anything but another hold doubles the number.
#[derive(Debug)]
pub(crate) struct Turns {
    now: usize,
    most: usize,
    /// True from a hold until there are as many as before.
    is_on_trial: bool,
    /// Number of the hold before the pushes that begin now.
    round: u32,
}

/// Meaning of a hold that a push was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// Known already: the push had begun before another one was told.
    Known,
    /// The endpoint has taken pushes until now.
    First,
    /// Told to a push that tried the endpoint.
    Again,
}

impl Turns {
    /// As many as `most`, or one while the endpoint is on trial.
    pub(crate) fn new(most: u16, is_on_trial: bool) -> Turns {
        let most = usize::from(most);
        Turns { now: if is_on_trial { 1 } else { most }, most, is_on_trial, round: 0 }
    }

    /// Number of pushes at a time.
    pub(crate) fn now(&self) -> usize {
        self.now
    }

    /// True from a hold until there are as many as before.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.is_on_trial
    }

    /// Round of a push that begins now.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// Takes in that a push of a round was told to come later.
    pub(crate) fn held(&mut self, round: u32) -> Told {
        if round != self.round {
            return Told::Known;
        }
        let told = if self.is_on_trial { Told::Again } else { Told::First };
        (self.now, self.is_on_trial, self.round) = (1, true, self.round.wrapping_add(1));
        told
    }

    /// Takes in that a push of a round was answered otherwise, or not at all. True: that changes anything.
    pub(crate) fn answered(&mut self, round: u32) -> bool {
        let grows = round == self.round && self.is_on_trial;
        if grows {
            self.now = (self.now * 2).min(self.most);
            self.is_on_trial = self.now < self.most;
        }
        grows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_hold_counts_until_it_is_over_or_the_clock_was_set_back() {
        let (clock, hold) = (AgreedClock::default(), Hold::default());
        assert_eq!((hold.is_on_trial(), hold.pause(&clock)), (false, None));
        hold.extend(&clock, Duration::from_millis(300));
        hold.extend(&clock, Duration::from_millis(100));
        let left = hold.pause(&clock).unwrap();
        assert!(left > Duration::from_millis(100) && left <= Duration::from_millis(300), "{left:?}");
        hold.extend(&clock, DELAY_MAX);
        assert_eq!(hold.pause(&clock), Some(CLOCK_PAUSE));
        hold.until_ms.store(clock.now_ms() + 2 * DELAY_MAX.as_millis() as u64, Ordering::Relaxed);
        assert_eq!((hold.pause(&clock), hold.is_on_trial()), (None, true));
        hold.extend(&clock, Duration::from_millis(300));
        assert!(hold.pause(&clock).is_some(), "of a hold from before the clock was set back nothing is left");
        hold.end();
        assert!(!hold.is_on_trial());
    }

    #[test]
    fn pushes_begin_one_at_a_time_after_a_hold() {
        let mut turns = Turns::new(6, false);
        let before = turns.round();
        assert_eq!((turns.now(), turns.answered(before)), (6, false));
        assert_eq!(turns.held(before), Told::First);
        assert_eq!((turns.now(), turns.held(before), turns.answered(before)), (1, Told::Known, false));
        assert_eq!(turns.held(turns.round()), Told::Again);
        let grown = std::array::from_fn(|_| {
            turns.answered(turns.round());
            turns.now()
        });
        assert_eq!(grown, [2, 4, 6, 6]);
        assert!(!turns.is_on_trial() && !turns.answered(turns.round()));

        let mut one = Turns::new(1, false);
        assert_eq!([one.held(one.round()), one.held(one.round())], [Told::First, Told::Again]);
        assert!(one.answered(one.round()) && !one.is_on_trial());
        assert!(Turns::new(1, true).is_on_trial());
    }
}
