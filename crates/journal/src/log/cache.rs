//! Cache of the newest batches, within a budget of memory.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::log::table::BlobPlace;

/// Memory of a batch besides its bytes, so that tiny batches do not exceed the budget.
const ENTRY_BYTES: u64 = 64;

/// Batches in the order of the log; the oldest are dropped first.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: VecDeque<CachedBatch>,
    bytes: u64,
    budget: u64,
}

#[derive(Debug)]
struct CachedBatch {
    first_index: u64,
    /// Offset of the bytes in their segment.
    offset: u64,
    bytes: Bytes,
}

impl Cache {
    pub(crate) fn new(budget: u64) -> Cache {
        Cache { entries: VecDeque::new(), bytes: 0, budget }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn push(&mut self, first_index: u64, offset: u64, bytes: Bytes) {
        self.bytes += bytes.len() as u64 + ENTRY_BYTES;
        self.entries.push_back(CachedBatch { first_index, offset, bytes });
        while self.bytes > self.budget
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.bytes.len() as u64 + ENTRY_BYTES;
        }
    }

    /// The bytes of a blob, by the index of its record and its place in the segment.
    pub(crate) fn get(&self, index: u64, place: BlobPlace) -> Option<Bytes> {
        let after = self.entries.partition_point(|entry| entry.first_index <= index);
        let entry = &self.entries[after.checked_sub(1)?];
        let start = u64::from(place.offset).checked_sub(entry.offset)? as usize;
        let end = start + place.len as usize;
        (end <= entry.bytes.len()).then(|| entry.bytes.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_the_budget_is_spent() {
        let mut cache = Cache::new(2 * (10 + ENTRY_BYTES));
        for i in 0..3 {
            cache.push(i * 5, i * 100, Bytes::from(vec![i as u8; 10]));
        }
        assert_eq!(cache.get(4, BlobPlace { offset: 3, len: 2 }), None);
        assert_eq!(cache.get(7, BlobPlace { offset: 103, len: 2 }).unwrap(), &[1, 1][..]);
        assert_eq!(cache.get(99, BlobPlace { offset: 208, len: 2 }).unwrap(), &[2, 2][..]);
        assert_eq!(cache.get(99, BlobPlace { offset: 209, len: 2 }), None);
        assert_eq!(cache.bytes(), 2 * (10 + ENTRY_BYTES));
    }
}
