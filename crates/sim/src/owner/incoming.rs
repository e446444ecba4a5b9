//! States of other members: the committed log grows without this node, which is then sent a state, blob by
//! blob and with some of them gone, and installs it.

use std::collections::BTreeSet;
use std::sync::Arc;

use sluice_journal::{BlobKey, InstallError, OpenError, Receiving, SnapshotReader, StateHead};

use super::OwnerWorld;
use super::model::last_index;
use super::pieces::write_state;
use super::server::Server;
use crate::disk::Crash;
use crate::model::Checked;

/// A state on its way to this node.
#[derive(Debug)]
pub(super) struct Incoming {
    receiving: Receiving,
    /// Number of the last batch that it has applied.
    batches: usize,
    content: Vec<u8>,
    /// Index of the last record that the sender has applied.
    sender: u64,
    /// Blobs that are gone, and the index of the record from which on all of them are released.
    gone: BTreeSet<BlobKey>,
    whole_from: u64,
    is_whole: bool,
}

/// Error of receiving: of the disk, or of the journal.
enum Wrong {
    Disk,
    Journal(String),
}

impl From<std::io::Error> for Wrong {
    fn from(_: std::io::Error) -> Wrong {
        Wrong::Disk
    }
}

impl From<OpenError> for Wrong {
    fn from(error: OpenError) -> Wrong {
        if let OpenError::Io { .. } = error { Wrong::Disk } else { Wrong::Journal(error.to_string()) }
    }
}

impl OwnerWorld {
    /// Lets the other members commit some batches without this node.
    pub(super) fn others_commit(&mut self) -> Checked {
        self.term += 1;
        for _ in 0..self.rng.between(1, 6) {
            let live = self.model.live_at(last_index(&self.model.cluster));
            let live: Vec<BlobKey> = live.into_keys().collect();
            let batch = self.draw_batch(self.model.cluster.last().cloned(), &live);
            self.model.cluster.push(Arc::new(batch));
        }
        Ok(())
    }

    /// Begins to receive a state that is newer than this node's, or goes on with it.
    pub(super) fn receive(&mut self) -> Checked {
        let Some(incoming) = self.incoming.take() else { return self.begin_to_receive() };
        match self.go_on_receiving(incoming) {
            // That there is space again is seen when maintenance looks.
            Err(Wrong::Disk) if self.armed || self.rates.fill > 0 || self.disk.is_halted() => Ok(()),
            Err(Wrong::Disk) => Err("a state is not received, without a cause".to_owned()),
            Err(Wrong::Journal(what)) => Err(what),
            Ok(incoming) => {
                self.incoming = incoming;
                Ok(())
            }
        }
    }

    fn begin_to_receive(&mut self) -> Checked {
        let Some(Server { journal, .. }) = &self.server else { return Ok(()) };
        if last_index(&self.model.cluster) <= self.model.told || !self.model.is_installed() {
            return Ok(());
        }
        let receiving = journal.receive();
        let (content, gone) = (Vec::new(), BTreeSet::new());
        let (batches, sender, whole_from, is_whole) = (0, 0, 0, false);
        let incoming = Incoming { receiving, batches, content, sender, gone, whole_from, is_whole };
        self.incoming = self.offer(incoming).ok();
        Ok(())
    }

    /// Begins with a state that is newer than this node's, and than the one that was on its way.
    fn offer(&mut self, mut incoming: Incoming) -> Result<Incoming, Wrong> {
        let behind = self.model.cluster.partition_point(|batch| batch.last_index() <= self.model.told);
        let (least, most) = (incoming.batches.max(behind) as u64 + 1, self.model.cluster.len() as u64);
        if least > most {
            return Ok(incoming);
        }
        incoming.batches = self.rng.between(least, most) as usize;
        let last = self.model.cluster[incoming.batches - 1].clone();
        let sender = &self.model.cluster[self.rng.between(incoming.batches as u64, most) as usize - 1];
        // A later leader has applied what an earlier one had.
        incoming.sender = sender.last_index().max(incoming.sender).max(self.model.installed.whole_from);
        incoming.content = write_state(&self.model.live_at(last.last_index()));
        incoming.is_whole = false;
        incoming.receiving.begin(StateHead {
            applied_index: last.last_index(),
            number: last.number,
            term: last.term,
            time_us: last.time_us,
            behaviour: 1,
            label: last.number.to_le_bytes().to_vec(),
        })?;
        Ok(incoming)
    }

