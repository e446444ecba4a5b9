//! The log of a queue's latest pushes, and counts of all. They are in the memory of the node that pushes, and
//! begin anew with another leader or a start.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sluice_engine::MessageId;

use crate::answer::Verdict;

/// Attempts of a queue that are kept, the newest.
pub const ATTEMPTS_MAX: usize = 100;
/// Most characters of an error that an attempt tells.
const ERROR_CHARS_MAX: usize = 256;
/// Upper bounds of the buckets of times, in milliseconds.
pub const BUCKETS_MS: [u64; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 15_000, 60_000];

/// The outcome of a push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The endpoint has taken the message, which is acked.
    Acked,
    /// The attempt has failed, and the message was nacked.
    Failed,
    /// The endpoint wanted it later, and it was released with a delay.
    Delayed,
    /// The endpoint is gone, and the queue's pushes were paused.
    Gone,
}

impl Outcome {
    /// All outcomes, in the order of their counts.
    pub const ALL: [Outcome; 4] = [Outcome::Acked, Outcome::Failed, Outcome::Delayed, Outcome::Gone];

    /// The name used in every API.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Acked => "acked",
            Outcome::Failed => "failed",
            Outcome::Delayed => "delayed",
            Outcome::Gone => "gone",
        }
    }

    pub(crate) fn of(verdict: &Verdict) -> Outcome {
        match verdict {
            Verdict::Taken => Outcome::Acked,
            Verdict::Later { .. } => Outcome::Delayed,
            Verdict::Gone { .. } => Outcome::Gone,
            Verdict::Failed { .. } => Outcome::Failed,
        }
    }
}

/// A push that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The message.
    pub message: MessageId,
    /// Number of the attempt, from 1.
    pub attempt: u16,
    /// When it began, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Time that it took, in milliseconds.
    pub took_ms: u64,
    /// Status of the answer; `None`: there was none.
    pub status: Option<u16>,
    /// Outcome.
    pub outcome: Outcome,
    /// Reason of a failure; empty: it did not fail.
    pub error: Box<str>,
    /// Delay until the next attempt that the endpoint has asked for, in milliseconds; `None`: the queue's
    /// rules decide.
    pub delay_ms: Option<u64>,
    /// Why the message could not be settled; empty: it was.
    pub unsettled: Box<str>,
}

/// The log of a queue.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<VecDeque<Attempt>>);

impl Log {
    pub(crate) fn add(&self, mut attempt: Attempt) {
        if let Some((cut, _)) = attempt.error.char_indices().nth(ERROR_CHARS_MAX) {
            attempt.error = attempt.error[..cut].into();
        }
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() == ATTEMPTS_MAX {
            attempts.pop_front();
        }
        attempts.push_back(attempt);
    }

    /// The latest attempts, the newest first, at most `most`.
    pub(crate) fn newest(&self, most: usize) -> Vec<Attempt> {
        let attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.iter().rev().take(most).cloned().collect()
    }
}

/// Counts of the pushes of a node since its start.
#[derive(Debug, Default)]
pub struct Counts {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    buckets: [AtomicU64; BUCKETS_MS.len()],
    took_us: AtomicU64,
    /// Pushes that are on their way.
    pub in_flight: AtomicU64,
    /// Queues that the node pushes.
    pub queues: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, outcome: Outcome, took: Duration) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        self.took_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
        let bucket = BUCKETS_MS.iter().position(|bound| took <= Duration::from_millis(*bound));
        if let Some(bucket) = bucket {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Pushes with this outcome.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// Pushes that took at most as long as each of [`BUCKETS_MS`], the number of all, and the sum of their
    /// times in microseconds.
    pub fn times(&self) -> ([u64; BUCKETS_MS.len()], u64, u64) {
        let mut sum = 0;
        let cumulated = std::array::from_fn(|at| {
            sum += self.buckets[at].load(Ordering::Relaxed);
            sum
        });
        let all = Outcome::ALL.into_iter().map(|outcome| self.of(outcome)).sum();
        (cumulated, all, self.took_us.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::NamespaceId;

    use super::*;

    fn attempt(sequence: u64, error: &str) -> Attempt {
        Attempt {
            message: MessageId { namespace: NamespaceId::DEFAULT, sequence },
            attempt: 1,
            at_ms: 1,
            took_ms: 2,
            status: None,
            outcome: Outcome::Failed,
            error: error.into(),
            delay_ms: None,
            unsettled: "".into(),
        }
    }

    #[test]
    fn a_log_keeps_the_newest_and_cuts_errors() {
        let log = Log::default();
        for sequence in 0..=ATTEMPTS_MAX as u64 {
            log.add(attempt(sequence, &"ä".repeat(ERROR_CHARS_MAX + 1)));
        }
        let newest = log.newest(usize::MAX);
        assert_eq!(newest.len(), ATTEMPTS_MAX);
        assert_eq!((newest[0].message.sequence, newest[ATTEMPTS_MAX - 1].message.sequence), (100, 1));
        assert_eq!(&*newest[0].error, "ä".repeat(ERROR_CHARS_MAX));
        assert_eq!(log.newest(2).len(), 2);
    }

    #[test]
    fn counts_agree() {
        let counts = Counts::default();
        counts.add(Outcome::Acked, Duration::from_millis(1));
        counts.add(Outcome::Acked, Duration::from_millis(3));
        counts.add(Outcome::Gone, Duration::from_secs(90));
        let (cumulated, all, took_us) = counts.times();
        assert_eq!((cumulated[0], cumulated[1], cumulated[2], cumulated[11]), (1, 1, 2, 2));
        assert_eq!((all, took_us), (3, 90_004_000));
        assert_eq!((counts.of(Outcome::Acked), counts.of(Outcome::Failed)), (2, 0));
    }
}
