//! Outcomes of transactions: operations of several modules that are done together, all or none.

use crate::documents::DocumentVersion;
use crate::id::MessageId;
use crate::locks::LockGrant;

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
    /// The condition on the document holds.
    Checked,
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
            | OperationDone::Checked
            | OperationDone::Released => None,
        }
    }
}
