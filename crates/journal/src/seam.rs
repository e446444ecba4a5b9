//! The interface between a journal and its users: batches are proposed; committed batches come back in order.
//!
//! Nothing here imports a journal: [`crate::MemoryJournal`] and [`crate::DiskJournal`] implement [`Journal`].

pub mod batch;
pub mod blob;
pub mod event;
pub mod sealed;

use batch::Batch;
use blob::{BlobKey, BlobRead};
use event::{Class, Event, Refused};

/// One ordered log of records.
///
/// A batch that was proposed passes two points, in the order of the log:
///
/// - *durable*: this node holds it as its [`crate::Durability`] asks: synced with `always`, handed to the
///   operating system with `interval` and `os`, in memory with [`crate::MemoryJournal`]. A node reports to
///   others what is durable here.
/// - *committed*: it is in the log for ever. It may be applied, and answered; snapshots and backups hold
///   nothing else.
///
/// One node needs nobody's consent: what is durable is committed at once ([`crate::Commit::Own`]). With
/// several, a batch is committed when it is durable on a majority, so that either point may come first on one
/// of them ([`crate::Commit::Told`]). A proposal ends in
/// one of three ways: [`Event::Committed`]; not in the log ([`Refused`], at once or as [`Event::Refused`]);
/// or [`Event::Unknown`].
///
/// How raft-rs fits behind it: a proposal becomes an entry, which describes the batch whose bytes the
/// journal has ([`crate::DiskJournal::tail`]), with the number of the batch as its index;
/// [`crate::DiskJournal::durable_orders`] tells what `on_persist_ready` is to know, and the commit index is
/// told to [`crate::DiskJournal::commit`]; [`crate::DiskJournal::cut`] cuts the tail, and
/// [`crate::DiskJournal::read_on`] reads the log back for members that are behind. Purging is logical,
/// because segments with live blobs stay. Who needs what is gone gets a state: the newest snapshot
/// ([`crate::DiskJournal::read_state`]), and of its live blobs those that are missing there
/// ([`crate::DiskJournal::install`]).
pub trait Journal: Send {
    /// Location of a blob on disk.
    type Location;

    /// Index that the next proposed record will have; the first record of a log has 1.
    fn next_index(&self) -> u64;
    /// Index of the last durable record; 0: none.
    fn durable_index(&self) -> u64;
    /// Index of the last committed record; 0: none. [`Journal::poll`] gives the batches up to it, and none
    /// beyond.
    fn committed_index(&self) -> u64;
    /// Proposes a batch with a time in microseconds since the Unix epoch; leaves the batch empty, its memory
    /// reused. Returns the index of its first record.
    ///
    /// # Errors
    /// The reason for which the batch was refused; the batch is unchanged.
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused>;
    /// Takes the next event, in the order of the log; `None`: there is none now. Never blocks.
    fn poll(&mut self) -> Option<Event>;
    /// Looks up a live blob. Never blocks.
    fn read(&mut self, key: BlobKey) -> BlobRead<Self::Location>;
    /// Marks a blob as dead: its space may be freed.
    fn release(&mut self, key: BlobKey);
}
