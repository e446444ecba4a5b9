//! Wrapper of a shard's store that notes what the shard is given to apply, and when by the time of the log it
//! proposes.

use sluice_engine::Engine;
use sluice_journal::{
    Batch, BlobKey, BlobLocation, BlobRead, Class, Committed, Event, Journal, Refused, Status,
};
use sluice_node::shard::replicated::Replicated;
use sluice_node::shard::store::{Heard, Standing, Store};
use sluice_replica::{Clocks, Members};

/// The wrapped store.
pub(super) struct Witness {
    pub(super) store: Replicated,
    given: Vec<Given>,
    /// Times of the log with which batches were proposed, in microseconds.
    proposed: Vec<u64>,
}

/// Thing that a shard was given.
pub(super) enum Given {
    /// A batch to apply, and the members in force behind it.
    Batch(Committed, Members),
    /// A state in place of its own, which has applied the batch with this number last, and the members in
    /// force behind that.
    State(u64, Members),
    /// Word that a blob is lost.
    Lost(BlobKey),
}

impl Witness {
    pub(super) fn new(store: Replicated) -> Witness {
        Witness { store, given: Vec::new(), proposed: Vec::new() }
    }

    /// Takes what the shard was given since the last call.
    pub(super) fn take(&mut self) -> Vec<Given> {
        std::mem::take(&mut self.given)
    }

    /// Takes the times of the log with which it proposed since the last call.
    pub(super) fn take_proposed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.proposed)
    }
}

impl Journal for Witness {
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.store.next_index()
    }

    fn durable_index(&self) -> u64 {
        self.store.durable_index()
    }

    fn committed_index(&self) -> u64 {
        self.store.committed_index()
    }

    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        self.proposed.push(time_us);
        self.store.propose(batch, time_us, class)
    }

    fn poll(&mut self) -> Option<Event> {
        let event = self.store.poll();
        match &event {
            Some(Event::Committed(batch)) => {
                let members = self.store.member().members().clone();
                self.given.push(Given::Batch(batch.clone(), members));
            }
            Some(Event::Damaged(key)) => self.given.push(Given::Lost(*key)),
            _ => {}
        }
        event
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        self.store.read(key)
    }

    fn release(&mut self, key: BlobKey) {
        self.store.release(key);
    }
}

impl Store for Witness {
    fn standing(&self) -> Standing {
        self.store.standing()
    }

    fn tell_clocks(&mut self, clocks: Clocks) {
        self.store.tell_clocks(clocks);
    }

    fn hear_clocks(&mut self) -> Option<Heard> {
        self.store.hear_clocks()
    }

    fn confirm(&mut self, round: u64) -> Option<u64> {
        self.store.confirm(round)
    }

    fn take_state(&mut self) -> Option<Box<Engine>> {
        let state = self.store.take_state();
        if state.is_some() {
            let member = self.store.member();
            self.given.push(Given::State(member.journal().next_number() - 1, member.members().clone()));
        }
        state
    }

    fn wants_snapshot(&self) -> bool {
        self.store.wants_snapshot()
    }

    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        self.store.snapshot_begin(applied_index, time_us, behaviour);
    }

    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        self.store.snapshot_piece(piece)
    }

    fn snapshot_finish(&mut self) {
        self.store.snapshot_finish();
    }

    fn status(&self) -> Status {
        self.store.status()
    }
}
