//! Types that callers of the handle pass in and get back.

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
use sluice_engine::transactions::InDoubtTotals;
use sluice_journal::{Damage, Encryption, KeyId, OpenError, RootKeys};

pub use sluice_journal::Status as JournalStatus;
pub use sluice_replica::{Follower, RepairCounts, StateCounts};

/// Point at which an answer may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// When fdatasync has returned (Redis: `always`).
    #[default]
    Always,
    /// When it is written; synced once per interval (Redis: `everysec`). A power loss may lose the last
    /// interval.
    Interval(Duration),
    /// When it is written; the operating system syncs at its own times (Redis: `no`). A power loss may lose
    /// more.
    Os,
}

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Data directory; `None`: data is kept in memory and lost with the process.
    pub data_dir: Option<PathBuf>,
    /// Number of shards, each with a thread, an engine and a journal (1 to 64). A directory keeps its number
    /// or grows.
    pub shards: u32,
    /// Point at which an answer may be sent.
    pub durability: Durability,
    /// Memory budget of the cache of recent blobs, for all shards together, in bytes.
    pub cache_bytes: u64,
    /// Limits of the engine.
    pub limits: Limits,
    /// Capacity of each shard's mailbox, in requests.
    pub mailbox_requests: usize,
    /// Capacity of each shard's mailbox, in bytes.
    pub mailbox_bytes: u64,
    /// Upper limit of waiting receives, and of waits for results, per shard.
    pub waiting_receives: usize,
    /// Settings of event feeds.
    pub events: EventOptions,
    /// Size of the reserve for draining a full disk, of all shards together, in bytes.
    pub reserve_bytes: u64,
    /// Free disk space below which a warning is logged, in bytes.
    pub low_water_bytes: u64,
    /// Accepts a wall clock more than a year ahead of the log.
    pub accept_clock_jump: bool,
    /// Lets callers move the time, for tests: see [`crate::MovableTime`]. Only with data in memory.
    pub movable_time: bool,
    /// Encryption at rest.
    pub encryption: Encryption,
    /// Source of new root keys; `None`: they cannot be replaced.
    pub key_source: Option<Arc<dyn KeySource>>,
}

/// Source of root keys.
pub trait KeySource: Send + Sync + Debug {
    /// Makes a new root key and returns all, the new one first. `current`: the present first one. Durable at
    /// the return. Blocks.
    ///
    /// # Errors
    /// The source refuses, or failed.
    fn rotate(&self, current: KeyId) -> Result<RootKeys, RotateError>;
}

/// Error of making a new root key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RotateError {
    /// The source cannot make one now; the text says what the operator has to do.
    Refused(String),
    /// Making one failed, for this reason.
    Failed(String),
}

/// Settings of event feeds.
#[derive(Clone, Copy, Debug)]
pub struct EventOptions {
    /// Upper limit of events per feed (default 10,000).
    pub window: usize,
    /// Time for which a feed without readers is kept (default 5 minutes).
    pub keep: Duration,
    /// Upper limit of readers per shard (default 1,000); one namespace may have three quarters of them.
    pub readers: usize,
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions { window: 10_000, keep: Duration::from_secs(300), readers: 1_000 }
    }
}

/// Result of a send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Id of the first message; the others follow in sequence (`sequence + 1`, ...), unless there are
    /// duplicates.
    pub first: MessageId,
    /// Number of messages.
    pub count: u32,
    /// True when the idempotency key was used for this request before.
    pub duplicate: bool,
    /// Items that are duplicates by their unique key.
    pub duplicates: Option<Box<Duplicates>>,
}

impl Sent {
    /// The message id of each item, in order.
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
    /// The message id of each item, in order; a duplicate has that of the first message with its key.
    pub ids: Vec<MessageId>,
    /// Positions of the duplicates, from 0, in order.
    pub items: Vec<u32>,
}

/// A delivered message with its bytes.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Receipt, attempt, times.
    pub delivery: Delivery,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload: see [`sluice_engine::blob`].
    pub blob: Bytes,
    /// Optional fields.
    pub details: Option<Box<DeliveredDetails>>,
}

