//! The seam on which everything above the journal stands: propose a batch; committed batches come back in order.

use bytes::Bytes;

use crate::batch::{Batch, Records};

/// One blob: record index and item within the record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobKey {
    /// Index of the record.
    pub index: u64,
    /// Which blob of the record, from 0.
    pub item: u32,
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
    },
    /// An earlier write or sync failed; nothing is taken any more.
    Failed(String),
}

/// What a batch does to the disk, which decides whether the reserve may serve it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Brings bytes that stay: refused first.
    Growing,
    /// Settles, detaches, ticks: served from the reserve, so that draining frees space.
    Draining,
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

/// Where a blob is.
#[derive(Debug)]
pub enum BlobRead {
    /// Here.
    Cached(Bytes),
    /// Must be read from disk, off the shard thread.
    OnDisk(BlobLocation),
    /// Not in the journal (released, or never was).
    Missing,
}

/// A place on disk that holds a blob; stays readable while this is held, even when compaction moves the blob.
#[derive(Clone, Debug)]
pub struct BlobLocation {
    _private: (),
}

/// The seam.
pub trait Journal: Send {
    /// The index that the next proposed record will have.
    fn next_index(&self) -> u64;
    /// Hands a batch over and leaves it empty, its memory reused. Returns the index of its first record.
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused>;
    /// The next thing that has happened, without waiting.
    fn poll(&mut self) -> Option<Event>;
    /// Finds a live blob.
    fn read(&mut self, key: BlobKey) -> BlobRead;
    /// Lets go of a blob of `len` bytes.
    fn release(&mut self, key: BlobKey);
}
