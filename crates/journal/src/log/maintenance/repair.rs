//! Replacement of files in which blobs are damaged of which there are whole copies.
//!
//! Such a file is compacted, whatever else is in it, once a snapshot replaces its records. A segment that
//! grows ends before that, and one that is kept as log goes as well: nobody can be sent a damaged log.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;

use super::Maintenance;
use crate::log::sealed_file::SealedFile;

/// Time without another copy after which files are replaced, in microseconds: damage seldom comes alone.
const GATHER_US: u64 = 1_000_000;

/// Number of copies that were taken when that last changed, and when that was seen, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Gathering(u64, u64);

impl Maintenance {
    /// Looks for files with damaged blobs: gives one that can be replaced now, and asks for what the others
    /// wait for.
    pub(super) fn damaged_file(&mut self, now_us: u64) -> Result<Option<SealedFile>, String> {
        let repairs = self.shared.files.repairs();
        if repairs.is_empty() {
            return Ok(None);
        }
        if self.gathering.0 != repairs.taken() {
            self.gathering = Gathering(repairs.taken(), now_us);
        }
        if now_us < self.gathering.1 + GATHER_US {
            return Ok(None);
        }
        self.end_damaged_segment()?;
        let numbers = self.drop_needless_copies();
        let damaged = self.entries.iter().filter(|entry| numbers.contains(&entry.holder.number()));
        let applied = self.needed_log().applied_index;
        let (covered, uncovered): (Vec<_>, Vec<_>) = damaged.partition(|entry| entry.is_covered(applied));
        let is_uncovered = !uncovered.is_empty();
        if self.shared.files.repairs().is_uncovered.swap(is_uncovered, Relaxed) != is_uncovered {
            self.shared.wake_shard();
        }
        Ok(covered.first().map(|file| (*file).clone()))
    }

    /// Time at which damaged files can be replaced, in microseconds; `None`: no copies were taken lately.
    pub(super) fn repair_due_us(&self, now_us: u64) -> Option<u64> {
        let is_new = self.gathering.0 != self.shared.files.repairs().taken();
        let due = if is_new { now_us } else { self.gathering.1 + GATHER_US };
        (!self.shared.files.repairs().is_empty() && due >= now_us).then_some(due)
    }

    /// Ends the segment that grows, if there is a copy of a blob in it.
    fn end_damaged_segment(&self) -> Result<(), String> {
        if self.writer.segment_number() > self.shared.files.repairs().growing() {
            return Ok(());
        }
        self.writer.roll().map(drop)
    }

    /// Drops the copies of blobs that are released; the numbers of the files that hold the others.
    fn drop_needless_copies(&self) -> HashSet<u64> {
        let mut numbers = HashSet::new();
        self.shared.files.repairs().retain(|key| {
            let holds = |entry: &&SealedFile| {
                entry.ranges.iter().any(|(first, end)| (*first..*end).contains(&key.index))
            };
            // A segment that is not sealed yet is not among them.
            let Some(entry) = self.entries.iter().find(holds) else { return true };
            let is_live = entry.holder.find(key).is_some();
            numbers.extend(is_live.then(|| entry.holder.number()));
            is_live
        });
        numbers
    }
}
