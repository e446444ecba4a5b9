//! The uncommitted tail of a journal whose owner tells what is committed.
//!
//! The shard's thread puts a batch in when it is proposed, so that it can be read before it is written. The
//! writer tells, in order, which batches are written, up to where the log is durable, and which cut is done.
//! What it tells of batches that a later cut takes away is ignored: until that cut is done, each of its notes
//! from the cut's index on is about them.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::log::files::Handle;
use crate::log::header::{Header, Position};
use crate::log::manifest::Link;
use crate::log::shared::{BatchPlace, Begun, Proposal};
use crate::log::snapshot::StateHead;
use crate::plant::{self, Plant};
use crate::seam::event::TailError;
use crate::seam::sealed::SealedBatch;

/// A batch as other nodes get it: of the tail, or read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Index of the first record.
    pub first_index: u64,
    /// Number of records.
    pub records: u32,
    /// Number of the batch in the log, which counts from 1 without holes.
    pub number: u64,
    /// Term under which it was proposed.
    pub term: u64,
    /// Time of the batch, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// CRC-32 of `bytes`, the same on every node.
    pub checksum: u32,
    /// The encoded records, with the checksums of their blobs.
    pub bytes: Bytes,
}

impl Entry {
    /// A batch that is to be written.
    pub(crate) fn new(number: u64, term: u64, batch: SealedBatch) -> Entry {
        let SealedBatch { first_index, records, time_us, checksum, bytes } = batch;
        Entry { first_index, records, number, term, time_us, checksum, bytes }
    }

    /// A batch that was found on the disk.
    pub(crate) fn found(header: &Header, records: Vec<u8>) -> Entry {
        let Header { first_index, records: count, number, term, time_us, .. } = *header;
        let checksum = crc32fast::hash(&records);
        Entry { first_index, records: count, number, term, time_us, checksum, bytes: records.into() }
    }

    /// Index of the last record.
    pub fn last_index(&self) -> u64 {
        self.first_index + u64::from(self.records) - 1
    }

    /// The batch as the writer takes it.
    pub(crate) fn proposal(&self) -> Proposal {
        let Entry { first_index, records, number, term, time_us, ref bytes, .. } = *self;
        Proposal { first_index, records, number, term, time_us, bytes: bytes.clone() }
    }
}

/// A batch of the tail, and where it is in its segment; `None`: it is not written.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) entry: Entry,
    pub(crate) place: Option<BatchPlace>,
}

impl Held {
    /// A batch that was found on the disk.
    pub(crate) fn found(header: &Header, records: &[u8]) -> Held {
        let entry = Entry::found(header, records.to_vec());
        let place = BatchPlace { offset: header.records_at(), checksum: header.checksum };
        Held { entry, place: Some(place) }
    }
}

/// The tail.
#[derive(Debug)]
pub(crate) struct Uncommitted {
    held: VecDeque<Held>,
    /// Segments after the one that the index of blobs knows as growing.
    segments: VecDeque<Begun>,
    /// Indexes of the cuts that are not done.
    cuts: VecDeque<u64>,
    committed_index: u64,
    durable_index: u64,
    /// Term and time of the last batch that left the tail as committed.
    given: (u64, u64),
    /// Index that may be noted while a state is being installed; `None`: none is.
    installing: Option<u64>,
}

impl Uncommitted {
    /// The tail found at an opening, all of it written and durable; `given` is the chain before it.
    pub(crate) fn found(given: &Link, held: Vec<Held>) -> Uncommitted {
        let committed_index = given.next_index - 1;
        let durable_index = held.last().map_or(committed_index, |held| held.entry.last_index());
        Uncommitted {
            held: held.into(),
            segments: VecDeque::new(),
            cuts: VecDeque::new(),
            committed_index,
            durable_index,
            given: (given.term, given.time_us),
            installing: None,
        }
    }

    pub(crate) fn committed_index(&self) -> u64 {
        self.committed_index
    }

    pub(crate) fn durable_index(&self) -> u64 {
        self.durable_index
    }

    /// Index of the last committed record that no cut on its way has in its range: until the cut is done, the
    /// log on the disk has another record there. So it has while a state is being installed.
    pub(crate) fn notable_index(&self) -> u64 {
        if let Some(index) = self.installing {
            return index;
        }
        if plant::is(Plant::NoteCommitAcrossCut) {
            return self.committed_index;
        }
        self.committed_index.min(self.uncut_index())
    }

    /// Term and time of the last batch of the log.
    pub(crate) fn last(&self) -> (u64, u64) {
        self.held.back().map_or(self.given, |held| (held.entry.term, held.entry.time_us))
    }

    /// The batch with this number.
    pub(crate) fn numbered(&self, number: u64) -> Option<&Entry> {
        let first = self.held.front()?.entry.number;
        let held = self.held.get(usize::try_from(number.checked_sub(first)?).ok()?);
        held.map(|held| &held.entry)
    }

