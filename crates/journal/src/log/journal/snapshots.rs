//! Snapshots of the state: when one is due, and the hand-over of its pieces.

use std::sync::atomic::Ordering::Relaxed;

use super::{DiskJournal, SnapshotTrigger};
use crate::log::snapshot::{StateHead, Work};
use crate::log::state_reader::StateReader;

/// Largest label of a snapshot in bytes.
const LABEL_BYTES_MAX: usize = 256;

/// Dead log for which a journal at rest asks for a snapshot, in bytes.
const REST_DEAD_BYTES: u64 = 1 << 20;

impl DiskJournal {
    /// True when a snapshot is due: by the length of the log, by the space that it would free, of which
    /// less counts at rest, by damage that can be replaced behind it, or on request.
    pub fn wants_snapshot(&self) -> bool {
        let SnapshotTrigger { log_bytes, last_len, live_blobs, requested, running, .. } = self.snapshots;
        if running || !self.shared.live_known.load(Relaxed) || self.shared.failure().is_some() {
            return false;
        }
        let enough = self.shared.options.snapshot_log_bytes;
        let dead = self.shared.dead_uncovered.load(Relaxed);
        // After most of the messages have gone, the next snapshot is far smaller than the one on disk.
        let shrunk = last_len >= enough && self.index.live_blobs() * 2 < live_blobs;
        let frees_room = self.shared.dead_kept().is_some_and(|kept| dead > kept);
        let much_dead = frees_room || dead >= (enough / 2).max(last_len / 2);
        let tidies = dead >= REST_DEAD_BYTES.max(last_len / 2) && self.shared.rests.load(Relaxed);
        let replaces_damaged = self.shared.files.repairs().is_uncovered.load(Relaxed);
        requested || log_bytes >= enough.max(last_len) || much_dead || tidies || shrunk || replaces_damaged
    }

    /// Makes [`DiskJournal::wants_snapshot`] true, once.
    pub fn request_snapshot(&mut self) {
        self.snapshots.requested = true;
    }

    /// Keeps up to 256 bytes, such as the members of a cluster, with each snapshot that begins from now on.
    ///
    /// # Panics
    /// When there are more.
    pub fn label_snapshots(&mut self, label: &[u8]) {
        let len = label.len();
        assert!(len <= LABEL_BYTES_MAX, "a label has at most {LABEL_BYTES_MAX} bytes, not {len}");
        self.label = label.to_vec();
    }

    /// Index of the last record in the newest snapshot, and its label; for [`crate::Commit::Told`]. `None`:
    /// there is no snapshot.
    pub fn snapshot_label(&self) -> Option<(u64, &[u8])> {
        let named = &self.snapshots.newest.as_ref()?.named;
        Some((named.applied_index, &named.label))
    }

    /// Begins a snapshot of the state just after record `applied_index`, at the logged time `time_us`.
    /// `behaviour` is stored with the snapshot and not interpreted.
    ///
    /// Other nodes can be sent a state that ends with a whole batch, and no other.
    pub fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        self.snapshots.requested = false;
        self.snapshots.running = true;
        self.snapshots.log_bytes = 0;
        self.snapshots.live_blobs = self.index.live_blobs();
        let is_whole = applied_index + 1 == self.given.next_index;
        let (number, term) = if is_whole { (self.given.last_number(), self.given.term) } else { (0, 0) };
        let label = self.label.clone();
        let head = StateHead { applied_index, number, term, time_us, behaviour, label };
        self.shared.snapshot.push(Work::Begin(head));
        self.shared.maintenance_signal.notify();
    }

    /// Takes the next piece of the snapshot (up to 1 GiB; 64 KiB to 1 MiB serve best). `Err` gives it back
    /// while maintenance is behind.
    pub fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        let result = self.shared.snapshot.push_piece(piece);
        self.shared.maintenance_signal.notify();
        result
    }

    /// Ends the snapshot; maintenance puts it in place.
    pub fn snapshot_finish(&mut self) {
        self.shared.snapshot.push(Work::Finish);
        self.shared.maintenance_signal.notify();
    }

    /// Gives the snapshot up; maintenance removes what was written.
    pub fn snapshot_abort(&mut self) {
        self.snapshots.running = false;
        self.shared.snapshot.push(Work::Abort);
        self.shared.maintenance_signal.notify();
    }

    /// Number of the batch with which the newest snapshot ends; for [`crate::Commit::Told`]. `None`: there is
    /// no snapshot, or it ends within one.
    pub fn snapshot_number(&self) -> Option<u64> {
        let number = self.snapshots.newest.as_ref()?.named.last_number;
        (number > 0).then_some(number)
    }

    /// A reader of the newest snapshot for another node; for [`crate::Commit::Told`]. `None`: there is none
    /// that ends with a whole batch.
    pub fn read_state(&self) -> Option<StateReader> {
        StateReader::new(self.shared.identity, self.snapshots.newest.as_ref()?)
    }

    /// True from the beginning of a snapshot until it is in place or given up.
    pub fn snapshot_running(&self) -> bool {
        self.snapshots.running
    }
}
