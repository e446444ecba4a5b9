//! The seam on which everything above the journal stands: propose a batch; committed batches come back in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::batch::{BLOB_HEAD, Batch, Records, blob_checksum};
use crate::disk::File;
use crate::log::file::BlobSeal;
use crate::log::files::{LogFile, is_out_of_handles};
use crate::log::sealing;

/// How often, and after which pauses, a read is tried again that got no file handle: 5 s.
const HANDLE_TRIES: u32 = 250;
const HANDLE_PAUSE: Duration = Duration::from_millis(20);

/// One blob: record index and item within the record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobKey {
    /// Index of the record.
    pub index: u64,
    /// Which blob of the record, from 0.
    pub item: u32,
}

/// Why a batch was not taken. Nothing of it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// This node may not propose (replicated journals only).
    NotLeader,
    /// No room on the disk for a batch of this class.
    Full {
        /// Bytes that are left.
        free_bytes: u64,
        /// Bytes that must be left for it, the reserve taken again included.
        needed_bytes: u64,
    },
    /// An earlier write or sync failed; nothing is taken any more.
    Failed(String),
}

/// What a batch does to the disk, which decides whether the reserve may serve it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Brings bytes that stay: refused first.
    Growing,
    /// Settles, detaches, ticks: served from the reserve, so that draining frees space.
    Draining,
}

/// What has happened, in order.
#[derive(Debug)]
pub enum Event {
    /// A batch is in the log for ever and is to be applied.
    Committed(Committed),
    /// A batch that was proposed did not enter the log.
    Refused {
        /// Index that its first record would have had.
        first_index: u64,
        /// How many records it had.
        records: u32,
        /// Why.
        why: Refused,
    },
    /// Whether the batch is in the log is not known.
    Unknown {
        /// Index that its first record would have.
        first_index: u64,
        /// How many records it had.
        records: u32,
    },
    /// A write or sync failed: no reply may leave after this, ever.
    Failed(String),
    /// The scrub found that this live blob cannot be read back.
    Damaged(BlobKey),
}

/// A committed batch.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Index of the first record.
    pub first_index: u64,
    /// The time that the batch was stamped with, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// The encoded records: iterate with [`Committed::records`].
    pub bytes: Bytes,
}

impl Committed {
    /// The records, in order; the first has index `first_index`.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes)
    }
}

/// Where a blob is.
#[derive(Debug)]
pub enum BlobRead {
    /// Here.
    Cached(Bytes),
    /// Must be read from disk, off the shard thread.
    OnDisk(BlobLocation),
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

/// The seam.
///
/// How a Raft library (openraft) fits behind it: a proposal becomes a log entry, `Event::Committed` follows the commit
/// index, `Refused(NotLeader)` and `Unknown` are its two other ends. Each batch on disk carries index and term; the
/// entries above the commit index are the unsynced or unreplicated tail, and cutting them is what recovery does
/// already: a new segment under a new term. Votes are records of the same file order. Purging is logical, because
/// segments with live blobs stay, and a snapshot on the wire is a backup stream: the state plus every live blob.
pub trait Journal: Send {
    /// The index that the next proposed record will have.
    fn next_index(&self) -> u64;
    /// Hands a batch over and leaves it empty, its memory reused. Returns the index of its first record.
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused>;
    /// The next thing that has happened, without waiting.
    fn poll(&mut self) -> Option<Event>;
    /// Finds a live blob.
    fn read(&mut self, key: BlobKey) -> BlobRead;
    /// Lets go of a blob of `len` bytes.
    fn release(&mut self, key: BlobKey);
}
