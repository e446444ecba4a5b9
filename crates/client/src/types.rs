//! Responses of the HTTP API, but for those of `answers`. Fields that a newer server adds are kept in
//! `extra`, so that nothing is lost in passing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ClientError;

/// Growth of the delay before the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffKind {
    /// No delay.
    None,
    /// Always the base.
    Fixed,
    /// Base × attempts so far.
    Linear,
    /// Base × 2^(attempts so far − 1).
    Exponential,
}

impl fmt::Display for BackoffKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BackoffKind::None => "none",
            BackoffKind::Fixed => "fixed",
            BackoffKind::Linear => "linear",
            BackoffKind::Exponential => "exponential",
        })
    }
}

/// The delay before the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backoff {
    /// Growth of the delay.
    pub kind: BackoffKind,
    /// The first delay, in milliseconds.
    pub base_ms: u64,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// Variation, 0 to 100.
    pub jitter_percent: u8,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { kind: BackoffKind::Exponential, base_ms: 1_000, cap_ms: 600_000, jitter_percent: 10 }
    }
}

/// The error object of an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Stable snake_case code.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// More about it; `null` when there is nothing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

macro_rules! queue_settings {
    ($($(#[$meta:meta])* $name:ident: $type:ty;)*) => {
        /// Settings of a queue. One that an older server does not know is empty.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub struct QueueSettings {
            $($(#[$meta])* #[serde(default)] pub $name: $type,)*
        }

        /// A change of queue settings; a field that is `None` keeps its value.
        #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct QueueChange {
            $(
                #[doc = concat!("See [`QueueSettings::", stringify!($name), "`].")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
        }
    };
}

queue_settings! {
    /// The lease of a receive that names none, in milliseconds.
    lease_ms: u64;
    /// Attempts of a message that names none.
    max_attempts: u32;
    /// Deliveries in all before a message becomes a dead letter.
    max_deliveries: u32;
    /// Backoff of a message that names none.
    backoff: Backoff;
    /// Messages that a fair key gives in its turn; those not named, and the empty key, give one. A change
    /// replaces all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fair_weights: BTreeMap<String, u16>;
    /// Effect of a delayed message on the others with its ordering key.
    ordering_retry: OrderingRetry;
    /// Choice of the consumer that gets the next message, among several with credit.
    #[serde(skip_serializing_if = "Placement::is_default")]
    placement: Placement;
    /// The limit that the queue follows; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    limit: String;
    /// The queue that dead letters move to; empty: they stay.
    #[serde(skip_serializing_if = "String::is_empty")]
    dead_letter_queue: String;
    /// Text for people that says what the queue is for; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String;
    /// True when deliveries are paused.
    paused: bool;
    /// True when sends are refused.
    closed: bool;
    /// Time for which finished messages are kept, in milliseconds; 0: not by time.
    retain_done_ms: u64;
    /// Number of finished messages that are kept; 0: not by number.
    retain_done_count: u32;
    /// Action for a message that expires.
    on_expire: OnExpire;
    /// Largest number of messages that wait or are leased; 0: no limit.
    max_messages: u64;
    /// Largest number of bytes of these messages; 0: no limit.
    max_bytes: u64;
    /// Action of a send that would exceed `max_messages` or `max_bytes`.
    overflow: Overflow;
    /// Time that a message may wait in the queue, in milliseconds; 0: no limit.
    max_age_ms: u64;
    /// Endpoint that messages are pushed to; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    push_url: String;
    /// Fingerprints of the secrets that pushes are signed with. In a change secrets, or fingerprints of those
    /// that are to stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    push_secrets: Vec<String>;
    /// Time for a push, in milliseconds; 0: that of a new queue, 15,000.
    #[serde(skip_serializing_if = "is_zero")]
    push_timeout_ms: u32;
    /// Pushes at a time; 0: as in a new queue, 16.
    #[serde(skip_serializing_if = "is_zero")]
    push_concurrency: u32;
    /// Pushes that may begin in a second; 0: any number.
    #[serde(skip_serializing_if = "is_zero")]
    push_rate: u32;
    /// Headers that pushes get, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    push_headers: BTreeMap<String, String>;
    /// True when nothing is pushed.
    #[serde(skip_serializing_if = "is_false")]
    push_paused: bool;
    /// Index by which searches find messages without a look at each of them: `tags`, `errors`,
    /// `tags_and_errors`; empty or `none`: there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    search_index: String;
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(is: &bool) -> bool {
    !is
}

/// Effect of a delayed message on the others with its ordering key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderingRetry {
    /// The others wait for it.
    #[default]
    Block,
    /// The others are delivered; it returns before those that were sent later.
    StepAside,
}

/// Rule by which one of several consumers with credit gets the next message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each in turn.
    #[default]
    Fair,
    /// The one that holds the fewest messages.
    LeastLoaded,
    /// The one that had the last message with the same ordering key, as long as it is attached.
    Sticky,
}

impl Placement {
    fn is_default(&self) -> bool {
        *self == Placement::default()
    }
}

/// Action for a message that expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExpire {
    /// The message becomes a dead letter.
    #[default]
    DeadLetter,
    /// The message is removed.
    Drop,
}

/// Action of a send that would exceed the largest size of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The send is refused.
    #[default]
    RefuseNew,
    /// The oldest messages that wait become dead letters.
    DeadLetterOldest,
}

