//! Index of blobs: which file holds each, and whether it is live. Used by the shard's thread alone.

mod install;

use std::sync::Arc;

use crate::log::blob::BlobLocation;
use crate::log::blob_holder::{BlobHolder, Live};
use crate::log::files::Handle;
use crate::log::manifest::Link;
use crate::log::shared::Complete;
use crate::log::table::{BlobPlace, LogTable, Table};
use crate::seam::blob::BlobKey;

/// Blobs per slice of a move.
const MOVE_SLICE: u32 = 2048;

/// Result of looking up a live blob.
#[derive(Debug)]
pub(crate) enum FoundBlob<'a> {
    /// In a segment; the cache may hold it.
    Log(&'a Handle, &'a Table, BlobPlace),
    /// In a file of compaction.
    Copied(BlobLocation),
}

/// Place of a live blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LivePlace {
    /// Length in bytes.
    pub(crate) len: u32,
    /// Number of the segment that holds it, if that grows.
    pub(crate) growing: Option<u64>,
}

/// A range of record indexes whose blobs are in one file.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) first: u64,
    /// Exclusive end.
    pub(crate) end: u64,
    pub(crate) holder: Arc<BlobHolder>,
}

/// All blobs of the journal.
#[derive(Debug)]
pub(crate) struct Index {
    /// Ordered by record index, without overlap.
    ranges: Vec<Range>,
    current: Current,
    moving: Option<Moving>,
    live_blobs: u64,
    /// Files not needed any more, to be freed elsewhere.
    retired: Vec<Arc<BlobHolder>>,
}

/// The growing segment.
#[derive(Debug)]
pub(crate) struct Current {
    handle: Handle,
    start: Link,
    table: Table,
    live: Live,
}

/// A move of blobs to another file: for the first `cursor` blobs of the target, it knows which are live.
#[derive(Debug)]
struct Moving {
    sources: Vec<u64>,
    target: Arc<BlobHolder>,
    cursor: u32,
}

impl Index {
    pub(crate) fn new(mut ranges: Vec<Range>, current: Current) -> Index {
        ranges.sort_by_key(|range| range.first);
        Index { ranges, current, moving: None, live_blobs: 0, retired: Vec::new() }
    }

    pub(crate) fn live_blobs(&self) -> u64 {
        self.live_blobs
    }

    /// Adds the blobs of a committed batch; all are live.
    pub(crate) fn push(&mut self, records: &[u8], offset: u64) {
        let current = &mut self.current;
        let before = current.table.len();
        if let Table::Log(table) = &mut current.table {
            table.push(records, offset);
        }
        let after = current.table.len();
        current.live.grow(after);
        for ordinal in before..after {
            current.live.set(ordinal, current.table.place(ordinal).len, true);
        }
        self.live_blobs += u64::from(after - before);
    }

    /// Begins the next segment; returns the complete one.
    pub(crate) fn next_segment(&mut self, handle: Handle, start: Link, finished_len: u64) -> Complete {
        let table = self.current.table.next_log(start.next_index, !handle.seal.is_plain());
        let next = Current::new(handle, start, table);
        let old = std::mem::replace(&mut self.current, next);
        let holder = Arc::new(BlobHolder::with_live(old.handle, old.table, finished_len, old.live));
        let range = Range { first: old.start.next_index, end: start.next_index, holder: holder.clone() };
        if range.first < range.end {
            self.ranges.push(range);
        }
        Complete { start: old.start, end: start, holder }
    }

    /// Handle of the growing segment.
    pub(crate) fn growing_handle(&self) -> &Handle {
        &self.current.handle
    }

    /// Number of the growing segment.
    pub(crate) fn growing(&self) -> u64 {
        self.current.handle.number
    }

    /// Replaces the growing segment, in which there is nothing, by another.
    pub(crate) fn restart(&mut self, handle: Handle, start: Link) {
        let table = self.current.table.next_log(start.next_index, !handle.seal.is_plain());
        self.current = Current::new(handle, start, table);
    }

