//! Output of the replica: what is written, sent and committed.

use bytes::Bytes;
use sluice_journal::{Event, Journal, LogGone, SealedBatch, TailError};

use super::envelope::Envelope;
use super::state::Saved;
use super::{Dropped, Member, Supplied};
use crate::entry::{Content, Entry, Position};
use crate::message::{Body, Message};
use crate::plant::{self, Plant};
use crate::ready::{Append, HardState, Write};
use crate::wire;

impl Member {
    /// Checks that each batch of a message is for its place in the journal: behind the one before it. Nothing
    /// is appended of a message of an earlier term, or whose `previous` is not here, so that its places need
    /// not be known.
    pub(super) fn check_places(&self, message: &Message) -> Result<(), Dropped> {
        let Body::Append { previous, entries, .. } = &message.body else { return Ok(()) };
        if message.term < self.replica.standing().term {
            return Ok(());
        }
        let before = self.journal.numbered(previous.index);
        if before.is_some_and(|batch| batch.term != previous.term) {
            return Ok(());
        }
        let mut place = before.map(|batch| batch.last_index() + 1);
        for entry in entries {
            place = place.or_else(|| self.first_place(entry.position.index));
            let (first, records) = entry.batch().map_or((place, 1), |it| (Some(it.first_record), it.records));
            if place.is_some() && first != place {
                return Err(Dropped::Place(entry.position));
            }
            place = place.map(|place| place + u64::from(records));
        }
        Ok(())
    }

    /// Index of the first record of a batch, if it is the one behind all that are committed.
    fn first_place(&self, number: u64) -> Option<u64> {
        let first = self.journal.tail(0).next();
        let (first, place) = first.map_or((self.journal.next_number(), self.journal.next_index()), |batch| {
            (batch.number, batch.first_index)
        });
        (number == first).then_some(place)
    }

    /// The batch of an entry without a batch, of one record.
    fn own_batch(&self, record: Bytes) -> SealedBatch {
        let (place, time_us) = (self.journal.next_index(), self.journal.last_time_us());
        SealedBatch::received(place, 1, time_us, record).expect("one whole record")
    }

    /// Hands a write to the journal: the hard state, then the cut, then the batches. A state that it installs
    /// was handed over before.
    pub(super) fn write(&mut self, write: Write, supplied: &mut Supplied) {
        if let Some(HardState { term, vote, .. }) = write.hard_state {
            self.save(Saved { term, vote, ..self.saved.clone() });
        }
        let mut is_given = true;
        if let Some(Append { keep, entries }) = write.append {
            self.cut(keep);
            is_given = entries.into_iter().all(|entry| self.append(entry, supplied));
        }
        if let Some(HardState { commit, .. }) = write.hard_state.filter(|_| write.keeps_commit) {
            // The manifest that takes the hard state notes the commit as well.
            self.commit(commit);
            self.journal.hard_state(&self.saved.encode(), true);
        }
        // What a failed journal has refused is never synced, whatever its last order is.
        if write.must_sync && is_given {
            let order = if plant::is(Plant::SyncedWhenGiven) { 0 } else { self.journal.orders() };
            self.unsynced.push_back((order, write.number));
        }
    }

    /// Lets the journal keep this state, if it does not yet.
    pub(super) fn save(&mut self, saved: Saved) {
        if saved != self.saved {
            let before = std::mem::replace(&mut self.saved, saved);
            let tells_of_log = before.since != self.saved.since || before.members != self.saved.members;
            if !plant::is(Plant::HardStateNotKept) {
                self.journal.hard_state(&self.saved.encode(), tells_of_log);
            }
        }
    }

    /// Lets the journal keep the members in force with each snapshot that begins from now on.
    pub(super) fn label(&mut self) {
        if !self.in_force.voters().is_empty() {
            self.journal.label_snapshots(&wire::encode_members(&self.in_force));
        }
    }

    /// Cuts what is behind the batch with this number. A failed journal tells its owner of the failure.
    fn cut(&mut self, keep: u64) {
        let first = self.journal.numbered(keep + 1).map(|batch| batch.first_index);
        match first.map(|index| self.journal.cut(index)) {
            None | Some(Ok(_) | Err(TailError::Failed(_))) => {}
            Some(Err(error)) => panic!("a cut behind batch {keep}: {error:?}"),
        }
    }

    /// Appends the batch of an entry; false: the journal has failed, of which it tells its owner.
    fn append(&mut self, entry: Entry, supplied: &mut Supplied) -> bool {
        let Position { term, .. } = entry.position;
        let batch = match entry.content {
            Content::Begin => self.own_batch(self.records.begin()),
            Content::Members(change) => self.own_batch(self.records.change(change)),
            Content::Batch(_) => {
                let at = supplied.iter().position(|(at, _)| *at == entry.position);
                supplied.swap_remove(at.expect("an entry comes with its batch")).1
            }
        };
        self.journal.append(term, batch).is_ok()
    }

    /// Commits the batches up to this number.
    pub(super) fn commit(&mut self, number: u64) {
        if let Some(last) = self.journal.numbered(number).map(|batch| batch.last_index()) {
            self.journal.commit(last).expect("it is the end of a batch");
        }
    }

    /// Puts a message on its way, with the batches of its entries. One that its receiver would drop for want
    /// of room is lost here: what the replica sends from time to time shows when there is room again.
    pub(super) fn send(&mut self, message: Message) {
        let Body::Append { entries, .. } = &message.body else {
            return self.envelopes.push(Envelope::new(message, Vec::new()));
        };
        let described = entries.iter().filter(|entry| entry.batch().is_some());
        if described.clone().next().is_some() && self.would_drop(message.to) {
            return;
        }
        let is_behind = self.fetches.is_reading(message.to);
        // Other messages tell what one without entries does.
        if is_behind && entries.is_empty() {
            return;
        }
        let batches: Option<Vec<Bytes>> =
            described.map(|entry| self.batch_in_memory(entry.position.index)).collect();
        match batches.filter(|_| !is_behind) {
            Some(batches) => self.envelopes.push(Envelope::new(message, batches)),
            None => {
                let asked = self.fetches.ask(message, &self.journal);
                self.note_gone(asked);
            }
        }
    }

    /// Forgets the descriptors of batches that the journal has no more.
    pub(super) fn note_gone(&mut self, asked: Result<(), LogGone>) {
        if let Err(LogGone { first_number }) = asked {
            self.replica.compact(first_number - 1);
        }
    }

    fn batch_in_memory(&self, number: u64) -> Option<Bytes> {
        let held = self.journal.numbered(number).map(|batch| batch.bytes.clone());
        held.or_else(|| self.recent.get(number))
    }

    /// Takes the next event of the journal, and tells the replica what is synced.
    pub(super) fn next_of_journal(&mut self) -> Option<Event> {
        let event = self.journal.poll();
        if let Some(Event::Committed(committed)) = &event {
            self.given = Position { term: committed.term, index: committed.number };
            let change = self.replica.change(committed.number);
            if let Some(after) = change.and_then(|change| self.in_force.after(change)) {
                self.in_force = after;
                self.label();
            }
            self.recent.push(committed);
        }
        self.tell_synced();
        event
    }

    fn tell_synced(&mut self) {
        let durable = self.journal.durable_orders();
        let mut synced = None;
        while let Some((_, number)) = self.unsynced.pop_front_if(|(order, _)| *order <= durable) {
            synced = Some(number);
        }
        if let Some(number) = synced {
            self.replica.persisted(number);
            self.settle(Vec::new());
        }
    }
}
