//! Retries: which errors are worth one, and after which delay.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use crate::error::{ClientError, TransportKind};
use crate::options::Options;

const FIRST_DELAY: Duration = Duration::from_millis(25);
const DELAY_MAX: Duration = Duration::from_secs(5);
/// Codes of refusals before anything was done, whatever the request.
const NOTHING_DONE: [&str; 5] = ["overloaded", "shutting_down", "not_leader", "no_leader", "rate_limited"];

/// Safety of repeating a request that may have taken effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Safety {
    /// Repeating has no further effect: reads, settles (the server knows the receipt), sends with an
    /// idempotency key.
    Repeatable,
    /// Repeating may have a further effect: repeated only when the first try surely had none.
    Once,
}

/// The tries of one request.
#[derive(Debug)]
pub(crate) struct Tries {
    started: Instant,
    /// Tries so far.
    pub(crate) count: u32,
    /// Number of other servers that can be asked.
    others: u32,
    /// Number of servers that were passed on from since the last delay.
    passed_on: u32,
    /// True when the next try asks a server that was not asked since the last delay.
    is_elsewhere: bool,
}

impl Tries {
    /// The tries of a request that one server can be asked, and `others`.
    pub(crate) fn new(others: u32) -> Tries {
        Tries { started: Instant::now(), count: 0, others, passed_on: 0, is_elsewhere: false }
    }

    /// Notes whether the next try asks another server: each of them is asked once without a delay.
    pub(crate) fn passes_on(&mut self, to_another: bool) {
        self.is_elsewhere = to_another && self.passed_on < self.others;
        self.passed_on = if self.is_elsewhere { self.passed_on + 1 } else { 0 };
    }

    /// Delay before the next try; `None`: the error is final.
    pub(crate) fn next_delay(
        &self,
        error: &ClientError,
        safety: Safety,
        options: &Options,
    ) -> Option<Duration> {
        let limit = match error {
            // Of a cluster one server may be gone while the others choose another leader.
            ClientError::Transport { kind: TransportKind::Connect, .. } if self.others == 0 => {
                options.connect_retry_for
            }
            _ => options.retry_for,
        };
        if !worth_repeating(error, safety) {
            return None;
        }
        let delay = if self.is_elsewhere { Duration::ZERO } else { self.delay(error) };
        (self.started.elapsed() + delay <= limit).then_some(delay)
    }

    /// Between half and all of an exponentially growing delay, so that many clients do not return at once;
    /// never less than the server asked for.
    fn delay(&self, error: &ClientError) -> Duration {
        let asked = match error {
            ClientError::Server { retry_after, .. } => retry_after.unwrap_or(Duration::ZERO),
            _ => Duration::ZERO,
        };
        let grown = FIRST_DELAY.saturating_mul(1 << self.count.saturating_sub(1).min(16)).min(DELAY_MAX);
        let jitter = grown.mul_f64((random() % 1000) as f64 / 2000.0);
        if asked.is_zero() { grown / 2 + jitter } else { asked + jitter }
    }
}

fn worth_repeating(error: &ClientError, safety: Safety) -> bool {
    match error {
        ClientError::Transport { kind: TransportKind::Connect, .. } => true,
        // A certificate that is not trusted now will not be so in a second.
        ClientError::Transport { kind: TransportKind::Tls(_), .. } => false,
        ClientError::Transport { .. } => safety == Safety::Repeatable,
        ClientError::Server { code, .. } if NOTHING_DONE.contains(&code.as_str()) => true,
        ClientError::Server { code, .. } if code == "payload_damaged" => false,
        ClientError::Server { status, .. } => {
            safety == Safety::Repeatable && matches!(status, 500 | 502 | 503 | 504)
        }
        _ => false,
    }
}

/// 64 random bits: the standard library seeds its hashers from the operating system.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(status: u16, code: &str, retry_after: Option<Duration>) -> ClientError {
        let (code, message) = (code.to_owned(), String::new());
        ClientError::Server { status, code, message, details: serde_json::Value::Null, retry_after }
    }

    #[test]
    fn only_what_may_be_repeated_is() {
        let broken = ClientError::Transport {
            kind: TransportKind::Broken,
            server: String::new(),
            tried: 1,
            reason: String::new(),
        };
        assert!(worth_repeating(&broken, Safety::Repeatable));
        assert!(!worth_repeating(&broken, Safety::Once));
        assert!(worth_repeating(&server(429, "overloaded", None), Safety::Once));
        assert!(worth_repeating(&server(503, "no_leader", None), Safety::Once));
        assert!(!worth_repeating(&server(429, "quota_exceeded", None), Safety::Repeatable));
        assert!(!worth_repeating(&server(507, "disk_full", None), Safety::Repeatable));
        assert!(worth_repeating(&server(503, "outcome_unknown", None), Safety::Repeatable));
        assert!(!worth_repeating(&server(503, "outcome_unknown", None), Safety::Once));
        assert!(!worth_repeating(&server(404, "queue_not_found", None), Safety::Repeatable));
    }

    #[test]
    fn the_server_is_never_asked_sooner_than_it_said() {
        let tries = Tries { count: 1, ..Tries::new(0) };
        let error = server(429, "overloaded", Some(Duration::from_secs(2)));
        let delay = tries.next_delay(&error, Safety::Repeatable, &Options::default()).unwrap();
        assert!(delay >= Duration::from_secs(2));
        let far = server(429, "overloaded", Some(Duration::from_secs(3600)));
        assert_eq!(tries.next_delay(&far, Safety::Repeatable, &Options::default()), None);
    }

    #[test]
    fn each_other_server_is_asked_once_without_a_delay() {
        let error = server(503, "not_leader", Some(Duration::from_secs(1)));
        let mut tries = Tries { count: 1, ..Tries::new(2) };
        let mut next = || {
            tries.passes_on(true);
            tries.next_delay(&error, Safety::Once, &Options::default()).expect("it may be repeated").is_zero()
        };
        assert_eq!([next(), next(), next(), next()], [true, true, false, true]);
    }

    #[test]
    fn a_cluster_has_longer_to_answer_than_a_server_that_is_not_there() {
        let refused = ClientError::Transport {
            kind: TransportKind::Connect,
            server: String::new(),
            tried: 1,
            reason: String::new(),
        };
        let options = Options { connect_retry_for: Duration::ZERO, ..Options::default() };
        let after =
            |others| Tries { count: 1, ..Tries::new(others) }.next_delay(&refused, Safety::Once, &options);
        assert_eq!(after(0), None);
        assert!(after(2).is_some());
    }

    #[test]
    fn delays_grow_and_stay_below_the_cap() {
        let error = server(503, "shutting_down", None);
        for count in 1..40 {
            let delay = Tries { count, ..Tries::new(0) }.delay(&error);
            assert!(delay <= DELAY_MAX, "{count}: {delay:?}");
        }
    }
}
