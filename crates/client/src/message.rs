//! Arguments of calls: messages to send, what to receive, outcomes of deliveries.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::Backoff;

/// A message to send. A field that is `None` follows the settings of the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message<'a> {
    /// Payload; opaque bytes.
    pub payload: Cow<'a, [u8]>,
    /// Media type of the payload.
    pub content_type: Option<Cow<'a, str>>,
    /// Headers, as names and values in order.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Priority, 0 to 9; higher is delivered first.
    pub priority: Option<u8>,
    /// Delay in milliseconds; not together with `deliver_at_ms`.
    pub delay_ms: Option<u64>,
    /// Time at which it becomes ready, in milliseconds since the Unix epoch.
    pub deliver_at_ms: Option<u64>,
    /// Number of attempts after which it becomes a dead letter.
    pub max_attempts: Option<u32>,
    /// Backoff: the delay before the next attempt.
    pub backoff: Option<Backoff>,
    /// Keys and other optional fields.
    pub options: Option<Box<MessageOptions<'a>>>,
}

/// Optional fields of a message. A field that is `None` or empty is not sent; `docs/api.md` describes each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageOptions<'a> {
    /// Tags, by which messages can be filtered.
    pub tags: Vec<Cow<'a, str>>,
    /// Ordering key: messages with the same key are delivered in order, one at a time.
    pub ordering_key: Option<Cow<'a, str>>,
    /// Fair key: messages with different keys are delivered in turn.
    pub fair_key: Option<Cow<'a, str>>,
    /// Limit key, against which the queue's limit per key counts.
    pub limit_key: Option<Cow<'a, str>>,
    /// Cost of each of its deliveries under the rates of its queue's limit, 0 to 10,000,000; `None`: 1.
    pub cost: Option<u32>,
    /// Unique key: the queue holds at most one message with it.
    pub unique: Option<Unique<'a>>,
    /// Time in milliseconds after which it expires if it still waits; not together with `expires_at_ms`.
    pub ttl_ms: Option<u64>,
    /// Time at which it expires if it still waits, in milliseconds since the Unix epoch.
    pub expires_at_ms: Option<u64>,
    /// Time for which the result of its ack is kept, in milliseconds.
    pub result_ttl_ms: Option<u64>,
    /// Correlation id, which the reply carries too.
    pub correlation_id: Option<Cow<'a, str>>,
    /// Name of the queue to which its result is sent as a message.
    pub reply_to: Option<Cow<'a, str>>,
    /// True when it is held until a person approves it.
    pub hold: bool,
    /// Ids of messages that it waits for; `"#0"` is the first message of this send.
    pub depends_on: Vec<Cow<'a, str>>,
    /// Number of these that it waits for: `all` (default) or `any`.
    pub depends_mode: Option<Cow<'a, str>>,
    /// Action when one of these fails: `cancel` (default), `hold` or `run`.
    pub on_parent_failed: Option<Cow<'a, str>>,
    /// Steps that follow one after the other when it is acked.
    pub chain: Vec<Step<'a>>,
    /// Step that follows instead when it, or one of the steps, fails.
    pub on_failure: Option<Step<'a>>,
}

/// A unique key: a queue holds at most one message with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unique<'a> {
    /// Key of 1 to 128 bytes.
    pub key: Cow<'a, str>,
    /// Longest time for which it counts, in milliseconds; `None`: one day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// Event that frees the key: `gone` (default: the message leaves the queue) or `window` (only the end of
    /// the window).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Cow<'a, str>>,
    /// Effect of a duplicate on the message that is there: `keep` (default), `replace_payload` or `debounce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_duplicate: Option<Cow<'a, str>>,
}

impl<'a> Message<'a> {
    /// A message with this payload; all else follows the settings of the queue.
    pub fn new(payload: &'a [u8]) -> Message<'a> {
        Message { payload: Cow::Borrowed(payload), ..Message::default() }
    }
}

/// The arguments of a receive.
#[derive(Clone, Debug, PartialEq)]
pub struct Receive {
    /// Names of queues with weights, 1 to 1,000: each queue gets its share of the deliveries. With weight 0,
    /// for all, queues are tried in the order given.
    pub queues: Vec<(String, u16)>,
    /// Largest number of messages (default 1).
    pub max: u32,
    /// Time for which the server may wait for a first message (default 0, at most 60 s).
    pub wait: Duration,
    /// Lease of the messages; `None`: the setting of the queue.
    pub lease: Option<Duration>,
    /// Name of the consumer, shown in lists of consumers; may be empty.
    pub consumer: String,
}

impl Receive {
    /// One message from one queue, without waiting.
    pub fn from_queue(queue: &str) -> Receive {
        Receive::from_queues(vec![(queue.to_owned(), 0)])
    }

