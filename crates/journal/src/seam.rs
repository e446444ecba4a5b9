//! The seam on which everything above the journal stands: propose a batch; committed batches come back in order.
//!
//! It imports nothing of the journals behind it: [`crate::MemoryJournal`] and [`crate::DiskJournal`] import it.

pub mod batch;
pub mod blob;
pub mod event;

use batch::Batch;
use blob::{BlobKey, BlobRead};
use event::{Class, Event, Refused};

/// The seam.
///
/// How a Raft library (openraft) fits behind it: a proposal becomes a log entry, `Event::Committed` follows the commit
/// index, `Refused(NotLeader)` and `Unknown` are its two other ends. Each batch on disk carries index and term; the
/// entries above the commit index are the unsynced or unreplicated tail, and cutting them is what recovery does
/// already: a new segment under a new term. Votes are records of the same file order. Purging is logical, because
/// segments with live blobs stay, and a snapshot on the wire is a backup stream: the state plus every live blob.
pub trait Journal: Send {
    /// A place on disk that holds a blob.
    type Location;

    /// The index that the next proposed record will have.
    fn next_index(&self) -> u64;
    /// Hands a batch over and leaves it empty, its memory reused. Returns the index of its first record.
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused>;
    /// The next thing that has happened, without waiting.
    fn poll(&mut self) -> Option<Event>;
    /// Finds a live blob.
    fn read(&mut self, key: BlobKey) -> BlobRead<Self::Location>;
    /// Lets go of a blob of `len` bytes.
    fn release(&mut self, key: BlobKey);
}
