//! Wrapper of the journal that records what the shard proposes and what the journal reports, in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sluice_journal::{
    Batch, BlobKey, BlobLocation, BlobRead, Class, Committed, DiskJournal, Event, Journal, Refused, Status,
};
use sluice_node::shard::store::Store;

/// A recorded proposal or event.
#[derive(Debug)]
pub(super) enum JournalCall {
    Proposed { first_index: u64, time_us: u64, records: Bytes },
    Committed(Committed),
    Refused { first_index: u64, records: u32 },
}

/// Recorded calls that were not examined yet; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct JournalCalls(Arc<Mutex<VecDeque<JournalCall>>>);

impl JournalCalls {
    pub(super) fn take(&self) -> VecDeque<JournalCall> {
        std::mem::take(&mut *self.lock())
    }

    fn push(&self, sight: JournalCall) {
        self.lock().push_back(sight);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<JournalCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wrapped journal.
pub(super) struct Spy {
    journal: DiskJournal,
    sights: JournalCalls,
    /// The planted bug `reply_before_sync`: batches are reported as committed when they are proposed.
    hasty: bool,
    early: VecDeque<Committed>,
    /// Batches reported early, for reading payloads before the journal has them.
    told: Vec<Committed>,
}

impl Spy {
    pub(super) fn new(journal: DiskJournal, sights: JournalCalls, hasty: bool) -> Spy {
        Spy { journal, sights, hasty, early: VecDeque::new(), told: Vec::new() }
    }

    /// Requests a snapshot.
    pub(super) fn request_snapshot(&mut self) {
        self.journal.request_snapshot();
    }

    /// Number of snapshots since the start.
    pub(super) fn snapshots(&self) -> u64 {
        self.journal.status().snapshots
    }

    fn told_blob(&self, key: BlobKey) -> Option<Bytes> {
        let batch = self.told.iter().rfind(|batch| batch.first_index <= key.index)?;
        let record = batch.records().nth((key.index - batch.first_index) as usize)?;
        record.blob(key.item).map(Bytes::copy_from_slice)
    }

    fn next_event(&mut self) -> Option<Event> {
        if let Some(committed) = self.early.pop_front() {
            self.told.push(committed.clone());
            return Some(Event::Committed(committed));
        }
        loop {
            match self.journal.poll()? {
                Event::Committed(_) if self.hasty => {}
                event => return Some(event),
            }
        }
    }
}

impl Journal for Spy {
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.journal.next_index()
    }

    fn durable_index(&self) -> u64 {
        self.journal.durable_index()
    }

    fn committed_index(&self) -> u64 {
        if self.hasty { self.journal.next_index() - 1 } else { self.journal.committed_index() }
    }

    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        let mut copy = Batch::new();
        copy.append(batch);
        let first_index = self.journal.propose(batch, time_us, class)?;
        let (records, _) = copy.take();
        if self.hasty {
            let (number, term) = (0, 0);
            self.early.push_back(Committed { first_index, number, term, time_us, bytes: records.clone() });
        }
        self.sights.push(JournalCall::Proposed { first_index, time_us, records });
        Ok(first_index)
    }

    fn poll(&mut self) -> Option<Event> {
        let event = self.next_event()?;
        match &event {
            Event::Committed(committed) => self.sights.push(JournalCall::Committed(committed.clone())),
            Event::Refused { first_index, records, .. } | Event::Unknown { first_index, records } => {
                self.sights.push(JournalCall::Refused { first_index: *first_index, records: *records });
            }
            _ => {}
        }
        Some(event)
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        match self.journal.read(key) {
            BlobRead::Missing => self.told_blob(key).map_or(BlobRead::Missing, BlobRead::Cached),
            found => found,
        }
    }

    fn release(&mut self, key: BlobKey) {
        self.journal.release(key);
    }
}

impl Store for Spy {
    fn wants_snapshot(&self) -> bool {
        self.journal.wants_snapshot()
    }

    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        self.journal.snapshot_begin(applied_index, time_us, behaviour);
    }

    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        self.journal.snapshot_piece(piece)
    }

    fn snapshot_finish(&mut self) {
        self.journal.snapshot_finish();
    }

    fn status(&self) -> Status {
        self.journal.status()
    }
}
