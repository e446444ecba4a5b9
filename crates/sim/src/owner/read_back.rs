//! Reading the committed log back, as for another member that is behind: what was proposed, byte for byte,
//! and nothing is refused but what a snapshot replaces and nobody keeps.

use std::collections::BTreeMap;

use sluice_journal::{Entry, LogGone, LogReader};

use super::OwnerWorld;
use super::batch::{Proposed, short};
use crate::model::Checked;

/// Readers, and what they must find.
#[derive(Debug, Default)]
pub(super) struct ReadingBack {
    reader: Option<LogReader>,
    /// Checksum of each batch, by the number of its first record's content, as it was proposed first.
    checksums: BTreeMap<u64, u32>,
    /// Number of the batch from which on the journal keeps the log; `None`: it keeps nothing.
    kept: Option<u64>,
    /// Index of the last record of a snapshot that was begun: the log before it may be gone.
    covered: u64,
}

impl ReadingBack {
    /// Notes the checksum of a batch that was proposed or read back, which is the same each time.
    pub(super) fn note(&mut self, batch: &Proposed, entry: &Entry) -> Checked {
        let content = batch.records.first().map_or(0, |record| record.number);
        let first = *self.checksums.entry(content).or_insert(entry.checksum);
        if first == entry.checksum {
            return Ok(());
        }
        Err(format!("batch {} has the checksum {}, and had {first}", entry.number, entry.checksum))
    }

    /// Notes a snapshot up to a record.
    pub(super) fn note_snapshot(&mut self, index: u64) {
        self.covered = self.covered.max(index);
    }

    /// Notes that a state up to a record is being installed: what was kept before is not any more.
    pub(super) fn install(&mut self, index: u64) {
        self.kept = None;
        self.note_snapshot(index);
    }

    /// Forgets what ends with the process.
    pub(super) fn crash(&mut self) {
        (self.reader, self.kept) = (None, None);
    }
}

impl OwnerWorld {
    /// Number of the last batch that was given; 0: none.
    fn last_given(&self) -> u64 {
        self.model.cluster.partition_point(|batch| batch.last_index() <= self.model.given) as u64
    }

    /// Reads some batches back, with a reader that was there before or a new one.
    pub(super) fn read_back(&mut self) -> Checked {
        if self.rng.chance(1, 3) {
            self.reading.reader = None;
        }
        let number = self.rng.between(1, self.last_given() + 1);
        let mut reader = self.reading.reader.take().unwrap_or_else(|| LogReader::new(number));
        if self.rng.chance(2, 3) {
            let Some(server) = &self.server else { return Ok(()) };
            let shown = server.journal.read_on(&mut reader);
            self.trace(|| format!("  shown from batch {}: {shown:?}", reader.next_number()));
            if let Err(gone) = shown {
                return self.check_gone(reader.next_number(), gone);
            }
            let from = reader.next_number();
            let read = self.read_some(&mut reader)?;
            if read == Some(0) && from <= self.last_given() {
                return Err(format!("nothing is read from batch {from} of {}", self.last_given()));
            }
        } else {
            self.read_some(&mut reader)?;
        }
        self.reading.reader = Some(reader);
        Ok(())
    }

    /// Reads once, and compares. Returns the number of batches; `None`: the disk failed.
    fn read_some(&mut self, reader: &mut LogReader) -> Result<Option<usize>, String> {
        let from = reader.next_number();
        let bytes_max = *self.rng.pick(&[0, 2_000, 1 << 20]);
        let entries = match reader.read(bytes_max) {
            Err(_) if self.armed || self.disk.is_halted() || self.harmed.is_harmed() => return Ok(None),
            read => read.map_err(|error| format!("batch {from} cannot be read back: {error:?}"))?,
        };
        let bytes: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
        if bytes > bytes_max && entries.len() > 1 {
            return Err(format!("{bytes} bytes are read back, of {bytes_max}"));
        }
        for (number, entry) in (from..).zip(&entries) {
            let found = Proposed::held(entry);
            let expected = self.model.cluster.get(number as usize - 1);
            if expected.is_none_or(|expected| **expected != found) {
                return Err(format!("batch {number} is read back as {}", short(&found)));
            }
            self.reading.note(&found, entry)?;
        }
        Ok(Some(entries.len()))
    }

    fn check_gone(&self, asked: u64, LogGone { first_number }: LogGone) -> Checked {
        let last_gone = (first_number as usize).checked_sub(2).and_then(|at| self.model.cluster.get(at));
        let is_covered = last_gone.is_some_and(|batch| batch.last_index() <= self.reading.covered);
        // A damaged segment is replaced, though it is kept as log.
        let is_kept = !self.harmed.is_harmed() && self.reading.kept.is_some_and(|kept| first_number > kept);
        if asked < first_number && is_covered && !is_kept {
            return Ok(());
        }
        let (kept, covered) = (self.reading.kept, self.reading.covered);
        Err(format!(
            "batch {asked} is gone, the first one is {first_number}; kept from {kept:?}, covered to {covered}"
        ))
    }

    /// Lets the journal keep the log from some batch on; what is there then stays.
    pub(super) fn keep_from(&mut self) -> Checked {
        // What maintenance has taken away before is known then.
        self.poll()?;
        let number = self.rng.between(1, self.last_given() + 1);
        let Some(server) = &mut self.server else { return Ok(()) };
        server.journal.keep_from(number);
        let mut reader = LogReader::new(number);
        self.reading.kept = match server.journal.read_on(&mut reader) {
            Ok(()) => Some(number),
            Err(gone) => Some(gone.first_number),
        };
        Ok(())
    }

    /// Reads back whatever is there.
    pub(super) fn read_whole_log(&mut self) -> Checked {
        let mut reader = LogReader::new(1);
        loop {
            let from = reader.next_number();
            let Some(server) = &self.server else { return Ok(()) };
            if let Err(gone) = server.journal.read_on(&mut reader) {
                self.check_gone(from, gone)?;
                reader = LogReader::new(gone.first_number);
            } else if self.read_some(&mut reader)? == Some(0) {
                let last = self.last_given();
                return if from > last {
                    Ok(())
                } else {
                    Err(format!("the log ends before batch {from} of {last}"))
                };
            }
        }
    }
}
