//! What fronts give to the node and get from it.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_engine::blob::MessageBlob;
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::limits::Limits;
use sluice_engine::outcome::Delivery;
use sluice_engine::query::{ConsumerTotals, Counters, MessageView, State};
use sluice_journal::{Encryption, KeyId, OpenError, RootKeys};

pub use sluice_journal::Status as JournalStatus;

/// When a reply may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// After fdatasync has returned (Redis: `always`).
    #[default]
    Always,
    /// After the write; synced once per interval (Redis: `everysec`). A power loss may take the last interval.
    Interval(Duration),
    /// After the write; the operating system syncs when it likes (Redis: `no`). A power loss may take more.
    Os,
}

/// How a node runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where data lives; `None`: in memory, gone with the process.
    pub data_dir: Option<PathBuf>,
    /// Shards, each a thread, an engine and a journal (1 to 64). A directory keeps the number it was made with or grows.
    pub shards: u32,
    /// When a reply may leave.
    pub durability: Durability,
    /// Budget of the cache of recent blobs, per node, in bytes.
    pub cache_bytes: u64,
    /// Limits of the engine.
    pub limits: Limits,
    /// Most requests that wait in one shard's mailbox.
    pub mailbox_requests: usize,
    /// Most bytes that they take together.
    pub mailbox_bytes: u64,
    /// Most receives that wait for messages, and as many waits for results, per shard.
    pub waiting_receives: usize,
    /// How much is kept for those who read events.
    pub events: EventOptions,
    /// Bytes kept free for draining a full disk.
    pub reserve_bytes: u64,
    /// Free bytes below which a warning is given.
    pub low_water_bytes: u64,
    /// Allow a wall clock more than a year ahead of the log.
    pub accept_clock_jump: bool,
    /// Whether and how what is on the disk is encrypted.
    pub encryption: Encryption,
    /// Where a new root key comes from; `None`: the root keys stay as they are.
    pub key_source: Option<Arc<dyn KeySource>>,
}

/// Where root keys come from.
pub trait KeySource: Send + Sync + Debug {
    /// The root keys with a new first one; `current` is the first one now. What it has made is durable when it returns.
    /// Blocks.
    fn rotate(&self, current: KeyId) -> Result<RootKeys, RotateError>;
}

/// Why there is no new root key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RotateError {
    /// This source cannot give one, or not now: what the operator has to do.
    Refused(String),
    /// It was tried, and failed.
    Failed(String),
}

/// How much is kept for those who read events.
#[derive(Clone, Copy, Debug)]
pub struct EventOptions {
    /// Most events of a feed (default 10,000).
    pub window: usize,
    /// How long a feed is kept that nobody reads (default 5 minutes).
    pub keep: Duration,
    /// Most readers per shard (default 1,000); one namespace has three quarters of them at most.
    pub readers: usize,
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions { window: 10_000, keep: Duration::from_secs(300), readers: 1_000 }
    }
}

/// What came of a send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Id of the first message; the others follow in sequence (`sequence + 1`, ...), unless there are duplicates.
    pub first: MessageId,
    /// How many.
    pub count: u32,
    /// Whether the idempotency key had been used for this request before.
    pub duplicate: bool,
    /// What was sent before, by its unique key.
    pub duplicates: Option<Box<Duplicates>>,
}

impl Sent {
    /// The id of each item's message, in order.
    pub fn ids(&self) -> impl Iterator<Item = MessageId> + '_ {
        let listed = self.duplicates.as_deref().map(|duplicates| duplicates.ids.as_slice());
        (0..self.count).map(move |at| match listed.and_then(|ids| ids.get(at as usize)) {
            Some(id) => *id,
            None => MessageId { sequence: self.first.sequence.wrapping_add(at.into()), ..self.first },
        })
    }
}

/// A send of which some items are duplicates by their unique key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Duplicates {
    /// The id of each item's message, in order: a duplicate's is that of the first message with its key.
    pub ids: Vec<MessageId>,
    /// Which items these are, in order.
    pub items: Vec<u32>,
}

/// A message in a consumer's hands.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Receipt, attempt, times.
    pub delivery: Delivery,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload: see [`sluice_engine::blob`].
    pub blob: Bytes,
    /// What it has beside the plain fields.
    pub details: Option<Box<DeliveredDetails>>,
}

impl Delivered {
    /// Where its tags are.
    pub fn tagged(&self) -> Option<MessageBlob<'_>> {
        let tags = self.details.as_ref().and_then(|details| details.tags.as_ref());
        MessageBlob::parse(tags.unwrap_or(&self.blob))
    }
}

/// What a delivered message has beside the plain fields.
#[derive(Clone, Debug, Default)]
pub struct DeliveredDetails {
    /// What the sender knows a reply by; empty: nothing.
    pub correlation_id: Box<[u8]>,
    /// The queue that gets the result; empty: none.
    pub reply_to: Box<str>,
    /// What an earlier attempt has left to go on from; laid out as a payload.
    pub checkpoint: Option<Bytes>,
    /// Tags that have replaced those that it was sent with; laid out as a payload's.
    pub tags: Option<Bytes>,
    /// Headers that the server adds to those of the message, instead of those with the same names.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// The queue in which it died before it came to this one; empty: none.
    pub from_queue: Box<str>,
    /// Why it died there.
    pub reason: Option<&'static str>,
}

