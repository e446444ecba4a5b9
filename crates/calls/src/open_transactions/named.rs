//! Names in the operations of an open transaction, each of which only one of them may name.

use sluice_engine::id::{MessageId, Receipt, UploadId};
use sluice_engine::locks::LockToken;

use crate::fault::Fault;

/// Memory of a name besides its texts: its place in the set of all, which is half empty at worst, and that in
/// the operation for those who look, each with a text of its own.
const EACH_BYTES: usize = 160;

/// A thing that one operation of a transaction is about, and no other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Name {
    /// A delivery that is settled.
    Delivery { id: MessageId, token: u64 },
    /// The key of a lock that is acquired.
    Lock(String),
    /// A grant that is released.
    Grant(LockToken),
    /// An attachment that is written or deleted.
    Attachment { key: String, name: String },
    /// An upload that is attached.
    Upload(UploadId),
}

impl Name {
    /// The delivery that a receipt proves.
    pub(crate) fn delivery(receipt: Receipt) -> Name {
        Name::Delivery { id: receipt.id, token: receipt.token }
    }

    /// The attachment of a document.
    pub(crate) fn attachment(key: &str, name: &str) -> Name {
        Name::Attachment { key: key.to_owned(), name: name.to_owned() }
    }

    /// Memory of it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match self {
            Name::Delivery { .. } | Name::Grant(_) | Name::Upload(_) => 0,
            Name::Lock(key) => key.len(),
            Name::Attachment { key, name } => key.len() + name.len(),
        };
        texts + EACH_BYTES
    }

    /// Key of the document of an attachment.
    pub(crate) fn document(&self) -> Option<&str> {
        match self {
            Name::Attachment { key, .. } => Some(key),
            Name::Delivery { .. } | Name::Lock(_) | Name::Grant(_) | Name::Upload(_) => None,
        }
    }

    /// The refusal of a second operation with this name.
    #[cold]
    pub(crate) fn named_twice(&self) -> Box<Fault> {
        let (field, done) = match self {
            Name::Delivery { .. } => ("receipt", "settles this delivery".to_owned()),
            Name::Lock(key) => ("key", format!("acquires the lock {key:?}")),
            Name::Grant(_) => ("token", "releases this grant".to_owned()),
            Name::Attachment { name, .. } => ("name", format!("changes the attachment {name:?}")),
            Name::Upload(_) => ("upload", "attaches this upload".to_owned()),
        };
        Fault::invalid(format!("the transaction {done} already: leave it out")).inside(field)
    }

    /// The refusal of an attachment whose document is deleted.
    #[cold]
    pub(crate) fn of_deleted(&self) -> Box<Fault> {
        Fault::invalid("the transaction deletes the document, with all its attachments: leave it out")
            .inside("key")
    }
}