impl Delivered {
    /// The part of the message that holds its tags.
    pub fn tagged(&self) -> Option<MessageBlob<'_>> {
        let tags = self.details.as_ref().and_then(|details| details.tags.as_ref());
        MessageBlob::parse(tags.unwrap_or(&self.blob))
    }
}

/// Optional fields of a delivered message.
#[derive(Clone, Debug, Default)]
pub struct DeliveredDetails {
    /// Correlation id for a reply; empty: none.
    pub correlation_id: Box<[u8]>,
    /// Queue that gets the result; empty: none.
    pub reply_to: Box<str>,
    /// Checkpoint of an earlier attempt, laid out as a payload.
    pub checkpoint: Option<Bytes>,
    /// Tags that replaced the original ones, laid out as a payload's.
    pub tags: Option<Bytes>,
    /// Headers added by the server, which replace those of the message with the same names.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// Queue in which the message died before; empty: none.
    pub from_queue: Box<str>,
    /// Reason of that death.
    pub reason: Option<&'static str>,
}

/// Result of waiting for the end of a message.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// Acked.
    Done {
        /// Result given with the ack, if it is kept; laid out as a payload.
        result: Option<Bytes>,
        /// Time of the ack, in microseconds since the Unix epoch; `None`: the message is gone.
        done_at_us: Option<u64>,
        /// Time until which the message is kept at least, in microseconds since the Unix epoch.
        kept_until_us: Option<u64>,
    },
    /// A dead letter.
    Dead {
        /// Reason of the death.
        reason: Option<&'static str>,
        /// Time of the death, in microseconds since the Unix epoch.
        at_us: Option<u64>,
    },
    /// Neither before the end of the wait.
    Pending {
        /// State of the message.
        state: State,
        /// Progress that its holder reported last.
        progress: Option<ProgressSeen>,
    },
}

/// Progress of a message, as its holder reported it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgressSeen {
    /// Percentage, 0 to 100.
    pub percent: u8,
    /// Note of the holder.
    pub note: Option<String>,
    /// Time of the report, in microseconds since the Unix epoch.
    pub at_us: u64,
}

/// A message as a read shows it.
#[derive(Clone, Debug)]
pub struct Stored {
    /// State of the message in the engine.
    pub view: MessageView,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload; `None`: not asked for, or damaged.
    pub blob: Option<Bytes>,
    /// True when the bytes were asked for and are damaged.
    pub damaged: bool,
    /// Error text of each entry of `view.history`.
    pub errors: Vec<Option<String>>,
    /// Note of `view.progress`; for single messages, not in lists.
    pub note: Option<String>,
    /// Bytes of `view.checkpoint`, when asked for; for single messages, not in lists.
    pub checkpoint: Option<Bytes>,
    /// Bytes of `view.result`; see `checkpoint`.
    pub result: Option<Bytes>,
    /// Bytes of `view.tags`, unless damaged; laid out as a payload's.
    pub tags: Option<Bytes>,
    /// Note of each entry of `view.changes`: the headers `by` and `why` of an empty payload.
    pub notes: Vec<Option<Bytes>>,
}

/// The error that the last attempt of a dead letter gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LastError {
    /// No text, such as when its lease ended.
    NoText,
    /// Its text, and the fingerprint of its bytes.
    Text(String, u64),
    /// A text that cannot be read any more.
    Damaged,
}

/// Error of starting a node, or of opening or making a data directory: a sentence for the operator that names
/// cause and remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartError {
    /// The settings do not fit what is there: its shards, root keys or version, or a path that cannot be
    /// opened.
    Refused(String),
    /// Another process uses the directory.
    InUse(String),
    /// The disk is full.
    Full(String),
    /// Data of a shard is damaged or missing; nothing was changed.
    Damaged(Damage),
    /// Something else is damaged, or the operating system failed.
    Failed(String),
}

impl StartError {
    /// The error of a failed call of the operating system; `told` is the sentence for the operator.
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
            OpenError::Damaged(damage) => StartError::Damaged(damage),
        }
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Refused(told)
            | StartError::InUse(told)
            | StartError::Full(told)
            | StartError::Failed(told) => f.write_str(told),
            StartError::Damaged(damage) => write!(f, "{}", OpenError::Damaged(damage.clone())),
        }
    }
}

impl std::error::Error for StartError {}

