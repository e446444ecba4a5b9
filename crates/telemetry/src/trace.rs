//! Contexts of traces (W3C Trace Context, §3.2), and the choice of the messages that begin one.

use std::hash::Hasher as _;
use std::time::{SystemTime, UNIX_EPOCH};

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// The header that carries a context.
pub const TRACEPARENT: &str = "traceparent";
/// Length of a context of version 0, in bytes.
const TRACEPARENT_BYTES: usize = 55;
/// Flag of a context whose trace is recorded.
const SAMPLED: u8 = 1;

/// The time, in nanoseconds since the Unix epoch.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The number of a trace.
pub type TraceId = [u8; 16];
/// The number of a span.
pub type SpanId = [u8; 8];

/// A message, by which its spans are named: number of its namespace, and its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageKey {
    /// The namespace.
    pub namespace: u32,
    /// The number in it.
    pub sequence: u64,
}

/// The context that a message came with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// The trace.
    pub trace: TraceId,
    /// The span that sent the message.
    pub span: SpanId,
    /// True if the trace is recorded.
    pub is_sampled: bool,
}

impl Parent {
    /// Parses the value of `traceparent`; `None`: it is malformed, or names nothing.
    pub fn parse(text: &str) -> Option<Parent> {
        let bytes = text.as_bytes();
        // Later versions may have more behind the flags.
        let is_longer = bytes.len() > TRACEPARENT_BYTES && !text.starts_with("00");
        if bytes.len() != TRACEPARENT_BYTES && !(is_longer && bytes[TRACEPARENT_BYTES] == b'-') {
            return None;
        }
        let dashes = [2, 35, 52].iter().all(|at| bytes[*at] == b'-');
        let [version] = hex(&bytes[..2])?;
        let (trace, span) = (hex(&bytes[3..35])?, hex(&bytes[36..52])?);
        let [flags] = hex(&bytes[53..55])?;
        let is_named = trace != [0; 16] && span != [0; 8];
        (dashes && version != 0xff && is_named).then_some(Parent {
            trace,
            span,
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

/// The bytes of lower-case hexadecimal digits.
fn hex<const BYTES: usize>(digits: &[u8]) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The place of a message's spans: their trace, and the span around them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span that sent the message, elsewhere; `None`: its send here began the trace.
    pub parent: Option<SpanId>,
}

/// A span of the life of a message. Each has a number that follows from the message, so that spans of one
/// message find each other although nobody remembers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The send.
    Send,
    /// The wait for a consumer, with the number of the delivery that ends it.
    Wait(u16),
    /// The work of a delivery.
    Work(u16),
    /// The settlement of a delivery.
    Settle(u16),
}

impl Phase {
    /// The number of this span of a message.
    pub fn span_of(self, message: MessageKey) -> SpanId {
        let which = match self {
            Phase::Send => 1,
            Phase::Wait(delivery) => u32::from(delivery) << 8 | 2,
            Phase::Work(delivery) => u32::from(delivery) << 8 | 3,
            Phase::Settle(delivery) => u32::from(delivery) << 8 | 4,
        };
        let (low, _) = hashed(message, which);
        // A number of zero would be none.
        low.max(1).to_be_bytes()
    }
}

/// The trace of a message that came without one.
pub fn trace_of(message: MessageKey) -> TraceId {
    let (low, high) = hashed(message, 0);
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&high.to_be_bytes());
    trace[8..].copy_from_slice(&low.max(1).to_be_bytes());
    trace
}

fn hashed(message: MessageKey, which: u32) -> (u64, u64) {
    let mut hasher = SipHasher13::new_with_keys(0x736c_7569_6365, 0x7472_6163_6573);
    hasher.write_u32(message.namespace);
    hasher.write_u64(message.sequence);
    hasher.write_u32(which);
    let hash = hasher.finish128();
    (hash.h1, hash.h2)
}

/// The choice of the messages without a trace that begin one. It follows from the message alone, so that each
/// moment of its life, on whatever node, comes to the same choice without asking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampler {
    /// Messages whose mixed number is below it are chosen.
    below: u64,
}

impl Sampler {
    /// Chooses this part of all messages, in millionths.
    pub(crate) fn new(ppm: u32) -> Sampler {
        let part = u128::from(ppm.min(1_000_000)) << 64;
        Sampler { below: u64::try_from(part / 1_000_000).unwrap_or(u64::MAX) }
    }

    /// True if there are messages that are chosen.
    pub(crate) fn takes_some(self) -> bool {
        self.below > 0
    }

    /// True for a message that is chosen.
    pub(crate) fn takes(self, message: MessageKey) -> bool {
        // A multiplication spreads numbers that follow each other; this is asked for every message.
        let number = message.sequence ^ u64::from(message.namespace) << 40;
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.below == u64::MAX || mixed < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read() {
        let parent = Parent::parse(GOOD).unwrap();
        assert_eq!(parent.trace[..4], [0x4b, 0xf9, 0x2f, 0x35]);
        assert_eq!((parent.span[7], parent.is_sampled), (0xb7, true));
        let other = Parent::parse(&GOOD.replace("-01", "-00")).unwrap();
        assert!(!other.is_sampled);
        // A later version may say more.
        assert!(Parent::parse(&format!("{}-more", GOOD.replacen("00", "01", 1))).is_some());
    }

    #[test]
    fn a_context_that_is_none_is_none() {
        for text in [
            "",
            "00",
            "00-1-2-00",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{}more", GOOD.replacen("00", "01", 1)),
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD.replace('-', "_"),
            &format!("{}x", "é".repeat(27)),
        ] {
            assert_eq!(Parent::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_part_of_the_messages_is_chosen_and_the_same_each_time() {
        let keys = |namespace| (1..200_000).map(move |sequence| MessageKey { namespace, sequence });
        for ppm in [0, 1_000, 10_000, 500_000, 1_000_000] {
            let sampler = Sampler::new(ppm);
            let chosen = keys(1).filter(|key| sampler.takes(*key)).count() as f64;
            let expected = 200_000.0 * f64::from(ppm) / 1e6;
            assert!((chosen - expected).abs() <= expected * 0.1 + 1.0, "{ppm}: {chosen}");
            assert!(keys(1).take(100).all(|key| sampler.takes(key) == Sampler::new(ppm).takes(key)));
        }
    }

    #[test]
    fn spans_of_a_message_have_numbers_of_their_own() {
        let key = MessageKey { namespace: 1, sequence: 7 };
        let other = MessageKey { namespace: 2, sequence: 7 };
        let mut spans = Vec::new();
        for key in [key, other] {
            for phase in [Phase::Send, Phase::Wait(1), Phase::Work(1), Phase::Settle(1), Phase::Work(2)] {
                spans.push(phase.span_of(key));
            }
        }
        let count = spans.len();
        spans.sort_unstable();
        spans.dedup();
        assert_eq!((spans.len(), trace_of(key) == trace_of(other)), (count, false));
    }
}
