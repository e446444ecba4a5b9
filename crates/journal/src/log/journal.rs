//! The shard's part of a journal on disk: proposing, committed batches, finding blobs.

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
use crate::log::read_back::{LogGone, LogReader, LogSegments};
use crate::log::shared::{Begun, Note, Order, Proposal, Shared};
use crate::log::snapshot::{Head, Work};
use crate::log::spans::budget_of;
use crate::log::uncommitted::{Entry, Uncommitted};
use crate::open_error::OpenError;
use crate::options::Durability;
use crate::seam::Journal;
use crate::seam::batch::Batch;
use crate::seam::blob::BlobKey;
use crate::seam::event::{Class, Committed, Event, Refused, TailError};
use crate::seam::sealed::SealedBatch;
use crate::status::Status;

/// Largest hard state in bytes.
const HARD_STATE_BYTES_MAX: usize = 64;

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
    /// Number of orders given.
    orders: u64,
    notes: VecDeque<Note>,
    index: Index,
    segments: LogSegments,
    cache: Cache,
    /// The uncommitted tail; `None`: what is durable is committed.
    tail: Option<Uncommitted>,
    cache_misses: u64,
    batches: u64,
    records: u64,
    snapshots: SnapshotTrigger,
    failure_told: bool,
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
}

impl SnapshotTrigger {
    pub(crate) fn found(log_bytes: u64, last_len: u64) -> SnapshotTrigger {
        SnapshotTrigger { log_bytes, last_len, ..SnapshotTrigger::default() }
    }
}

