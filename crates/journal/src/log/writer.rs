//! The writer: encodes queued batches, writes them in one call, syncs once, and publishes what is durable.
//!
//! A full disk is not a failure: nothing of the group was acknowledged, so the same bytes are written again
//! at the same offset, first after the reserve is given up, then at later steps. Any other failed write, and
//! any failed sync, fails the journal for good.
//!
//! Under [`Commit::Told`](crate::Commit::Told) the shard is told of batches that are written before they are
//! synced, since the sync does not commit them.

mod install;
mod marks;
mod orders;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use crate::disk::File;
use crate::disk::shortage::{is_full, is_passing};
use crate::file_kind::Kind;
use crate::lock::lock;
use crate::log::files::Handle;
use crate::log::header::next_sector;
use crate::log::header::{Header, Position, front};
use crate::log::manifest::{Link, OpenSegment};
use crate::log::sealing::append_batch;
use crate::log::shared::{BatchPlace, Begun, Fresh, Note, Order, Proposal, Shared};
use crate::options::Durability;
use crate::plant::{self, Plant};

/// Largest group of batches for one write, in bytes; a larger batch is written alone.
const GROUP_BYTES: usize = 8 << 20;

/// Divisor of a segment's size at which the next segment is prepared: filling it takes a while, and the log
/// goes on meanwhile.
pub(crate) const BEGIN_PART: u64 = 8;

/// Capacity that the write buffer keeps between steps, in bytes.
const BUFFER_KEPT: usize = 2 * GROUP_BYTES;

/// Writer of a journal. Clones share the work, and any thread may call `step`.
#[derive(Clone, Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    state: Arc<Mutex<WriterState>>,
    /// Held during a step. Others hold `state` briefly and leave the queue alone.
    pub(in crate::log) stepping: Arc<Mutex<()>>,
}

/// State of the writer.
#[derive(Debug)]
pub(crate) struct WriterState {
    segment: Handle,
    prefilled: u64,
    /// Offset of the next batch in the segment.
    offset: u64,
    /// Link of the batch chain after the last batch encoded.
    link: Link,
    written: Position,
    synced: Position,
    /// End of the last batch that has records.
    last_batch: Position,
    /// The `synced_to` that was last written.
    marked: Position,
    /// The committed index that was last written.
    marked_committed: u64,
    /// Complete segments with unsynced bytes.
    unsynced: Vec<Arc<dyn File>>,
    todo: VecDeque<Order>,
    /// Number of the last order that is written, and of orders in the buffer.
    written_orders: u64,
    buffered_orders: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    /// Link of the batch chain before the buffer.
    buffer_link: Link,
    /// Notes to publish when the buffer is written and durable.
    staged: Vec<Note>,
    /// Notes of written batches, to publish once they are durable as the durability setting asks.
    ready: Vec<Note>,
    /// Where the batches of the tail begin ([`Commit::Told`](crate::Commit::Told) only).
    begins: VecDeque<Begin>,
}

/// Beginning of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    pub(crate) at: Position,
    /// State of the chain before it.
    pub(crate) link: Link,
}

impl WriterState {
    /// State after recovery: everything up to `offset` of this segment is synced.
    pub(crate) fn new(
        segment: Handle,
        offset: u64,
        prefilled: u64,
        link: Link,
        begins: Vec<Begin>,
    ) -> WriterState {
        let synced = Position { segment: segment.number, offset };
        WriterState {
            segment,
            prefilled,
            offset: next_sector(offset),
            link,
            written: synced,
            synced,
            last_batch: synced,
            marked: synced,
            marked_committed: 0,
            unsynced: Vec::new(),
            todo: VecDeque::new(),
            written_orders: 0,
            buffered_orders: 0,
            buffer: Vec::new(),
            buffer_at: 0,
            buffer_link: link,
            staged: Vec::new(),
            ready: Vec::new(),
            begins: begins.into(),
        }
    }

    /// Size of the current segment when full, in bytes.
    fn fits(&self, shared: &Shared) -> u64 {
        if self.prefilled > 0 { self.prefilled } else { shared.options.segment_bytes }
    }