/// Progress of a redrive at a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Redriving {
    /// Dead letters that are yet to be redriven.
    pub left: u64,
    /// Rate, in dead letters per second.
    pub per_second: u32,
}

/// Messages of a queue by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Messages that wait for a time.
    pub delayed: u64,
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Messages that consumers hold under leases.
    pub leased: u64,
    /// Messages that wait for the approval of a person.
    pub held: u64,
    /// Dead letters.
    pub dead: u64,
    /// Messages that wait for another message or for a limit.
    #[serde(default)]
    pub blocked: u64,
    /// Finished messages that are kept.
    #[serde(default)]
    pub done: u64,
}

/// Counters of a queue since it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Ever sent.
    pub sent: u64,
    /// Ever delivered.
    pub delivered: u64,
    /// Ever acked.
    pub acked: u64,
    /// Ever nacked.
    pub nacked: u64,
    /// Ever released.
    pub released: u64,
    /// Ever rejected.
    pub rejected: u64,
    /// Leases that ended by themselves.
    pub expired: u64,
    /// Ever turned into dead letters.
    pub died: u64,
    /// Ever redriven.
    pub redriven: u64,
    /// Ever dropped by purge or deletion.
    pub dropped: u64,
    /// Results that could not be sent to the queue of `reply_to`.
    pub replies_lost: u64,
    /// Ever cancelled.
    pub cancelled: u64,
    /// Ever moved here from another queue.
    pub moved_in: u64,
    /// Ever moved to another queue.
    pub moved_out: u64,
}

/// A queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its settings.
    pub settings: QueueSettings,
    /// Messages by state.
    pub counts: Counts,
    /// Counters since it was created.
    pub totals: Totals,
    /// Bytes of content types, headers and payloads.
    pub bytes: u64,
    /// Time of its creation, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// The redrive of its dead letters at a rate, if one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriving: Option<Redriving>,
    /// Age of the message that stands first in line, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_age_ms: Option<u64>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Quotas of a namespace; 0: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quotas {
    /// Queues.
    pub queues: u64,
    /// Messages in any state.
    pub messages: u64,
    /// Bytes of payloads and headers.
    pub bytes: u64,
}

/// A change of quotas; a field that is `None` keeps its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QuotaChange {
    /// See [`Quotas::queues`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u64>,
    /// See [`Quotas::messages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// See [`Quotas::bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Time of a server that runs with `sluice serve --test`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TestTime {
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Time by which tests have moved it altogether, in milliseconds.
    pub ahead_ms: u64,
}

/// Root keys of a server, with the files that are encrypted under each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Keys {
    /// Id of the root key for new files; `None`: new files are not encrypted.
    #[serde(default)]
    pub current: Option<String>,
    /// Files by root key.
    pub keys: Vec<KeyUse>,
    /// Files that are not encrypted.
    pub unencrypted: FilesUse,
}

/// Files that are encrypted under one root key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyUse {
    /// Name of the key.
    pub id: String,
    /// Files.
    pub files: u64,
    /// Bytes of those that are not written any more.
    pub bytes: u64,
}

/// Files of some kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FilesUse {
    /// Number of files.
    pub files: u64,
    /// Bytes of those that are not written any more.
    pub bytes: u64,
}

/// A namespace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// The shard that it lives on.
    pub shard: u32,
    /// Quotas.
    pub quotas: Quotas,
    /// Queues that it holds.
    pub queues: u64,
    /// Messages that it holds, in any state.
    pub messages: u64,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Time of its creation, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub created_at_ms: u64,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Decodes an answer of a call that succeeded.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|e| not_understood(e.to_string()))
}

pub(crate) fn not_understood(reason: String) -> ClientError {
    ClientError::Protocol { status: 200, reason }
}
