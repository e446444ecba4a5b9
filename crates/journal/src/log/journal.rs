//! The shard's part of a journal on disk: proposing, committed batches, finding blobs.

mod install;
mod orders;
mod repair;
mod snapshots;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::lock::lock;
use crate::log::blob::{BlobLocation, BlobRead};
use crate::log::cache::Cache;
use crate::log::files::Handle;
use crate::log::header::{HEADER, Position};
use crate::log::index::{FoundBlob, Index};
use crate::log::manifest::Link;
use crate::log::read_back::LogSegments;
use crate::log::shared::{BatchPlace, Begun, Note, Order, Proposal, Shared};
use crate::log::spans::budget_of;
use crate::log::state_reader::PlacedSnapshot;
use crate::log::uncommitted::{Entry, Uncommitted};
use crate::open_error::OpenError;
use crate::options::Durability;
use crate::seam::Journal;
use crate::seam::batch::Batch;
use crate::seam::blob::BlobKey;
use crate::seam::event::{Class, Committed, DiskRoom, Event, Refused};
use crate::status::Status;

/// Largest batch in bytes, so that offsets within a segment fit 32 bits.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// The shard's part of a journal on disk. No method blocks.
///
/// `propose` does not wake the writer: after the batches of a turn call [`crate::Writer::notify`] (a thread
/// waits in [`crate::Writer::wait`]) or [`crate::Writer::step`] (on this thread, which saves two thread
/// switches).
#[derive(Debug)]
pub struct DiskJournal {
    shared: Arc<Shared>,
    next_index: u64,
    /// Number of the next proposed batch.
    next_number: u64,
    last_time_us: u64,
    /// State of the chain after the last batch that was given.
    given: Link,
    /// Index of the record from which on no blob of the state is missing.
    whole_from: u64,
    /// Number of orders given.
    orders: u64,
    notes: VecDeque<Note>,
    index: Index,
    segments: LogSegments,
    cache: Cache,
    /// Number of the order by which a state is being installed.
    installing: Option<u64>,
    /// The uncommitted tail; `None`: what is durable is committed.
    tail: Option<Uncommitted>,
    cache_misses: u64,
    batches: u64,
    records: u64,
    snapshots: SnapshotTrigger,
    /// Bytes that the owner keeps with snapshots.
    label: Vec<u8>,
    failure_told: bool,
}

/// Ends of the log found by an opening.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// State of the chain after the last batch, and after the last committed one.
    pub(crate) log: Link,
    pub(crate) committed: Link,
    /// Time of the last batch, in microseconds since the Unix epoch.
    pub(crate) time_us: u64,
}

/// State that decides when the next snapshot is due.
#[derive(Debug, Default)]
pub(crate) struct SnapshotTrigger {
    /// Log since the last snapshot began, in bytes.
    log_bytes: u64,
    /// Size of the last snapshot, in bytes.
    last_len: u64,
    /// Number of live blobs when the last snapshot began.
    live_blobs: u64,
    requested: bool,
    running: bool,
    /// The newest snapshot, which other nodes may be sent ([`crate::Commit::Told`] only).
    newest: Option<PlacedSnapshot>,
}

impl SnapshotTrigger {
    pub(crate) fn found(log_bytes: u64, newest: Option<PlacedSnapshot>) -> SnapshotTrigger {
        let last_len = newest.as_ref().map_or(0, |newest| newest.named.len);
        SnapshotTrigger { log_bytes, last_len, newest, ..SnapshotTrigger::default() }
    }
}

