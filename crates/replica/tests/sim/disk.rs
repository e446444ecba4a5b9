//! A disk that keeps the order of writes, and forgets at a crash what was not synced, or part of it.

use std::collections::VecDeque;

use sluice_replica::{Durable, Position, Write};

use super::rng::Rng;

#[derive(Default)]
pub(crate) struct Disk {
    /// What is on the disk for certain.
    durable: Durable,
    /// Writes that are not synced, oldest first.
    queue: VecDeque<Write>,
    /// Number of writes that the running sync covers; 0: none runs.
    syncing: usize,
}

impl Disk {
    /// Takes a write. A commit index alone may be on the disk at once, before anything that was written
    /// earlier.
    pub(crate) fn write(&mut self, write: Write, rng: &mut Rng) {
        if !write.must_sync && rng.chance(1, 2) {
            if let Some(state) = write.hard_state {
                self.durable.hard_state.commit = state.commit;
            }
        } else {
            self.queue.push_back(write);
        }
    }

    /// Forgets the entries up to this one, which are synced.
    pub(crate) fn compact(&mut self, to: Position) {
        let durable = &mut self.durable;
        let forgotten = to.index.saturating_sub(durable.base.index) as usize;
        if forgotten > 0 {
            durable.entries.drain(..forgotten);
            durable.base = to;
        }
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
        for write in self.queue.drain(..std::mem::take(&mut self.syncing)) {
            if write.must_sync {
                number = Some(write.number);
            }
            apply(&mut self.durable, &write, usize::MAX);
        }
        number
    }

    /// Loses what was not synced, but for some first writes and a part of the next one. Returns the state
    /// that a start finds.
    pub(crate) fn crash(&mut self, rng: &mut Rng) -> Durable {
        self.syncing = 0;
        let whole = rng.index(self.queue.len() + 1);
        let torn = rng.chance(1, 2);
        for (number, write) in std::mem::take(&mut self.queue).iter().enumerate() {
            match number {
                n if n < whole => apply(&mut self.durable, write, usize::MAX),
                n if n == whole && torn => {
                    let entries = write.append.as_ref().map_or(0, |append| append.entries.len());
                    apply(&mut self.durable, write, rng.index(entries + 1));
                }
                _ => {}
            }
        }
        self.durable.clone()
    }
}

fn apply(durable: &mut Durable, write: &Write, entries_max: usize) {
    if let Some(state) = write.hard_state {
        durable.hard_state = state;
    }
    if let Some(append) = &write.append {
        let kept = append.keep.checked_sub(durable.base.index).expect("what is synced and applied stays");
        assert!(durable.entries.len() as u64 >= kept, "a write leaves a hole in the log");
        durable.entries.truncate(kept as usize);
        durable.entries.extend(append.entries.iter().take(entries_max));
    }
}
