//! Snapshots in steps: the engine serialises a little after each batch, the journal writes it off the shard's
//! thread.

use super::Shard;
use super::store::Store;
use crate::clock::Clock;

/// Size of a piece, in bytes: serialising it takes a fraction of a millisecond.
const PIECE_BYTES: usize = 128 << 10;

/// A snapshot in progress.
#[derive(Debug, Default)]
pub(super) struct Snapshotting {
    /// A piece that the journal refused for now.
    piece: Option<Vec<u8>>,
    /// True when the engine has serialised everything.
    complete: bool,
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Begins a snapshot when one is due, and continues a running one. True when another step can follow at
    /// once.
    pub(super) fn advance_snapshot(&mut self) -> bool {
        if self.snapshotting.is_none() {
            // Other nodes are sent none that ends in the middle of a batch.
            if self.applying.is_some() || !self.store.wants_snapshot() {
                return false;
            }
            let behaviour = u32::from(self.engine.behaviour());
            self.store.snapshot_begin(self.engine.applied_index(), self.engine.time_us(), behaviour);
            self.engine.snapshot_begin();
            self.snapshotting = Some(Snapshotting::default());
        }
        self.continue_snapshot()
    }

    fn continue_snapshot(&mut self) -> bool {
        let Some(running) = &mut self.snapshotting else { return false };
        let piece = match running.piece.take() {
            Some(piece) => piece,
            None if running.complete => {
                self.store.snapshot_finish();
                self.snapshotting = None;
                return true;
            }
            None => {
                let mut piece = Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 2));
                running.complete = self.engine.snapshot_step(PIECE_BYTES, &mut piece);
                piece
            }
        };
        running.piece = self.store.snapshot_piece(piece).err();
        running.piece.is_none()
    }

    /// True while a piece waits for the journal.
    pub(super) fn snapshot_waits(&self) -> bool {
        self.snapshotting.as_ref().is_some_and(|running| running.piece.is_some())
    }
}
