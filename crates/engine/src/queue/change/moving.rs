//! A message goes to another queue of its namespace. Its id stays, and so do the settings of its own; for the
//! rest it goes by its new queue's. Its keys are the new queue's, too.
//!
//! The messages of a queue are listed by id, and the list of all of them runs through the messages in that
//! order. One that comes with an earlier id than the last of them stands beside the list, in a set by id.

use crate::core::Core;
use crate::error::Error;
use crate::event::{EventDetail, EventKind};
use crate::id::QueueId;
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::flow::End;
use crate::queue::state::message::{Reason, SIBLINGS, mark};
use crate::queue::state::{ExtrasSlot, MessageSlot, QueueSlot};
use crate::store::slot::Slot;

/// The keys of a message, as bytes.
struct Keys {
    ordering: Option<Box<[u8]>>,
    fair: Option<Box<[u8]>>,
    limit: Option<Box<[u8]>>,
    /// And whether the message has it.
    unique: Option<(Box<[u8]>, bool)>,
}

impl QueueModule {
    /// The message is in a state that may move.
    pub(crate) fn move_message(
        &mut self,
        slot: MessageSlot,
        to: QueueSlot,
        core: &Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let message = self.messages.get(slot);
        let (state, reason, time_us) = (message.state, message.reason, message.time_us);
        if message.queue == to {
            let reason = format!("the message is in queue {:?} already", self.queues.get(to).name);
            return Err(Error::InvalidArgument { field: "to".into(), reason });
        }
        if state != Some(State::Dead) {
            self.admit_room(to, 1, message.blob_len.into())?;
            let due_us = match state {
                Some(State::Held) => self.due_of_held(slot),
                Some(State::Delayed | State::Blocked) => time_us,
                _ => 0,
            };
            self.admit_age(to, due_us, core)?;
        }
        self.admit_unique_move(slot, to, core)?;
        self.leave(slot);
        self.change_queue(slot, to, core, out);
        if state != Some(State::Dead) && reason != Reason::PayloadDamaged {
            self.begin_age(slot, core);
        }
        match state {
            Some(State::Held) => {
                self.claim_ordering(slot);
                self.enter_held(slot, reason, time_us);
            }
            Some(State::Dead) => self.enter_dead(slot, reason, time_us),
            Some(State::Delayed | State::Blocked) => self.admit(slot, time_us, core, out),
            _ => self.admit(slot, 0, core, out),
        }
        Ok(())
    }

    /// Gives a message that is in no state to another queue, where it is in none, either.
    pub(crate) fn change_queue(&mut self, slot: MessageSlot, to: QueueSlot, core: &Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        let (from, extras) = (message.queue, message.extras);
        let unique = self.take_unique_along(slot);
        self.give_up_keys(slot, End::Failed, core);
        let keys = self.take_keys(extras, unique);
        self.leave_siblings(slot);
        self.messages.get_mut(slot).queue = to;
        self.join_siblings(slot);
        self.count_moved(slot, from, to);
        let from = QueueId(self.queues.get(from).number);
        self.tell_more(slot, EventKind::Moved, EventDetail::From(from), core, out);
        self.enter_keys(slot, &keys, core);
    }

    fn count_moved(&mut self, slot: MessageSlot, from: QueueSlot, to: QueueSlot) {
        let len = u64::from(self.messages.get(slot).blob_len);
        let counters = &mut self.queues.get_mut(from).counters;
        counters.bytes -= len;
        counters.moved_out += 1;
        let counters = &mut self.queues.get_mut(to).counters;
        counters.bytes += len;
        counters.moved_in += 1;
        self.totals.moved_out += 1;
        self.totals.moved_in += 1;
    }

    /// Takes a message, which is in no state, out of the tables of its keys.
    fn take_keys(&mut self, extras: ExtrasSlot, unique: Option<(Box<[u8]>, bool)>) -> Keys {
        let Some(&options) = self.extras.options(extras) else {
            return Keys { ordering: None, fair: None, limit: None, unique: None };
        };
        let keys = Keys {
            ordering: (options.ordering != Slot::NIL).then(|| self.ordering.key(options.ordering).into()),
            fair: (options.fair != Slot::NIL).then(|| self.lanes.key(options.fair).into()),
            limit: (options.limit != Slot::NIL).then(|| self.queue_limits.lines.key(options.limit).into()),
            unique,
        };
        self.leave_keys(&options);
        keys
    }

    /// Enters them into those of its new queue.
    fn enter_keys(&mut self, slot: MessageSlot, keys: &Keys, core: &Core) {
        let message = self.messages.get(slot);
        let (queue, priority, extras) = (message.queue, message.priority, message.extras);
        let Some(&(mut options)) = self.extras.options(extras) else { return };
        if let Some(key) = &keys.ordering {
            options.ordering = self.ordering.enter(queue, key);
        }
        if let Some(key) = &keys.fair {
            options.fair = self.lanes.enter(queue, priority, key);
        }
        if let Some(key) = &keys.limit {
            options.limit = self.queue_limits.lines.enter(queue, key);
        }
        if let Some((key, holds)) = &keys.unique {
            options.unique = self.enter_unique(slot, key, *holds, core);
        }
        self.extras.set_options(extras, options);
    }

    /// Off the list of all messages of its queue.
    #[inline(always)]
    pub(crate) fn leave_siblings(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let (queue_slot, next) = (message.queue, message.links[SIBLINGS].next);
        if message.marks != 0 {
            let arrived = message.is_marked(mark::ARRIVED);
            self.forget_marks(slot);
            if arrived {
                return;
            }
        }
        let queue = self.queues.get_mut(queue_slot);
        if queue.purge_cursor == slot {
            queue.purge_cursor = next;
        }
        queue.all.unlink(&mut self.messages, slot);
    }

    fn join_siblings(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let sequence = message.sequence;
        let queue = self.queues.get_mut(message.queue);
        let last = queue.all.tail;
        let arrived = last != Slot::NIL && self.messages.get(last).sequence > sequence;
        if arrived {
            queue.arrived.insert(sequence);
        } else {
            queue.all.push_back(&mut self.messages, slot);
        }
        let message = self.messages.get_mut(slot);
        message.marks &= mark::UNAPPROVED;
        message.marks |= if arrived { mark::ARRIVED } else { 0 };
        self.come_back(slot);
        self.arrive_with_terms(slot);
    }
}