    /// Goes on in another segment, which is synced up to `end`, behind `link`. Its last batch tells that the
    /// log is committed up to record `committed`.
    fn go_on(&mut self, fresh: Fresh, end: Position, link: Link, committed: u64) {
        let Fresh { handle, prefilled } = fresh;
        self.segment = handle;
        (self.prefilled, self.offset, self.link) = (prefilled, next_sector(end.offset), link);
        (self.written, self.synced, self.last_batch, self.marked) = (end, end, end, end);
        self.marked_committed = committed;
    }

    fn idle(&self) -> bool {
        self.todo.is_empty() && self.buffer.is_empty() && self.ready.is_empty()
    }

    /// Link of the batch chain after the last batch written.
    fn written_link(&self) -> &Link {
        if self.buffer.is_empty() { &self.link } else { &self.buffer_link }
    }

    /// Bytes that a batch with records of this length takes.
    fn batch_bytes(&self, len: usize) -> u64 {
        (front(len, !self.segment.seal.is_plain()) + len) as u64
    }

    /// Appends a batch to the buffer. Returns the offset of its records in the segment.
    fn encode(
        &mut self,
        shared: &Shared,
        records: &[u8],
        count: u32,
        term: u64,
        time_us: u64,
    ) -> Result<u64, String> {
        if self.buffer.is_empty() {
            self.buffer_at = self.offset;
            self.buffer_link = self.link;
        }
        let Link { next_index: first_index, next_number: number, previous, .. } = self.link;
        let mut header = Header {
            checksum: 0,
            at: Position { segment: self.segment.number, offset: self.offset },
            first_index,
            number,
            term,
            time_us,
            synced_to: self.synced,
            committed: shared.committed_index().min(first_index - 1),
            len: 0,
            records: count,
            content_checksum: 0,
            previous,
            nonce: None,
        };
        let new = !shared.is_told();
        append_batch(&mut self.buffer, &self.segment.seal, shared.identity, &mut header, records, new)?;
        self.offset = header.end();
        self.link = Link::after(&header);
        (self.marked, self.marked_committed) = (self.synced, header.committed);
        Ok(header.records_at())
    }

    /// Appends a batch without records to the buffer.
    fn encode_marker(&mut self, shared: &Shared) -> Result<u64, String> {
        self.encode(shared, &[], 0, self.link.term, self.link.time_us)
    }

    /// Before a sync: what is written later shares no sector with what is synced. What is encoded already and
    /// found no room is encoded anew behind that sector. Of what a failed write may have left of it, the part
    /// in that sector is cleared, which the sync makes durable: without its first head nothing of it is taken
    /// for the log. The file keeps its length, since one that is shorter than it was made is damaged.
    fn align(&mut self, shared: &Shared) -> Result<(), String> {
        if self.buffer.is_empty() {
            self.offset = next_sector(self.offset);
            return Ok(());
        }
        let sector = next_sector(self.buffer_at);
        if sector != self.buffer_at {
            self.clear_to(sector, shared)?;
            self.take_back();
            self.offset = sector;
        }
        Ok(())
    }

    /// Writes zeros from the beginning of the buffer to this place, in a sector that is on the disk already.
    /// A file system that never overwrites takes room for it all the same, which the reserve has.
    fn clear_to(&self, end: u64, shared: &Shared) -> Result<(), String> {
        let zeros = vec![0; (end - self.buffer_at) as usize];
        let mut cleared = self.segment.file.write_at(&zeros, self.buffer_at);
        if cleared.as_ref().is_err_and(is_full) {
            shared.space.release_reserve();
            cleared = self.segment.file.write_at(&zeros, self.buffer_at);
        }
        cleared.map_err(|error| failed("clear a part of", &self.segment, &error))
    }

