//! How a message comes, goes from place to place, and leaves: one function each, through which every command goes, so
//! that what heeds such a step is told of it in one place.

use sluice_engine::id::MessageId;
use sluice_engine::query::Counters;

use super::Apply;
use super::state::{Message, Place};

impl Apply<'_> {
    /// A new message.
    pub(super) fn add(&mut self, id: MessageId, message: Message) {
        if let Some(queue) = self.world.queues.get_mut(&message.queue) {
            queue.totals.sent += 1;
            queue.keyed |= message.keys.any();
        }
        self.world.messages.insert(id, message);
    }

    pub(super) fn make_ready(&mut self, id: MessageId) {
        let line = self.next_line();
        self.put(id, Place::Ready { line });
    }

    pub(super) fn put(&mut self, id: MessageId, place: Place) {
        if let Some(message) = self.world.messages.get_mut(&id) {
            message.place = place;
        }
    }

    /// A dead letter.
    pub(super) fn die(&mut self, id: MessageId, reason: &'static str) {
        self.put(id, Place::Dead { reason });
        self.total(id, |totals| totals.died += 1);
    }

    /// Gone for good.
    pub(super) fn remove(&mut self, id: MessageId) {
        self.world.messages.remove(&id);
    }

    /// Counts something of the message's queue.
    pub(super) fn total(&mut self, id: MessageId, change: impl FnOnce(&mut Counters)) {
        if let Some(queue) = self.world.messages.get(&id).map(|message| message.queue)
            && let Some(queue) = self.world.queues.get_mut(&queue)
        {
            change(&mut queue.totals);
        }
    }
}
