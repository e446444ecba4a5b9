//! Backups while the journal serves: each holds what was given when it began, and nothing else.

use std::path::Path;
use std::sync::Arc;

use sluice_journal::{Backup, Commit, Options, restore_on};

use super::batch::check_same;
use super::server::Server;
use super::{DIRECTORY, OwnerWorld, ROOMY};
use crate::disk::SimDisk;
use crate::model::Checked;
use crate::rng::Rng;

/// A backup that is being taken.
#[derive(Debug)]
pub(super) struct BackingUp {
    backup: Backup,
    stream: Vec<u8>,
    /// Index of the last record that the journal had given when the backup began.
    given: u64,
}

impl OwnerWorld {
    /// Begins a backup, or continues one.
    pub(super) fn back_up(&mut self) -> Checked {
        let Some(mut running) = self.backing_up.take() else {
            // Until a state is known to be in place, the former one may be backed up.
            if !self.model.is_installed() {
                return Ok(());
            }
            let begun = self.server.as_ref().map(|server| server.backups.begin());
            let given = self.model.given;
            self.backing_up = begun.map(|backup| BackingUp { backup, stream: Vec::new(), given });
            return Ok(());
        };
        match running.backup.next_chunk() {
            Ok(Some(chunk)) => {
                running.stream.extend_from_slice(&chunk);
                self.backing_up = Some(running);
                Ok(())
            }
            Ok(None) => self.restore(&running),
            Err(_) if self.armed || self.disk.is_halted() => Ok(()),
            Err(error) => Err(format!("a backup failed: {error}")),
        }
    }

    /// Restores a backup into another directory, and compares.
    fn restore(&mut self, taken: &BackingUp) -> Checked {
        let disk = Arc::new(SimDisk::new(Path::new("/"), ROOMY, Rng::new(taken.given)));
        let roots = &self.options.encryption.roots;
        let restored = restore_on(disk.clone(), &mut &taken.stream[..], Path::new(DIRECTORY), roots);
        if restored.is_err() && self.harmed.is_harmed() {
            return Ok(());
        }
        restored.map_err(|error| format!("a backup is not restored: {error}"))?;
        let commit = *self.rng.pick(&[Commit::Told, Commit::Own]);
        let options = Options { commit, ..self.options.clone() };
        let (_, found) =
            Server::open(disk, options).map_err(|error| format!("a backup does not open: {error}"))?;
        let at = |index: u64| self.model.cluster.partition_point(|batch| batch.last_index() <= index);
        let expected = &self.model.cluster[at(found.applied)..at(taken.given)];
        check_same("the log of a backup", &found.replayed, expected)?;
        check_same("the tail of a backup", &found.tail, &[])?;
        if found.applied > taken.given || found.hard_state != 0 {
            return Err(format!(
                "a backup of record {} holds {}, {}",
                taken.given, found.applied, found.hard_state
            ));
        }
        self.stats.backups += 1;
        Ok(())
    }
}
