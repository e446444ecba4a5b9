//! Committed batches read back from their segments, for other members that are behind.
//!
//! The shard's thread knows which segments hold the log, and shows a [`LogReader`] the one that it needs
//! next; another thread reads. A segment is shown while the manifest names it: compaction takes whole
//! segments away, and what it has copied out of them is not the log any more. A reader pins the name of its
//! segment, so that it can be read to its end all the same.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crate::log::files::Handle;
use crate::log::manifest::Link;
use crate::log::replay::Stretch;
use crate::log::scan::Scanner;
use crate::log::uncommitted::Entry;
use crate::seam::blob::BlobError;

/// Refusal to read batches that compaction has taken away: who needs them needs a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogGone {
    /// Number of the first batch that can be read.
    pub first_number: u64,
}

/// Reader of committed batches in the order of their numbers. [`crate::DiskJournal::read_on`] shows it a part
/// of the log, and any thread reads that.
#[derive(Debug)]
pub struct LogReader {
    /// Number of the next batch to give.
    next: u64,
    shown: Option<Shown>,
    /// Batch that was read and did not fit into the limit.
    held: Option<Entry>,
}

/// A part of the log that a reader may read.
#[derive(Debug)]
struct Shown {
    path: Arc<PathBuf>,
    scanner: Scanner,
    /// Number of the batch before which it ends.
    end: u64,
}

impl LogReader {
    /// A reader from the batch of this number on (1 or more), to which nothing was shown yet.
    pub fn new(number: u64) -> LogReader {
        LogReader { next: number, shown: None, held: None }
    }

    /// Number of the next batch to read.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Reads the next batches, up to `bytes_max` bytes of encoded records, and one at least; none at the end
    /// of what was shown. Blocks: not for the shard's thread. The first read within a segment looks through
    /// it from its beginning.
    ///
    /// # Errors
    /// A batch is damaged, or the operating system failed. Nothing is passed over, and it may be tried again.
    pub fn read(&mut self, bytes_max: usize) -> Result<Vec<Entry>, BlobError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        loop {
            let entry = match self.next_entry() {
                Err(error) if entries.is_empty() => return Err(error),
                Err(_) | Ok(None) => return Ok(entries),
                Ok(Some(entry)) => entry,
            };
            bytes += entry.bytes.len();
            if bytes > bytes_max && !entries.is_empty() {
                self.held = Some(entry);
                return Ok(entries);
            }
            self.next = entry.number + 1;
            entries.push(entry);
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, BlobError> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        let Some(Shown { path, scanner, end }) = &mut self.shown else { return Ok(None) };
        while scanner.link.next_number < *end {
            let found = scanner.next_batch().map_err(BlobError::Io)?.ok_or_else(|| {
                let (path, at, number) = (path.display(), scanner.at.offset, scanner.link.next_number);
                BlobError::Damaged(format!("{path} is damaged at byte {at}: batch {number} is not whole"))
            })?;
            if found.header.records > 0 && found.header.number >= self.next {
                return Ok(Some(Entry::found(&found.header, found.records)));
            }
        }
        Ok(None)
    }

    /// Takes a part that holds the next batch, or ends before it.
    fn show(&mut self, part: &Part, identity: u64) {
        let Part { handle, start, end, len } = part;
        match &mut self.shown {
            Some(shown) if shown.scanner.at.segment == handle.number => {
                shown.scanner.extend(*len);
                shown.end = *end;
            }
            _ => {
                let scanner = Scanner::new(handle, identity, u64::MAX, *start, *len);
                self.shown = Some(Shown { path: handle.path.clone(), scanner, end: *end });
            }
        }
    }
}

/// Segment, or the part of it that is committed and was given.
#[derive(Debug)]
struct Part {
    handle: Handle,
    start: Link,
    /// Number of the batch before which it ends.
    end: u64,
    len: u64,
}

impl Part {
    /// A segment in which nothing is committed yet.
    fn begun(handle: Handle, start: Link) -> Part {
        Part { handle, start, end: start.next_number, len: 0 }
    }

    fn of(Stretch { handle, start, end, len }: &Stretch) -> Part {
        Part { handle: handle.clone(), start: *start, end: end.next_number, len: *len }
    }
}

/// Segments from which the committed log can be read without a hole, up to its end.
#[derive(Debug)]
pub(crate) struct LogSegments {
    identity: u64,
    complete: VecDeque<Part>,
    growing: Part,
}

impl LogSegments {
    /// The segments found at an opening, in the order of the log; the last of them grows.
    pub(crate) fn found(identity: u64, complete: &[Stretch], growing: &Stretch) -> LogSegments {
        let (complete, growing) = (complete.iter().map(Part::of).collect(), Part::of(growing));
        let mut segments = LogSegments { identity, complete, growing };
        segments.forget_before_hole();
        segments
    }

    /// Begins the next segment; the one before it has this length in bytes.
    pub(crate) fn begin(&mut self, handle: Handle, start: Link, finished_len: u64) {
        let mut complete = std::mem::replace(&mut self.growing, Part::begun(handle, start));
        (complete.end, complete.len) = (start.next_number, finished_len);
        self.complete.push_back(complete);
    }

    /// Replaces the growing segment, in which there is nothing, by another.
    pub(crate) fn restart(&mut self, handle: Handle, start: Link) {
        self.growing = Part::begun(handle, start);
    }

    /// Forgets all segments but the growing one.
    pub(crate) fn forget_complete(&mut self) {
        self.complete.clear();
    }

    /// Offset in the growing segment where the batches end that were given.
    pub(crate) fn given_len(&self) -> u64 {
        self.growing.len
    }

    /// Notes that a batch of the growing segment, which ends at this offset, was given.
    pub(crate) fn given(&mut self, number: u64, offset: u64) {
        (self.growing.end, self.growing.len) = (number + 1, offset);
    }

    /// Forgets a file that is no longer part of the log.
    pub(crate) fn forget(&mut self, number: u64) {
        self.complete.retain(|part| part.handle.number != number);
        self.forget_before_hole();
    }

    fn forget_before_hole(&mut self) {
        let mut next = self.growing.start.next_number;
        let hole = self.complete.iter().rposition(|part| {
            let is_followed = part.end == next;
            next = part.start.next_number;
            !is_followed
        });
        self.complete.drain(..hole.map_or(0, |at| at + 1));
    }

    /// Chain before the last segments that are so many bytes long together, and hold every record behind
    /// this index; before all, where they do not.
    pub(crate) fn before_last(&self, bytes: u64, index: u64) -> &Link {
        let mut last = &self.growing;
        let mut len = last.len;
        for part in self.complete.iter().rev() {
            if len >= bytes && last.start.next_index <= index.saturating_add(1) {
                break;
            }
            (last, len) = (part, len + part.len);
        }
        &last.start
    }

    /// Shows a reader the segment that holds its next batch.
    pub(crate) fn show(&self, reader: &mut LogReader) -> Result<(), LogGone> {
        let at = self.complete.partition_point(|part| part.end <= reader.next);
        let part = self.complete.get(at).unwrap_or(&self.growing);
        let first_number = part.start.next_number;
        if reader.next < first_number {
            return Err(LogGone { first_number });
        }
        reader.show(part, self.identity);
        Ok(())
    }
}