impl DiskJournal {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ends: Ends,
        index: Index,
        segments: LogSegments,
        tail: Option<Uncommitted>,
        mut snapshots: SnapshotTrigger,
    ) -> DiskJournal {
        snapshots.newest.take_if(|_| tail.is_none());
        let cache_bytes = shared.options.cache_bytes;
        let cache = Cache::new(cache_bytes - budget_of(cache_bytes));
        let whole_from = lock(&shared.manifest).whole_from;
        DiskJournal {
            shared,
            next_index: ends.log.next_index,
            next_number: ends.log.next_number,
            last_time_us: ends.time_us,
            given: ends.committed,
            whole_from,
            orders: 0,
            notes: VecDeque::new(),
            index,
            segments,
            cache,
            installing: None,
            tail,
            cache_misses: 0,
            batches: 0,
            records: 0,
            snapshots,
            label: Vec::new(),
            failure_told: false,
        }
    }

    /// Sets the function that is called, on any thread, when [`Journal::poll`] has an event. The first one
    /// set stays.
    pub fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        if self.shared.waker.set(wake).is_ok() {
            self.shared.wake_shard();
        }
    }

    /// Tells, after replay, every blob that the state refers to, with its length in bytes. Before this call
    /// releases are ignored and no space is freed.
    ///
    /// # Errors
    /// A blob that is missing or has another length: damage. Missing may be what another node had released
    /// before it sent the state ([`DiskJournal::install`]), until the record that releases it is replayed.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = (BlobKey, u32)>) -> Result<(), OpenError> {
        for (key, len) in live {
            if !self.index.revive(key, len) && self.given.next_index > self.whole_from {
                let what =
                    format!("no file holds blob {} of this record, {len} bytes, which is live", key.item);
                return Err(OpenError::damaged(&self.shared.options.dir, 0, Some(key.index), what));
            }
        }
        self.snapshots.live_blobs = self.index.live_blobs();
        self.shared.live_known.store(true, Relaxed);
        self.shared.maintenance_signal.notify();
        Ok(())
    }

    /// Number of live blobs.
    pub fn live_blobs(&self) -> u64 {
        self.index.live_blobs()
    }

    /// Time of the newest batch that was proposed (or found when opening), in microseconds since the Unix
    /// epoch.
    pub fn last_time_us(&self) -> u64 {
        self.last_time_us
    }

    /// Metrics.
    pub fn status(&self) -> Status {
        let counters = &self.shared.counters;
        let free = self.shared.space.free.load(Relaxed);
        Status {
            batches: self.batches,
            records: self.records,
            log_bytes: counters.log_bytes.load(Relaxed),
            fsyncs: counters.fsyncs.load(Relaxed),
            last_fdatasync_us: counters.last_fdatasync_us.load(Relaxed),
            disk_bytes: counters.disk_bytes.load(Relaxed),
            disk_free_bytes: free,
            segments: counters.files.load(Relaxed),
            snapshots: counters.snapshots.load(Relaxed),
            snapshot_running: self.snapshots.running,
            compacted_bytes: counters.compacted_bytes.load(Relaxed),
            damaged_blobs: counters.damaged_blobs.load(Relaxed),
            repaired_blobs: counters.repaired_blobs.load(Relaxed),
            cache_bytes: self.cache.bytes() + self.shared.files.spans().bytes(),
            cache_misses: self.cache_misses,
            full: self.shared.is_full(),
            low: free < self.shared.options.low_water_bytes,
            late_segments: counters.late_segments.load(Relaxed),
            reserve_bytes: self.shared.space.reserve.load(Relaxed),
        }
    }

    /// The durability setting.
    pub fn durability(&self) -> Durability {
        self.shared.options.durability
    }

    /// Queues an order for the writer.
    fn order(&mut self, order: Order) {
        self.orders += 1;
        lock(&self.shared.queue).push_back(order);
    }

    /// Term and time of the last batch of the log.
    fn last(&self) -> (u64, u64) {
        self.tail.as_ref().map_or((self.shared.term, self.last_time_us), Uncommitted::last)
    }

    /// Checks that there is room for a batch, and counts the room as taken.
    ///
    /// # Errors
    /// The reason for which it cannot be written now.
    pub fn admit(&mut self, bytes: usize, class: Class) -> Result<(), Refused> {
        if let Some(what) = self.shared.failure() {
            return Err(Refused::Failed(what.clone()));
        }
        assert!(bytes <= BATCH_BYTES_MAX, "a batch has at most {BATCH_BYTES_MAX} bytes, and not {bytes}");
        self.shared.take_room(class, (HEADER + bytes) as u64)
    }

    /// As [`DiskJournal::admit`], for the copy of a batch of another node, which takes growing ones: it may
    /// be of either class. What it leaves of the reserve is for the time when that node takes none any more.
    ///
    /// # Errors
    /// The reason for which it cannot be written now.
    pub fn admit_copy(&mut self, bytes: usize) -> Result<(), Refused> {
        self.shared.space.room_for_copy((HEADER + bytes) as u64)?;
        self.admit(bytes, Class::Draining)
    }

    /// Batches for which the disk has room, short of a slack for those that are on their way to it.
    pub fn disk_room(&self) -> DiskRoom {
        self.shared.disk_room()
    }

    /// Queues a batch that is committed when it is durable.
    fn take(&mut self, batch: &mut Batch, time_us: u64) {
        let (bytes, records) = batch.take();
        self.last_time_us = self.last_time_us.max(time_us);
        let (first_index, number, time_us) = (self.next_index, self.next_number, self.last_time_us);
        self.next_index += u64::from(records);
        self.next_number += 1;
        let term = self.shared.term;
        let proposal = Proposal { first_index, records, number, term, time_us, bytes };
        self.order(Order::Write(proposal));
    }

    fn next_note(&mut self) -> Option<Note> {
        if self.notes.is_empty() {
            std::mem::swap(&mut self.notes, &mut *lock(&self.shared.notes));
        }
        self.notes.pop_front()
    }

    fn committed(&mut self, committed: Committed, records: u32, place: BatchPlace) -> Event {
        let BatchPlace { offset, checksum } = place;
        let Committed { first_index, number, term, time_us, .. } = committed;
        let (next_index, next_number) = (first_index + u64::from(records), number + 1);
        self.given = Link { next_index, next_number, previous: checksum, term, time_us };
        self.index.push(&committed.bytes, offset);
        self.segments.given(committed.number, offset + committed.bytes.len() as u64);
        self.cache.push(committed.first_index, offset, committed.bytes.clone());
        self.batches += 1;
        self.records += u64::from(records);
        self.snapshots.log_bytes += (HEADER + committed.bytes.len()) as u64;
        Event::Committed(committed)
    }

    /// The next batch of the tail that is committed and written; none after a failure was told.
    fn next_told(&mut self) -> Option<Event> {
        let tail = self.tail.as_mut().filter(|_| !self.failure_told)?;
        while let Some(begun) = tail.next_segment() {
            next_segment(&self.shared, &mut self.index, &mut self.segments, begun);
        }
        let (entry, place) = tail.next_committed()?;
        let Entry { first_index, records, number, term, time_us, bytes, .. } = entry;
        let end = place.offset + bytes.len() as u64;
        self.shared.set_given(Position { segment: self.index.growing(), offset: end });
        Some(self.committed(Committed { first_index, number, term, time_us, bytes }, records, place))
    }

    /// True for what is told of the former log while a state is being installed.
    fn is_outdated(&self, note: &Note) -> bool {
        self.installing.is_some() && note.is_of_log()
    }

    fn take_note(&mut self, note: Note) -> Option<Event> {
        if self.is_outdated(&note) {
            return None;
        }
        match note {
            Note::Batch { written, place } => match &mut self.tail {
                None => {
                    let records = written.records;
                    return Some(self.committed(written.committed(), records, place));
                }
                Some(tail) => tail.written(written.first_index, place),
            },
            Note::Segment(begun) => match &mut self.tail {
                None => next_segment(&self.shared, &mut self.index, &mut self.segments, begun),
                Some(tail) => tail.begun(begun),
            },
            Note::Durable { last_index } => self.tail.iter_mut().for_each(|tail| tail.durable(last_index)),
            Note::Cut { at, handle, start } => self.cut_done(at, handle, start),
            Note::Installed { handle, start, placed } => self.installed(handle, start, placed),
            Note::Moved { sources, target } => {
                sources.iter().for_each(|number| self.segments.forget(*number));
                self.index.begin_move(sources, target);
            }
            Note::Dropped { number } => {
                self.segments.forget(number);
                self.index.drop_file(number);
                self.retire();
            }
            Note::SnapshotDone { placed } => {
                self.snapshots.running = false;
                self.snapshots.last_len = placed.named.len;
                self.snapshots.newest = self.tail.is_some().then_some(placed);
            }
            Note::SnapshotFailed => self.snapshots.running = false,
            Note::Damaged(key) => {
                let is_news =
                    self.index.find(key).is_some() && self.shared.files.repairs().get(key).is_none();
                return is_news.then_some(Event::Damaged(key));
            }
        }
        None
    }

    fn cut_done(&mut self, at: Position, handle: Handle, start: Link) {
        let Some(tail) = &mut self.tail else { return };
        if let Some((handle, start)) = tail.cut_done(at, handle, start) {
            self.segments.restart(handle.clone(), start);
            self.index.restart(handle, start);
        }
        self.shared.set_committed(tail.notable_index());
    }

    /// Continues moving blobs to the file of a compaction, one slice.
    fn continue_move(&mut self) {
        if !self.index.is_moving() {
            return;
        }
        let more = self.index.move_slice();
        self.shared.moving.store(more, Relaxed);
        if more {
            self.shared.wake_shard();
        } else {
            self.retire();
        }
    }

    /// Hands files and tables that are not needed to maintenance, since freeing them takes time.
    fn retire(&mut self) {
        lock(&self.shared.retired).append(&mut self.index.take_retired());
        self.shared.maintenance_signal.notify();
    }

    fn failure(&mut self) -> Option<Event> {
        if self.failure_told {
            return None;
        }
        let what = self.shared.failure()?.clone();
        self.failure_told = true;
        Some(Event::Failed(what))
    }
}