/// What became of a message.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// Acked.
    Done {
        /// What the ack gave, if that is kept; laid out as a payload.
        result: Option<Bytes>,
        /// When, in microseconds since the Unix epoch; `None`: the message is gone already.
        done_at_us: Option<u64>,
        /// Until when it is kept at least, if that is known.
        kept_until_us: Option<u64>,
    },
    /// A dead letter.
    Dead {
        /// Why.
        reason: Option<&'static str>,
        /// Since when, in microseconds since the Unix epoch.
        at_us: Option<u64>,
    },
    /// Neither, when the time was over.
    Pending {
        /// Where it stands.
        state: State,
        /// How far its holder says that it has come.
        progress: Option<ProgressSeen>,
    },
}

/// How far the holder of a message says that it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgressSeen {
    /// 0 to 100.
    pub percent: u8,
    /// What it says of it.
    pub note: Option<String>,
    /// When, in microseconds since the Unix epoch.
    pub at_us: u64,
}

/// A message that was looked at, not taken.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What the engine knows of it.
    pub view: MessageView,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload, when asked for; `None` when not, or when damaged.
    pub blob: Option<Bytes>,
    /// Whether its bytes were asked for and are damaged.
    pub damaged: bool,
    /// Error texts of `view.history`, one per entry.
    pub errors: Vec<Option<String>>,
    /// The note of `view.progress`; of one message, not in lists.
    pub note: Option<String>,
    /// `view.checkpoint` and `view.result`, when bytes were asked for; of one message, not in lists.
    pub checkpoint: Option<Bytes>,
    /// See `checkpoint`.
    pub result: Option<Bytes>,
    /// `view.tags`, if they were not damaged: laid out as a payload's.
    pub tags: Option<Bytes>,
    /// The notes of `view.changes`, one per entry: the headers `by` and `why` of an empty payload.
    pub notes: Vec<Option<Bytes>>,
}

/// Why a node did not start, or a data directory was not opened or made: a sentence for the operator that
/// names cause and remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartError {
    /// The settings do not fit what is there: its shards, its root keys, the version that wrote it, or a path
    /// that this process cannot open or write. Trying again is in vain until one of them changes.
    Refused(String),
    /// Another process uses the directory.
    InUse(String),
    /// The disk is full.
    Full(String),
    /// What is stored is damaged, or the operating system has failed.
    Failed(String),
}

impl StartError {
    /// A call of the operating system that failed; `told` is the sentence for the operator.
    pub fn of_io(error: &io::Error, told: String) -> StartError {
        use io::ErrorKind::{
            AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied,
            QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        match error.kind() {
            NotFound | AlreadyExists | PermissionDenied | IsADirectory | NotADirectory
            | ReadOnlyFilesystem | InvalidFilename => StartError::Refused(told),
            StorageFull | QuotaExceeded => StartError::Full(told),
            _ => StartError::Failed(told),
        }
    }
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> StartError {
        let told = error.to_string();
        match error {
            OpenError::InUse { .. } => StartError::InUse(told),
            OpenError::Key { .. }
            | OpenError::Format { .. }
            | OpenError::Unknown { .. }
            | OpenError::Setting(_) => StartError::Refused(told),
            OpenError::Io { error, .. } => StartError::of_io(&error, told),
            OpenError::Damaged(_) => StartError::Failed(told),
        }
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (StartError::Refused(told)
        | StartError::InUse(told)
        | StartError::Full(told)
        | StartError::Failed(told)) = self;
        f.write_str(told)
    }
}

impl std::error::Error for StartError {}

/// Figures for `/metrics` and `/v1/status`, one entry per shard.
#[derive(Clone, Debug, Default)]
pub struct NodeMetrics {
    /// Per shard, in order.
    pub shards: Vec<ShardMetrics>,
}

/// Figures of one shard.
#[derive(Clone, Debug, Default)]
pub struct ShardMetrics {
    /// Sums over all queues; messages and bytes without those of namespace `$sys`.
    pub counters: Counters,
    /// Queues, without those of namespace `$sys`.
    pub queues: u64,
    /// Receives that wait.
    pub waiting_receives: u64,
    /// Consumers that are attached.
    pub consumers: ConsumerTotals,
    /// Readers of events.
    pub event_readers: u64,
    /// Requests in the mailbox.
    pub mailbox: u64,
    /// Epoch of this start.
    pub epoch: u64,
    /// Figures of its journal.
    pub journal: JournalStatus,
}

/// Asked before messages are taken for a receive, so that nothing is leased that its caller cannot hold until a slow
/// client has read it. Called on the shard's thread: it must not wait.
pub trait Room: Send + Sync + std::fmt::Debug {
    /// Sets room aside for so many messages, with so many bytes of contents, instead of what was set aside
    /// before. Gives the bytes that may come (one message may come in any case), or `None` when there is no
    /// room: then none is taken.
    fn take(&self, messages: u64, bytes: u64) -> Option<u32>;

    /// Nothing came after all.
    fn put_back(&self);
}

/// The queues and limits of a receive, and how long it may wait.
#[derive(Clone, Debug)]
pub struct ReceiveOptions<'a> {
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// Queues and weights: see [`sluice_engine::command::Receive`].
    pub queues: &'a [(&'a str, u16)],
    /// Most messages.
    pub max_messages: u32,
    /// The lease in milliseconds; 0: each queue's.
    pub lease_ms: u64,
    /// How long to wait for a first message (at most 60 s); zero: not at all.
    pub wait: Duration,
    /// Name of the consumer; may be empty.
    pub consumer: &'a str,
    /// Who has room for the messages; `None`: there always is.
    pub room: Option<Arc<dyn Room>>,
}
