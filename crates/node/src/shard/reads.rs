//! Reads of the state. They have a queue of their own, so that however many there are, the next batch waits
//! for a few of them at most.

use sluice_engine::Error;

use super::request::{Read, ShardView};
use super::store::Store;
use super::{Shard, ShardFigures};
use crate::clock::Clock;

/// Upper limit of waiting reads, besides those in the mailbox.
const LOOKS_MAX: usize = 4_096;
/// Time for reads in one step, in microseconds, after which no further read begins.
const STEP_LOOKS_US: u64 = 500;
/// Wait suggested to the caller of a refused read, in milliseconds.
const RETRY_AFTER_MS: u64 = 500;

impl<S: Store, C: Clock> Shard<S, C> {
    pub(super) fn take_look(&mut self, read: Read) {
        if self.looks.len() < LOOKS_MAX {
            self.looks.push_back(read);
        } else {
            (read.0)(Err(Error::Overloaded { what: "reads", retry_after_ms: RETRY_AFTER_MS }));
        }
    }

    /// Runs reads for a bounded time. True when more are waiting.
    pub(super) fn look(&mut self) -> bool {
        if self.looks.is_empty() {
            return false;
        }
        let until_us = self.clock.monotonic_us() + STEP_LOOKS_US;
        while let Some(read) = self.looks.pop_front() {
            let figures: ShardFigures = self.figures;
            (read.0)(Ok(&mut ShardView {
                engine: &self.engine,
                now_us: self.now_us,
                waiting: self.leading.waiting_pulls(),
                event_readers: self.leading.event_readers(),
                changes: self.leading.changes(),
                lock_watches: self.leading.lock_watches(),
                figures,
                journal: &mut self.store,
            }));
            if self.clock.monotonic_us() >= until_us {
                break;
            }
        }
        // One of them may have begun to watch a lock.
        self.watch_locks();
        !self.looks.is_empty()
    }
}
