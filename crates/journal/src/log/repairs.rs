//! Whole copies of blobs that are damaged on the disk, as another node has them.
//!
//! They are in memory, from where they are read, until compaction has put them into a file of its own in the
//! place of the damaged one. So no file is ever written over, and no format knows of repairs. A crash before
//! that loses the copies: the damage is found again then.
//!
//! Who reads a damaged blob may seek a copy, where there is somebody to ask: the owner is told of the blob,
//! and tells what has come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use crate::lock::lock;
use crate::seam::blob::BlobKey;

/// Upper limit of the length of all copies, in bytes; one copy may be as long by itself.
const BYTES_MAX: usize = 64 << 20;

/// Upper limit of the number of copies.
const COPIES_MAX: usize = 4096;

/// Copies of damaged blobs.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    /// True when there are any.
    has_some: AtomicBool,
    /// Number of copies that were ever taken.
    taken: AtomicU64,
    /// Number of the last segment that holds one of them and grew then; 0: none did.
    growing: AtomicU64,
    /// True when a damaged file waits for a snapshot that replaces its records.
    pub(crate) is_uncovered: AtomicBool,
    /// True when the owner can ask others for copies.
    asks: AtomicBool,
    /// True when there are blobs of which the owner was not told.
    has_sought: AtomicBool,
    copies: Mutex<Copies>,
}

#[derive(Debug, Default)]
struct Copies {
    by_key: BTreeMap<BlobKey, Bytes>,
    bytes: usize,
    /// Blobs that are sought, of which the owner was not told.
    sought: BTreeSet<BlobKey>,
    /// Blobs that all others have lost as well.
    lost: BTreeSet<BlobKey>,
}

/// Whole copy of a blob that is damaged on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlobCopy {
    /// Its bytes.
    Whole(Bytes),
    /// Nothing: nobody has one, or there is nobody to ask.
    Lost,
    /// Nothing yet: the others are being asked.
    Awaited,
}

impl Repairs {
    /// Takes a copy of a blob; `growing` is the segment that grows, if it is in that. False: there are too
    /// many.
    pub(crate) fn add(&self, key: BlobKey, blob: &[u8], growing: Option<u64>) -> bool {
        let mut copies = lock(&self.copies);
        let is_full = copies.by_key.len() >= COPIES_MAX || copies.bytes + blob.len() > BYTES_MAX;
        if is_full && !copies.by_key.is_empty() {
            return false;
        }
        copies.lost.remove(&key);
        // A copy of its own: the bytes may be a small part of a large message.
        if copies.by_key.insert(key, Bytes::copy_from_slice(blob)).is_none() {
            copies.bytes += blob.len();
        }
        self.has_some.store(true, Relaxed);
        self.taken.fetch_add(1, Relaxed);
        if let Some(number) = growing {
            self.growing.fetch_max(number, Relaxed);
        }
        true
    }

    /// The copy of a blob, if there is one.
    pub(crate) fn get(&self, key: BlobKey) -> Option<Bytes> {
        self.has_some.load(Relaxed).then(|| lock(&self.copies).by_key.get(&key).cloned())?
    }

    /// From now on the owner asks others for copies.
    pub(crate) fn ask_others(&self) {
        self.asks.store(true, Relaxed);
    }

    /// Seeks a copy of a damaged blob. False: there is nobody to ask, or all were asked in vain.
    pub(crate) fn seek(&self, key: BlobKey) -> bool {
        if !self.asks.load(Relaxed) {
            return false;
        }
        let mut copies = lock(&self.copies);
        if copies.lost.contains(&key) {
            return false;
        }
        if copies.sought.len() < COPIES_MAX {
            copies.sought.insert(key);
        }
        self.has_sought.store(true, Relaxed);
        true
    }

    /// Takes a blob that is sought.
    pub(crate) fn next_sought(&self) -> Option<BlobKey> {
        if !self.has_sought() {
            return None;
        }
        let mut copies = lock(&self.copies);
        let next = copies.sought.pop_first();
        self.has_sought.store(!copies.sought.is_empty(), Relaxed);
        next
    }

    /// True when there are blobs to be taken.
    pub(crate) fn has_sought(&self) -> bool {
        self.has_sought.load(Relaxed)
    }

    /// Notes that all others have lost a blob.
    pub(crate) fn lose(&self, key: BlobKey) {
        let mut copies = lock(&self.copies);
        if copies.lost.len() >= COPIES_MAX {
            copies.lost.pop_first();
        }
        copies.lost.insert(key);
    }

    /// State of the copy that is sought.
    pub(crate) fn copy(&self, key: BlobKey) -> BlobCopy {
        if let Some(copy) = self.get(key) {
            return BlobCopy::Whole(copy);
        }
        let is_lost = !self.asks.load(Relaxed) || lock(&self.copies).lost.contains(&key);
        if is_lost { BlobCopy::Lost } else { BlobCopy::Awaited }
    }

    /// True when there are no copies.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_some.load(Relaxed)
    }

    /// Number of copies that were ever taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Number of the last segment that was to end because a copy is of a blob in it; 0: there is none.
    pub(crate) fn growing(&self) -> u64 {
        self.growing.load(Relaxed)
    }

    /// Drops the copies for which `keep` is false.
    pub(crate) fn retain(&self, mut keep: impl FnMut(BlobKey) -> bool) {
        let mut copies = lock(&self.copies);
        copies.by_key.retain(|key, _| keep(*key));
        copies.bytes = copies.by_key.values().map(Bytes::len).sum();
        self.has_some.store(!copies.by_key.is_empty(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u64) -> BlobKey {
        BlobKey { index, item: 0 }
    }

    #[test]
    fn copies_are_limited_in_number_and_in_bytes() {
        let repairs = Repairs::default();
        let blob = vec![1; BYTES_MAX / 2];
        assert_eq!([1, 2, 3].map(|index| repairs.add(key(index), &blob, None)), [true, true, false]);
        repairs.retain(|it| it == key(2));
        assert_eq!(
            (repairs.get(key(1)), repairs.get(key(2)).map(|blob| blob.len())),
            (None, Some(blob.len()))
        );
        assert!(repairs.add(key(3), &blob, Some(7)));
        assert_eq!(repairs.growing(), 7);
        repairs.retain(|_| false);
        assert!(repairs.is_empty() && repairs.add(key(1), &vec![1; 2 * BYTES_MAX], None));
        repairs.retain(|_| false);
        let taken = (0..2 * COPIES_MAX as u64).filter(|index| repairs.add(key(*index), b"", None)).count();
        assert_eq!(taken, COPIES_MAX);
    }
}
