//! Transitions of messages between places, one function each. Every command uses them, so that each rule
//! about a transition has one place.

use sluice_engine::id::{MessageId, QueueId};
use sluice_engine::query::Counters;

use super::Apply;
use super::{Line, Message, MessagePlace};

impl Apply<'_> {
    /// Adds a new message.
    pub(super) fn add(&mut self, id: MessageId, message: Message) {
        if let Some(queue) = self.world.queues.get_mut(&message.queue) {
            queue.totals.sent += 1;
            queue.knows(&message.keys);
            if message.flow.may_block() {
                (queue.keyed, queue.blocks) = (true, true);
            }
        }
        self.world.messages.insert(id, message);
        self.take_key(id, true);
        self.begin_end(id);
    }

    /// Makes a message delayed until its time, or ready if that has come.
    pub(super) fn admit(&mut self, id: MessageId, due_us: u64) {
        if due_us <= self.now_us {
            return self.make_ready(id);
        }
        self.put(id, MessagePlace::Delayed { until_us: due_us });
        self.step_aside(id);
        self.ends.push(id);
    }

    /// Makes a dead letter ready again, or held if it was when it died.
    pub(super) fn redrive(&mut self, id: MessageId) {
        self.total(id, |totals| totals.redriven += 1);
        if let Some(message) = self.world.messages.get_mut(&id) {
            message.attempts = 0;
            message.deliveries = 0;
            message.turn.strays();
        }
        self.forget_end(id);
        self.begin_age(id);
        self.take_key(id, false);
        let unapproved =
            self.world.messages.get_mut(&id).is_some_and(|it| std::mem::take(&mut it.unapproved));
        if unapproved { self.hold(id, "hold") } else { self.make_ready(id) }
    }

    /// The same in slices, whose messages have one place in line unless they are held.
    pub(super) fn redrive_into(&mut self, id: MessageId, line: Line) {
        self.redrive(id);
        if !matches!(self.world.messages[&id].place, MessagePlace::Held { .. }) {
            self.put(id, MessagePlace::Ready { line });
        }
    }

    /// Moves a message to another queue; the caller gives it a place there.
    pub(super) fn move_to(&mut self, id: MessageId, to: QueueId) {
        self.total(id, |totals| totals.moved_out += 1);
        self.take_key_along(id, to);
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        message.queue = to;
        message.turn.ends();
        if let Some(queue) = self.world.queues.get_mut(&to) {
            queue.totals.moved_in += 1;
            queue.knows(&message.keys);
        }
        self.begin_age(id);
    }

    /// Makes a message ready, unless its end has come.
    pub(super) fn make_ready(&mut self, id: MessageId) {
        self.put_ready(id);
        self.ends.push(id);
    }

    pub(super) fn put_ready(&mut self, id: MessageId) {
        let line = self.next_line();
        self.put(id, MessagePlace::Ready { line });
    }

    pub(super) fn put(&mut self, id: MessageId, place: MessagePlace) {
        if let Some(message) = self.world.messages.get_mut(&id) {
            message.place = place;
        }
    }

    /// Makes a message a dead letter, in its own queue or in the dead-letter queue.
    pub(super) fn die(&mut self, id: MessageId, reason: &'static str) {
        self.lose_key(id);
        self.total(id, |totals| totals.died += 1);
        self.end_in_flows(id, false);
        self.fail(id, reason);
        self.keep_due(id, 0);
        let unapproved =
            self.world.messages.get(&id).is_some_and(|it| matches!(it.place, MessagePlace::Held { .. }));
        if !unapproved && self.forward(id, reason) {
            return;
        }
        let line = self.next_line();
        self.put(id, MessagePlace::Dead { reason });
        if let Some(message) = self.world.messages.get_mut(&id) {
            message.died = line;
            message.unapproved = unapproved;
            message.turn.ends();
        }
    }

    /// Removes a message for good.
    pub(super) fn remove(&mut self, id: MessageId) {
        self.end_in_flows(id, false);
        self.world.messages.remove(&id);
    }

    /// Changes the totals of the message's queue.
    pub(super) fn total(&mut self, id: MessageId, change: impl FnOnce(&mut Counters)) {
        if let Some(queue) = self.world.messages.get(&id).map(|message| message.queue)
            && let Some(queue) = self.world.queues.get_mut(&queue)
        {
            change(&mut queue.totals);
        }
    }
}
