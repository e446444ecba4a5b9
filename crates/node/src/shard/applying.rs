//! Applying what the journal has committed, for a bounded time in one step: what came meanwhile must get into
//! the next batch, however much there is to apply.

use sluice_engine::{Error, NamespaceId, sets_limits};
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

/// A committed batch, or the rest of one that a step could not apply as a whole.
#[derive(Debug)]
pub(super) struct Applying {
    batch: Committed,
    /// True when its callers are the next of those in flight.
    is_own: bool,
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(super) fn apply_committed(&mut self) -> bool {
        let mut items = 0;
        let rest = self.applying.take();
        let mut worked = rest.is_some();
        let mut over = rest.is_some_and(|rest| self.apply_batch(rest, &mut items));
        while !over && let Some(event) = self.store.poll() {
            worked = true;
            match event {
                Event::Committed(batch) => {
                    let is_own = self.is_alone() || self.decide(batch.first_index, batch.term);
                    over = self.apply_batch(Applying { batch, is_own }, &mut items);
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
        self.take_over();
        self.hand_over();
        if worked {
            self.tell_of_system();
        }
        worked
    }

    /// Tells of changes of the server's own data.
    fn tell_of_system(&mut self) {
        let Some(system) = &self.system else { return };
        let now = self.engine.comings_and_goings(NamespaceId::SYS);
        if self.system_told != now {
            self.system_told = now;
            system.notify_one();
        }
    }

    /// Applies a batch, or as much of it as there is time for; the rest is kept in `applying`. True when the
    /// time is over. `items`: number since the last reading of the clock.
    fn apply_batch(&mut self, applying: Applying, items: &mut usize) -> bool {
        let Applying { batch, is_own } = applying;
        let mut index = batch.first_index;
        let mut records = batch.records();
        debug_assert!(index <= self.store.committed_index(), "what is applied is committed");
        let mut over = false;
        while !over && let Some(record) = records.next() {
            self.apply(batch.time_us, index, record.body);
            *items += 1 + record.body.len() / ITEM_BYTES + self.outcome.deliveries.len();
            self.answer_record(index, is_own);
            index += 1;
            if *items >= ITEMS_PER_LOOK {
                *items = 0;
                over = self.clock.monotonic_us() >= self.monotonic_us + STEP_APPLY_US;
            }
        }
        let rest = records.rest().len();
        if rest > 0 {
            let bytes = batch.bytes.slice(batch.bytes.len() - rest..);
            self.applying =
                Some(Applying { batch: Committed { first_index: index, bytes, ..batch }, is_own });
        } else {
            self.figures.batches += 1;
        }
        self.settle_in_flight_bytes(index);
        over
    }

    fn apply(&mut self, time_us: u64, index: u64, body: &[u8]) {
        self.engine.apply(time_us, index, body, &mut self.outcome);
        self.figures.records += 1;
        if let Some(placement) = &self.placement {
            placement.follow(&self.engine, &self.outcome, body);
        }
        if let Some(limits) = &self.limits
            && sets_limits(body)
        {
            limits.set(self.engine.limits());
        }
        for blob in self.outcome.released.drain(..) {
            self.store.release(BlobKey { index: blob.index, item: blob.item });
        }
        for i in 0..self.outcome.ready.len() {
            let queue = self.outcome.ready[i];
            self.leading.note_ready(queue);
        }
    }
}
