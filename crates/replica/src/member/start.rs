//! State with which a member starts.

use std::collections::VecDeque;

use sluice_journal::{BlobError, DiskJournal, Journal, LogReader};

use super::entries::OwnRecords;
use super::memory::{Kept, Memory};
use super::state::Saved;
use crate::config::StartError;
use crate::entry::{Entry, Position};
use crate::members::{Members, Snapshot};
use crate::{GROUP_BYTES, wire};

/// State with which a member starts, as its journal has it when it is opened.
#[derive(Debug)]
pub struct Start {
    pub(super) started: Result<Started, StartError>,
    pub(super) records: OwnRecords,
    pub(super) kept_bytes: u64,
    /// True: some of what the member acknowledged may be lost.
    pub(super) has_lost: bool,
    /// Part of what the member acknowledges from now on that its journal keeps.
    pub(super) kept: Kept,
    /// Damage in what was kept for followers.
    pub(super) unreadable: Option<BlobError>,
}

/// Log of a member, as far as it is committed, and its hard state.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) saved: Saved,
    pub(super) base: Snapshot,
    /// Index up to which the base's members hold the changes among the entries.
    pub(super) changed: u64,
    /// The log behind the base.
    pub(super) entries: Vec<Entry>,
}

impl Start {
    /// The start of a member whose journal was replayed. It knows the last `kept_bytes` bytes of the log, in
    /// whole segments, which followers that are behind may still get from it. `first` are in force in a log
    /// that was never a member's, `hard_state` is the journal's, and `records` are the same on all members.
    /// Reads that part of the log, and blocks. Where the part before the newest snapshot cannot be read, the
    /// member does without it: followers that need it get a state.
    ///
    /// # Errors
    /// A batch that the member needs is damaged, or the operating system failed.
    pub fn read(
        journal: &DiskJournal,
        first: Members,
        hard_state: &[u8],
        records: OwnRecords,
        kept_bytes: u64,
    ) -> Result<Start, BlobError> {
        let mut unreadable = None;
        let started = match Known::of(journal, first, hard_state) {
            None => Err(StartError::HardState),
            Some(known) => known.read(journal, records, kept_bytes).or_else(|error| {
                unreadable = Some(error);
                known.read(journal, records, 0)
            })?,
        };
        Ok(Start { started, records, kept_bytes, has_lost: false, kept: Kept::All, unreadable })
    }

    /// Why the log that is kept for followers could not be read; `None`: it was, or there is none.
    pub fn unreadable(&self) -> Option<&BlobError> {
        self.unreadable.as_ref()
    }

    /// The same start of a node with this memory. Without one everything counts as kept.
    pub fn remembering(self, memory: Memory) -> Start {
        let has_lost = self.started.as_ref().is_ok_and(|started| memory.has_lost(started.saved.kept));
        Start { has_lost, kept: memory.kept(), ..self }
    }
}

/// Newest members of which the journal knows that they were in force behind a record.
#[derive(Clone)]
struct Known {
    saved: Saved,
    /// Index of the record.
    since: u64,
    members: Members,
}

impl Known {
    /// The members by the newest snapshot, or by the hard state where that is not older. `None`: no member
    /// has written them.
    fn of(journal: &DiskJournal, first: Members, hard_state: &[u8]) -> Option<Known> {
        let mut saved = Saved::decode(hard_state)?;
        let committed = journal.committed_index();
        if saved.id.is_none() && committed > 0 {
            (saved.since, saved.members) = (committed, first);
        }
        let label = journal.snapshot_label().filter(|(_, label)| !label.is_empty());
        let (since, members) = match label.filter(|(index, _)| *index > saved.since) {
            Some((index, label)) => (index, wire::decode_members(label).ok()?),
            None => (saved.since, saved.members.clone()),
        };
        Some(Known { saved, since, members })
    }

    /// Reads the committed log that is kept for followers, and all of it behind the record.
    fn read(
        &self,
        journal: &DiskJournal,
        records: OwnRecords,
        kept_bytes: u64,
    ) -> Result<Result<Started, StartError>, BlobError> {
        let Known { saved, since, members } = self.clone();
        let (number, term) = journal.before_last(kept_bytes, since);
        let mut reader = LogReader::new(number + 1);
        let end = journal.tail(0).next().map_or(journal.next_number(), |batch| batch.number);
        let (mut changed, mut entries) = (0, VecDeque::new());
        while reader.next_number() < end && journal.read_on(&mut reader).is_ok() {
            let read = reader.read(GROUP_BYTES as usize)?;
            if read.is_empty() {
                break;
            }
            changed = read
                .iter()
                .filter(|batch| batch.first_index <= since)
                .map(|batch| batch.number)
                .fold(changed, u64::max);
            entries.extend(read.iter().map(|batch| records.entry(batch)));
        }
        let entries: Result<VecDeque<Entry>, StartError> = entries.into_iter().collect();
        Ok(entries.map(|mut entries| {
            // All members share the first entry: a log that is there from its beginning begins behind that.
            let first = entries.pop_front_if(|_| number == 0);
            let position = first.map_or(Position { term, index: number }, |entry| entry.position);
            let base = if position.index == 0 { Snapshot::default() } else { Snapshot { position, members } };
            Started { saved, base, changed, entries: entries.into() }
        }))
    }
}
