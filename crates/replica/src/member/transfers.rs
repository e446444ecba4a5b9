//! A member's part in the transfer of states, to others and from them.

use sluice_journal::{BlobKey, InstallError};

use super::Member;
use super::incoming::Incoming;
use super::work::{Attempt, Done, Work, Worked};
use crate::entry::{NodeId, Position};
use crate::members::Snapshot;
use crate::message::Message;
use crate::transfer::{StateBody, StateMessage};

impl Member {
    /// Takes in a message about a state on its way, or about damaged blobs. One that has become stale changes
    /// nothing.
    pub fn step_state(&mut self, message: StateMessage) {
        if self.is_mute() {
            return;
        }
        self.wake();
        let StateMessage { from, state, .. } = message;
        let expects = |incoming: &&mut Incoming| incoming.offer.from == from && incoming.position == state;
        let incoming = self.incoming.as_mut().filter(expects);
        match (message.body, incoming) {
            (StateBody::AskCopies { keys }, _) => self.answer_for_copies(from, keys),
            (StateBody::Copies { blobs }, _) => self.take_copies(from, state, blobs),
            (StateBody::Content { head, offset, bytes, end }, Some(incoming)) => {
                incoming.content(head, offset, bytes, end);
            }
            (StateBody::Blobs { whole_from, blobs }, Some(incoming)) => incoming.blobs(whole_from, blobs),
            (StateBody::Content { .. } | StateBody::Blobs { .. }, None) => {}
            (body @ (StateBody::Busy | StateBody::AskContent { .. } | StateBody::AskBlobs { .. }), _) => {
                self.answer(StateMessage { body, ..message });
            }
        }
        self.go_on_receiving();
    }

    /// Takes the messages about states that are to be sent.
    pub fn take_state_messages(&mut self) -> Vec<StateMessage> {
        std::mem::take(&mut self.state_messages)
    }

    /// Takes the work on states that may block: see [`Work::run`].
    pub fn take_work(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.work)
    }

    /// Takes in what was done.
    pub fn worked(&mut self, worked: Worked) {
        let is_ours =
            |incoming: &&mut Incoming, attempt: Attempt| incoming.attempt.receiving == attempt.receiving;
        let incoming = self.incoming.as_mut();
        let is_well = match worked.0 {
            Done::Read { to, reader, offset, part } => return self.part_read(to, reader, offset, part),
            Done::ReadBlobs { to, state, whole_from, blobs } => {
                return self.blobs_read(to, state, whole_from, blobs);
            }
            Done::ReadCopies { to, blobs } => return self.copies_read(to, blobs),
            Done::Taken { attempt, taken } => match incoming.filter(|it| is_ours(it, attempt)) {
                Some(incoming) => incoming.taken(attempt, taken),
                None => return,
            },
            Done::Finished { attempt, received } => match incoming.filter(|it| is_ours(it, attempt)) {
                Some(incoming) => incoming.finished(received),
                None => return,
            },
        };
        if !is_well {
            // The leader offers it again, in time.
            self.incoming = None;
        }
        self.go_on_receiving();
    }

    /// Takes in the offer of a state, or its message where nothing of it is needed, or its term is over.
    pub(super) fn offered(&mut self, message: Message, snapshot: &Snapshot) -> Result<(), super::Dropped> {
        if self.is_past(message.term) || self.replica.has(snapshot.position) {
            self.replica.step(&message).map_err(super::Dropped::Message)?;
            self.settle(Vec::new());
            return Ok(());
        }
        let position = snapshot.position;
        let renewed = self.incoming.as_mut().map(|incoming| incoming.renew(message.clone(), position));
        if renewed != Some(true) {
            self.received += 1;
            let receiving = self.journal.receive();
            self.incoming = Some(Incoming::new(message, position, receiving, self.received));
        }
        self.go_on_receiving();
        Ok(())
    }

    /// Lets a tick pass for the state that is on its way to this node.
    pub(super) fn tick_receiving(&mut self) {
        if self.incoming.as_ref().is_some_and(|incoming| self.replica.has(incoming.position)) {
            self.incoming = None;
        }
        if let Some(incoming) = &mut self.incoming {
            incoming.tick();
        }
        self.go_on_receiving();
    }

    /// Hands on what came of an input for the state that is on its way to this node. Nothing is said to the
    /// leader of a term that is over: it may lead again and have the same state on its way, and would wait
    /// for ever for a follower that lacks the offer which can be installed. A leader that hears nothing
    /// offers it again.
    fn go_on_receiving(&mut self) {
        let given = self.given_index();
        let Some(incoming) = &mut self.incoming else { return };
        self.work.extend(incoming.next_work(given));
        let (leader, term, state) = (incoming.offer.from, incoming.offer.term, incoming.position);
        let asked = incoming.take_asked();
        if !self.is_past(term) {
            asked.into_iter().for_each(|body| self.tell(leader, state, body));
        }
    }

    /// True: a later term than this one has begun.
    fn is_past(&self, term: u64) -> bool {
        term < self.replica.standing().term
    }

    pub(super) fn tell(&mut self, to: NodeId, state: Position, body: StateBody) {
        self.state_messages.push(StateMessage { from: self.id, to, state, body });
    }

    /// Index of the last record of a state that is here as a whole, and whose leader leads still.
    pub fn installable(&self) -> Option<u64> {
        let incoming = self.incoming.as_ref()?;
        let received = incoming.whole()?;
        self.replica.installs(&incoming.offer).then(|| received.head().applied_index)
    }

    /// True: a state is on its way to this node.
    pub fn is_receiving(&self) -> bool {
        self.incoming.is_some()
    }

    /// Installs the state of [`Member::installable`] in place of the present one and of the whole log.
    /// `live` are all blobs to which it refers, each with its length in bytes. The owner takes over the state
    /// at once, and drops what it has not applied of the batches that it was given; the log goes on behind
    /// the state.
    ///
    /// # Errors
    ///
    /// The reason for which it was dropped; nothing else has changed.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn install(&mut self, live: impl IntoIterator<Item = (BlobKey, u32)>) -> Result<(), InstallError> {
        let mut incoming = self.incoming.take().expect("there is a state to be installed");
        let (position, whole_from) = (incoming.position, incoming.whole_from);
        let unreadable = incoming.take_unreadable();
        let (offer, received) = incoming.into_whole().expect("the state is whole");
        self.journal.install(received, whole_from, live)?;
        self.recent = Default::default();
        self.given = position;
        self.counts.received += 1;
        // It was checked before, and nothing has come since.
        self.replica.step(&offer).expect("the offer of a state that is installed");
        self.in_force = self.replica.members().clone();
        self.label();
        self.settle(Vec::new());
        unreadable.into_iter().for_each(|key| self.damaged(key));
        Ok(())
    }
}