    /// Finds a live blob.
    pub(crate) fn find(&self, key: BlobKey) -> Option<FoundBlob<'_>> {
        if key.index >= self.current.start.next_index {
            let ordinal = self.current.table.ordinal(key)?;
            let live = self.current.live.contains(ordinal);
            let (handle, table) = (&self.current.handle, &self.current.table);
            return live.then(|| FoundBlob::Log(handle, table, table.place(ordinal)));
        }
        let holder = &self.range(key)?.holder;
        let ordinal = holder.find(key)?;
        Some(match &holder.table {
            Table::Log(_) => FoundBlob::Log(&holder.handle, &holder.table, holder.table.place(ordinal)),
            Table::Blobs(_) => FoundBlob::Copied(holder.location(ordinal)),
        })
    }

    /// The place of a live blob.
    pub(crate) fn place(&self, key: BlobKey) -> Option<LivePlace> {
        let len = match self.find(key)? {
            FoundBlob::Log(_, _, place) => place.len,
            FoundBlob::Copied(location) => location.len,
        };
        let growing = (key.index >= self.current.start.next_index).then(|| self.growing());
        Some(LivePlace { len, growing })
    }

    /// Marks a blob as live, at the start; `false` when there is none of this key and length.
    pub(crate) fn revive(&mut self, key: BlobKey, len: u32) -> bool {
        if key.index >= self.current.start.next_index {
            let Some(ordinal) = self.current.table.ordinal(key) else { return false };
            let found = self.current.table.place(ordinal).len;
            self.live_blobs += u64::from(self.current.live.set(ordinal, found, true));
            return found == len;
        }
        let Some(range) = self.range(key) else { return false };
        let Some(ordinal) = range.holder.table.ordinal(key) else { return false };
        let same = range.holder.table.place(ordinal).len == len;
        self.live_blobs += u64::from(range.holder.set_live(ordinal, true));
        same
    }

    /// Marks a blob as dead. True when it was live.
    pub(crate) fn release(&mut self, key: BlobKey) -> bool {
        let released = if key.index >= self.current.start.next_index {
            self.current.release(key)
        } else {
            let found = self.range(key).and_then(|range| range.holder.find(key).map(|at| (range, at)));
            found.is_some_and(|(range, ordinal)| range.holder.set_live(ordinal, false))
        };
        self.live_blobs -= u64::from(released);
        if let Some(moving) = &self.moving
            && released
            && let Some(ordinal) = moving.target.table.ordinal(key)
            && ordinal < moving.cursor
        {
            moving.target.set_live(ordinal, false);
        }
        released
    }

    /// Begins a move; the target holds at least what is live in the sources.
    pub(crate) fn begin_move(&mut self, sources: Vec<u64>, target: Arc<BlobHolder>) {
        self.moving = Some(Moving { sources, target, cursor: 0 });
    }

    /// Moves up to a slice of blobs. True when more are left.
    pub(crate) fn move_slice(&mut self) -> bool {
        let Some(mut moving) = self.moving.take() else { return false };
        let end = moving.target.table.len().min(moving.cursor + MOVE_SLICE);
        for ordinal in moving.cursor..end {
            let key = moving.target.table.key(ordinal);
            let live = self.range(key).is_some_and(|range| range.holder.find(key).is_some());
            moving.target.set_live(ordinal, live);
        }
        moving.cursor = end;
        if end < moving.target.table.len() {
            self.moving = Some(moving);
            return true;
        }
        for range in &mut self.ranges {
            if moving.sources.contains(&range.holder.number()) {
                self.retired.push(std::mem::replace(&mut range.holder, moving.target.clone()));
            }
        }
        self.ranges.dedup_by(|next, range| {
            let same = range.end == next.first && Arc::ptr_eq(&range.holder, &next.holder);
            if same {
                range.end = next.end;
            }
            same
        });
        false
    }

    /// True while blobs are being moved.
    pub(crate) fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// Removes a file without live blobs.
    pub(crate) fn drop_file(&mut self, number: u64) {
        let gone = self.ranges.extract_if(.., |range| range.holder.number() == number);
        self.retired.extend(gone.map(|range| range.holder));
    }

    /// Takes the files not needed any more. Freeing them takes time.
    pub(crate) fn take_retired(&mut self) -> Vec<Arc<BlobHolder>> {
        std::mem::take(&mut self.retired)
    }

    fn range(&self, key: BlobKey) -> Option<&Range> {
        let after = self.ranges.partition_point(|range| range.first <= key.index);
        self.ranges[..after].last().filter(|range| key.index < range.end)
    }
}

impl Current {
    /// A segment with these blobs, none of them live.
    pub(crate) fn new(handle: Handle, start: Link, table: LogTable) -> Current {
        let table = Table::Log(table);
        let live = Live::none(table.len());
        Current { handle, start, table, live }
    }

    fn release(&mut self, key: BlobKey) -> bool {
        let Some(ordinal) = self.table.ordinal(key) else { return false };
        self.live.set(ordinal, self.table.place(ordinal).len, false)
    }
}
