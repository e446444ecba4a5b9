//! Changes of stored messages, one or many at once.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::ErrorBody;

/// A change of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Removes the message; a leased one at the end of its lease.
    Cancel,
    /// Holds the message until a person approves or denies it.
    Hold,
    /// Approves a held message: it becomes ready.
    Approve,
    /// Denies a held message: it becomes a dead letter.
    Deny,
    /// Makes a delayed or dead message ready now.
    Retry,
    /// Moves the message to another queue.
    Move {
        /// Name of that queue, which must exist.
        to: String,
    },
    /// Replaces fields of the message.
    Set(NewFields),
}

impl Change {
    /// Name of the change in the API, such as `cancel`.
    pub fn verb(&self) -> &'static str {
        match self {
            Change::Cancel => "cancel",
            Change::Hold => "hold",
            Change::Approve => "approve",
            Change::Deny => "deny",
            Change::Retry => "retry",
            Change::Move { .. } => "move",
            Change::Set(_) => "change",
        }
    }
}

/// New values for fields of a message; `None`: the field keeps its value.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NewFields {
    /// Priority, 0 to 9; higher is delivered first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Delay from now in milliseconds; not together with `deliver_at_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Time at which it becomes ready, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_at_ms: Option<u64>,
    /// Number of attempts after which it becomes a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Cost of each delivery from now on under the rates of its queue's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// Tags, which replace all that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// The author of a change and the reason, which the message keeps in its history.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Note {
    /// Name of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Reason of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A change in the history of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// Name of the change in the API, such as `cancel`.
    pub change: String,
    /// Time of the change, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// By whom and why.
    #[serde(flatten)]
    pub note: Note,
}

/// The messages that a bulk changes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BulkFilter {
    /// Name of the queue.
    pub queue: String,
    /// Filter that a message matches, such as `{"/state": "dead"}`; `None`: all messages of the queue.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<Value>,
}

/// A change, in the background, of all messages that match a filter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bulk {
    /// Its id.
    pub bulk: String,
    /// `running`, `done`, `cancelled` or `failed`.
    pub state: String,
    /// See [`Change::verb`].
    pub action: String,
    /// The queue that messages move to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The messages to change.
    pub filter: BulkFilter,
    /// By whom and why.
    #[serde(flatten)]
    pub note: Note,
    /// True when messages are only counted and not changed.
    pub dry_run: bool,
    /// Upper limit of messages changed in a second; `None`: the request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// Messages in the queue when it began, in the state of the filter.
    pub total: u64,
    /// Messages looked at.
    pub scanned: u64,
    /// Messages of `scanned` that match the filter.
    pub matched: u64,
    /// Messages of `matched` that were changed, or with `dry_run` would be.
    pub changed: u64,
    /// Messages of `matched` that were not changed.
    pub skipped: u64,
    /// Start of the bulk change, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// End of the bulk change, in milliseconds since the Unix epoch; `None`: it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<u64>,
    /// Error that ended it, in the state `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl Bulk {
    /// True when the bulk change is running.
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }
}
