//! A state of another node on its way into the journal.
//!
//! What is received goes into files that no manifest names, on any thread but the shard's, while the journal
//! goes on: a snapshot, and the live blobs that this node does not have. When all of it is there and synced,
//! [`crate::DiskJournal::install`] puts it in place. A crash before that leaves files which the next start
//! removes.

use std::io;
use std::sync::Arc;

use crate::disk::File;
use crate::file_kind::Kind;
use crate::keys::chunks::Appender;
use crate::log::blob_file::end_blob_file;
use crate::log::blob_holder::BlobHolder;
use crate::log::files::Handle;
use crate::log::received::{Received, ReceivedBlobs, Unplaced};
use crate::log::shared::Shared;
use crate::log::snapshot::{SnapshotReader, StateHead};
use crate::log::snapshot_writer::SnapshotWriter;
use crate::log::state_reader::PlacedSnapshot;
use crate::log::table::{BlobPlace, BlobTable, Table};
use crate::open_error::OpenError;
use crate::seam::batch::{BLOB_HEAD, blob_checksum};
use crate::seam::blob::BlobKey;
use crate::seam::event::Class;

/// Bytes gathered for one write.
const WRITE_BYTES: usize = 1 << 20;

/// Bytes after which they are synced, so that a sync of the log beside it has little to wait for.
const SYNC_BYTES: u64 = 2 << 20;

/// State of another node while it is received. Dropping it removes what was received.
///
/// An error of the disk leaves it without use, unless it is for lack of room
/// ([`io::ErrorKind::StorageFull`]): then nothing has changed.
#[derive(Debug)]
pub struct Receiving {
    shared: Arc<Shared>,
    snapshot: Option<ReceivingSnapshot>,
    done: Option<(Unplaced, PlacedSnapshot)>,
    /// Files of blobs, in the order of their keys; the last one grows.
    blobs: Vec<ReceivingBlobs>,
}

#[derive(Debug)]
struct ReceivingSnapshot {
    unplaced: Unplaced,
    writer: SnapshotWriter,
    head: StateHead,
    bytes: u64,
    sum: crc32fast::Hasher,
}

#[derive(Debug)]
struct ReceivingBlobs {
    unplaced: Unplaced,
    handle: Handle,
    file: Appender,
    table: BlobTable,
    first: BlobKey,
    last: BlobKey,
    unsynced: u64,
}

impl Receiving {
    pub(crate) fn new(shared: &Arc<Shared>) -> Receiving {
        Receiving { shared: shared.clone(), snapshot: None, done: None, blobs: Vec::new() }
    }

