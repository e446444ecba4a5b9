//! Complete files with blobs, and which of their blobs are live.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::log::blob::{BlobLocation, BlobSeal};
use crate::log::files::{Handle, Seal};
use crate::log::header::Position;
use crate::log::table::{BlobPlace, Table};
use crate::seam::batch::BLOB_HEAD;
use crate::seam::blob::BlobKey;

impl Handle {
    /// Location of a blob by its entry in the file's table.
    pub(crate) fn location(&self, table: &Table, key: BlobKey, place: BlobPlace) -> BlobLocation {
        let seal = match &self.seal {
            Seal::Plain => BlobSeal::Plain,
            Seal::Chunks(cipher) => BlobSeal::Chunks(cipher.clone()),
            Seal::Batches(cipher, _) => {
                let at = Position { segment: self.number, offset: table.batch_of(place) };
                BlobSeal::Batch(cipher.clone(), at)
            }
        };
        let (file, committed) = (self.file.clone(), table.end());
        BlobLocation { file, offset: u64::from(place.offset), len: place.len, committed, key, seal }
    }
}

/// Live blobs of a file that still grows.
#[derive(Debug, Default)]
pub(crate) struct Live {
    bits: Vec<u64>,
    blobs: u64,
    bytes: u64,
}

impl Live {
    /// For this many blobs, none of them live.
    pub(crate) fn none(blobs: u32) -> Live {
        Live { bits: vec![0; blobs.div_ceil(64) as usize], blobs: 0, bytes: 0 }
    }

    /// Grows to this many blobs.
    pub(crate) fn grow(&mut self, blobs: u32) {
        self.bits.resize(blobs.div_ceil(64) as usize, 0);
    }

    pub(crate) fn contains(&self, ordinal: u32) -> bool {
        self.bits.get(ordinal as usize / 64).is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }

    /// Sets whether a blob of `len` bytes is live. True when that changed.
    pub(crate) fn set(&mut self, ordinal: u32, len: u32, live: bool) -> bool {
        if self.contains(ordinal) == live {
            return false;
        }
        self.bits[ordinal as usize / 64] ^= 1 << (ordinal % 64);
        if live {
            (self.blobs, self.bytes) = (self.blobs + 1, self.bytes + u64::from(len));
        } else {
            (self.blobs, self.bytes) = (self.blobs - 1, self.bytes - u64::from(len));
        }
        true
    }
}

/// A file that gets no more blobs. Only the shard's thread changes which are live, and once serving has begun
/// they only become fewer: maintenance may read at any time and sees at least what is live.
#[derive(Debug)]
pub(crate) struct BlobHolder {
    pub(crate) handle: Handle,
    pub(crate) table: Table,
    /// Length of the journal's part of the file, in bytes.
    pub(crate) len: u64,
    live: Box<[AtomicU64]>,
    live_blobs: AtomicU64,
    live_bytes: AtomicU64,
}

impl BlobHolder {
    /// A file without live blobs.
    pub(crate) fn new(handle: Handle, table: Table, len: u64) -> BlobHolder {
        let words = table.len().div_ceil(64);
        BlobHolder {
            handle,
            table,
            len,
            live: (0..words).map(|_| AtomicU64::new(0)).collect(),
            live_blobs: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.handle.number
    }

    pub(crate) fn live_blobs(&self) -> u64 {
        self.live_blobs.load(Relaxed)
    }

    /// Bytes that compaction would copy: live blobs with their heads.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Relaxed) + self.live_blobs() * BLOB_HEAD as u64
    }

    pub(crate) fn is_live(&self, ordinal: u32) -> bool {
        self.live[ordinal as usize / 64].load(Relaxed) >> (ordinal % 64) & 1 == 1
    }

    /// The place of a live blob.
    pub(crate) fn find(&self, key: BlobKey) -> Option<u32> {
        self.table.ordinal(key).filter(|ordinal| self.is_live(*ordinal))
    }

    /// A file with these live blobs.
    pub(crate) fn with_live(handle: Handle, table: Table, len: u64, live: Live) -> BlobHolder {
        debug_assert_eq!(live.bits.len(), table.len().div_ceil(64) as usize);
        BlobHolder {
            handle,
            table,
            len,
            live: live.bits.into_iter().map(AtomicU64::new).collect(),
            live_blobs: AtomicU64::new(live.blobs),
            live_bytes: AtomicU64::new(live.bytes),
        }
    }

    /// Sets whether a blob is live; for the shard's thread only. True when that changed.
    pub(crate) fn set_live(&self, ordinal: u32, live: bool) -> bool {
        if self.is_live(ordinal) == live {
            return false;
        }
        let word = &self.live[ordinal as usize / 64];
        // One thread writes, so that neither a lock nor a locked instruction is needed.
        word.store(word.load(Relaxed) ^ 1 << (ordinal % 64), Relaxed);
        let len = u64::from(self.table.place(ordinal).len);
        let (blobs, bytes) = (self.live_blobs(), self.live_bytes.load(Relaxed));
        let (blobs, bytes) = if live { (blobs + 1, bytes + len) } else { (blobs - 1, bytes - len) };
        self.live_blobs.store(blobs, Relaxed);
        self.live_bytes.store(bytes, Relaxed);
        true
    }

    /// Makes these blobs the live ones; for the shard's thread only. Of a file that is served they were live
    /// before.
    pub(crate) fn become_live(&self, live: &Live) {
        for (word, bits) in self.live.iter().zip(&live.bits) {
            word.store(*bits, Relaxed);
        }
        self.live_blobs.store(live.blobs, Relaxed);
        self.live_bytes.store(live.bytes, Relaxed);
    }

    pub(crate) fn location(&self, ordinal: u32) -> BlobLocation {
        self.handle.location(&self.table, self.table.key(ordinal), self.table.place(ordinal))
    }
}
