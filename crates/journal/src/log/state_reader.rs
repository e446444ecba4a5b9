//! The newest snapshot, read for another node.

use crate::log::files::Handle;
use crate::log::manifest::SnapshotFile;
use crate::log::snapshot::{SnapshotReader, StateHead};
use crate::open_error::OpenError;

/// The newest snapshot in place. Its file stays while this is held.
#[derive(Clone, Debug)]
pub(crate) struct PlacedSnapshot {
    pub(crate) handle: Handle,
    pub(crate) named: SnapshotFile,
    pub(crate) behaviour: u32,
}

impl PlacedSnapshot {
    /// The head of its state.
    pub(crate) fn head(&self) -> StateHead {
        let SnapshotFile { applied_index, time_us, last_number, last_term, ref label, .. } = self.named;
        StateHead {
            applied_index,
            number: last_number,
            term: last_term,
            time_us,
            behaviour: self.behaviour,
            label: label.clone(),
        }
    }
}

/// Part of a state's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatePart {
    /// The bytes, from the offset that was asked for on.
    pub bytes: Vec<u8>,
    /// CRC-32 of the whole content, when these are its last bytes.
    pub end: Option<u32>,
}

/// Reader of a journal's newest state: its pieces, one after the other, as one content of bytes. It stays
/// readable while the journal goes on, also when there is a newer state. For any thread but the shard's.
#[derive(Debug)]
pub struct StateReader {
    identity: u64,
    placed: PlacedSnapshot,
    /// Reader of the next piece; `None`: the end was read, or nothing yet.
    pieces: Option<SnapshotReader>,
    /// The piece that was read last, and the offset of its first byte.
    piece: Vec<u8>,
    begin: u64,
    /// Sum of the content up to the end of `piece`.
    sum: crc32fast::Hasher,
}

impl StateReader {
    /// A reader of this snapshot; `None`: other nodes have no use for it.
    pub(crate) fn new(identity: u64, placed: &PlacedSnapshot) -> Option<StateReader> {
        let is_whole = placed.named.last_number > 0;
        is_whole.then(|| StateReader {
            identity,
            placed: placed.clone(),
            pieces: None,
            piece: Vec::new(),
            begin: 0,
            sum: crc32fast::Hasher::new(),
        })
    }

    /// The head of the state.
    pub fn head(&self) -> StateHead {
        self.placed.head()
    }

    /// Reads up to `bytes_max` bytes from an offset on; fewer only at the end. Going back reads the file from
    /// its beginning. Blocks.
    ///
    /// # Errors
    /// The snapshot is damaged, or cannot be read.
    pub fn read(&mut self, offset: u64, bytes_max: usize) -> Result<StatePart, OpenError> {
        if offset < self.begin || self.pieces.is_none() {
            self.rewind()?;
        }
        let mut bytes = Vec::new();
        loop {
            let place = (offset + bytes.len() as u64).saturating_sub(self.begin);
            let found = usize::try_from(place).ok().and_then(|place| self.piece.get(place..));
            let found = found.unwrap_or_default();
            bytes.extend_from_slice(&found[..found.len().min(bytes_max - bytes.len())]);
            if bytes.len() == bytes_max {
                return Ok(StatePart { bytes, end: None });
            }
            if !self.next_piece()? {
                return Ok(StatePart { bytes, end: Some(self.sum.clone().finalize()) });
            }
        }
    }

    /// Reads the next piece; `false`: there is none.
    fn next_piece(&mut self) -> Result<bool, OpenError> {
        let Some(pieces) = &mut self.pieces else { return Ok(false) };
        let Some(piece) = pieces.next_piece()? else { return Ok(false) };
        self.begin += self.piece.len() as u64;
        self.sum.update(&piece);
        self.piece = piece;
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), OpenError> {
        let PlacedSnapshot { handle, named, .. } = &self.placed;
        self.pieces = Some(SnapshotReader::new(self.identity, handle.clone(), named)?);
        (self.piece, self.begin, self.sum) = (Vec::new(), 0, crc32fast::Hasher::new());
        Ok(())
    }
}
