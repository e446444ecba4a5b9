//! The journal on disk: signatures first, so that the crates above can be written against them.
#![allow(clippy::unimplemented, unused_variables, missing_docs, missing_debug_implementations)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{
    Batch, BlobKey, BlobRead, Class, Committed, Disk, Event, Journal, OpenError, Options, RecoveryReport,
    Refused, Status,
};

/// What opening gives: restore from `snapshot`, replay `replay`, tell `journal.set_live`, then serve.
pub struct Opened {
    /// The shard's side; never blocks.
    pub journal: DiskJournal,
    /// The steps that do the writing and syncing; clones share the work, and any thread may step.
    pub writer: Writer,
    /// Everything in the background.
    pub maintenance: Maintenance,
    /// Online backups, from any thread.
    pub backups: Backups,
    /// The latest snapshot.
    pub snapshot: Option<SnapshotReader>,
    /// Committed batches after the snapshot.
    pub replay: Replay,
    /// What was found.
    pub report: RecoveryReport,
}

/// The shard's side of a journal on disk. `propose` does not wake the writer: call `writer.notify()` (a thread waits
/// in `writer.wait()`) or `writer.step()` (right here) when the batches of a turn have been proposed.
pub struct DiskJournal {}

impl DiskJournal {
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Opened, OpenError> {
        unimplemented!()
    }
    /// Called by whoever steps the writer, after events have become available to `poll`.
    pub fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        unimplemented!()
    }
    /// After replay: every blob that the engine still refers to, with its length. Releases before this are ignored.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = (BlobKey, u32)>) -> Result<(), OpenError> {
        unimplemented!()
    }
    pub fn wants_snapshot(&self) -> bool {
        unimplemented!()
    }
    /// Begins a snapshot of the state after the record before `next_index`... `applied_index` is the last applied record.
    pub fn snapshot_begin(&mut self, applied_index: u64, time_us: u64) {
        unimplemented!()
    }
    /// Takes the next piece, or gives it back when the disk is behind: try again later.
    pub fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        unimplemented!()
    }
    pub fn snapshot_finish(&mut self) {
        unimplemented!()
    }
    pub fn snapshot_abort(&mut self) {
        unimplemented!()
    }
    pub fn status(&self) -> Status {
        unimplemented!()
    }
}

impl Journal for DiskJournal {
    fn next_index(&self) -> u64 {
        unimplemented!()
    }
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        unimplemented!()
    }
    fn poll(&mut self) -> Option<Event> {
        unimplemented!()
    }
    fn read(&mut self, key: BlobKey) -> BlobRead {
        unimplemented!()
    }
    fn release(&mut self, key: BlobKey) {
        unimplemented!()
    }
}

/// Writes and syncs what has been proposed.
#[derive(Clone)]
pub struct Writer {}

impl Writer {
    /// Takes all queued batches, writes, syncs as the durability says, publishes. Whether there was anything to do;
    /// `false` at once when another thread is in a step (that one takes what is queued).
    pub fn step(&self) -> bool {
        unimplemented!()
    }
    /// Waits until something is queued; `false` after [`Writer::stop`].
    pub fn wait(&self) -> bool {
        unimplemented!()
    }
    /// Wakes who waits.
    pub fn notify(&self) {
        unimplemented!()
    }
    /// Makes everything written durable (before an orderly end). An error has poisoned the journal.
    pub fn sync(&self) -> Result<(), String> {
        unimplemented!()
    }
    /// Makes waits of writer and maintenance return `false`.
    pub fn stop(&self) {
        unimplemented!()
    }
}

/// Snapshots, sealing, compaction, preallocation, interval syncs, idle markers, scrub, free space: one bounded piece a step.
pub struct Maintenance {}

impl Maintenance {
    /// Does one piece of work at the monotonic time `now_us`. Whether more is waiting.
    pub fn step(&mut self, now_us: u64) -> bool {
        unimplemented!()
    }
    /// Waits for work, at most this long; `false` after [`Writer::stop`].
    pub fn wait(&self, most: Duration) -> bool {
        unimplemented!()
    }
}

/// The latest snapshot, in the pieces given.
pub struct SnapshotReader {
    /// Index of the last record that it holds.
    pub applied_index: u64,
    /// The time given with it.
    pub time_us: u64,
}

impl SnapshotReader {
    /// The next piece; `None` at the end.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, OpenError> {
        unimplemented!()
    }
}

/// Committed batches, in order.
pub struct Replay {}

impl Replay {
    /// The next batch; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<Committed>, OpenError> {
        unimplemented!()
    }
}

/// Starts backups.
#[derive(Clone)]
pub struct Backups {}

impl Backups {
    /// Pins the committed state as it is now.
    pub fn begin(&self) -> std::io::Result<Backup> {
        unimplemented!()
    }
}

/// One backup being read.
pub struct Backup {}

impl Backup {
    /// The next bytes of the stream; `None` at its end.
    pub fn next_chunk(&mut self) -> std::io::Result<Option<Bytes>> {
        unimplemented!()
    }
}