    /// Turns the batches in the buffer back into proposals.
    fn take_back(&mut self) {
        self.buffer.clear();
        self.link = self.buffer_link;
        self.buffered_orders = 0;
        for note in std::mem::take(&mut self.staged).into_iter().rev() {
            match note {
                Note::Batch { written, .. } => {
                    self.begins.pop_back();
                    self.todo.push_front(Order::Write(written));
                }
                // The buffer then begins the segment, at a sector.
                other => self.staged.push(other),
            }
        }
    }
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, state: WriterState) -> Writer {
        Writer { shared, state: Arc::new(Mutex::new(state)), stepping: Arc::default() }
    }

    /// Writes all queued batches, syncs as the durability setting asks, publishes. True when there was
    /// progress; `false` at once when another thread is in a step (which takes what is queued before it
    /// ends).
    pub fn step(&self) -> bool {
        let mut progress = false;
        while self.shared.failure().is_none() && !lock(&self.shared.queue).is_empty() || self.is_stalled() {
            let _stepping = match self.stepping.try_lock() {
                Ok(stepping) => stepping,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return progress,
            };
            let mut state = lock(&self.state);
            let queued = std::mem::take(&mut *lock(&self.shared.queue));
            state.todo.extend(queued);
            match self.run(&mut state) {
                Ok(done) => progress |= done,
                Err(what) => {
                    self.shared.poison(what);
                    return true;
                }
            }
            // Without room it is for maintenance to try again. Otherwise the queue is looked at once more:
            // who has queued meanwhile relies on this step.
            if self.is_stalled() {
                return progress;
            }
        }
        progress
    }

    /// Waits until something is queued or [`Writer::notify`] is called; `false` after [`Writer::stop`].
    pub fn wait(&self) -> bool {
        self.shared.writer_signal.wait(None)
    }

    /// Wakes the thread that waits.
    pub fn notify(&self) {
        self.shared.writer_signal.notify();
    }

    /// Syncs everything written so far. Blocks.
    ///
    /// # Errors
    /// The failure, which has ended the journal's life.
    pub fn sync(&self) -> Result<(), String> {
        if let Some(what) = self.shared.failure() {
            return Err(what.clone());
        }
        let (files, older, upto) = {
            let mut state = lock(&self.state);
            if state.synced == state.written {
                return Ok(());
            }
            state.align(&self.shared).inspect_err(|what| self.shared.poison(what.clone()))?;
            let mut files = state.unsynced.clone();
            files.push(state.segment.file.clone());
            (files, state.unsynced.len(), state.written)
        };
        for file in &files {
            self.sync_file(&**file).inspect_err(|what| self.shared.poison(what.clone()))?;
        }
        let mut state = lock(&self.state);
        state.synced = state.synced.max(upto);
        state.unsynced.retain(|file| !files[..older].iter().any(|synced| Arc::ptr_eq(file, synced)));
        Ok(())
    }

    /// Ends every wait in writer and maintenance with `false`.
    pub fn stop(&self) {
        self.shared.writer_signal.stop();
        self.shared.maintenance_signal.stop();
    }

    /// True when batches with records are written and not synced.
    pub(crate) fn has_unsynced(&self) -> bool {
        let state = lock(&self.state);
        state.last_batch > state.synced
    }

    /// Position up to which the log is synced.
    pub(crate) fn synced_to(&self) -> Position {
        lock(&self.state).synced
    }

    /// Used and usable bytes of the current segment.
    pub(crate) fn fill(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.offset, state.fits(&self.shared))
    }

    /// Number of the current segment.
    pub(crate) fn segment_number(&self) -> u64 {
        lock(&self.state).segment.number
    }

    /// File of the current segment.
    pub(crate) fn segment_file(&self) -> Arc<dyn File> {
        lock(&self.state).segment.file.clone()
    }

    fn is_stalled(&self) -> bool {
        self.shared.stalled.load(Relaxed) && self.shared.failure().is_none()
    }

    /// Writes all batches; `false` when there was nothing, or no disk space.
    fn run(&self, state: &mut MutexGuard<'_, WriterState>) -> Result<bool, String> {
        if state.idle() {
            self.shared.stalled.store(false, Relaxed);
            return Ok(false);
        }
        let mut room = true;
        while room && !(state.buffer.is_empty() && state.todo.is_empty() || state.is_held()) {
            if state.buffer.is_empty() {
                room = self.gather(state)?;
            }
            room = room && (state.buffer.is_empty() || self.write(state)?);
        }
        self.shared.stalled.store(!room, Relaxed);
        if !room || state.is_held() {
            self.shared.maintenance_signal.notify();
        }
        if plant::is(Plant::DurableBeforeSync) {
            self.shared.set_durable_orders(state.written_orders);
        }
        let published = !state.ready.is_empty() || state.written_orders > self.shared.durable_orders();
        if self.shared.is_told() {
            // The shard need not wake for them: what it does not have durably it is not given.
            self.note_ready(state);
        }
        if published && self.shared.options.durability == Durability::Always && state.synced < state.written {
            self.sync_held(state)?;
        }
        if published {
            self.publish(state);
        }
        Ok(published && room)
    }

    /// Encodes batches into the buffer; `false` when the next segment could not be made for lack of disk
    /// space.
    fn gather(&self, state: &mut WriterState) -> Result<bool, String> {
        while let Some(order) = state.todo.front() {
            let Order::Write(proposal) = order else {
                if !state.buffer.is_empty() || state.is_held() {
                    break;
                }
                if !self.carry_out(state)? {
                    return Ok(false);
                }
                continue;
            };
            let bytes = state.batch_bytes(proposal.bytes.len());
            let at = state.offset;
            if at > 0 && (at + bytes > self.limit(state) || self.shared.roll.load(Relaxed)) {
                if !state.buffer.is_empty() {
                    break;
                }
                if !self.begin_segment(state)? {
                    return Ok(false);
                }
                continue;
            }
            if !state.buffer.is_empty() && state.buffer.len() + bytes as usize > GROUP_BYTES {
                break;
            }
            if let Some(Order::Write(proposal)) = state.todo.pop_front() {
                self.stage(state, proposal)?;
            }
        }
        Ok(true)
    }

    fn stage(&self, state: &mut WriterState, proposal: Proposal) -> Result<(), String> {
        let place = (proposal.first_index, proposal.number);
        debug_assert_eq!(place, (state.link.next_index, state.link.next_number), "batches come in order");
        if self.shared.is_told() {
            state.note_begin(&self.shared);
        }
        let Proposal { records, term, time_us, bytes, .. } = &proposal;
        let offset = state.encode(&self.shared, bytes, *records, *term, *time_us)?;
        let place = BatchPlace { offset, checksum: state.link.previous };
        state.staged.push(Note::Batch { written: proposal, place });
        state.buffered_orders += 1;
        Ok(())
    }

    /// Bytes that fit into the current segment: no more than were prefilled when another prefilled one waits.
    fn limit(&self, state: &WriterState) -> u64 {
        match lock(&self.shared.fresh).front() {
            Some(fresh) if fresh.prefilled > 0 => state.prefilled,
            _ => self.shared.options.segment_bytes,
        }
    }

    /// Begins the next segment, prepared or made now; `false` when there is no disk space for one.
    fn begin_segment(&self, state: &mut WriterState) -> Result<bool, String> {
        let Some(Fresh { handle, prefilled }) = self.fresh_segment()? else { return Ok(false) };
        self.shared.roll.store(false, Relaxed);
        // Not the writing place: that may lie behind the file's end, where the next sector begins.
        let finished_len = state.written.offset;
        let old = std::mem::replace(&mut state.segment, handle.clone());
        state.unsynced.push(old.file);
        state.offset = 0;
        state.prefilled = prefilled;
        state.staged.push(Note::Segment(Begun { handle, start: state.link, finished_len }));
        self.shared.maintenance_signal.notify();
        Ok(true)
    }

    /// Takes a prepared segment, or makes one now; `None` when there is no disk space for one.
    fn fresh_segment(&self) -> Result<Option<Fresh>, String> {
        let ready = lock(&self.shared.fresh).pop_front();
        match ready.map_or_else(|| add_segment(&self.shared), Ok) {
            Ok(fresh) => Ok(Some(fresh)),
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(format!("a new segment could not be made: {error}")),
        }
    }

    /// Writes the buffer; `false` when there is no disk space.
    fn write(&self, state: &mut WriterState) -> Result<bool, String> {
        let mut result = state.segment.file.write_at(&state.buffer, state.buffer_at);
        if result.as_ref().is_err_and(is_full) && self.shared.space.release_reserve() {
            result = state.segment.file.write_at(&state.buffer, state.buffer_at);
        }
        match result {
            Ok(()) => {}
            Err(error) if is_full(&error) => return Ok(false),
            Err(error) => return Err(failed("write to", &state.segment, &error)),
        }
        self.shared.counters.log_bytes.fetch_add(state.buffer.len() as u64, Relaxed);
        state.buffer.clear();
        state.buffer.shrink_to(BUFFER_KEPT);
        state.written_orders += std::mem::take(&mut state.buffered_orders);
        let written_before = state.written;
        state.written = Position { segment: state.segment.number, offset: state.offset };
        if !state.staged.is_empty() {
            let first_unsynced = state.last_batch <= state.synced;
            state.last_batch = state.written;
            self.wake_maintenance(state, written_before, first_unsynced);
        }
        let WriterState { staged, ready, .. } = state;
        ready.append(staged);
        Ok(true)
    }

    /// Maintenance sleeps until something is due: a sync by interval, or the next segment to be made.
    fn wake_maintenance(&self, state: &WriterState, before: Position, first_unsynced: bool) {
        let by_interval = matches!(self.shared.options.durability, Durability::Interval(_));
        let begin_at = self.shared.options.segment_bytes.min(state.fits(&self.shared)) / BEGIN_PART;
        let from = if before.segment == state.written.segment { before.offset } else { 0 };
        let prepare = (from..state.written.offset).contains(&begin_at);
        if prepare || by_interval && first_unsynced {
            self.shared.maintenance_signal.notify();
        }
    }

    fn sync_held(&self, state: &mut WriterState) -> Result<(), String> {
        state.align(&self.shared)?;
        for file in state.unsynced.drain(..) {
            self.sync_file(&*file)?;
        }
        self.sync_file(&*state.segment.file)?;
        state.synced = state.written;
        Ok(())
    }

    fn sync_file(&self, file: &dyn File) -> Result<(), String> {
        let begun = Instant::now();
        file.sync_data().map_err(|error| format!("fdatasync of the log failed: {error}"))?;
        self.shared.counters.last_fdatasync_us.store(begun.elapsed().as_micros() as u64, Relaxed);
        self.shared.count_syncs(1);
        Ok(())
    }

    /// Publishes orders that are durable as the durability setting asks.
    fn publish(&self, state: &mut WriterState) {
        self.shared.set_durable_orders(state.written_orders);
        let last_index = state.written_link().next_index - 1;
        if self.shared.is_told() {
            state.ready.push(Note::Durable { last_index });
        } else {
            self.shared.set_durable(last_index, state.written);
        }
        self.note_ready(state);
        self.shared.wake_shard();
    }

    fn note_ready(&self, state: &mut WriterState) {
        lock(&self.shared.notes).extend(state.ready.drain(..));
    }
}

