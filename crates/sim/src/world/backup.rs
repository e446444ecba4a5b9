//! Backups under load. Each backup is restored into a new directory and compared with the log: it must equal
//! a state of the past, hold everything that was acknowledged before the backup began, and have no torn
//! record.

use std::path::Path;
use std::sync::Arc;

use sluice_engine::Engine;
use sluice_journal::{Backup, restore_on};

use super::World;
use super::config::{ROOMY, shard_dir};
use super::namespaces::agree;
use super::server::{NotBegun, Recovered, adopt, open};
use super::shard::read_back;
use crate::disk::SimDisk;
use crate::model::Checked;

/// A backup being taken: the shards are pinned one after the other, then copied one after the other.
#[derive(Debug, Default)]
pub(super) struct BackingUp {
    pinned: Vec<Pinned>,
    /// Number of the shard that is being copied.
    copying: usize,
}

/// The copy of one shard.
#[derive(Debug)]
struct Pinned {
    backup: Backup,
    stream: Vec<u8>,
    /// Index before which all records were acknowledged when the shard was pinned; no record from this index
    /// on had been proposed then.
    acknowledged: u64,
    proposed: u64,
}

impl World {
    /// Weight of the next step of a backup.
    pub(super) fn backup_weight(&self) -> u64 {
        if self.backing_up.is_some() { 500 } else { self.config.trouble.backup }
    }

    /// Begins a backup, or continues a running one.
    pub(super) fn back_up(&mut self) -> Checked {
        let mut running = self.backing_up.take().unwrap_or_default();
        let shards = self.lanes.len();
        let more =
            if running.pinned.len() < shards { self.pin(&mut running) } else { running.copy_a_piece(shards) };
        match more {
            Ok(true) => self.backing_up = Some(running),
            Ok(false) => self.restore_and_compare(running)?,
            Err(why) if self.armed || self.short() || self.tainted || self.disk.is_halted() => {
                self.trace(|| format!("  the backup failed: {why}"));
            }
            Err(why) => return Err(format!("a backup failed: {why}")),
        }
        Ok(())
    }

    fn pin(&self, running: &mut BackingUp) -> std::io::Result<bool> {
        let lane = &self.lanes[running.pinned.len()];
        let Some(server) = &lane.server else { return Ok(true) };
        running.pinned.push(Pinned {
            backup: server.backups.begin(),
            stream: Vec::new(),
            acknowledged: lane.clients.acknowledged,
            proposed: lane.history.next_index(),
        });
        Ok(true)
    }

    fn restore_and_compare(&mut self, running: BackingUp) -> Checked {
        let disk = SimDisk::new(Path::new("/data"), ROOMY, self.rng.fork());
        let mut servers = Vec::new();
        for (shard, pinned) in (0..).zip(&running.pinned) {
            let recovered = restore_on(
                Arc::new(disk.clone()),
                &mut &pinned.stream[..],
                &shard_dir(shard),
                &self.config.encryption().roots,
            )
            .map_err(|error| error.to_string())
            .and_then(|()| {
                open(&self.config, shard, &disk, None, &self.clock, None).map_err(|error| error.to_string())
            });
            match recovered {
                Ok(recovered) => servers.push(self.compare_restored(shard as usize, pinned, recovered)?),
                Err(_) if self.tainted => return Ok(()),
                Err(why) => return Err(format!("a backup of shard {shard} cannot be restored: {why}")),
            }
        }
        let mut placed = Vec::new();
        for at in 0..servers.len() {
            let (begun, starting) = servers.split_at_mut(at);
            let Some(server) = starting.first_mut() else { continue };
            let mut begun: Vec<_> = begun.iter_mut().collect();
            let adopted = adopt(&mut begun, server, &mut placed);
            match adopted.and_then(|_| server.begin(&self.config, &placed, None)) {
                Ok(()) => {}
                Err(NotBegun::Failed(why)) => return Err(format!("a restored shard failed: {why}")),
                Err(NotBegun::NoRoom) => return Err("a restored shard does not begin".to_owned()),
            }
            if placed.is_empty() {
                placed = server.shard.engine().namespaces();
            }
        }
        let engines: Vec<&Engine> = servers.iter().map(|server| server.shard.engine()).collect();
        agree(&engines)?;
        self.stats.backups += 1;
        Ok(())
    }

    fn compare_restored(
        &self,
        shard: usize,
        pinned: &Pinned,
        recovered: Recovered,
    ) -> Result<super::server::Server, String> {
        let Recovered { mut server, next_index, .. } = recovered;
        let span = pinned.acknowledged..=pinned.proposed;
        if !span.contains(&next_index) {
            return Err(format!(
                "a backup holds the records before {next_index}, it must be one of {span:?}"
            ));
        }
        let history = &self.lanes[shard].history;
        let witnesses = history.replayed_to(next_index)?;
        if server.shard.engine().digest() != witnesses.engine.digest() {
            return Err(format!("a backup holds another state than the log had before record {next_index}"));
        }
        witnesses.compare(server.shard.engine())?;
        read_back(&mut server, &witnesses, history, self.tainted)?;
        Ok(server)
    }
}

impl BackingUp {
    /// Copies the next piece; returns `false` when it was the last of all shards.
    fn copy_a_piece(&mut self, shards: usize) -> std::io::Result<bool> {
        let pinned = &mut self.pinned[self.copying];
        match pinned.backup.next_chunk()? {
            Some(piece) => pinned.stream.extend_from_slice(&piece),
            None => self.copying += 1,
        }
        Ok(self.copying < shards)
    }
}
