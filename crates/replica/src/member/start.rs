//! State with which a member starts.

use std::collections::VecDeque;

use sluice_journal::{BlobError, DiskJournal, LogReader};

use super::entries::OwnRecords;
use crate::BATCH_BYTES_MAX;
use crate::config::StartError;
use crate::entry::{Entry, Position};
use crate::members::{Members, Snapshot};

/// State with which a member starts, as its journal has it when it is opened.
#[derive(Debug)]
pub struct Start {
    pub(super) base: Snapshot,
    pub(super) hard_state: Vec<u8>,
    pub(super) records: OwnRecords,
    /// The log behind the base, as far as it is committed.
    pub(super) entries: Result<Vec<Entry>, StartError>,
    pub(super) kept_bytes: u64,
    pub(super) has_forgotten: bool,
}

impl Start {
    /// The start of a member whose journal was replayed. It knows the last `kept_bytes` bytes of the log, in
    /// whole segments, which followers that are behind may still get from it. `members` are in force where
    /// they begin, `hard_state` is the journal's, and `records` are the same on all members. Reads that part
    /// of the log, and blocks.
    ///
    /// # Errors
    /// A batch is damaged, or the operating system failed.
    pub fn read(
        journal: &DiskJournal,
        members: Members,
        hard_state: Vec<u8>,
        records: OwnRecords,
        kept_bytes: u64,
    ) -> Result<Start, BlobError> {
        let (index, term) = journal.before_last(kept_bytes);
        let mut entries = read_behind(index, journal, records)?;
        // All members share the first entry: a log that is there from its beginning begins behind that.
        let first = entries.as_mut().ok().and_then(|entries| entries.pop_front_if(|_| index == 0));
        let position = first.map_or(Position { term, index }, |entry| entry.position);
        let base = if position.index == 0 { Snapshot::default() } else { Snapshot { position, members } };
        Ok(Start {
            base,
            hard_state,
            records,
            entries: entries.map(Vec::from),
            kept_bytes,
            has_forgotten: false,
        })
    }

    /// The same start of a node that may have forgotten what it promised: see
    /// [`crate::Durable::has_forgotten`].
    pub fn after_loss(self) -> Start {
        Start { has_forgotten: true, ..self }
    }
}

/// The committed entries behind the batch with this number, of which the journal has all.
fn read_behind(
    number: u64,
    journal: &DiskJournal,
    records: OwnRecords,
) -> Result<Result<VecDeque<Entry>, StartError>, BlobError> {
    let mut reader = LogReader::new(number + 1);
    let end = journal.tail(0).next().map_or(journal.next_number(), |batch| batch.number);
    let mut batches = Vec::new();
    while reader.next_number() < end && journal.read_on(&mut reader).is_ok() {
        let read = reader.read(BATCH_BYTES_MAX as usize)?;
        if read.is_empty() {
            break;
        }
        batches.extend(read.iter().map(|batch| records.entry(batch)));
    }
    Ok(batches.into_iter().collect())
}
