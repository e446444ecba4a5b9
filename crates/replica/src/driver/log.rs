//! The descriptors of the log, as the library reads them.

use raft::eraftpb::{ConfState, Entry as LibraryEntry};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use super::convert;
use crate::entry::{Entry, NodeId};
use crate::ready::{Append, HardState};
use crate::{BATCH_BYTES_MAX, MESSAGE_ENTRIES_MAX};

/// The entries from index 1 on: those on disk, and those that the owner has been given to write.
pub(super) struct Log {
    entries: Vec<Entry>,
    /// Length of the batches of all entries up to this one, in bytes.
    ends: Vec<u64>,
    /// State at the start.
    started: RaftState,
}

impl Log {
    /// The log at the start. A commit index that the log does not reach is lowered: it was written without a
    /// sync, and may have outlived entries. An applied index raises it, since only committed entries are
    /// applied.
    pub(super) fn new(state: HardState, applied: u64, entries: &[Entry], members: &[NodeId]) -> Log {
        let mut log = Log {
            entries: Vec::new(),
            ends: Vec::new(),
            started: RaftState::new(convert::hard_state(&state), ConfState::default()),
        };
        log.started.conf_state.set_voters(members.iter().map(|member| member.get()).collect());
        log.append(&Append { keep: 0, entries: entries.to_vec() });
        let commit = state.commit.max(applied);
        log.started.hard_state.commit =
            if crate::plant::is(crate::plant::Plant::TrustCommit) { commit } else { commit.min(log.last()) };
        log
    }

    /// Index of the last entry; 0: none.
    pub(super) fn last(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The entry with this index.
    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(index.checked_sub(1)?).ok()?)
    }

    /// Length of the batches from behind index `after` up to index `to`, in bytes.
    pub(super) fn bytes(&self, after: u64, to: u64) -> u64 {
        self.end(to).saturating_sub(self.end(after))
    }

    fn end(&self, index: u64) -> u64 {
        let count = index.min(self.last()) as usize;
        if count == 0 { 0 } else { self.ends[count - 1] }
    }

    /// Cuts what is behind the append's `keep`, and appends.
    pub(super) fn append(&mut self, append: &Append) {
        self.entries.truncate(append.keep as usize);
        self.ends.truncate(append.keep as usize);
        for entry in &append.entries {
            let end = self.end(self.last()) + entry.bytes();
            self.entries.push(*entry);
            self.ends.push(end);
        }
    }

    /// Number of entries from `low` on, below `high`, that belong into one message: at least one.
    fn fitting(&self, low: u64, high: u64) -> u64 {
        let fits = |index: &u64| self.bytes(low - 1, *index) <= BATCH_BYTES_MAX;
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
        found.ok_or(raft::Error::Store(StorageError::Unavailable))
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        match self.get(index) {
            Some(entry) => Ok(entry.position.term),
            None if index == 0 => Ok(0),
            None => Err(raft::Error::Store(StorageError::Unavailable)),
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// No snapshot is ever needed, since the log is whole.
    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<raft::eraftpb::Snapshot> {
        Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
