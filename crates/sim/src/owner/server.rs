//! The parts of an open journal, and its opening.

use std::path::Path;
use std::sync::Arc;

use sluice_journal::{
    Backups, BlobKey, Damage, Disk, DiskJournal, Durability, Event, Journal, Maintenance, OpenError, Opened,
    Options, Replay, SnapshotReader, Writer,
};

use super::OwnerWorld;
use super::batch::{Proposed, short};
use super::model::{FoundLog, Model};
use super::pieces::read_pieces;
use crate::disk::Crash;
use crate::model::Checked;

/// An open journal.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) journal: DiskJournal,
    pub(super) writer: Writer,
    pub(super) maintenance: Maintenance,
    pub(super) backups: Backups,
}

impl Server {
    pub(super) fn write(&mut self) {
        self.writer.step();
    }

    pub(super) fn maintain(&mut self, now_us: u64) {
        self.maintenance.step(now_us);
    }

    /// Opens the journal; returns what it has found.
    pub(super) fn open(disk: Arc<dyn Disk>, options: Options) -> Result<(Server, FoundLog), OpenError> {
        let opened = DiskJournal::open(disk, options)?;
        let last = (opened.last_number, opened.last_term);
        let Opened { journal, writer, maintenance, backups, snapshot, mut replay, hard_state, .. } = opened;
        let (applied, pieces) = read_snapshot(snapshot)?;
        let found = FoundLog {
            applied,
            replayed: read_replay(&mut replay)?,
            tail: journal.tail(0).map(|entry| Arc::new(Proposed::held(entry))).collect(),
            last,
            snapshot: read_pieces(&pieces),
            hard_state: hard_state.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
        };
        Ok((Server { journal, writer, maintenance, backups }, found))
    }
}

fn read_snapshot(snapshot: Option<SnapshotReader>) -> Result<(u64, Vec<u8>), OpenError> {
    let Some(mut snapshot) = snapshot else { return Ok((0, Vec::new())) };
    let mut pieces = Vec::new();
    while let Some(piece) = snapshot.next_piece()? {
        pieces.extend_from_slice(&piece);
    }
    Ok((snapshot.applied_index, pieces))
}

fn read_replay(replay: &mut Replay) -> Result<Vec<Arc<Proposed>>, OpenError> {
    let mut replayed = Vec::new();
    while let Some(batch) = replay.next_batch()? {
        replayed.push(Arc::new(Proposed::given(&batch)));
    }
    Ok(replayed)
}

impl OwnerWorld {
    /// Starts the journal after a crash; `power`: unsynced bytes may be lost.
    pub(super) fn start(&mut self, mut power: bool) -> Checked {
        for _ in 0..100 {
            if self.rates.crash > 0 && self.rng.chance(1, 10) {
                self.disk.halt_after(self.rng.below(60));
            }
            match Server::open(Arc::new(self.disk.for_next_process()), self.options.clone()) {
                Ok((server, found)) if !self.disk.is_halted() => {
                    self.disk.forget_halt();
                    self.model.recovered(&found, power)?;
                    return self.begin(server);
                }
                Err(OpenError::Damaged(_)) if !self.disk.is_halted() && self.mend_copies() => {}
                Err(error) if !self.disk.is_halted() && !self.short => {
                    return Err(format!("no start: {error}"));
                }
                _ => {}
            }
            if self.short && !self.disk.is_halted() {
                self.fill_disk()?;
            }
            let crash = *self.rng.pick(&[Crash::Kill, Crash::Power]);
            power |= crash == Crash::Power;
            self.disk.crash(crash);
        }
        Err("it does not start".to_owned())
    }

    /// Serves: what is not the committed log is cut.
    fn begin(&mut self, mut server: Server) -> Checked {
        let live = self.model.live.iter().map(|(key, blob)| (*key, blob.len() as u32));
        server.journal.set_live(live).map_err(|error| error.to_string())?;
        self.server = Some(server);
        self.check_indexes()?;
        let conflict = self.model.conflict();
        conflict.map_or(Ok(()), |index| self.cut_from(index))
    }

    /// Takes everything that the journal tells.
    pub(super) fn poll(&mut self) -> Checked {
        while let Some(event) = self.server.as_mut().and_then(|server| server.journal.poll()) {
            match event {
                Event::Committed(batch) => {
                    let batch = Proposed::given(&batch);
                    self.trace(|| format!("  given {}", short(&batch)));
                    let released = self.model.give(&batch)?;
                    self.stats.records += batch.records.len() as u64;
                    let Some(server) = &mut self.server else { return Ok(()) };
                    released.into_iter().for_each(|key| server.journal.release(key));
                }
                Event::Failed(why) => return self.failed(&why),
                Event::Damaged(key) => self.repair(key)?,
                other => return Err(format!("{other:?}")),
            }
        }
        self.check_indexes()
    }

    /// Compares the journal's indexes and its tail with the model.
    pub(super) fn check_indexes(&mut self) -> Checked {
        let Some(Server { journal, .. }) = &self.server else { return Ok(()) };
        let always = self.options.durability == Durability::Always;
        self.model.note_orders(journal.orders(), journal.durable_orders(), always)?;
        self.model.check_durable(journal.durable_index())?;
        let found = (journal.next_index(), journal.committed_index());
        if found != (self.model.next_index(), self.model.told) {
            return Err(format!(
                "next and committed index: {found:?}, expected {}, {}",
                self.model.next_index(),
                self.model.told
            ));
        }
        check_tail(journal, &self.model)
    }

    /// Checks the whole directory, after an orderly stop.
    pub(super) fn check_directory(&mut self) -> Checked {
        self.server = None;
        self.disk.crash(Crash::Kill);
        let roots = &self.options.encryption.roots;
        let report =
            sluice_journal::check(Arc::new(self.disk.for_next_process()), Path::new(super::DIRECTORY), roots);
        let mut problems = report.map_err(|error| error.to_string())?.problems;
        problems.retain(|damage| !self.is_needless(damage));
        if problems.is_empty() { Ok(()) } else { Err(format!("{problems:?}")) }
    }

    /// True when a blob is damaged that nobody needs: compaction copies those that live then as they are, and
    /// one that is released later is not repaired.
    fn is_needless(&self, damage: &Damage) -> bool {
        let is_copy = damage.file.extension().is_some_and(|extension| extension == "blobs");
        let Some(index) = damage.record.filter(|_| is_copy && self.harmed.was_harmed()) else { return false };
        let live = self.model.live.range(BlobKey { index, item: 0 }..BlobKey { index: index + 1, item: 0 });
        live.into_iter().all(|(key, _)| !damage.what.starts_with(&format!("blob {} ", key.item)))
    }
}

fn check_tail(journal: &DiskJournal, model: &Model) -> Checked {
    let mut found = journal.tail(0);
    for expected in model.tail() {
        let entry = found.next().ok_or_else(|| format!("the tail misses {}", short(expected)))?;
        let batch = Proposed::held(entry);
        if batch != **expected || entry.last_index() != expected.last_index() {
            return Err(format!("the tail has {}, expected {}", short(&batch), short(expected)));
        }
    }
    found.next().map_or(Ok(()), |entry| Err(format!("the tail goes on with record {}", entry.first_index)))
}
