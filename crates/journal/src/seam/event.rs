//! Outcomes of proposals, and the other events of a journal.

use bytes::Bytes;

use super::batch::Records;
use super::blob::BlobKey;

/// Class of a batch by its use of the disk, which decides whether the reserve may serve it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Adds data that stays. Refused first when the disk is full.
    Growing,
    /// Frees data, or adds next to none: settling, detaching, ticks. Served from the reserve, so that
    /// draining frees space.
    Draining,
}

/// Batches for which a disk has room; each one has room for those before it as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum DiskRoom {
    /// None: the reserve is spent.
    #[default]
    None,
    /// Draining batches.
    Draining,
    /// Copies of other nodes' batches, of either class, which leave a part of the reserve.
    Copies,
    /// Growing batches.
    Growing,
}

/// Reason for which a batch did not enter the log. Nothing of it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// This node is not the leader (replicated journals only).
    NotLeader,
    /// The disk has too little free space for a batch of this class.
    Full {
        /// Free space, in bytes.
        free_bytes: u64,
        /// Free space that the batch needs, in bytes, including what restores the reserve.
        needed_bytes: u64,
    },
    /// Too much is proposed and not committed (replicated journals only): repeat it when more is committed.
    Uncommitted,
    /// An earlier write or sync failed, with this error: the journal takes nothing any more.
    Failed(String),
}

/// Event of a journal.
#[derive(Debug)]
pub enum Event {
    /// A batch is committed: it may be applied and answered.
    Committed(Committed),
    /// A proposed batch did not enter the log.
    Refused {
        /// Index that was given to its first record.
        first_index: u64,
        /// Number of its records.
        records: u32,
        /// Reason.
        why: Refused,
    },
    /// A proposed batch may or may not be in the log.
    Unknown {
        /// Index that was given to its first record.
        first_index: u64,
        /// Number of its records.
        records: u32,
    },
    /// A write or sync failed, with this error: no answer may leave after this event.
    Failed(String),
    /// The scrub could not read this live blob back: it is damaged.
    Damaged(BlobKey),
}

/// Reason for which a commit or a cut was refused. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TailError {
    /// The journal commits by its own rule ([`crate::Commit::Own`]) and has no tail.
    NoTail,
    /// Records that are committed: they are never cut.
    Committed {
        /// Index of the last committed record.
        committed_index: u64,
    },
    /// No batch of the tail ends (to commit) or begins (to cut) with this record.
    NotABatch {
        /// Index of the record.
        index: u64,
    },
    /// An earlier write or sync failed, with this error.
    Failed(String),
}

/// Reason for which a state was not installed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InstallError {
    /// The journal commits by its own rule ([`crate::Commit::Own`]).
    NoTail,
    /// The state is not newer than what is committed.
    Behind {
        /// Index of the last committed record.
        committed_index: u64,
    },
    /// A live blob of the state is missing, or has another length.
    Blob(BlobKey),
    /// An earlier write or sync failed, with this error.
    Failed(String),
}

/// A committed batch.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Index of the first record.
    pub first_index: u64,
    /// Number of the batch in the log: the first has 1, and there are no holes.
    pub number: u64,
    /// Term under which it was proposed.
    pub term: u64,
    /// Time of the batch, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// The encoded records; see [`Committed::records`].
    pub bytes: Bytes,
}

impl Committed {
    /// Iterator over the records; the first has index `first_index`.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes)
    }
}
