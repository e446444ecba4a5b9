//! Damage to payloads, and whole copies of them, as other members have them.
//!
//! A bit of a live blob's bytes is flipped on the disk. From then on a blob may be found damaged, and so may
//! a part of the log or a backup; what is read is right in any case. A blob of which the journal was given a
//! copy is read at once, and stays whole: compaction puts the copy into the place of the damaged one.

use std::collections::BTreeSet;

use sluice_journal::{BlobError, BlobKey, BlobRead, Journal};

use super::OwnerWorld;
use super::server::Server;
use crate::disk::Damaged;
use crate::model::Checked;

/// Number of rounds in which everything that is damaged must be replaced.
const ROUNDS_MAX: usize = 200;

/// Damage that was done, and copies that were given since the start.
#[derive(Debug, Default)]
pub(super) struct Harmed {
    /// Damage to the log, which is undone when the process ends: what a start makes of it is told elsewhere.
    in_log: Vec<Damaged>,
    in_copies: Vec<Damaged>,
    /// True when something may be damaged that is needed.
    is_harmed: bool,
    /// True once there was any, also when all that is needed has been repaired.
    was_harmed: bool,
    repaired: BTreeSet<BlobKey>,
}

impl Harmed {
    /// True: something may be found damaged.
    pub(super) fn is_harmed(&self) -> bool {
        self.is_harmed
    }

    /// True: something may be found damaged that nobody needs.
    pub(super) fn was_harmed(&self) -> bool {
        self.was_harmed
    }

    /// True: this blob may be found damaged.
    pub(super) fn may_be_damaged(&self, key: BlobKey) -> bool {
        self.is_harmed && !self.repaired.contains(&key)
    }
}

impl OwnerWorld {
    /// Flips a bit of a live blob that is not in memory.
    pub(super) fn damage(&mut self) -> Checked {
        let live: Vec<BlobKey> = self.model.live.keys().copied().collect();
        let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
        if live.is_empty() {
            return Ok(());
        }
        let key = *self.rng.pick(&live);
        let BlobRead::OnDisk(location) = journal.read(key) else { return Ok(()) };
        if location.is_empty() {
            return Ok(());
        }
        let (path, first) = location.place();
        let at = first as usize + self.rng.index(location.len());
        let Some(damaged) = self.disk.flip(path, at) else { return Ok(()) };
        self.trace(|| format!("  {key:?}: {damaged:?}"));
        // What was repaired and replaced may lie beside it.
        self.harmed.repaired.clear();
        (self.harmed.is_harmed, self.harmed.was_harmed) = (true, true);
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if is_log {
            self.harmed.in_log.push(damaged)
        } else {
            self.harmed.in_copies.push(damaged)
        }
        Ok(())
    }

    /// Gives the journal a copy of a blob that was found damaged.
    pub(super) fn repair(&mut self, key: BlobKey) -> Checked {
        let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
        let Some(blob) = self.model.live.get(&key) else { return Ok(()) };
        if !self.harmed.may_be_damaged(key) {
            return Err(format!("{key:?} is damaged, and nobody did it"));
        }
        if !journal.repair(key, blob) {
            return Err(format!("the copy of {key:?} is refused"));
        }
        self.trace(|| format!("  repaired {key:?}"));
        self.harmed.repaired.insert(key);
        self.stats.repairs += 1;
        self.check_blob(key)
    }

    /// Undoes damage to the log, when the process ends, and forgets the copies.
    pub(super) fn end_of_copies(&mut self) {
        self.harmed.repaired.clear();
        std::mem::take(&mut self.harmed.in_log).iter().rev().for_each(|damaged| self.disk.mend(damaged));
    }

    /// Undoes damage to copied blobs, whose table may be in one chunk with them; false: there is none.
    pub(super) fn mend_copies(&mut self) -> bool {
        let damaged = std::mem::take(&mut self.harmed.in_copies);
        damaged.iter().rev().for_each(|damaged| self.disk.mend(damaged));
        !damaged.is_empty()
    }

    /// Repairs all that is damaged, lets it be replaced, and looks at it after another start.
    pub(super) fn repair_all(&mut self) -> Checked {
        if !self.harmed.is_harmed {
            return Ok(());
        }
        let live: Vec<BlobKey> = self.model.live.keys().copied().collect();
        for key in live.iter().copied() {
            let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
            let BlobRead::OnDisk(location) = journal.read(key) else { continue };
            if matches!(location.read(), Err(BlobError::Damaged(_))) {
                self.repair(key)?;
            }
        }
        for _ in 0..ROUNDS_MAX {
            self.now_us += 200_000;
            self.with(|server, now_us| {
                server.maintain(now_us);
                server.write();
            })?;
            self.poll()?;
            let wants = self.server.as_ref().is_some_and(|server| server.journal.wants_snapshot());
            if wants || self.snapshot.is_some() {
                self.take_snapshot()?;
            }
        }
        self.stop()?;
        for key in live {
            let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
            if let BlobRead::OnDisk(location) = journal.read(key)
                && let Err(error) = location.read()
            {
                return Err(format!("{key:?} was repaired, and is damaged after a start: {error:?}"));
            }
        }
        self.mend_copies();
        self.harmed.is_harmed = false;
        Ok(())
    }
}