    /// The batches from the one that holds this record on.
    pub(crate) fn from(&self, index: u64) -> impl Iterator<Item = &Entry> {
        let at = self.held.partition_point(|held| held.entry.last_index() < index);
        self.held.range(at..).map(|held| &held.entry)
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.held.push_back(Held { entry, place: None });
    }

    /// Commits the records up to this one; those that are committed already change nothing.
    pub(crate) fn commit(&mut self, index: u64) -> Result<(), TailError> {
        if index <= self.committed_index {
            return Ok(());
        }
        let at = self.held.binary_search_by_key(&index, |held| held.entry.last_index());
        at.map_err(|_| TailError::NotABatch { index })?;
        self.committed_index = index;
        Ok(())
    }

    /// Drops the batches from this record on. Returns the number of the first of them; `None`: there were
    /// none, and the writer has no cut to do.
    pub(crate) fn cut(&mut self, index: u64) -> Result<Option<u64>, TailError> {
        if index <= self.committed_index {
            return Err(TailError::Committed { committed_index: self.committed_index });
        }
        let end = self.held.back().map_or(self.committed_index, |held| held.entry.last_index()) + 1;
        if index == end {
            return Ok(None);
        }
        let at = self.held.binary_search_by_key(&index, |held| held.entry.first_index);
        let at = at.map_err(|_| TailError::NotABatch { index })?;
        let number = self.held[at].entry.number;
        self.held.truncate(at);
        self.cuts.push_back(index);
        self.durable_index = self.durable_index.min(index - 1);
        Ok(Some(number))
    }

    /// Begins anew behind a state. What is durable of the former log ends with what was given of it.
    pub(crate) fn install(&mut self, state: &StateHead, given_index: u64) {
        let durable_index = self.durable_index.min(given_index);
        let (notable, given) = (self.notable_index(), (state.term, state.time_us));
        *self = Uncommitted {
            held: VecDeque::new(),
            segments: VecDeque::new(),
            cuts: VecDeque::new(),
            committed_index: state.applied_index,
            durable_index,
            given,
            installing: Some(notable),
        };
    }

    /// Notes that the state up to this record is in place.
    pub(crate) fn installed(&mut self, applied_index: u64) {
        (self.installing, self.durable_index) = (None, applied_index);
    }

    /// Notes that a batch is written.
    pub(crate) fn written(&mut self, first_index: u64, place: BatchPlace) {
        if first_index > self.uncut_index() {
            return;
        }
        let at = self.held.binary_search_by_key(&first_index, |held| held.entry.first_index);
        if let Ok(at) = at {
            self.held[at].place = Some(place);
        }
    }

    /// Notes that the records up to this one are durable.
    pub(crate) fn durable(&mut self, last_index: u64) {
        self.durable_index = self.durable_index.max(last_index.min(self.uncut_index()));
    }

    /// Notes that a segment has begun.
    pub(crate) fn begun(&mut self, begun: Begun) {
        self.segments.push_back(begun);
    }

    /// Notes that the oldest cut is done: the log goes on in another segment from the place where the batch
    /// at `at` began. Returns that segment when it takes the place of the one that the index of blobs knows
    /// as growing, in which nothing is left.
    pub(crate) fn cut_done(&mut self, at: Position, handle: Handle, start: Link) -> Option<(Handle, Link)> {
        self.cuts.pop_front();
        let is_gone = |begun: &Begun| begun.handle.number > at.segment - u64::from(at.offset == 0);
        let kept = self.segments.iter().take_while(|begun| !is_gone(begun)).count();
        let emptied = self.segments.get(kept).filter(|begun| begun.handle.number == at.segment);
        let finished_len = emptied.map_or(at.offset, |begun| begun.finished_len);
        let follows = at.offset > 0 || emptied.is_some();
        self.segments.truncate(kept);
        if follows {
            self.segments.push_back(Begun { handle, start, finished_len });
            return None;
        }
        Some((handle, start))
    }

    /// Takes the segment before which every batch has left the tail.
    pub(crate) fn next_segment(&mut self) -> Option<Begun> {
        let is_due = self.segments.front().is_some_and(|begun| begun.start.next_index <= self.first_index());
        if is_due { self.segments.pop_front() } else { None }
    }

    /// Takes the next batch that is committed and written, with its place.
    pub(crate) fn next_committed(&mut self) -> Option<(Entry, BatchPlace)> {
        let front = self.held.front()?;
        let place = front.place.filter(|_| front.entry.last_index() <= self.committed_index)?;
        let Held { entry, .. } = self.held.pop_front()?;
        self.given = (entry.term, entry.time_us);
        Some((entry, place))
    }

    /// Index of the first record of the tail.
    fn first_index(&self) -> u64 {
        self.held.front().map_or(self.committed_index + 1, |held| held.entry.first_index)
    }

    /// Index of the last record before all cuts that are not done.
    fn uncut_index(&self) -> u64 {
        self.cuts.iter().min().map_or(u64::MAX, |index| index - 1)
    }
}