/// Metrics of a node, for `/metrics` and `/v1/status`.
#[derive(Clone, Debug, Default)]
pub struct NodeMetrics {
    /// Metrics of each shard, in order.
    pub shards: Vec<ShardMetrics>,
}

/// Metrics of a shard.
#[derive(Clone, Debug, Default)]
pub struct ShardMetrics {
    /// Sums over all queues; messages and bytes without those of namespace `$sys`.
    pub counters: Counters,
    /// Number of queues, without those of namespace `$sys`.
    pub queues: u64,
    /// Number of waiting receives.
    pub waiting_receives: u64,
    /// Attached consumers.
    pub consumers: ConsumerTotals,
    /// Number of readers of events.
    pub event_readers: u64,
    /// Transactions over several namespaces that are in doubt.
    pub in_doubt: InDoubtTotals,
    /// Number of requests in the mailbox.
    pub mailbox: u64,
    /// Epoch of this start.
    pub epoch: u64,
    /// The behaviour version in force; 0 before anything was applied.
    pub behaviour: u16,
    /// Time of the log, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// True when this node leads the shard; else the other figures may be behind.
    pub leads: bool,
    /// Metrics of the journal.
    pub journal: JournalStatus,
    /// Metrics of the replicas; `None`: the node is alone.
    pub replicas: Option<ReplicaMetrics>,
    /// Damage of this node's copy; `None`: there is none, or it is whole again.
    pub damage: Option<ShardDamage>,
}

impl ShardMetrics {
    /// Age of the oldest transaction that is in doubt, in milliseconds; `None`: there is none.
    pub fn in_doubt_oldest_ms(&self) -> Option<u64> {
        let age_us = self.time_us.saturating_sub(self.in_doubt.oldest_us);
        (self.in_doubt.count > 0).then_some(age_us / 1_000)
    }
}

/// Damage of a shard of a node of a cluster, found by a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShardDamage {
    /// Damage that is as it was found, as a sentence. The node is silent until it starts again under a new
    /// number.
    Found(String),
    /// Data that was damaged lies in this directory until the shard has everything from the others.
    SetAside(PathBuf),
}

/// Metrics of a shard with replicas, as one of its nodes sees them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReplicaMetrics {
    /// Number of the node that leads; `None`: it is not known.
    pub leader: Option<u64>,
    /// Term of the replica: one more with each election.
    pub term: u64,
    /// Number of leaders that this node has known since its start, itself included.
    pub elections: u64,
    /// Time since which no leader is known, in milliseconds; 0: one is.
    pub leaderless_ms: u64,
    /// True while the disk takes so long for a write that this node neither leads nor votes.
    pub is_stalled: bool,
    /// The other members, for the leader.
    pub followers: Vec<Follower>,
    /// Counts of blobs that are damaged on this node's disk, and of what the others had of them.
    pub repairs: RepairCounts,
    /// Number of damaged blobs that were replaced on the disk.
    pub repaired: u64,
    /// Counts of whole states, to others and from them.
    pub states: StateCounts,
}

/// Memory budget of a caller, asked before messages are leased for it: nothing is leased that the caller
/// cannot hold until a slow client has read it.
pub trait Room: Send + Sync + std::fmt::Debug {
    /// Reserves memory for `messages` messages with `bytes` bytes of content, in place of an earlier
    /// reservation. Returns the bytes that may be taken; `None`: there is no memory for any.
    fn take(&self, messages: u64, bytes: u64) -> Option<u32>;

    /// Gives the reservation back: no message came.
    fn put_back(&self);
}

/// Parameters of a receive.
#[derive(Clone, Debug)]
pub struct ReceiveOptions<'a> {
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// Queues with weights, see [`sluice_engine::command::Receive`].
    pub queues: &'a [(&'a str, u16)],
    /// Upper limit of messages.
    pub max_messages: u32,
    /// Lease in milliseconds; 0: each queue's.
    pub lease_ms: u64,
    /// Longest wait for a first message (0 to 60 s).
    pub wait: Duration,
    /// Name of the consumer; may be empty.
    pub consumer: &'a str,
    /// Memory budget for the messages; `None`: unlimited.
    pub room: Option<Arc<dyn Room>>,
}
