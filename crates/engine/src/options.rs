//! What a send may say of a message beyond the plain fields: keys, an expiry, where results go.

use crate::chain::Chain;
use crate::id::MessageId;
use crate::limits::DELAY_MS_MAX;

/// Longest ordering, fair, limit or unique key, and longest correlation id, in bytes.
pub const KEY_BYTES_MAX: usize = 128;
/// Longest window of a unique key, and longest time that a result is kept, in milliseconds.
pub const WINDOW_MS_MAX: u64 = DELAY_MS_MAX;

/// The optional fields of one message to send. Empty and 0 mean: not given.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SendOptions<'a> {
    /// First in, first out among messages with the same key, and at most one of them in flight.
    pub ordering_key: &'a [u8],
    /// Messages of different keys are served in turn.
    pub fair_key: &'a [u8],
    /// Counts against the queue's limit per key.
    pub limit_key: &'a [u8],
    /// At most one message with this key at a time.
    pub unique: Option<Unique<'a>>,
    /// When it ends if it still waits.
    pub expires: Expires,
    /// How long the result of its ack is kept, in milliseconds; 0: not at all.
    pub result_ttl_ms: u64,
    /// Handed through to the reply.
    pub correlation_id: &'a [u8],
    /// Name of the queue that gets its result as a message.
    pub reply_to: &'a str,
    /// Whether it waits for a person first.
    pub hold: bool,
    /// The messages that it waits for first.
    pub depends_on: Option<DependsOn<'a>>,
    /// What follows when it is done, and when it fails.
    pub chain: Chain<'a>,
}

/// The messages that another one waits for: its parents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DependsOn<'a> {
    /// Earlier messages of the namespace, each as [`DependsOn::id_bytes`] gives it.
    pub ids: &'a [[u8; 12]],
    /// Earlier messages of the same send, each by its place from 0, as little-endian bytes.
    pub places: &'a [[u8; 4]],
    /// Whether it waits for all of them, or for one.
    pub mode: DependsMode,
    /// What becomes of it when they cannot all, or not even one of them, be done.
    pub on_parent_failed: OnParentFailed,
}

/// How many of its parents a message waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DependsMode {
    /// Until each of them is done.
    #[default]
    All,
    /// Until one of them is done.
    Any,
}

/// What becomes of a message whose parents have failed: died, or were cancelled, expired, purged or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnParentFailed {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It is held, for a person to decide.
    Hold,
    /// It runs as if they were done, once all of them have ended.
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

    /// How many messages are named.
    pub fn len(&self) -> usize {
        self.ids.len() + self.places.len()
    }

    /// Whether none is named.
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
    /// How long it counts at most, in milliseconds.
    pub window_ms: u64,
    /// What frees it.
    pub until: UniqueUntil,
    /// What a duplicate does.
    pub on_duplicate: OnDuplicate,
}

/// What frees a unique key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UniqueUntil {
    /// The message leaves the queue, for whatever reason; at latest the end of the window.
    #[default]
    Gone,
    /// The end of the window alone.
    Window,
}

/// What a send does whose unique key is taken.
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
