//! What a shard needs of its journal beyond the seam: room, snapshots, figures. The memory journal needs none of it.

use bytes::Bytes;
use sluice_engine::BlobRef;
use sluice_journal::{BlobKey, BlobLocation, BlobRead, DiskJournal, Journal, MemoryJournal, Status};

/// The journal as a shard sees it. Nothing here blocks.
pub trait Store: Journal<Location = BlobLocation> {
    /// Whether the log has grown enough for a snapshot, and none is on its way.
    fn wants_snapshot(&self) -> bool;
    /// Begins one, of the state after the record with this index, which came about by the rules of this behaviour version.
    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32);
    /// Takes the next piece, or gives it back when the disk is behind.
    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>>;
    /// All pieces were given.
    fn snapshot_finish(&mut self);
    /// Figures of the journal.
    fn status(&self) -> Status;
}

/// Where the bytes of a blob are.
pub fn read(journal: &mut (impl Store + ?Sized), blob: BlobRef) -> BlobRead {
    if blob == BlobRef::EMPTY {
        return BlobRead::Cached(Bytes::from_static(BlobRef::EMPTY_BYTES));
    }
    journal.read(BlobKey { index: blob.index, item: blob.item })
}

impl Store for DiskJournal {
    fn wants_snapshot(&self) -> bool {
        self.wants_snapshot()
    }

    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        self.snapshot_begin(applied_index, time_us, behaviour);
    }

    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        self.snapshot_piece(piece)
    }

    fn snapshot_finish(&mut self) {
        self.snapshot_finish();
    }

    fn status(&self) -> Status {
        self.status()
    }
}

/// Keeps nothing across restarts, so it never wants a snapshot.
impl Store for MemoryJournal {
    fn wants_snapshot(&self) -> bool {
        false
    }

    fn snapshot_begin(&mut self, _applied_index: u64, _time_us: u64, _behaviour: u32) {}

    fn snapshot_piece(&mut self, _piece: Vec<u8>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn snapshot_finish(&mut self) {}

    fn status(&self) -> Status {
        Status::default()
    }
}
