//! The file of a snapshot, while it is written.

use std::io;

use crate::disk::File;
use crate::file_kind::Kind;
use crate::keys::chunks::Appender;
use crate::log::files::Handle;
use crate::log::manifest::SnapshotFile;
use crate::log::shared::Shared;
use crate::log::snapshot::{Encoder, StateHead};
use crate::log::state_reader::PlacedSnapshot;

/// Bytes gathered for one write.
const WRITE_BYTES: usize = 1 << 20;

/// Bytes after which they are synced, so that a sync of the log beside it has little to wait for.
const SYNC_BYTES: u64 = 2 << 20;

/// Writer of a snapshot, in a file that no manifest names yet.
#[derive(Debug)]
pub(crate) struct SnapshotWriter {
    handle: Handle,
    encoder: Encoder,
    head: StateHead,
    file: Appender,
    unsynced: u64,
}

impl SnapshotWriter {
    /// Makes the file.
    pub(crate) fn begin(shared: &Shared, head: StateHead) -> io::Result<SnapshotWriter> {
        let handle = shared.create(Kind::Snapshot)?;
        let mut file = Appender::new(handle.file.clone(), handle.seal.chunks().cloned());
        let encoder = Encoder::begin(shared.identity, &head, &mut file.buffer);
        Ok(SnapshotWriter { handle, encoder, head, file, unsynced: 0 })
    }

    /// Handle of the file.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Adds a piece.
    pub(crate) fn add(&mut self, shared: &Shared, piece: &[u8]) -> io::Result<()> {
        self.encoder.piece(piece, &mut self.file.buffer);
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

    /// Writes and syncs the rest; the name is yet to be synced.
    pub(crate) fn finish(mut self, shared: &Shared) -> io::Result<PlacedSnapshot> {
        self.encoder.finish(&mut self.file.buffer);
        self.file.finish()?;
        self.handle.file.sync_data()?;
        shared.count_syncs(1);
        self.handle.file.only_read();
        let StateHead { applied_index, number, term, time_us, behaviour, label } = self.head;
        let named = SnapshotFile {
            number: self.handle.number,
            applied_index,
            time_us,
            len: self.file.len(),
            last_number: number,
            last_term: term,
            label,
        };
        Ok(PlacedSnapshot { handle: self.handle, named, behaviour })
    }
}
