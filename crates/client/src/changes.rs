//! Changes of messages that are there, one or many.

use serde::{Deserialize, Serialize};

use crate::types::ErrorBody;

/// What becomes of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Gone; a leased one at the end of its lease.
    Cancel,
    /// Held until a person decides.
    Hold,
    /// Of a held one: goes on.
    Approve,
    /// Of a held one: a dead letter.
    Deny,
    /// Of a delayed or dead one: ready now.
    Retry,
    /// To another queue.
    Move {
        /// Its name; it must exist.
        to: String,
    },
    /// Other fields.
    Set(NewFields),
}

impl Change {
    /// The word for it in the API.
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

/// Fields that a message gets instead of its own; `None`: stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NewFields {
    /// 0 to 9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Ready so many milliseconds from now; not together with `deliver_at_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Ready at this time, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_at_ms: Option<u64>,
    /// Attempts before it becomes a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// All its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// Who makes a change, and why; the message remembers it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Note {
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A change that a message remembers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// The word for it in the API.
    pub change: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// By whom and why.
    #[serde(flatten)]
    pub note: Note,
}

/// Which messages of a queue; what is `None` does not matter.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BulkFilter {
    /// Name of the queue.
    pub queue: String,
    /// In this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// With this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// With this header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<BulkHeader>,
    /// Sent before this time, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_before_ms: Option<u64>,
    /// Sent at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_after_ms: Option<u64>,
    /// With at least so many attempts begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_min: Option<u16>,
    /// With this text in the error of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_contains: Option<String>,
}

/// A header with its whole value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BulkHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// One change of all messages that match, made in the background.
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
    /// Which messages.
    pub filter: BulkFilter,
    /// By whom and why.
    #[serde(flatten)]
    pub note: Note,
    /// Whether nothing is changed, and only counted.
    pub dry_run: bool,
    /// Messages in the queue when it began, in the state of the filter.
    pub total: u64,
    /// Messages looked at.
    pub scanned: u64,
    /// Of those: match.
    pub matched: u64,
    /// Of those: changed, or would be.
    pub changed: u64,
    /// Of those: not changed.
    pub skipped: u64,
    /// When it began, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl Bulk {
    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }
}
