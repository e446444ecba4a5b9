//! Reading a blob from the file that holds it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::disk::File;
use crate::keys::chunks::ChunkCipher;
use crate::keys::cipher::BatchCipher;
use crate::log::files::{LogFile, is_out_of_handles};
use crate::log::header::Position;
use crate::log::sealing;
use crate::seam::batch::{BLOB_HEAD, blob_checksum};
use crate::seam::blob::{BlobError, BlobKey};

/// How often, and after which pauses, a read is tried again that got no file handle: 5 s.
const HANDLE_TRIES: u32 = 250;
const HANDLE_PAUSE: Duration = Duration::from_millis(20);

/// Where a blob of this process's journals is.
pub type BlobRead = crate::seam::blob::BlobRead<BlobLocation>;

/// How a blob is encrypted.
#[derive(Clone, Debug)]
pub(crate) enum BlobSeal {
    Plain,
    /// As records of the batch whose head is here.
    Batch(Arc<BatchCipher>, Position),
    /// In chunks of the file.
    Chunks(Arc<ChunkCipher>),
}

/// A place on disk that holds a blob; stays readable while this is held, even when compaction moves the blob.
#[derive(Clone, Debug)]
pub struct BlobLocation {
    pub(crate) file: Arc<LogFile>,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// What lies before this place of the file is as it will stay.
    pub(crate) committed: u64,
    pub(crate) key: BlobKey,
    pub(crate) seal: BlobSeal,
}

impl BlobLocation {
    /// Length of the blob in bytes.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the blob is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads and verifies the blob. Blocks: not for the shard thread.
    ///
    /// When the process has no file handles left, this waits for one for some seconds before it gives up.
    pub fn read(&self) -> Result<Bytes, BlobError> {
        for _ in 0..HANDLE_TRIES {
            match self.read_now() {
                Err(BlobError::Io(error)) if is_out_of_handles(&error) => std::thread::sleep(HANDLE_PAUSE),
                result => return result,
            }
        }
        self.read_now()
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

    /// Reads the blob behind its checksum, decrypted and not verified: fewer bytes at the end of the file.
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
