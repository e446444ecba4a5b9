//! A message to send: its fields, its optional fields, and the steps that follow it when it is done or fails.

use crate::id::MessageId;
use crate::limit::Cost;
use crate::limits::DELAY_MS_MAX;
pub use crate::limits::KEY_BYTES_MAX;
use crate::settings::Backoff;

/// Longest window of a unique key, and longest time that a result is kept, in milliseconds.
pub const WINDOW_MS_MAX: u64 = DELAY_MS_MAX;
/// Most steps of one chain, the message that carries it not counted.
pub const STEPS_MAX: usize = 100;
/// Maximum memory of the steps of one message, in bytes: everything of them but the fields that lie
/// with a payload.
pub const CHAIN_BYTES_MAX: usize = 16 << 10;

/// One message to send.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SendItem<'a> {
    /// Opaque bytes.
    pub payload: &'a [u8],
    /// Media type of the payload; empty: unstated.
    pub content_type: &'a str,
    /// Names and values, in order; written with the payload as one blob.
    pub headers: &'a [(&'a str, &'a str)],
    /// Words to find it by; written with the headers.
    pub tags: &'a [&'a str],
    /// 0 to 9, higher first.
    pub priority: u8,
    /// When it becomes ready.
    pub deliver: Deliver,
    /// Attempts before it becomes a dead letter; 0: the queue's `max_attempts`.
    pub max_attempts: u16,
    /// `None`: the queue's backoff.
    pub backoff: Option<Backoff>,
    /// Keys and other optional fields; `None`: none.
    pub options: Option<&'a SendOptions<'a>>,
}

/// When a sent message becomes ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deliver {
    /// At once.
    #[default]
    Now,
    /// After so many milliseconds.
    AfterMs(u64),
    /// At this time, in microseconds since the Unix epoch; a past time means at once.
    AtUs(u64),
}

impl Deliver {
    /// The field by which the APIs give it: `delay_ms` or `deliver_at_ms`.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Deliver::Now | Deliver::AfterMs(_) => "delay_ms",
            Deliver::AtUs(_) => "deliver_at_ms",
        }
    }
}

/// The optional fields of one message to send. Empty and 0 mean: not given; a cost of 0 is one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SendOptions<'a> {
    /// First in, first out among messages with the same key, and at most one of them in flight.
    pub ordering_key: &'a [u8],
    /// Messages of different keys are served in turn.
    pub fair_key: &'a [u8],
    /// Counts against the queue's limit per key.
    pub limit_key: &'a [u8],
    /// Share of the rates of the queue's limit that each of its deliveries takes.
    pub cost: Cost,
    /// At most one message with this key at a time.
    pub unique: Option<Unique<'a>>,
    /// When it ends if it still waits.
    pub expires: Expires,
    /// Time for which the result of its ack is kept, in milliseconds; 0: not at all.
    pub result_ttl_ms: u64,
    /// Handed through to the reply.
    pub correlation_id: &'a [u8],
    /// Name of the queue that gets its result as a message.
    pub reply_to: &'a str,
    /// True if it waits for a person first.
    pub hold: bool,
    /// The messages that it waits for first.
    pub depends_on: Option<DependsOn<'a>>,
    /// Messages that follow when it is done, and when it fails.
    pub chain: Chain<'a>,
}

/// The messages that another one waits for: its parents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DependsOn<'a> {
    /// Earlier messages of the namespace, each as [`DependsOn::id_bytes`] gives it.
    pub ids: &'a [[u8; 12]],
    /// Earlier messages of the same send, each by its place from 0, as little-endian bytes.
    pub places: &'a [[u8; 4]],
    /// Condition on them: all, or any one.
    pub mode: DependsMode,
    /// Treatment of it when they have failed: one of them, or with `any` all.
    pub on_parent_failed: OnParentFailed,
}

/// Condition on the parents of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DependsMode {
    /// Until each of them is done.
    #[default]
    All,
    /// Until one of them is done.
    Any,
}

/// Treatment of a message whose parents have failed: died, or were cancelled, expired, purged or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnParentFailed {
    /// The message is cancelled.
    #[default]
    Cancel,
    /// The message is held, for a person to decide.
    Hold,
    /// The message runs as if they were done, once all of them have ended.
    Run,
}

impl<'a> DependsOn<'a> {
    /// An id as it stands in [`DependsOn::ids`].
    pub fn id_bytes(id: MessageId) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&id.namespace.0.to_le_bytes());
        bytes[4..].copy_from_slice(&id.sequence.to_le_bytes());
        bytes
    }

    /// The ids again.
    pub fn ids(&self) -> impl Iterator<Item = MessageId> + use<'a> {
        self.ids.iter().map(|bytes| crate::layout::id_at(bytes))
    }

    /// The places in the send.
    pub fn places(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.places.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Number of messages named.
    pub fn len(&self) -> usize {
        self.ids.len() + self.places.len()
    }

    /// True if none is named.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// When a message ends that still waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expires {
    /// Never.
    #[default]
    Never,
    /// After so many milliseconds.
    AfterMs(u64),
    /// At this time, in microseconds since the Unix epoch.
    AtUs(u64),
}

/// A key that at most one message of a queue has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unique<'a> {
    /// 1 to 128 bytes.
    pub key: &'a [u8],
    /// Maximum time for which it counts, in milliseconds.
    pub window_ms: u64,
    /// Event that frees it.
    pub until: UniqueUntil,
    /// Effect of a duplicate.
    pub on_duplicate: OnDuplicate,
}

/// Event that frees a unique key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UniqueUntil {
    /// The message leaves the queue, for whatever reason; at latest the end of the window.
    #[default]
    Gone,
    /// The end of the window alone.
    Window,
}

/// Effect of a send whose unique key is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDuplicate {
    /// Nothing: the first message stays as it is.
    #[default]
    Keep,
    /// The first message, if it still waits, takes over payload, headers and content type.
    ReplacePayload,
    /// The first message, if it still waits, takes over the delay, which starts anew.
    Debounce,
}

impl SendOptions<'_> {
    /// These, if anything is given.
    pub fn given(&self) -> Option<&Self> {
        (*self != SendOptions::default()).then_some(self)
    }
}

/// The steps that a message carries.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Chain<'a> {
    /// None.
    #[default]
    None,
    /// As a sender gives them.
    Given(&'a Steps<'a>),
    /// As they lie in a record.
    Laid(&'a [u8]),
}

impl Chain<'_> {
    /// Number of steps that a sender gives, the one for a failure included.
    pub(crate) fn len(&self) -> usize {
        match self {
            Chain::Given(steps) => steps.all().count(),
            Chain::None | Chain::Laid(_) => 0,
        }
    }
}

/// The steps of a chain; at least one of the two is given.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps<'a> {
    /// Steps that follow, each when the one before it is done; at most [`STEPS_MAX`].
    pub steps: &'a [Step<'a>],
    /// Step that follows instead when one of them fails.
    pub on_failure: Option<&'a Step<'a>>,
}

impl<'a> Steps<'a> {
    /// All of them: the one for a failure, if there is one, then those that follow.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Step<'a>> {
        self.on_failure.into_iter().chain(self.steps)
    }
}

/// One message that will be sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Step<'a> {
    /// Name of the queue.
    pub queue: &'a str,
    /// True if its payload is that of `item`; if not, it is the result of the message before it, or, of what
    /// follows a failure, the payload of what has failed. Then `item` has neither payload nor content type
    /// nor tags.
    pub own_payload: bool,
    /// The message. It is not unique, waits for no others, and has no chain.
    pub item: SendItem<'a>,
}
