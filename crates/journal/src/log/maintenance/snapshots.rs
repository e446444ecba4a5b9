//! Writes snapshots as the shard hands them over.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use super::Maintenance;
use crate::file_kind::Kind;
use crate::log::shared::Note;
use crate::log::snapshot::{StateHead, Work};
use crate::log::snapshot_writer::SnapshotWriter;
use crate::log::state_reader::PlacedSnapshot;

/// Bytes taken over in one step.
const STEP_BYTES: usize = 1 << 20;

/// Time between a failure for lack of space and the next snapshot, in microseconds.
const RETRY_US: u64 = 2_000_000;

/// Where the snapshot stands.
#[derive(Debug, Default)]
pub(super) struct SnapshotWriting {
    building: Option<SnapshotWriter>,
    /// Given up: what still comes of it is dropped.
    given_up: bool,
    /// When to tell the shard that it was given up.
    tell_at_us: Option<u64>,
}

impl SnapshotWriting {
    /// When something is due by itself.
    pub(super) fn due_us(&self) -> Option<u64> {
        self.tell_at_us
    }
}

impl Maintenance {
    /// Takes over what the shard has handed on, up to a write.
    pub(super) fn write_snapshot(&mut self, now_us: u64) -> io::Result<bool> {
        if self.snapshots.tell_at_us.is_some_and(|at| now_us >= at) {
            self.snapshots.tell_at_us = None;
            self.shared.tell(Note::SnapshotFailed);
        }
        let mut taken = 0;
        while taken < STEP_BYTES {
            let Some(work) = self.shared.snapshot.pop() else { break };
            taken += 1;
            match work {
                Work::Begin(head) => self.begin_snapshot(head)?,
                Work::Piece(piece) => {
                    taken += piece.len();
                    if let Some(building) = &mut self.snapshots.building {
                        building.add(&self.shared, &piece)?;
                    }
                }
                Work::Finish => self.finish_snapshot(now_us)?,
                Work::Abort => {
                    self.snapshots.given_up = false;
                    self.remove_building();
                }
            }
        }
        Ok(taken > 0)
    }

    fn begin_snapshot(&mut self, head: StateHead) -> io::Result<()> {
        self.snapshots.given_up = true;
        self.remove_building();
        self.snapshots.building = Some(SnapshotWriter::begin(&self.shared, head)?);
        self.snapshots.given_up = false;
        Ok(())
    }

    fn finish_snapshot(&mut self, now_us: u64) -> io::Result<()> {
        let Some(building) = self.snapshots.building.take() else {
            if std::mem::take(&mut self.snapshots.given_up) {
                self.snapshots.tell_at_us = Some(now_us + RETRY_US);
            }
            return Ok(());
        };
        let handle = building.handle().clone();
        match self.place_snapshot(building) {
            Ok(placed) => {
                self.look_soon();
                // Almost all of it is covered now; the shard must not think otherwise until that look.
                self.shared.dead_uncovered.store(0, Relaxed);
                self.shared.files.repairs().is_uncovered.store(false, Relaxed);
                self.shared.counters.snapshots.fetch_add(1, Relaxed);
                self.shared.tell(Note::SnapshotDone { placed });
                Ok(())
            }
            Err(error) => {
                self.shared.discard(&handle);
                self.snapshots.tell_at_us = Some(now_us + RETRY_US);
                Err(error)
            }
        }
    }

    fn place_snapshot(&self, building: SnapshotWriter) -> io::Result<PlacedSnapshot> {
        let placed = building.finish(&self.shared)?;
        // Everything that the snapshot holds must also be in the log, whatever the durability: recovery
        // relies on it.
        self.sync_log()?;
        self.shared.sync_dir()?;
        let synced_to = self.writer.synced_to();
        let old = self.shared.change_manifest(|manifest| {
            manifest.note_synced(synced_to);
            manifest.snapshot.replace(placed.named.clone())
        })?;
        if let Some(old) = old {
            self.shared.files.remove(Kind::Snapshot, old.number);
            self.shared.files.keys().forget(old.number);
        }
        Ok(placed)
    }

    pub(super) fn give_up_snapshot(&mut self) {
        if self.snapshots.building.is_some() {
            self.snapshots.given_up = true;
            self.remove_building();
        }
    }

    pub(super) fn remove_building(&mut self) {
        if let Some(building) = self.snapshots.building.take() {
            self.shared.discard(building.handle());
        }
    }
}
