//! Blobs of records: their keys, how they are found, why reading one fails.

use bytes::Bytes;

/// Key of a blob; it stays valid when compaction moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobKey {
    /// Index of the record.
    pub index: u64,
    /// Number of the blob within the record, from 0.
    pub item: u32,
}

/// Result of looking up a blob; `L` is a location on disk.
#[derive(Debug)]
pub enum BlobRead<L> {
    /// In memory.
    Cached(Bytes),
    /// On disk at this location: reading blocks, and is not for the shard's thread.
    OnDisk(L),
    /// Unknown: released, or never written.
    Missing,
}

/// Error of reading a blob from disk.
#[derive(Debug)]
pub enum BlobError {
    /// The bytes do not match their checksum, or cannot be decrypted.
    Damaged(String),
    /// Error of the operating system.
    Io(std::io::Error),
}

impl BlobError {
    /// True when another try would fail as well: the bytes are wrong, or the disk reports a medium error.
    /// False for passing causes, such as a shortage of memory or file handles.
    pub fn is_lasting(&self) -> bool {
        match self {
            BlobError::Damaged(_) => true,
            BlobError::Io(error) => matches!(
                rustix::io::Errno::from_io_error(error),
                Some(rustix::io::Errno::IO | rustix::io::Errno::BADMSG)
            ),
        }
    }

    /// The error of the operating system; damage becomes one as well.
    pub(crate) fn into_io(self) -> std::io::Error {
        match self {
            BlobError::Damaged(what) => std::io::Error::other(what),
            BlobError::Io(error) => error,
        }
    }
}
