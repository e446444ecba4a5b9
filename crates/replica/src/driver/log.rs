//! The descriptors of the log, as the library reads them.

use std::collections::VecDeque;

use raft::eraftpb::Entry as LibraryEntry;
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use super::{convert, membership};
use crate::config::Durable;
use crate::entry::{Entry, Position};
use crate::members::{Members, Snapshot};
use crate::ready::{Append, HardState};
use crate::{FAR_BYTES, FAR_GROUP_BYTES, GROUP_BYTES, MESSAGE_ENTRIES_MAX};

/// The entries behind a base: those on disk, and those that the owner has been given to write.
pub(super) struct Log {
    /// Position of the last entry that is not here.
    base: Position,
    /// Length of the batches up to the base, in bytes.
    base_end: u64,
    /// Each entry with the length of all batches up to it, in bytes.
    entries: VecDeque<(Entry, u64)>,
    /// Index of the last entry that is known to be committed.
    pub(super) commit: u64,
    /// State that the library may send to the follower which it serves now.
    pub(super) offer: Option<Snapshot>,
    /// State at the start.
    started: RaftState,
}

impl Log {
    /// The log at the start. A commit index that the log does not reach is lowered: it was written without a
    /// sync, and may have outlived entries. An applied index raises it, since only committed entries are
    /// applied, and so do changes of the members.
    pub(super) fn new(state: HardState, durable: &Durable, entries: &[Entry], members: &Members) -> Log {
        let mut log = Log {
            base: durable.base.position,
            base_end: 0,
            entries: VecDeque::new(),
            commit: 0,
            offer: None,
            started: RaftState::new(convert::hard_state(&state), convert::members(members)),
        };
        log.append(&Append { keep: log.base.index, entries: entries.to_vec() });
        let commit = state.commit.max(durable.applied).max(membership::shown_committed(entries));
        log.started.hard_state.commit =
            if crate::plant::is(crate::plant::Plant::TrustCommit) { commit } else { commit.min(log.last()) };
        log
    }

    /// Index of the base.
    pub(super) fn base(&self) -> u64 {
        self.base.index
    }

    /// Index of the last entry; that of the base: none.
    pub(super) fn last(&self) -> u64 {
        self.base.index + self.entries.len() as u64
    }

    /// The entry with this index; `None`: it is not here.
    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        let place = index.checked_sub(self.base.index + 1)?;
        self.entries.get(usize::try_from(place).ok()?).map(|(entry, _)| entry)
    }

    /// Term of the entry with this index, or of the base; `None`: it is not known.
    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.base.index {
            return Some(self.base.term);
        }
        self.get(index).map(|entry| entry.position.term)
    }

    /// Forgets the entries up to this index.
    pub(super) fn compact(&mut self, to: u64) {
        while let Some((entry, end)) = self.entries.pop_front_if(|(entry, _)| entry.position.index <= to) {
            (self.base, self.base_end) = (entry.position, end);
        }
    }

    /// Begins anew behind this position.
    pub(super) fn install(&mut self, base: Position) {
        self.entries.clear();
        self.base = base;
    }

    /// Length of the batches from behind index `after` up to index `to`, in bytes, as far as they are here.
    pub(super) fn bytes(&self, after: u64, to: u64) -> u64 {
        self.end(to).saturating_sub(self.end(after))
    }

    fn end(&self, index: u64) -> u64 {
        let count = index.min(self.last()).saturating_sub(self.base.index) as usize;
        if count == 0 { self.base_end } else { self.entries[count - 1].1 }
    }

    /// Cuts what is behind the append's `keep`, and appends.
    pub(super) fn append(&mut self, append: &Append) {
        self.entries.truncate(append.keep.saturating_sub(self.base.index) as usize);
        for entry in &append.entries {
            let end = self.end(self.last()) + entry.bytes();
            self.entries.push_back((*entry, end));
        }
    }

    /// Reason for which the entry with this index is not here.
    fn missing(&self, index: u64) -> raft::Error {
        let is_forgotten = index <= self.base.index;
        raft::Error::Store(if is_forgotten { StorageError::Compacted } else { StorageError::Unavailable })
    }

    /// True when a follower whose next entry is this one is far behind.
    pub(super) fn is_far(&self, next: u64) -> bool {
        self.bytes(next - 1, self.commit) > FAR_BYTES
    }

    /// Number of entries from `low` on, below `high`, that belong into one message: at least one.
    fn fitting(&self, low: u64, high: u64) -> u64 {
        let most = if self.is_far(low) { FAR_GROUP_BYTES } else { GROUP_BYTES };
        let fits = |index: &u64| self.bytes(low - 1, *index) <= most;
        let count = (low..high).take(MESSAGE_ENTRIES_MAX - 1).take_while(fits).count() as u64;
        count.max(1)
    }
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.started.clone())
    }

    /// Entries for a message are cut by the length of their batches, which the library does not know.
    fn entries(
        &self,
        low: u64,
        high: u64,
        _max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<LibraryEntry>> {
        // Only entries that are to be sent may be fetched asynchronously.
        let count = if context.can_async() { self.fitting(low, high) } else { high - low };
        let wanted = low..low + count;
        let found: Option<Vec<_>> = wanted.map(|index| self.get(index).map(convert::entry)).collect();
        found.ok_or_else(|| self.missing(low))
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        self.term_at(index).ok_or_else(|| self.missing(index))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// The state that is offered. Without an offer the follower waits, and the owner is told.
    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<raft::eraftpb::Snapshot> {
        let offer = self.offer.as_ref().map(convert::snapshot);
        offer.ok_or(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
