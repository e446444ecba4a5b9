//! What becomes of a proposal, and what else a journal tells its user.

use bytes::Bytes;

use super::batch::Records;
use super::blob::BlobKey;

/// What a batch does to the disk, which decides whether the reserve may serve it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Brings bytes that stay: refused first.
    Growing,
    /// Settles, detaches, ticks: served from the reserve, so that draining frees space.
    Draining,
}

/// Why a batch was not taken. Nothing of it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// This node may not propose (replicated journals only).
    NotLeader,
    /// No room on the disk for a batch of this class.
    Full {
        /// Bytes that are left.
        free_bytes: u64,
        /// Bytes that must be left for it, the reserve taken again included.
        needed_bytes: u64,
    },
    /// An earlier write or sync failed; nothing is taken any more.
    Failed(String),
}

/// What has happened, in order.
#[derive(Debug)]
pub enum Event {
    /// A batch is in the log for ever and is to be applied.
    Committed(Committed),
    /// A batch that was proposed did not enter the log.
    Refused {
        /// Index that its first record would have had.
        first_index: u64,
        /// How many records it had.
        records: u32,
        /// Why.
        why: Refused,
    },
    /// Whether the batch is in the log is not known.
    Unknown {
        /// Index that its first record would have.
        first_index: u64,
        /// How many records it had.
        records: u32,
    },
    /// A write or sync failed: no reply may leave after this, ever.
    Failed(String),
    /// The scrub found that this live blob cannot be read back.
    Damaged(BlobKey),
}

/// A committed batch.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Index of the first record.
    pub first_index: u64,
    /// The time that the batch was stamped with, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// The encoded records: iterate with [`Committed::records`].
    pub bytes: Bytes,
}

impl Committed {
    /// The records, in order; the first has index `first_index`.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes)
    }
}