/// Makes a segment and adds it to the manifest. Slow; normally maintenance makes segments ahead.
fn add_segment(shared: &Shared) -> io::Result<Fresh> {
    // Held until the new one is named, so that numbers grow in the order of the log.
    let mut manifest = lock(&shared.manifest);
    if let Some(fresh) = lock(&shared.fresh).pop_front() {
        return Ok(fresh);
    }
    let handle = shared.create(Kind::Log)?;
    let open = OpenSegment { number: handle.number, len: 0, end: 0 };
    let named = shared
        .sync_dir()
        .and_then(|()| shared.alter_manifest(&mut manifest, |manifest| manifest.open.push(open)));
    if let Err(error) = named {
        shared.discard(&handle);
        return Err(error);
    }
    shared.counters.late_segments.fetch_add(1, Relaxed);
    Ok(Fresh { handle, prefilled: 0 })
}

fn failed(action: &str, handle: &Handle, error: &io::Error) -> String {
    format!("cannot {action} {}: {error}", handle.path.display())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::disk::FsDisk;
    use crate::log::DiskJournal;
    use crate::open::Opened;
    use crate::options::Options;
    use crate::seam::Journal;
    use crate::seam::batch::Batch;
    use crate::seam::event::{Class, Event};

    use super::*;

    #[test]
    fn a_step_takes_what_is_queued_although_somebody_looks_at_the_state() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { reserve_bytes: 0, full_margin_bytes: 0, ..Options::new(dir.path()) };
        let Opened { mut journal, writer, .. } = DiskJournal::open(Arc::new(FsDisk), options).unwrap();
        let mut batch = Batch::new();
        batch.record(0).body(b"waits for a reply");
        journal.propose(&mut batch, 1, Class::Growing).unwrap();

        let looking = lock(&writer.state);
        std::thread::scope(|threads| {
            threads.spawn(|| writer.step());
            std::thread::sleep(Duration::from_millis(50));
            drop(looking);
        });
        assert!(matches!(journal.poll(), Some(Event::Committed(_))), "nobody is left to write the batch");
    }
}
