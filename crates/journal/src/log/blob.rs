//! Location of a blob on disk, and reading it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::disk::File;
use crate::disk::shortage::is_out_of_handles;
use crate::keys::chunks::{self, ChunkCipher};
use crate::keys::cipher::BatchCipher;
use crate::log::files::LogFile;
use crate::log::header::Position;
use crate::log::repairs::BlobCopy;
use crate::log::sealing;
use crate::seam::batch::{BLOB_HEAD, blob_checksum};
use crate::seam::blob::{BlobError, BlobKey};

/// Tries, and pause between two, of a read that got no file handle: 5 s in all.
const HANDLE_TRIES: u32 = 250;
const HANDLE_PAUSE: Duration = Duration::from_millis(20);

/// Result of looking up a blob of a disk journal.
pub type BlobRead = crate::seam::blob::BlobRead<BlobLocation>;

/// Encryption of a blob.
#[derive(Clone, Debug)]
pub(crate) enum BlobSeal {
    Plain,
    /// With the batch whose head is at this position.
    Batch(Arc<BatchCipher>, Position),
    /// In the chunks of its file.
    Chunks(Arc<ChunkCipher>),
}

/// Location of a blob on disk. It stays readable while this value is held, also when compaction moves the
/// blob.
#[derive(Clone, Debug)]
pub struct BlobLocation {
    pub(crate) file: Arc<LogFile>,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Offset before which the file does not change any more.
    pub(crate) committed: u64,
    pub(crate) key: BlobKey,
    pub(crate) seal: BlobSeal,
}

impl BlobLocation {
    /// Length of the blob in bytes.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True when the blob is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// File that holds the blob, and the offset of its first byte there.
    pub fn place(&self) -> (&Path, u64) {
        let at = match &self.seal {
            BlobSeal::Plain | BlobSeal::Batch(..) => self.offset,
            BlobSeal::Chunks(_) => chunks::offset_in_file(self.offset),
        };
        (self.file.path(), at)
    }

    /// Reads and verifies the blob. Blocks: not for the shard's thread.
    ///
    /// Without free file handles it waits up to 5 s for one.
    ///
    /// # Errors
    /// The blob is damaged, or the operating system failed.
    pub fn read(&self) -> Result<Bytes, BlobError> {
        for _ in 0..HANDLE_TRIES {
            match self.read_now() {
                Err(BlobError::Io(error)) if is_out_of_handles(&error) => std::thread::sleep(HANDLE_PAUSE),
                result => return result,
            }
        }
        self.read_now()
    }

    /// Seeks a whole copy of the blob, which was found damaged. False: there is nobody to ask, or all were
    /// asked in vain.
    pub fn seek_copy(&self) -> bool {
        self.file.seek_copy(self.key)
    }

    /// State of the copy that [`BlobLocation::seek_copy`] seeks.
    pub fn copy(&self) -> BlobCopy {
        self.file.repairs().copy(self.key)
    }

    pub(crate) fn read_now(&self) -> Result<Bytes, BlobError> {
        let mut bytes = BytesMut::zeroed(BLOB_HEAD + self.len());
        let read = self.fetch(&mut bytes)?;
        let blob = bytes.split_off(BLOB_HEAD);
        if read < BLOB_HEAD + self.len() || blob_checksum(self.key, &blob).to_le_bytes() != bytes[..] {
            return Err(BlobError::Damaged(format!(
                "{} is damaged at byte {}: blob {} of record {} does not match its checksum",
                self.file.path().display(),
                self.offset,
                self.key.item,
                self.key.index
            )));
        }
        Ok(blob.freeze())
    }

    /// Reads checksum and blob, decrypted and not verified. Returns the bytes read; fewer only at the end of
    /// the file.
    pub(crate) fn fetch(&self, bytes: &mut [u8]) -> Result<usize, BlobError> {
        let from = self.offset - BLOB_HEAD as u64;
        let read = match &self.seal {
            BlobSeal::Plain => return self.file.read_at(bytes, from).map_err(BlobError::Io),
            BlobSeal::Batch(cipher, head) => sealing::read_from(cipher, &*self.file, *head, bytes, from),
            BlobSeal::Chunks(cipher) => cipher.read_at(&*self.file, bytes, from),
        };
        read.map_err(|error| match error {
            BlobError::Damaged(what) => BlobError::Damaged(format!(
                "{} is damaged at byte {}: blob {} of record {} cannot be decrypted: {what}",
                self.file.path().display(),
                self.offset,
                self.key.item,
                self.key.index
            )),
            other => other,
        })
    }
}
