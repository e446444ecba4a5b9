//! What callers hand over: messages to send, what to receive, how to settle.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::flows::Step;
use crate::types::Backoff;

/// One message to send. What is `None` follows the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message<'a> {
    /// Opaque bytes.
    pub payload: Cow<'a, [u8]>,
    /// Media type of the payload.
    pub content_type: Option<Cow<'a, str>>,
    /// Names and values, in order.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// 0 to 9, higher first.
    pub priority: Option<u8>,
    /// Ready after so many milliseconds; not together with `deliver_at_ms`.
    pub delay_ms: Option<u64>,
    /// Ready at this time, in milliseconds since the Unix epoch.
    pub deliver_at_ms: Option<u64>,
    /// Attempts before it becomes a dead letter.
    pub max_attempts: Option<u32>,
    /// The delay before the next attempt.
    pub backoff: Option<Backoff>,
    /// Keys and other optional fields.
    pub options: Option<Box<MessageOptions<'a>>>,
}

/// Optional fields of a message, for those who use them. What is `None` is left out; docs/api.md describes
/// each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageOptions<'a> {
    /// Words to find it by.
    pub tags: Vec<Cow<'a, str>>,
    /// First in, first out among messages with this key, and one in flight.
    pub ordering_key: Option<Cow<'a, str>>,
    /// Messages of different keys are served in turn.
    pub fair_key: Option<Cow<'a, str>>,
    /// Counts against the queue's limit per key.
    pub limit_key: Option<Cow<'a, str>>,
    /// At most one message with this key.
    pub unique: Option<Unique<'a>>,
    /// Ends after so many milliseconds if it still waits; not together with `expires_at_ms`.
    pub ttl_ms: Option<u64>,
    /// Ends at this time, in milliseconds since the Unix epoch, if it still waits.
    pub expires_at_ms: Option<u64>,
    /// How long the result of its ack is kept, in milliseconds.
    pub result_ttl_ms: Option<u64>,
    /// Handed through to the reply.
    pub correlation_id: Option<Cow<'a, str>>,
    /// The queue that gets its result as a message.
    pub reply_to: Option<Cow<'a, str>>,
    /// Whether it waits for a person first.
    pub hold: bool,
    /// Ids of messages that it waits for; `"#0"` is the first one of this send.
    pub depends_on: Vec<Cow<'a, str>>,
    /// How many of these it waits for: `all` (default) or `any`.
    pub depends_mode: Option<Cow<'a, str>>,
    /// What becomes of it when they fail: `cancel` (default), `hold` or `run`.
    pub on_parent_failed: Option<Cow<'a, str>>,
    /// What follows when it is done, step by step.
    pub chain: Vec<Step<'a>>,
    /// What follows instead when it, or one of the steps, fails.
    pub on_failure: Option<Step<'a>>,
}

/// A key that at most one message of a queue has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unique<'a> {
    /// 1 to 128 bytes.
    pub key: Cow<'a, str>,
    /// How long it counts at most, in milliseconds (the server's default: one day).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// What frees it: `gone` (default; the message leaves the queue) or `window` (its end alone).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Cow<'a, str>>,
    /// What a duplicate does: `keep` (default), `replace_payload` or `debounce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_duplicate: Option<Cow<'a, str>>,
}

impl<'a> Message<'a> {
    /// A message with this payload, everything else as the queue has it.
    pub fn new(payload: &'a [u8]) -> Message<'a> {
        Message { payload: Cow::Borrowed(payload), ..Message::default() }
    }
}

/// What to receive, and how long to wait for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Receive {
    /// Queues with weights; weight 0: in the order given.
    pub queues: Vec<(String, u16)>,
    /// Most messages (default 1).
    pub max: u32,
    /// How long the server may wait for a first message (default: not at all; at most 60 s).
    pub wait: Duration,
    /// How long the messages may be held; `None`: as the queue says.
    pub lease: Option<Duration>,
    /// A name for those who look; may be empty.
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

    /// At most so many messages.
    pub fn max(mut self, max: u32) -> Receive {
        self.max = max;
        self
    }

    /// Wait so long for a first message.
    pub fn wait(mut self, wait: Duration) -> Receive {
        self.wait = wait;
        self
    }

    /// Hold the messages so long.
    pub fn lease(mut self, lease: Option<Duration>) -> Receive {
        self.lease = lease;
        self
    }
}

/// What a work gave: at most 256 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkResult {
    /// Media type.
    pub content_type: Option<String>,
    /// Opaque bytes.
    pub bytes: Vec<u8>,
}

/// What the holder of a lease tells while it works. What is `None` stays as told before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report<'a> {
    /// How far it has come, 0 to 100, and a word about it, which may be empty.
    pub progress: Option<(u8, &'a str)>,
    /// What the next attempt can go on from: at most 256 KiB.
    pub checkpoint: Option<&'a [u8]>,
}

/// How a delivery ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Done.
    Ack,
    /// Done, with what the work gave.
    AckWith(WorkResult),
    /// Failed; tried again after the backoff, or after `delay`.
    Nack {
        /// Goes into the message's history; may be empty.
        error: String,
        /// Overrides the backoff.
        delay: Option<Duration>,
    },
    /// Given back; the attempt does not count.
    Release {
        /// Ready again after so long.
        delay: Option<Duration>,
    },
    /// Never to be tried again: to the dead letters.
    Reject {
        /// Goes into the message's history; may be empty.
        error: String,
    },
}

impl Settle {
    /// The word of the API.
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
    /// Proof of the delivery.
    pub receipt: Cow<'a, str>,
    /// Its end.
    pub settle: Settle,
}

impl<'a> SettleItem<'a> {
    /// Done.
    pub fn ack(receipt: &'a str) -> SettleItem<'a> {
        SettleItem { receipt: Cow::Borrowed(receipt), settle: Settle::Ack }
    }
}