    /// One message from several queues, without waiting.
    pub fn from_queues(queues: Vec<(String, u16)>) -> Receive {
        Receive { queues, max: 1, wait: Duration::ZERO, lease: None, consumer: String::new() }
    }

    /// Sets the largest number of messages.
    pub fn max(mut self, max: u32) -> Receive {
        self.max = max;
        self
    }

    /// Sets the time to wait for a first message.
    pub fn wait(mut self, wait: Duration) -> Receive {
        self.wait = wait;
        self
    }

    /// Sets the lease of the messages.
    pub fn lease(mut self, lease: Option<Duration>) -> Receive {
        self.lease = lease;
        self
    }
}

/// The result of the work on a message, at most 256 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkResult {
    /// Media type.
    pub content_type: Option<String>,
    /// Result; opaque bytes.
    pub bytes: Vec<u8>,
}

/// A report of the holder of a lease on its work. A field that is `None` stays as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report<'a> {
    /// Progress in percent, 0 to 100, and a note, which may be empty.
    pub progress: Option<(u8, &'a str)>,
    /// Checkpoint from which the next attempt can continue, at most 256 KiB.
    pub checkpoint: Option<&'a [u8]>,
    /// Cost of the work beyond that of the message and of earlier reports, which counts against the rates of
    /// the queue's limit.
    pub add_cost: u32,
}

/// The outcome of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// The work is done.
    Ack,
    /// The work is done, with its result.
    AckWith(WorkResult),
    /// The attempt failed; the message is tried again after the backoff, or after `delay`.
    Nack {
        /// Error text for the message's history; may be empty.
        error: String,
        /// Delay before the next attempt; `None`: the backoff.
        delay: Option<Duration>,
    },
    /// The message is given back; the attempt does not count.
    Release {
        /// Delay before it is ready again; `None`: 0.
        delay: Option<Duration>,
    },
    /// The message is not to be tried again and becomes a dead letter.
    Reject {
        /// Error text for the message's history; may be empty.
        error: String,
    },
}

impl Settle {
    /// Name of the outcome in the API, such as `ack`.
    pub fn name(&self) -> &'static str {
        match self {
            Settle::Ack | Settle::AckWith(_) => "ack",
            Settle::Nack { .. } => "nack",
            Settle::Release { .. } => "release",
            Settle::Reject { .. } => "reject",
        }
    }
}

/// One delivery to settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleItem<'a> {
    /// Receipt of the delivery.
    pub receipt: Cow<'a, str>,
    /// Outcome.
    pub settle: Settle,
    /// Cost of the work beyond that of the message, which counts against the rates of the queue's limit.
    pub add_cost: u32,
}

impl<'a> SettleItem<'a> {
    /// An ack of this delivery.
    pub fn ack(receipt: &'a str) -> SettleItem<'a> {
        SettleItem::of(receipt, Settle::Ack)
    }

    /// This outcome of a delivery, without further cost.
    pub fn of(receipt: impl Into<Cow<'a, str>>, settle: Settle) -> SettleItem<'a> {
        SettleItem { receipt: receipt.into(), settle, add_cost: 0 }
    }
}

/// A later message of a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step<'a> {
    /// Name of the queue.
    pub queue: Cow<'a, str>,
    /// The message.
    pub message: Message<'a>,
    /// True when the payload is that of `message`. False: the payload is the result of the step before, or,
    /// for the step that follows a failure, the payload of the failed message.
    pub own_payload: bool,
}

impl<'a> Step<'a> {
    /// A step whose payload is the result of the step before it.
    pub fn to(queue: impl Into<Cow<'a, str>>) -> Step<'a> {
        Step { queue: queue.into(), ..Step::default() }
    }

    /// A step with a payload of its own.
    pub fn with_payload(queue: impl Into<Cow<'a, str>>, message: Message<'a>) -> Step<'a> {
        Step { queue: queue.into(), message, own_payload: true }
    }
}
