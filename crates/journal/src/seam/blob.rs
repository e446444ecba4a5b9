//! Blobs of records as the journal's users see them: key, where the bytes are, why they could not be read.

use bytes::Bytes;

/// One blob: record index and item within the record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobKey {
    /// Index of the record.
    pub index: u64,
    /// Which blob of the record, from 0.
    pub item: u32,
}

/// Where a blob is.
#[derive(Debug)]
pub enum BlobRead<L> {
    /// Here.
    Cached(Bytes),
    /// Must be read from disk, off the shard thread.
    OnDisk(L),
    /// Not in the journal (released, or never was).
    Missing,
}

/// Why a blob could not be read from disk.
#[derive(Debug)]
pub enum BlobError {
    /// The bytes there are not those that were written: the message is to be held.
    Damaged(String),
    /// The operating system refused.
    Io(std::io::Error),
}

impl BlobError {
    /// Whether the next try would fail as well: the bytes are wrong, or the disk cannot give them. Of everything else, as
    /// of a shortage of memory, only this try has suffered.
    pub fn is_lasting(&self) -> bool {
        match self {
            BlobError::Damaged(_) => true,
            BlobError::Io(error) => matches!(
                rustix::io::Errno::from_io_error(error),
                Some(rustix::io::Errno::IO | rustix::io::Errno::BADMSG)
            ),
        }
    }
}