/// Goes on with the next segment; the one before is to be sealed.
fn next_segment(shared: &Shared, index: &mut Index, segments: &mut LogSegments, begun: Begun) {
    let Begun { handle, start, finished_len } = begun;
    segments.begin(handle.clone(), start, finished_len);
    let complete = index.next_segment(handle, start, finished_len);
    lock(&shared.complete).push_back(complete);
    shared.maintenance_signal.notify();
}

impl Journal for DiskJournal {
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.next_index
    }

    /// Under [`crate::Commit::Told`] as of the last [`Journal::poll`].
    fn durable_index(&self) -> u64 {
        self.tail.as_ref().map_or_else(|| self.shared.durable_index(), Uncommitted::durable_index)
    }

    fn committed_index(&self) -> u64 {
        self.tail.as_ref().map_or_else(|| self.shared.committed_index(), Uncommitted::committed_index)
    }

    /// Under [`crate::Commit::Told`] the term is that of the batch before.
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        let first_index = self.next_index;
        if batch.is_empty() {
            return self.shared.failure().map_or(Ok(first_index), |what| Err(Refused::Failed(what.clone())));
        }
        self.admit(batch.bytes(), class)?;
        if self.tail.is_some() {
            let (term, _) = self.last();
            let sealed = self.seal(batch, time_us);
            self.append(term, sealed)?;
        } else {
            self.take(batch, time_us);
        }
        Ok(first_index)
    }

    fn poll(&mut self) -> Option<Event> {
        self.continue_move();
        while let Some(note) = self.next_note() {
            if let Some(event) = self.take_note(note) {
                return Some(event);
            }
        }
        self.next_told().or_else(|| self.next_sought()).or_else(|| self.failure())
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        let location = match self.index.find(key) {
            None => return BlobRead::Missing,
            Some(FoundBlob::Log(handle, table, place)) => match self.cache.get(key.index, place) {
                Some(bytes) => return BlobRead::Cached(bytes),
                None => handle.location(table, key, place),
            },
            Some(FoundBlob::Copied(location)) => location,
        };
        if let Some(copy) = self.shared.files.repairs().get(key) {
            return BlobRead::Cached(copy);
        }
        self.cache_misses += 1;
        BlobRead::OnDisk(location)
    }

    fn release(&mut self, key: BlobKey) {
        // Before `set_live` nothing is live, so that this finds nothing.
        if self.index.release(key) && !self.shared.released.swap(true, Relaxed) {
            self.shared.maintenance_signal.notify();
        }
    }
}
