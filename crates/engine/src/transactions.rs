//! Transactions: operations of several modules that are done together, all or none.

use crate::command::Command;
use crate::documents::DocumentVersion;
use crate::id::{MessageId, NamespaceId};
use crate::locks::LockGrant;

/// Operations that are done together: all of them, as one record, or none.
///
/// Each is admitted by the state before the transaction, so none depends on another: what one would make
/// room for, another does not get; and nothing is named by two of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transaction<'a> {
    /// Namespace of all that they are about.
    pub namespace: NamespaceId,
    /// A repeat with the same key within the window gets the first outcome. Empty: none.
    pub idempotency_key: &'a [u8],
    /// A digest of the request, to tell a repeat from a misuse of the key.
    pub request_digest: u64,
    /// The operations, at most [`crate::limits::TRANSACTION_OPERATIONS_MAX`]: [`Command::Send`] and
    /// [`Command::Settle`] with one item, [`Command::DocumentPut`], [`Command::DocumentDelete`],
    /// [`Command::LockAcquire`] without a wait, and [`Command::LockRelease`].
    pub operations: &'a [Command<'a>],
}

/// The outcome of an operation of a transaction that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationDone {
    /// The message was sent.
    Sent {
        /// Its id.
        id: MessageId,
    },
    /// The delivery was settled.
    Settled,
    /// The document was written.
    Written {
        /// Its version.
        version: DocumentVersion,
        /// True if there was no document before.
        created: bool,
    },
    /// The document was deleted.
    Deleted {
        /// The version that it had.
        version: DocumentVersion,
    },
    /// The locks were acquired.
    Granted {
        /// The grant.
        grant: LockGrant,
    },
    /// The grant was released.
    Released,
}

impl OperationDone {
    /// The grant that it gave, if it has.
    pub fn grant(&self) -> Option<LockGrant> {
        match self {
            OperationDone::Granted { grant } => Some(*grant),
            OperationDone::Sent { .. }
            | OperationDone::Settled
            | OperationDone::Written { .. }
            | OperationDone::Deleted { .. }
            | OperationDone::Released => None,
        }
    }
}
