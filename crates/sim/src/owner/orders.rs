//! Orders of the owner.

use std::sync::Arc;

use sluice_journal::{BlobError, BlobKey, BlobRead, Class, Journal, Refused, TailError};

use super::OwnerWorld;
use super::batch::{Proposed, draw};
use super::model::last_index;
use super::pieces::write_piece;
use super::server::Server;
use crate::model::Checked;

impl OwnerWorld {
    /// Proposes the next batch of the committed log that this node misses, or else a new one.
    pub(super) fn propose(&mut self) -> Checked {
        if let Some(conflict) = self.model.conflict() {
            return self.cut_from(conflict);
        }
        let next_index = self.model.next_index();
        let at = self.model.cluster.partition_point(|batch| batch.first_index < next_index);
        let batch = match self.model.cluster.get(at) {
            Some(missing) => missing.clone(),
            None => {
                let live: Vec<BlobKey> = self.model.live.keys().copied().collect();
                Arc::new(self.draw_batch(self.model.log.last().cloned(), &live))
            }
        };
        let Some(server) = &mut self.server else { return Ok(()) };
        let mut encoded = batch.encode();
        let journal = &mut server.journal;
        let appended = journal.admit(encoded.bytes(), Class::Growing).and_then(|()| {
            let sealed = journal.seal(&mut encoded, batch.time_us);
            let first_index = sealed.first_index();
            journal.append(batch.term, sealed).map(|()| first_index)
        });
        match appended {
            Ok(first_index) if first_index == next_index => {
                server.journal.tail(first_index).try_for_each(|entry| self.reading.note(&batch, entry))?;
                self.model.propose(batch);
            }
            Ok(first_index) => return Err(format!("record {next_index} got the index {first_index}")),
            // That there is space again is seen when maintenance looks.
            Err(Refused::Full { .. }) if self.rates.fill > 0 || self.armed => {}
            Err(Refused::Failed(_)) => {}
            Err(refused) => return Err(format!("a batch was refused: {refused:?}")),
        }
        Ok(())
    }

    /// Draws the batch behind this one; `live` are blobs that it may release.
    pub(super) fn draw_batch(&mut self, last: Option<Arc<Proposed>>, live: &[BlobKey]) -> Proposed {
        let (number, least, time_us) =
            last.as_ref().map_or((0, 1, 0), |last| (last.number, last.term, last.time_us));
        let first_index = last.map_or(1, |last| last.last_index() + 1);
        // A leader hands on batches of terms before its own, too.
        self.term += u64::from(self.rng.chance(1, 8));
        let term = if self.rng.chance(1, 6) { least } else { self.term.max(least) };
        let records = draw(&mut self.rng, &mut self.next_number, live);
        Proposed { first_index, number: number + 1, term, time_us: time_us.max(self.now_us), records }
    }

    /// Proposes what this node misses of the committed log.
    pub(super) fn catch_up(&mut self) -> Checked {
        if let Some(conflict) = self.model.conflict() {
            self.cut_from(conflict)?;
        }
        let missing = (last_index(&self.model.cluster) + 1).saturating_sub(self.model.next_index());
        for _ in 0..missing {
            if self.model.next_index() <= last_index(&self.model.cluster) {
                self.propose()?;
            }
        }
        Ok(())
    }

    /// Commits up to some batch.
    pub(super) fn commit(&mut self) -> Checked {
        let Some(server) = &self.server else { return Ok(()) };
        let durable = server.journal.durable_index();
        let patient = self.rng.chance(self.rates.patient, 100);
        let told = self.model.told;
        let agreed = self.model.conflict().map_or(u64::MAX, |conflict| conflict - 1);
        let ends = self.model.log.iter().map(|batch| batch.last_index());
        let ends: Vec<u64> =
            ends.filter(|end| (told + 1..=agreed).contains(end) && (!patient || *end <= durable)).collect();
        if ends.is_empty() {
            return Ok(());
        }
        let most = if self.rng.chance(1, 2) { ends.len() } else { ends.len().min(3) };
        let end = ends[self.rng.index(most)];
        self.commit_to(end)
    }

    pub(super) fn commit_to(&mut self, index: u64) -> Checked {
        let Some(server) = &mut self.server else { return Ok(()) };
        server.journal.commit(index).map_err(|error| format!("no commit of {index}: {error:?}"))?;
        self.model.commit(index.max(self.model.told));
        self.trace(|| format!("  committed {index}"));
        Ok(())
    }

    /// Cuts the tail somewhere after the committed log.
    pub(super) fn cut(&mut self) -> Checked {
        let committed = last_index(&self.model.cluster);
        let begins = self.model.log.iter().map(|batch| batch.first_index);
        let begins: Vec<u64> = begins.filter(|begin| *begin > committed).collect();
        if begins.is_empty() {
            return Ok(());
        }
        let index = *self.rng.pick(&begins);
        self.cut_from(index)
    }