    /// Begins with the snapshot of this state, in place of one that was received before. Blobs that were
    /// received stay, unless the state is older than that: then they may be others than it needs.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(&mut self, head: StateHead) -> io::Result<()> {
        let before = self.head().map_or(0, |before| before.applied_index);
        if head.applied_index < before {
            self.blobs.clear();
        }
        (self.snapshot, self.done) = (None, None);
        let writer = SnapshotWriter::begin(&self.shared, head.clone())?;
        let unplaced = Unplaced::new(writer.handle());
        let sum = crc32fast::Hasher::new();
        self.snapshot = Some(ReceivingSnapshot { unplaced, writer, head, bytes: 0, sum });
        Ok(())
    }

    /// Head of the state that was begun last.
    pub fn head(&self) -> Option<StateHead> {
        let under_way = self.snapshot.as_ref().map(|snapshot| snapshot.head.clone());
        under_way.or_else(|| self.done.as_ref().map(|(_, placed)| placed.head()))
    }

    /// Bytes of the snapshot's content that were received: the offset of the next ones.
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes)
    }

    /// Takes the next bytes of the snapshot's content.
    ///
    /// # Errors
    /// No snapshot was begun; the disk has failed, or has no room.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.take_room(bytes.len())?;
        let snapshot = self.snapshot.as_mut().ok_or(io::ErrorKind::InvalidInput)?;
        snapshot.writer.add(&self.shared, bytes)?;
        snapshot.bytes += bytes.len() as u64;
        snapshot.sum.update(bytes);
        Ok(())
    }

    /// Ends the snapshot, and reads it. `checksum` is the CRC-32 of its content; `None`: the content has
    /// another one, and the snapshot was dropped.
    ///
    /// # Errors
    /// No snapshot was begun, or the disk has failed.
    pub fn end(&mut self, checksum: u32) -> Result<Option<SnapshotReader>, OpenError> {
        let failed = OpenError::io(&self.shared.options.dir, "write a snapshot into");
        let Some(ReceivingSnapshot { unplaced, writer, sum, .. }) = self.snapshot.take() else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        if sum.finalize() != checksum {
            return Ok(None);
        }
        let placed = writer.finish(&self.shared).map_err(failed)?;
        let reader = SnapshotReader::new(self.shared.identity, placed.handle.clone(), &placed.named)?;
        self.done = Some((unplaced, placed));
        Ok(Some(reader))
    }

    /// True when this blob was received.
    pub fn has(&self, key: BlobKey) -> bool {
        let at = self.blobs.partition_point(|file| file.last < key);
        self.blobs.get(at).is_some_and(|file| file.table.has(key))
    }

    /// Takes a blob. Blobs come in the order of their keys; one that does not follow those before is ignored:
    /// `false`.
    ///
    /// # Errors
    /// The disk has failed, or has no room.
    pub fn add_blob(&mut self, key: BlobKey, blob: &[u8]) -> io::Result<bool> {
        self.put(key, blob, blob_checksum(key, blob))
    }

    /// As [`Receiving::add_blob`], for one of this length that no node can read: it is damaged here as well.
    ///
    /// # Errors
    /// The disk has failed, or has no room.
    pub fn add_unreadable(&mut self, key: BlobKey, len: u32) -> io::Result<bool> {
        let blob = vec![0; len as usize];
        self.put(key, &blob, !blob_checksum(key, &blob))
    }

    fn put(&mut self, key: BlobKey, blob: &[u8], checksum: u32) -> io::Result<bool> {
        if self.blobs.last().is_some_and(|file| key <= file.last) {
            return Ok(false);
        }
        self.take_room(BLOB_HEAD + blob.len())?;
        let file_bytes = self.shared.options.segment_bytes;
        // All blobs of a record are in one file, since files have ranges of records.
        let fits = |file: &ReceivingBlobs| file.file.len() < file_bytes || key.index == file.last.index;
        if !self.blobs.last().is_some_and(fits) {
            self.blobs.push(ReceivingBlobs::begin(&self.shared, key)?);
        }
        if let Some(file) = self.blobs.last_mut() {
            file.add(&self.shared, key, blob, checksum)?;
        }
        Ok(true)
    }

    /// Syncs everything.
    ///
    /// # Errors
    /// The snapshot is not whole, or the disk has failed.
    pub fn finish(self) -> io::Result<Received> {
        let Receiving { shared, done, blobs, .. } = self;
        let (unplaced, snapshot) = done.ok_or(io::ErrorKind::InvalidInput)?;
        let (mut files, mut received) = (vec![unplaced], Vec::new());
        for file in blobs {
            let (unplaced, blobs) = file.end(&shared)?;
            files.push(unplaced);
            received.push(blobs);
        }
        shared.sync_dir()?;
        Ok(Received::new(files, snapshot, received))
    }

    fn take_room(&self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        let fits = self.shared.space.room_for_copy(bytes);
        let taken = fits.and_then(|()| self.shared.take_room(Class::Draining, bytes));
        taken.map_err(|_| io::ErrorKind::StorageFull.into())
    }
}

impl ReceivingBlobs {
    fn begin(shared: &Shared, first: BlobKey) -> io::Result<ReceivingBlobs> {
        let handle = shared.create(Kind::Blobs)?;
        let unplaced = Unplaced::new(&handle);
        let file = Appender::new(handle.file.clone(), handle.seal.chunks().cloned());
        let table = BlobTable::default();
        Ok(ReceivingBlobs { unplaced, handle, file, table, first, last: first, unsynced: 0 })
    }

    fn add(&mut self, shared: &Shared, key: BlobKey, blob: &[u8], checksum: u32) -> io::Result<()> {
        self.file.buffer.extend_from_slice(&checksum.to_le_bytes());
        let place = BlobPlace { offset: self.file.len() as u32, len: blob.len() as u32 };
        self.file.buffer.extend_from_slice(blob);
        self.table.push(key, place);
        self.last = key;
        if self.file.buffer.len() >= WRITE_BYTES {
            self.unsynced += self.file.write()?;
        }
        if self.unsynced >= SYNC_BYTES {
            self.handle.file.sync_data()?;
            shared.count_syncs(1);
            self.unsynced = 0;
        }
        Ok(())
    }

    fn end(self, shared: &Shared) -> io::Result<(Unplaced, ReceivedBlobs)> {
        let ReceivingBlobs { unplaced, handle, mut file, table, first, last, .. } = self;
        let table = Table::Blobs(table);
        let ranges = vec![(first.index, last.index + 1)];
        let named = end_blob_file(shared, &handle, &mut file, &table, ranges)?;
        let len = named.data_len + named.table_len;
        let holder = Arc::new(BlobHolder::new(handle, table, len));
        Ok((unplaced, ReceivedBlobs { holder, named }))
    }
}
