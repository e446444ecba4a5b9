//! Puts a state of another node in place.

use std::io;

use super::{Maintenance, snapshots};

impl Maintenance {
    /// Puts a state in place, when the writer waits for that.
    pub(super) fn install(&mut self) -> io::Result<bool> {
        if !self.shared.is_told() || !self.writer.is_held() {
            return Ok(false);
        }
        // What the shard has handed on of a snapshot is of the former state; it begins none before it is told
        // that the new one is in place.
        while self.shared.snapshot.pop().is_some() {}
        self.remove_building();
        self.snapshots = snapshots::SnapshotWriting::default();
        let Some(files) = self.writer.install()? else { return Ok(false) };
        self.shared.set_installing(false);
        self.entries.extend(files);
        self.look_soon();
        Ok(true)
    }
}