    pub(super) fn cut_from(&mut self, index: u64) -> Checked {
        let Some(server) = &mut self.server else { return Ok(()) };
        match server.journal.cut(index) {
            Ok(true) => {
                self.trace(|| format!("  cut from {index}"));
                self.stats.cuts += 1;
                self.model.cut(index);
                Ok(())
            }
            Err(TailError::Failed(_)) => Ok(()),
            other => Err(format!("no cut from {index}: {other:?}")),
        }
    }

    pub(super) fn hard_state(&mut self) -> Checked {
        let Some(server) = &mut self.server else { return Ok(()) };
        let state = self.model.hard_state();
        server.journal.hard_state(&state.to_le_bytes(), state.is_multiple_of(8));
        Ok(())
    }

    /// Orders what must be refused.
    pub(super) fn wrong(&mut self) -> Checked {
        let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
        let (told, next) = (self.model.told, self.model.next_index());
        let within =
            self.model.tail().iter().find(|batch| batch.records.len() > 1 && batch.first_index > told);
        let mut wrong = vec![(journal.commit(next), TailError::NotABatch { index: next })];
        if let Some(batch) = within {
            let (first, last) = (batch.first_index, batch.last_index());
            wrong.push((journal.commit(first), TailError::NotABatch { index: first }));
            wrong.push((journal.cut(last).map(|_| ()), TailError::NotABatch { index: last }));
        }
        if told > 0 {
            let refused = TailError::Committed { committed_index: told };
            wrong.push((journal.cut(self.rng.between(1, told)).map(|_| ()), refused));
        }
        for (found, expected) in wrong {
            if found != Err(expected.clone()) && !matches!(found, Err(TailError::Failed(_))) {
                return Err(format!("{found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }

    /// Reads some blobs.
    pub(super) fn read(&mut self) -> Checked {
        let live: Vec<BlobKey> = self.model.live.keys().copied().collect();
        for _ in 0..3 {
            let index = self.rng.between(1, self.model.next_index() + 3);
            let item = self.rng.below(3) as u32;
            self.check_blob(BlobKey { index, item })?;
            if !live.is_empty() {
                let key = *self.rng.pick(&live);
                self.check_blob(key)?;
            }
        }
        Ok(())
    }

    /// Checks that a blob can be read when it is live, and else cannot.
    pub(super) fn check_blob(&mut self, key: BlobKey) -> Checked {
        let Some(server) = &mut self.server else { return Ok(()) };
        let found = match server.journal.read(key) {
            BlobRead::Missing => None,
            BlobRead::Cached(blob) => Some(blob.to_vec()),
            BlobRead::OnDisk(location) => match location.read() {
                Ok(blob) => Some(blob.to_vec()),
                Err(_) if self.armed || self.disk.is_halted() => return Ok(()),
                Err(BlobError::Damaged(_)) if self.harmed.may_be_damaged(key) => {
                    return if self.rng.chance(1, 2) { self.repair(key) } else { Ok(()) };
                }
                Err(error) => return Err(format!("{key:?} cannot be read: {error:?}")),
            },
        };
        let expected = self.model.live.get(&key).filter(|_| !self.model.installed.gone.contains(&key));
        if found.as_ref() == expected {
            return Ok(());
        }
        let len = |blob: Option<&Vec<u8>>| blob.map(Vec::len);
        Err(format!("{key:?}: {:?} bytes are read, expected {:?}", len(found.as_ref()), len(expected)))
    }

    /// Begins a snapshot, or continues one.
    pub(super) fn take_snapshot(&mut self) -> Checked {
        let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
        let Some(pieces) = &mut self.snapshot else {
            if journal.snapshot_running() || !journal.wants_snapshot() && !self.rng.chance(1, 4) {
                return Ok(());
            }
            let time_us = self.model.log.iter().rev().find(|batch| batch.last_index() <= self.model.given);
            self.reading.note_snapshot(self.model.given);
            journal.snapshot_begin(self.model.given, time_us.map_or(0, |batch| batch.time_us), 1);
            let live = self.model.live.iter().rev();
            self.snapshot = Some(live.map(|(key, blob)| write_piece(*key, blob.len() as u32)).collect());
            return Ok(());
        };
        for _ in 0..20 {
            let Some(piece) = pieces.pop() else {
                journal.snapshot_finish();
                self.snapshot = None;
                return Ok(());
            };
            if let Err(piece) = journal.snapshot_piece(piece) {
                pieces.push(piece);
                return Ok(());
            }
        }
        Ok(())
    }
}