    fn go_on_receiving(&mut self, mut incoming: Incoming) -> Result<Option<Incoming>, Wrong> {
        if self.model.cluster[incoming.batches - 1].last_index() <= self.model.told {
            return Ok(None);
        }
        if self.rng.chance(1, 20) {
            return if self.rng.chance(1, 3) { Ok(None) } else { self.offer(incoming).map(Some) };
        }
        if !incoming.is_whole {
            return self.receive_part(incoming).map(Some);
        }
        let live = self.model.live_at(self.model.cluster[incoming.batches - 1].last_index());
        let released = self.model.live_at(incoming.sender);
        let Some(Server { journal, .. }) = &self.server else { return Ok(None) };
        let Incoming { receiving, gone, whole_from, sender, .. } = &mut incoming;
        let wanted = |key: &BlobKey| !journal.holds(*key) && !receiving.has(*key) && !gone.contains(key);
        let wanted: Vec<BlobKey> = live.keys().copied().filter(wanted).collect();
        if wanted.is_empty() && self.rng.chance(1, 2) {
            return self.install(incoming).map(|()| None);
        }
        for key in wanted.into_iter().take(3) {
            // A blob of a record that was given is missing since an earlier state: nobody has it.
            let is_gone = key.index <= self.model.given || self.rng.chance(2, 3);
            if !released.contains_key(&key) && is_gone {
                gone.insert(key);
                *whole_from = (*whole_from).max(*sender);
            } else if !receiving.add_blob(key, &live[&key])? {
                return Err(Wrong::Journal(format!("{key:?} is ignored")));
            }
        }
        Ok(Some(incoming))
    }

    fn receive_part(&mut self, mut incoming: Incoming) -> Result<Incoming, Wrong> {
        let from = incoming.receiving.snapshot_bytes() as usize;
        let len = (*self.rng.pick(&[1, 50, 3_000])).min(incoming.content.len() - from);
        incoming.receiving.add(&incoming.content[from..from + len])?;
        if from + len < incoming.content.len() {
            return Ok(incoming);
        }
        let checksum = crc32fast::hash(&incoming.content);
        let reader = incoming.receiving.end(checksum)?;
        let read = read_all(reader.ok_or(Wrong::Journal("another checksum".to_owned()))?)?;
        if read != incoming.content {
            return Err(Wrong::Journal("the state that was received is another".to_owned()));
        }
        incoming.is_whole = true;
        Ok(incoming)
    }

    fn install(&mut self, incoming: Incoming) -> Result<(), Wrong> {
        let Incoming { receiving, batches, whole_from, mut gone, .. } = incoming;
        let received = receiving.finish()?;
        if self.rng.chance(1, 2) {
            // The manifest is replaced for it before the state is in place.
            self.hard_state().map_err(Wrong::Journal)?;
        }
        let index = self.model.cluster[batches - 1].last_index();
        let live = self.model.live_at(index);
        let Some(Server { journal, .. }) = &mut self.server else { return Ok(()) };
        // The log has brought some meanwhile.
        gone.retain(|key| !journal.holds(*key));
        let live = live.iter().map(|(key, blob)| (*key, blob.len() as u32));
        match journal.install(received, whole_from, live) {
            Ok(()) => {
                self.trace(|| format!("  installed {index}, {} blobs are gone", gone.len()));
                self.model.install(batches, gone, whole_from);
                self.reading.install(index);
                self.snapshot = None;
                self.stats.installs += 1;
                if self.rates.crash > 0 && !self.disk.is_halted() && self.rng.chance(1, 3) {
                    self.dying = *self.rng.pick(&[Crash::Kill, Crash::Power]);
                    self.disk.halt_after(self.rng.below(30));
                }
                Ok(())
            }
            Err(InstallError::Failed(_)) => Ok(()),
            Err(InstallError::Behind { .. }) if index <= self.model.told => Ok(()),
            Err(error) => Err(Wrong::Journal(format!("no state is installed: {error:?}"))),
        }
    }

    /// Reads the newest state as for another node.
    pub(super) fn send_state(&mut self) -> Checked {
        let Some(Server { journal, .. }) = &self.server else { return Ok(()) };
        let Some(mut reader) = journal.read_state() else { return Ok(()) };
        let head = reader.head();
        let expected = write_state(&self.model.live_at(head.applied_index));
        let mut found = Vec::new();
        loop {
            if self.rng.chance(1, 10) {
                found.truncate(self.rng.below(found.len() as u64 + 1) as usize);
            }
            let bytes_max = *self.rng.pick(&[1_usize, 100, 5_000]);
            let part = match reader.read(found.len() as u64, bytes_max) {
                Err(_) if self.armed || self.disk.is_halted() => return Ok(()),
                part => part.map_err(|error| format!("the state is not read: {error}"))?,
            };
            found.extend_from_slice(&part.bytes);
            let Some(sum) = part.end else { continue };
            let last = self.model.cluster.iter().find(|batch| batch.number == head.number);
            let is_last =
                last.is_some_and(|last| (last.last_index(), last.term) == (head.applied_index, head.term));
            if found == expected && sum == crc32fast::hash(&expected) && is_last {
                return Ok(());
            }
            return Err(format!("another state is read than that of record {}", head.applied_index));
        }
    }
}

fn read_all(mut reader: SnapshotReader) -> Result<Vec<u8>, OpenError> {
    let mut read = Vec::new();
    while let Some(piece) = reader.next_piece()? {
        read.extend_from_slice(&piece);
    }
    Ok(read)
}