impl DiskJournal {
    pub(crate) fn new(
        shared: Arc<Shared>,
        end: &Link,
        last_time_us: u64,
        index: Index,
        segments: LogSegments,
        tail: Option<Uncommitted>,
        snapshots: SnapshotTrigger,
    ) -> DiskJournal {
        let cache_bytes = shared.options.cache_bytes;
        let cache = Cache::new(cache_bytes - budget_of(cache_bytes));
        DiskJournal {
            shared,
            next_index: end.next_index,
            next_number: end.next_number,
            last_time_us,
            orders: 0,
            notes: VecDeque::new(),
            index,
            segments,
            cache,
            tail,
            cache_misses: 0,
            batches: 0,
            records: 0,
            snapshots,
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
    /// A blob that is missing or has another length: damage.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = (BlobKey, u32)>) -> Result<(), OpenError> {
        for (key, len) in live {
            if !self.index.revive(key, len) {
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

    /// True when a snapshot is due: by the length of the log, by the space that it would free, or on request.
    pub fn wants_snapshot(&self) -> bool {
        let SnapshotTrigger { log_bytes, last_len, live_blobs, requested, running } = self.snapshots;
        if running || !self.shared.live_known.load(Relaxed) || self.shared.failure().is_some() {
            return false;
        }
        let enough = self.shared.options.snapshot_log_bytes;
        let dead = self.shared.dead_uncovered.load(Relaxed);
        // After most of the messages have gone, the next snapshot is far smaller than the one on disk.
        let shrunk = last_len >= enough && self.index.live_blobs() * 2 < live_blobs;
        let frees_room = self.shared.space.dead_kept().is_some_and(|kept| dead > kept);
        let much_dead = frees_room || dead >= (enough / 2).max(last_len / 2);
        requested || log_bytes >= enough.max(last_len) || much_dead || shrunk
    }

    /// Makes [`DiskJournal::wants_snapshot`] true, once.
    pub fn request_snapshot(&mut self) {
        self.snapshots.requested = true;
    }

    /// Begins a snapshot of the state just after record `applied_index`, at the logged time `time_us`.
    /// `behaviour` is stored with the snapshot and not interpreted.
    pub fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        self.snapshots.requested = false;
        self.snapshots.running = true;
        self.snapshots.log_bytes = 0;
        self.snapshots.live_blobs = self.index.live_blobs();
        self.shared.snapshot.push(Work::Begin(Head { applied_index, time_us, behaviour }));
        self.shared.maintenance_signal.notify();
    }

    /// Takes the next piece of the snapshot (up to 1 GiB; 64 KiB to 1 MiB serve best). `Err` gives it back
    /// while maintenance is behind.
    pub fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        let result = self.shared.snapshot.push_piece(piece);
        self.shared.maintenance_signal.notify();
        result
    }

    /// Ends the snapshot; maintenance puts it in place.
    pub fn snapshot_finish(&mut self) {
        self.shared.snapshot.push(Work::Finish);
        self.shared.maintenance_signal.notify();
    }

    /// Gives the snapshot up; maintenance removes what was written.
    pub fn snapshot_abort(&mut self) {
        self.snapshots.running = false;
        self.shared.snapshot.push(Work::Abort);
        self.shared.maintenance_signal.notify();
    }

    /// True from the beginning of a snapshot until it is in place or given up.
    pub fn snapshot_running(&self) -> bool {
        self.snapshots.running
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
            cache_bytes: self.cache.bytes() + self.shared.files.spans().bytes(),
            cache_misses: self.cache_misses,
            full: self.shared.space.full.load(Relaxed),
            low: free < self.shared.options.low_water_bytes,
            late_segments: counters.late_segments.load(Relaxed),
            reserve_bytes: self.shared.space.reserve.load(Relaxed),
        }
    }

    /// The durability setting.
    pub fn durability(&self) -> Durability {
        self.shared.options.durability
    }

    /// Seals a batch for the end of the log, and leaves it empty. Its time, in microseconds since the Unix
    /// epoch, is at least that of the batch before.
    pub fn seal(&self, batch: &mut Batch, time_us: u64) -> SealedBatch {
        SealedBatch::seal(batch, self.next_index, self.last_time_us.max(time_us))
    }

    /// Appends a batch under a term that the owner gives; for [`Commit::Told`].
    ///
    /// # Errors
    /// An earlier write or sync has failed: the journal takes nothing any more.
    ///
    /// # Panics
    /// When the batch is sealed for another place, the term or the time is smaller than that of the batch
    /// before, or the journal commits by its own rule.
    ///
    /// [`Commit::Told`]: crate::Commit::Told
    pub fn append(&mut self, term: u64, batch: SealedBatch) -> Result<(), Refused> {
        if let Some(what) = self.shared.failure() {
            return Err(Refused::Failed(what.clone()));
        }
        let (last_term, last_time_us) = self.last();
        let Some(tail) = &mut self.tail else {
            panic!("terms are given to a journal under Commit::Told only")
        };
        assert_eq!(batch.first_index, self.next_index, "a batch is appended where it was sealed for");
        let is_later = term >= last_term && batch.time_us >= last_time_us;
        assert!(is_later, "term and time of a batch, {term} and {}, do not grow", batch.time_us);
        self.next_index += u64::from(batch.records);
        self.last_time_us = batch.time_us;
        let entry = Entry::new(self.next_number, term, batch);
        self.next_number += 1;
        let order = Order::Write(entry.proposal());
        tail.push(entry);
        self.order(order);
        Ok(())
    }

    /// Commits the records up to this one, with which a batch of the tail ends; no error when they are
    /// committed already. [`Journal::poll`] gives them once they are written: others may have made them
    /// durable before this node has.
    ///
    /// # Errors
    /// No batch of the tail ends with the record; nothing was changed.
    pub fn commit(&mut self, index: u64) -> Result<(), TailError> {
        let tail = self.tail.as_mut().ok_or(TailError::NoTail)?;
        tail.commit(index)?;
        self.shared.set_committed(tail.notable_index());
        Ok(())
    }

    /// Cuts the tail from this record on, with which a batch of it begins. At once nothing of it can be read,
    /// and the next batch has this index; [`DiskJournal::durable_orders`] tells when that is durable. Until
    /// then a crash leaves either the whole tail or the cut. Returns whether there was anything to cut: else
    /// it is no order.
    ///
    /// # Errors
    /// The record is committed, or no batch begins with it; nothing was changed.
    pub fn cut(&mut self, index: u64) -> Result<bool, TailError> {
        if let Some(what) = self.shared.failure() {
            return Err(TailError::Failed(what.clone()));
        }
        let tail = self.tail.as_mut().ok_or(TailError::NoTail)?;
        let Some(number) = tail.cut(index)? else { return Ok(false) };
        (_, self.last_time_us) = tail.last();
        (self.next_index, self.next_number) = (index, number);
        self.order(Order::Cut(index));
        Ok(true)
    }

    /// Number that the next batch will have; the first of a log has 1.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The batch of the tail with this number.
    pub fn numbered(&self, number: u64) -> Option<&Entry> {
        self.tail.as_ref().and_then(|tail| tail.numbered(number))
    }

    /// The tail from the batch that holds this record on, durable or not: the batches that
    /// [`Journal::poll`] has not given yet. The owner bounds its memory by what it proposes.
    pub fn tail(&self, index: u64) -> impl Iterator<Item = &Entry> {
        self.tail.iter().flat_map(move |tail| tail.from(index))
    }

    /// Shows a reader the part of the log that it is to read next, of the batches that [`Journal::poll`] or
    /// replay has given: the rest of the segment in which its next batch is. Those that are not given yet are
    /// in [`DiskJournal::tail`].
    ///
    /// # Errors
    /// Compaction has taken the batch away: a snapshot is needed. The reader is unchanged.
    pub fn read_on(&self, reader: &mut LogReader) -> Result<(), LogGone> {
        self.segments.show(reader)
    }

    /// Number and term of the batch behind which the last `bytes` bytes of the log can be read back, in whole
    /// segments and at least the one that grows; number 0: from the first batch on.
    pub fn before_last(&self, bytes: u64) -> (u64, u64) {
        let Link { next_number, term, .. } = self.segments.before_last(bytes);
        (next_number - 1, *term)
    }

    /// Keeps the log from the batch of this number on for readers, as far as it is there, until another
    /// number is given: compaction leaves its segments alone, but for those that it is taking away at this
    /// moment. An opening keeps nothing for readers.
    pub fn keep_from(&mut self, number: u64) {
        self.shared.keep_from.store(number, Relaxed);
        // What is not kept any more may go.
        self.shared.released.store(true, Relaxed);
        self.shared.maintenance_signal.notify();
    }

    /// Keeps a hard state of up to 64 bytes, such as term and vote, in place of the one before. It is synced
    /// whatever the durability, before any batch that is proposed later is written;
    /// [`DiskJournal::durable_orders`] tells when.
    ///
    /// # Panics
    /// When it is longer.
    pub fn hard_state(&mut self, state: &[u8]) {
        let len = state.len();
        assert!(
            len <= HARD_STATE_BYTES_MAX,
            "a hard state has at most {HARD_STATE_BYTES_MAX} bytes, not {len}"
        );
        self.order(Order::HardState(state.to_vec()));
    }

    /// Number of the last order given since the opening; 0: none. Orders are batches with records, cuts and
    /// hard states, which take effect on the disk in the order in which they are given.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// Number of the last order that is durable, with all before it; 0: none. It is as of now, not of the
    /// last [`Journal::poll`], and the waker is called when it grows. A crash leaves what these orders have
    /// made of the log, and then some of those after them, from the first on.
    ///
    /// A batch is durable as [`Durability`] asks: with `interval` and `os` it is written, and a power loss
    /// may take it. Cuts and hard states are synced whatever the durability, a cut with every batch before
    /// it.
    pub fn durable_orders(&self) -> u64 {
        self.shared.durable_orders()
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
        self.shared.space.room_for(class, (HEADER + bytes) as u64)?;
        if self.shared.space.taken.fetch_add((HEADER + bytes) as u64, Relaxed) == 0 {
            // The first since free space was looked at.
            self.shared.maintenance_signal.notify();
        }
        Ok(())
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

    fn committed(&mut self, committed: Committed, records: u32, offset: u64) -> Event {
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
        let (entry, offset) = tail.next_committed()?;
        let Entry { first_index, records, number, term, time_us, bytes, .. } = entry;
        let end = offset + bytes.len() as u64;
        self.shared.set_given(Position { segment: self.index.growing(), offset: end });
        Some(self.committed(Committed { first_index, number, term, time_us, bytes }, records, offset))
    }

    fn take_note(&mut self, note: Note) -> Option<Event> {
        match note {
            Note::Batch { written, offset } => match &mut self.tail {
                None => {
                    let records = written.records;
                    return Some(self.committed(written.committed(), records, offset));
                }
                Some(tail) => tail.written(written.first_index, offset),
            },
            Note::Segment(begun) => match &mut self.tail {
                None => next_segment(&self.shared, &mut self.index, &mut self.segments, begun),
                Some(tail) => tail.begun(begun),
            },
            Note::Durable { last_index } => self.tail.iter_mut().for_each(|tail| tail.durable(last_index)),
            Note::Cut { at, handle, start } => self.cut_done(at, handle, start),
            Note::Moved { sources, target } => {
                sources.iter().for_each(|number| self.segments.forget(*number));
                self.index.begin_move(sources, target);
            }
            Note::Dropped { number } => {
                self.segments.forget(number);
                self.index.drop_file(number);
                self.retire();
            }
            Note::SnapshotDone { len } => {
                self.snapshots.running = false;
                self.snapshots.last_len = len;
            }
            Note::SnapshotFailed => self.snapshots.running = false,
            Note::Damaged(key) => {
                return self.index.find(key).is_some().then_some(Event::Damaged(key));
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
        self.next_told().or_else(|| self.failure())
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
