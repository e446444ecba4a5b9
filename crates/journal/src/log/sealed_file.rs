//! Complete files with blobs, for maintenance.

use std::sync::Arc;

use crate::log::blob_holder::BlobHolder;
use crate::log::index::Range;
use crate::log::manifest::Sealed;
use crate::log::table::{BLOB_ENTRY, Table};

/// Part of the log that is needed beside its blobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeededLog {
    /// Index of the last record that the snapshot holds: those behind it are replayed at the next start.
    pub(crate) applied_index: u64,
    /// Number of the batch from which on the log is kept for readers.
    pub(crate) keep_from: u64,
}

/// A file that gets no more blobs: a sealed segment, or one of compaction.
#[derive(Clone, Debug)]
pub(crate) struct SealedFile {
    pub(crate) holder: Arc<BlobHolder>,
    /// Ranges of record indexes whose blobs it holds, each with an exclusive end.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Number of the batch that follows its last; 0: it holds no batches.
    next_number: u64,
    /// Number of live blobs when it last changed, and when that was seen, in microseconds.
    pub(crate) seen: (u64, u64),
}

impl SealedFile {
    pub(crate) fn new(holder: Arc<BlobHolder>, ranges: Vec<(u64, u64)>) -> SealedFile {
        SealedFile { holder, ranges, next_number: 0, seen: (u64::MAX, 0) }
    }

    /// A sealed segment.
    pub(crate) fn sealed(sealed: &Sealed, holder: Arc<BlobHolder>) -> SealedFile {
        let ranges = vec![(sealed.start.next_index, sealed.end.next_index)];
        SealedFile { next_number: sealed.end.next_number, ..SealedFile::new(holder, ranges) }
    }

    /// Its ranges for the index of blobs.
    pub(crate) fn index_ranges(&self) -> impl Iterator<Item = Range> {
        let ranges = self.ranges.iter().filter(|(first, end)| first < end);
        ranges.map(|(first, end)| Range { first: *first, end: *end, holder: self.holder.clone() })
    }

    /// True when a snapshot up to `applied_index` replaces the file's records.
    pub(crate) fn is_covered(&self, applied_index: u64) -> bool {
        match self.holder.table {
            Table::Log(_) => self.ranges.iter().all(|(_, end)| *end <= applied_index + 1),
            Table::Blobs(_) => true,
        }
    }

    /// True when the file is not needed as log.
    pub(crate) fn is_free(&self, needed: NeededLog) -> bool {
        self.is_covered(needed.applied_index) && self.next_number <= needed.keep_from
    }

    /// True when compaction would keep less than half of the file.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        let table = self.holder.live_blobs() * BLOB_ENTRY as u64;
        (self.holder.live_bytes() + table) * 2 < self.holder.len
    }

    pub(crate) fn dead_bytes(&self) -> u64 {
        self.holder.len.saturating_sub(self.holder.live_bytes())
    }
}
