//! Applying what the journal has committed, for a bounded time in one step: what came meanwhile must get into
//! the next batch, however much there is to apply.

use sluice_engine::Error;
use sluice_journal::{BlobKey, Committed, Event};

use super::Shard;
use super::leading::refusal;
use super::store::Store;
use crate::clock::Clock;

/// Time for applying in one step, in microseconds, after which no further record begins.
const STEP_APPLY_US: u64 = 1_000;
/// Number of items between two readings of the clock, which costs about as much as one of them.
const ITEMS_PER_LOOK: usize = 256;
/// Estimate of an item's length in a record's body, in bytes.
const ITEM_BYTES: usize = 32;

impl<S: Store, C: Clock> Shard<S, C> {
    pub(super) fn apply_committed(&mut self) -> bool {
        let mut worked = false;
        let mut items = 0;
        while let Some(event) = self.next_event() {
            worked = true;
            match event {
                Event::Committed(committed) => {
                    if self.apply_batch(&committed, &mut items) {
                        break;
                    }
                }
                Event::Refused { first_index, records, why } => {
                    self.refuse_in_flight(records, first_index + u64::from(records), &refusal(&why));
                }
                Event::Unknown { first_index, records } => {
                    let unknown = Error::OutcomeUnknown {};
                    self.refuse_in_flight(records, first_index + u64::from(records), &unknown);
                }
                Event::Damaged(key) => self.damaged.push(key),
                // Those who ask for them poll the journal themselves.
                Event::Failed(reason) => {
                    self.failure = Some(reason);
                    return true;
                }
            }
        }
        self.hand_over();
        worked
    }

    fn next_event(&mut self) -> Option<Event> {
        match self.applying.take() {
            Some(rest) => Some(Event::Committed(rest)),
            None => self.store.poll(),
        }
    }

    /// Applies a batch, or as much of it as there is time for; the rest is kept in `applying`. True when the
    /// time is over. `items`: number since the last reading of the clock.
    fn apply_batch(&mut self, committed: &Committed, items: &mut usize) -> bool {
        let mut index = committed.first_index;
        let mut records = committed.records();
        debug_assert!(index <= self.store.committed_index(), "what is applied is committed");
        let mut over = false;
        while !over && let Some(record) = records.next() {
            self.apply(committed.time_us, index, record.body);
            *items += 1 + record.body.len() / ITEM_BYTES + self.outcome.deliveries.len();
            self.answer_record(index);
            index += 1;
            if *items >= ITEMS_PER_LOOK {
                *items = 0;
                over = self.clock.monotonic_us() >= self.monotonic_us + STEP_APPLY_US;
            }
        }
        let rest = records.rest().len();
        if rest > 0 {
            let bytes = committed.bytes.slice(committed.bytes.len() - rest..);
            self.applying = Some(Committed { first_index: index, bytes, ..*committed });
        } else {
            self.figures.batches += 1;
        }
        self.settle_in_flight_bytes(index);
        over
    }

    fn apply(&mut self, time_us: u64, index: u64, body: &[u8]) {
        self.engine.apply(time_us, index, body, &mut self.outcome);
        self.figures.records += 1;
        for blob in self.outcome.released.drain(..) {
            self.store.release(BlobKey { index: blob.index, item: blob.item });
        }
        for i in 0..self.outcome.ready.len() {
            let queue = self.outcome.ready[i];
            self.leading.note_ready(queue);
        }
    }
}
