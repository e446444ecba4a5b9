//! Transactions: operations of several modules that are done together, all or none.
//!
//! A transaction over several namespaces is committed in two phases: a part is prepared in each namespace but
//! the coordinator's, the coordinator's part is done and is the decision, and the others are finished.

use crate::documents::DocumentVersion;
pub use crate::id::TransactionId;
use crate::id::{MessageId, NamespaceId};
use crate::locks::LockGrant;

/// Decision on a transaction over several namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Committed.
    Committed,
    /// Not committed, and never to be.
    Aborted,
    /// May still be committed.
    Open,
}

/// A part of a transaction that is prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreparedView {
    /// The transaction.
    pub id: TransactionId,
    /// Shard of its coordinator.
    pub shard: u32,
    /// Namespace of the part.
    pub namespace: NamespaceId,
    /// When it was prepared, in microseconds since the Unix epoch by the clock of this log.
    pub prepared_at_us: u64,
    /// Time from which on it cannot be decided to commit any more, in microseconds since the Unix epoch by
    /// the clock of the coordinator's log.
    pub until_us: u64,
    /// Number of its operations.
    pub operations: u32,
}

/// A transaction that is committed, and is not known to be finished in all its namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecidedView {
    /// The transaction.
    pub id: TransactionId,
    /// When it was decided, in microseconds since the Unix epoch.
    pub decided_at_us: u64,
    /// Namespaces in which it was prepared, with their shards.
    pub participants: Vec<(NamespaceId, u32)>,
}

/// An operation of a prepared part as those see it who look: without its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationView {
    /// Its name in requests.
    pub kind: &'static str,
    /// The queue of a send, the id of the message that is settled, or keys; empty of a release.
    pub about: Vec<String>,
    /// Length of the content that a put writes, in bytes.
    pub content_bytes: Option<u64>,
}

/// Parts that are prepared, and transactions that are decided and not finished everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InDoubtTotals {
    /// Number of both.
    pub count: u64,
    /// When the oldest was prepared or decided, in microseconds since the Unix epoch; 0: there is none.
    pub oldest_us: u64,
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
