//! A disk that keeps the order of writes, and forgets at a crash what was not synced, or part of it.

use std::collections::VecDeque;

use sluice_replica::{Durable, HardState, Snapshot, Write};

use super::rng::Rng;

pub(crate) struct Disk {
    /// What is on the disk for certain.
    pub(crate) durable: Durable,
    /// Digest of the state that is kept with the base.
    pub(crate) digest: u64,
    /// Writes that are not synced, oldest first, each with the digest of the state that it installs.
    queue: VecDeque<(Write, u64)>,
    /// Number of writes that the running sync covers; 0: none runs.
    syncing: usize,
    /// An earlier state of the disk, to which it may fall back, with the digest of its base.
    earlier: (Durable, u64),
}

impl Disk {
    /// A disk with this state.
    pub(crate) fn new(durable: Durable) -> Disk {
        Disk {
            durable: durable.clone(),
            digest: 0,
            queue: VecDeque::new(),
            syncing: 0,
            earlier: (durable, 0),
        }
    }

    /// Takes a write. A commit index that need not be kept may be lost, or, when it comes alone and no cut is
    /// on its way, be on the disk at once.
    pub(crate) fn write(&mut self, mut write: Write, digest: u64, rng: &mut Rng) {
        let (is_alone, is_cutting) = (!write.must_sync, self.is_cutting());
        if let Some(state) = write.hard_state.as_mut().filter(|_| !write.keeps_commit) {
            match rng.below(3) {
                0 if is_alone && !is_cutting => self.durable.hard_state.commit = state.commit,
                1 => state.commit = 0,
                _ => {}
            }
        }
        self.queue.push_back((write, digest));
    }

    /// True: a part of the log is to be replaced.
    fn is_cutting(&self) -> bool {
        let mut last = self.durable.base.position.index + self.durable.entries.len() as u64;
        self.queue.iter().any(|(write, _)| {
            let keep = write.append.as_ref().map_or(last, |append| append.keep);
            let is_cut = write.install.is_some() || keep < last;
            last = write.append.as_ref().map_or(last, |append| keep + append.entries.len() as u64);
            is_cut
        })
    }

    /// Changes of the members behind this index that the disk may keep.
    pub(crate) fn changes_behind(&self, index: u64) -> usize {
        let appended = self.queue.iter().filter_map(|(write, _)| write.append.as_ref());
        let entries = self.durable.entries.iter().chain(appended.flat_map(|append| &append.entries));
        entries.filter(|entry| entry.position.index > index && entry.change().is_some()).count()
    }

    /// Falls back to an earlier state, and forgets what came later.
    pub(crate) fn fall_back(&mut self) {
        (self.queue, self.syncing) = (VecDeque::new(), 0);
        (self.durable, self.digest) = self.earlier.clone();
    }

    /// Keeps the present state as the one to fall back to.
    pub(crate) fn remember(&mut self) {
        self.earlier = (self.durable.clone(), self.digest);
    }

    /// Keeps a state, and forgets the entries up to there, which are synced.
    pub(crate) fn keep(&mut self, snapshot: Snapshot, digest: u64) {
        let durable = &mut self.durable;
        let index = snapshot.position.index;
        if index > durable.base.position.index {
            durable.entries.drain(..(index - durable.base.position.index) as usize);
            durable.base = snapshot;
            self.digest = digest;
        }
    }

    /// True: a state is being installed.
    pub(crate) fn installs(&self) -> bool {
        self.queue.iter().any(|(write, _)| write.install.is_some())
    }

    /// Begins a sync when there is something to sync and none runs.
    pub(crate) fn begin_sync(&mut self) -> bool {
        let begins = self.syncing == 0 && !self.queue.is_empty();
        if begins {
            self.syncing = self.queue.len();
        }
        begins
    }

    /// Ends the running sync; returns the number of the last write that asked for one.
    pub(crate) fn end_sync(&mut self) -> Option<u64> {
        let mut number = None;
        let writes: Vec<_> = self.queue.drain(..std::mem::take(&mut self.syncing)).collect();
        for (write, digest) in writes {
            if write.must_sync {
                number = Some(write.number);
            }
            self.apply(&write, digest, usize::MAX);
        }
        number
    }

    /// Loses what was not synced, but for some first writes and a part of the next one. Returns the state
    /// that a start finds.
    pub(crate) fn crash(&mut self, rng: &mut Rng) -> Durable {
        self.syncing = 0;
        let whole = rng.index(self.queue.len() + 1);
        let torn = rng.chance(1, 2);
        for (number, (write, digest)) in std::mem::take(&mut self.queue).iter().enumerate() {
            match number {
                n if n < whole => self.apply(write, *digest, usize::MAX),
                n if n == whole && torn => {
                    let entries = write.append.as_ref().map_or(0, |append| append.entries.len());
                    self.apply(write, *digest, rng.index(entries + 1));
                }
                _ => {}
            }
        }
        self.durable.clone()
    }

    fn apply(&mut self, write: &Write, digest: u64, entries_max: usize) {
        let durable = &mut self.durable;
        if let Some(state) = write.hard_state {
            let commit = durable.hard_state.commit.max(state.commit);
            durable.hard_state = HardState { commit, ..state };
        }
        if let Some(snapshot) = &write.install {
            durable.base = snapshot.clone();
            durable.entries.clear();
            self.digest = digest;
        }
        if let Some(append) = &write.append {
            let kept = append
                .keep
                .checked_sub(durable.base.position.index)
                .expect("what is synced and applied stays");
            assert!(durable.entries.len() as u64 >= kept, "a write leaves a hole in the log");
            durable.entries.truncate(kept as usize);
            durable.entries.extend(append.entries.iter().take(entries_max));
        }
    }
}
