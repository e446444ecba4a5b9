//! Change of the blobs to those of another state.

use std::collections::BTreeMap;

use super::{Current, Index, Range};
use crate::log::blob_holder::{BlobHolder, Live};
use crate::log::manifest::Link;
use crate::log::received::ReceivedBlobs;
use crate::log::shared::Complete;
use crate::log::table::LogTable;
use crate::seam::blob::BlobKey;
use crate::seam::event::InstallError;

/// Live blobs of a state, by the number of the file that holds them.
type LiveByFile = BTreeMap<u64, Live>;

impl Index {
    /// Keeps those of the blobs that are `live`, adds those that were received, and goes on with an empty
    /// segment behind `start`. `end` is the place where what was given of the growing segment ends: the chain
    /// there, and the offset. Returns that part, if there is any.
    ///
    /// # Errors
    /// A live blob is missing, and `may_miss` is false, or it has another length; nothing was changed.
    pub(crate) fn install(
        &mut self,
        start: Link,
        end: (Link, u64),
        received: &[ReceivedBlobs],
        live: impl IntoIterator<Item = (BlobKey, u32)>,
        may_miss: bool,
    ) -> Result<Option<Complete>, InstallError> {
        let (given, given_len) = end;
        let received = ranges_of(received);
        let mut found = LiveByFile::new();
        let mut live_blobs = 0;
        for (key, len) in live {
            match self.mark(key, len, &received, &mut found) {
                Some(true) => live_blobs += 1,
                Some(false) => return Err(InstallError::Blob(key)),
                None if may_miss => {}
                None => return Err(InstallError::Blob(key)),
            }
        }
        self.live_blobs = live_blobs;
        let mut live_of =
            |number: u64, blobs: u32| found.remove(&number).unwrap_or_else(|| Live::none(blobs));
        // A file of compaction has several ranges.
        let mut seen = BTreeMap::new();
        for Range { holder, .. } in self.ranges.iter().chain(&received) {
            if seen.insert(holder.number(), ()).is_none() {
                holder.become_live(&live_of(holder.number(), holder.table.len()));
            }
        }
        let table = LogTable::new(start.next_index, false);
        let next = Current::new(self.current.handle.clone(), start, table);
        let old = std::mem::replace(&mut self.current, next);
        let mut complete = None;
        if old.start.next_index < given.next_index {
            let live = live_of(old.handle.number, old.table.len());
            let holder = BlobHolder::with_live(old.handle, old.table, given_len, live).into();
            self.ranges.push(Range { first: old.start.next_index, end: given.next_index, holder });
            complete = self.ranges.last().map(|range| Complete {
                start: old.start,
                end: given,
                holder: range.holder.clone(),
            });
        }
        self.ranges.extend(received);
        Ok(complete)
    }

    /// Marks a blob as one that stays live. `None`: it is not here; `false`: it has another length.
    fn mark(&self, key: BlobKey, len: u32, received: &[Range], found: &mut LiveByFile) -> Option<bool> {
        let current = &self.current;
        let (number, table, ordinal) = if key.index >= current.start.next_index
            && let Some(ordinal) = current.table.ordinal(key).filter(|at| current.live.contains(*at))
        {
            (current.handle.number, &current.table, ordinal)
        } else {
            let arrived = received.iter().find(|range| (range.first..range.end).contains(&key.index));
            let (holder, ordinal) = match arrived {
                Some(range) => (&range.holder, range.holder.table.ordinal(key)?),
                None => self.range(key).and_then(|range| Some((&range.holder, range.holder.find(key)?)))?,
            };
            (holder.number(), &holder.table, ordinal)
        };
        let live = found.entry(number).or_insert_with(|| Live::none(table.len()));
        live.set(ordinal, len, true);
        Some(table.place(ordinal).len == len)
    }
}

/// Ranges of record indexes of the files that were received.
fn ranges_of(received: &[ReceivedBlobs]) -> Vec<Range> {
    let range = |file: &ReceivedBlobs, (first, end)| Range { first, end, holder: file.holder.clone() };
    received.iter().flat_map(|file| file.named.ranges.iter().map(move |at| range(file, *at))).collect()
}
