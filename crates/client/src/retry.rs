//! Retries: which errors are worth one, and after which delay.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use crate::error::{ClientError, TransportKind};
use crate::options::Options;

const FIRST_DELAY: Duration = Duration::from_millis(25);
const DELAY_MAX: Duration = Duration::from_secs(5);
/// Longest delay before the servers of a cluster are asked once more which of them leads. They agree on a
/// leader within about a second: a longer delay would add to that.
const LEADER_DELAY_MAX: Duration = Duration::from_millis(100);
/// Codes of refusals before anything was done, whatever the request.
const NOTHING_DONE: [&str; 6] =
    ["overloaded", "shutting_down", "not_leader", "no_leader", "in_doubt", "rate_limited"];

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
    /// True when the next try asks another server than the last.
    to_another: bool,
    /// True when the next try asks a server that was not asked since the last delay.
    is_elsewhere: bool,
    /// Number of delays so far, the one before the next try among them.
    delays: u32,
}

impl Tries {
    /// The tries of a request that one server can be asked, and `others`.
    pub(crate) fn new(others: u32) -> Tries {
        Tries {
            started: Instant::now(),
            count: 0,
            others,
            passed_on: 0,
            to_another: false,
            is_elsewhere: false,
            delays: 0,
        }
    }

    /// Notes whether the next try asks another server: each of them is asked once without a delay.
    pub(crate) fn passes_on(&mut self, to_another: bool) {
        self.to_another = to_another;
        self.is_elsewhere = to_another && self.passed_on < self.others;
        self.passed_on = if self.is_elsewhere { self.passed_on + 1 } else { 0 };
        self.delays += u32::from(!self.is_elsewhere);
    }

    /// Delay before the next try; `None`: the error is final. Each server is asked once, however long the
    /// others have taken.
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
        // A node that is cut off from the leader takes seconds to say so.
        if self.is_elsewhere && self.delays == 0 && !limit.is_zero() {
            return Some(Duration::ZERO);
        }
        let delay = if self.is_elsewhere { Duration::ZERO } else { self.delay(error) };
        (self.started.elapsed() + delay <= limit).then_some(delay)
    }

    /// Between half and all of an exponentially growing delay, so that many clients do not return at once;
    /// never less than the server asked for, unless another one is asked.
    fn delay(&self, error: &ClientError) -> Duration {
        let (asked, most) = match error {
            _ if self.to_another => (Duration::ZERO, LEADER_DELAY_MAX),
            ClientError::Server { retry_after, .. } => (retry_after.unwrap_or(Duration::ZERO), DELAY_MAX),
            _ => (Duration::ZERO, DELAY_MAX),
        };
        let grown = FIRST_DELAY.saturating_mul(1 << self.delays.saturating_sub(1).min(16)).min(most);
        if asked.is_zero() { jittered(grown) } else { asked + jitter(grown) }
    }
}

/// Between half and all of a delay.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay / 2 + jitter(delay)
}

/// Up to half of a delay.
fn jitter(delay: Duration) -> Duration {
    delay.mul_f64((random() % 1000) as f64 / 2000.0)
}

/// True when the same request may succeed later.
pub(crate) fn worth_repeating(error: &ClientError, safety: Safety) -> bool {
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
    fn each_server_is_asked_once_however_long_the_others_have_taken() {
        let error = server(503, "no_leader", None);
        let started =
            Instant::now().checked_sub(Duration::from_secs(40)).expect("this machine runs for longer");
        let mut tries = Tries { count: 1, started, ..Tries::new(2) };
        let mut next = |options: &Options| {
            tries.passes_on(true);
            tries.next_delay(&error, Safety::Once, options)
        };
        let options = Options::default();
        assert_eq!(
            [next(&options), next(&options), next(&options)],
            [Some(Duration::ZERO), Some(Duration::ZERO), None]
        );
        let never = Options { retry_for: Duration::ZERO, ..Options::default() };
        let mut tries = Tries { count: 1, started, ..Tries::new(2) };
        tries.passes_on(true);
        assert_eq!(tries.next_delay(&error, Safety::Once, &never), None);
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
        for delays in 1..40 {
            let delay = Tries { delays, ..Tries::new(0) }.delay(&error);
            assert!(delay <= DELAY_MAX, "{delays}: {delay:?}");
        }
    }

    #[test]
    fn a_cluster_without_a_leader_is_asked_again_soon() {
        let error = server(503, "not_leader", Some(Duration::from_secs(1)));
        let mut tries = Tries::new(2);
        for _ in 0..40 {
            tries.passes_on(true);
            let delay = tries.next_delay(&error, Safety::Once, &Options::default());
            assert!(delay.expect("it may be repeated") <= LEADER_DELAY_MAX, "{delay:?}");
        }
    }
}
