//! Operations of a transaction.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sluice_engine::command::{QueueItem, SettleItem};

use crate::attachments::{KeyedAttach, KeyedDetach};
use crate::documents::patch::KeyedPatch;
use crate::documents::{KeyedCheck, KeyedDelete, KeyedPut};
use crate::locks::{AcquireAtOnce, Release};

/// A document to read.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionGet", example = json!({"key": "orders/17"}))]
pub struct KeyedGet {
    /// Its key.
    #[schemars(required)]
    pub(crate) key: Option<String>,
}

/// An operation as it was read.
#[derive(Clone, Debug)]
pub enum Operation<'a> {
    /// Sends a message.
    Send(QueueItem<'a>),
    /// Settles a delivery.
    Settle(SettleItem<'a>),
    /// Writes a document.
    Put(&'a KeyedPut),
    /// Patches a document.
    Patch(&'a KeyedPatch),
    /// Deletes a document.
    Delete(&'a KeyedDelete),
    /// Checks a document.
    Check(&'a KeyedCheck),
    /// Makes an attachment of an upload.
    Attach(&'a KeyedAttach),
    /// Deletes an attachment.
    Detach(&'a KeyedDetach),
    /// Acquires locks.
    Acquire(&'a AcquireAtOnce),
    /// Releases a grant.
    Release(&'a Release),
    /// Reads a document.
    Get(&'a KeyedGet),
}

impl Operation<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Operation::Send(_) => "send",
            Operation::Settle(_) => "settle",
            Operation::Put(_) => "put",
            Operation::Patch(_) => "patch",
            Operation::Delete(_) => "delete",
            Operation::Check(_) => "check",
            Operation::Attach(_) => "attach",
            Operation::Detach(_) => "delete_attachment",
            Operation::Acquire(_) => "acquire",
            Operation::Release(_) => "release",
            Operation::Get(_) => "get",
        }
    }
}
