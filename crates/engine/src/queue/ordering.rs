//! Ordering keys: one message of a key goes on, the others wait for it in the order of sending.
//!
//! A queue may say that a message which is delayed steps aside: then it is not the active one until its time
//! has come.
//!
//! The active message keeps its key through delays, leases, failed attempts and while it is held; it gives it
//! up when it leaves the queue or dies. Then the next one goes on, as a consequence; until it does, who comes
//! meanwhile waits behind it. A purge voids all that wait for a key at once, by their generation.

use crate::core::Core;
use crate::outcome::Outcome;
use crate::plant::{self, Plant};
use crate::queue::QueueModule;
use crate::queue::state::consequence::Consequence;
use crate::queue::state::message::BlockedBy;
use crate::queue::state::{MessageSlot, OrderingSlot};
use crate::settings::OrderingRetry;
use crate::store::slot::Slot;

impl QueueModule {
    /// True if a message may go on as far as its ordering key is concerned; else it waits there.
    pub(crate) fn pass_ordering(&mut self, slot: MessageSlot, key: OrderingSlot, time_us: u64) -> bool {
        if plant::is(Plant::PassOrderingKey) && self.messages.get(slot).sequence.is_multiple_of(4) {
            return true;
        }
        if self.ordering.slots.get(key).active == slot {
            return true;
        }
        if self.nobody_has(key) {
            self.ordering.slots.get_mut(key).active = slot;
            return true;
        }
        self.enter_blocked(slot, BlockedBy::OrderingKey, time_us);
        self.ordering.slots.get_mut(key).wait(&mut self.messages, slot);
        false
    }

    /// True if a key has no active message, and none that waits.
    fn nobody_has(&mut self, key: OrderingSlot) -> bool {
        self.refresh_ordering(key);
        let known = self.ordering.slots.get(key);
        (known.active == Slot::NIL || self.is_stale(known.active)) && known.is_free()
    }

    /// Takes those that waited for a key before the latest purge of its queue off its list.
    fn refresh_ordering(&mut self, key: OrderingSlot) {
        let known = self.ordering.slots.get(key);
        let generation = self.queues.get(known.queue).waiting_generation;
        if !known.is_of(generation) {
            self.ordering.slots.get_mut(key).refresh(generation);
        }
    }

    /// Makes a message that is held, or about to be, the active one of its ordering key, if that is free. One
    /// that waits for its parents does not take the key: they may need it.
    pub(crate) fn claim_ordering(&mut self, slot: MessageSlot) {
        let Some(options) = self.extras.options(self.messages.get(slot).extras) else { return };
        let (key, flow) = (options.ordering, options.flow);
        let waits = flow != Slot::NIL && self.flows.slots.get(flow).waiting;
        if key != Slot::NIL && !waits && self.nobody_has(key) {
            self.ordering.slots.get_mut(key).active = slot;
        }
    }

    /// True if a message that is delayed lets the others of its ordering key go on.
    pub(crate) fn steps_aside(&self, slot: MessageSlot) -> bool {
        let queue = self.queues.get(self.messages.get(slot).queue);
        queue.settings.ordering_retry == OrderingRetry::StepAside
    }

    /// Frees the ordering key of a message that is gone or dead, or steps aside, if it was the active one;
    /// lists the activation of the next one.
    pub(crate) fn free_ordering(&mut self, slot: MessageSlot, key: OrderingSlot) {
        if self.ordering.slots.get(key).active != slot {
            return;
        }
        self.refresh_ordering(key);
        let deleted = self.queues.get(self.ordering.slots.get(key).queue).deleted;
        let ordering = self.ordering.slots.get_mut(key);
        ordering.active = Slot::NIL;
        if !ordering.is_free() && !ordering.working && !deleted {
            ordering.working = true;
            self.list(Consequence::Activate(key));
        }
    }

    /// Does [`Consequence::Activate`]; false if `budget` was used up before.
    pub(crate) fn activate_listed(
        &mut self,
        key: OrderingSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        let done = self.activate_next(key, budget, core, out);
        if done {
            self.ordering.end_work(key);
        }
        done
    }

    /// Lets the next message of a key go on, behind those that end and those that step aside. False if
    /// `budget` was used up before.
    fn activate_next(
        &mut self,
        key: OrderingSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        loop {
            self.refresh_ordering(key);
            let ordering = self.ordering.slots.get(key);
            let head = ordering.first(&self.messages);
            let taken = ordering.active != Slot::NIL && !self.is_stale(ordering.active);
            if taken || head == Slot::NIL || self.queues.get(ordering.queue).deleted {
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let time_us = self.messages.get(head).time_us;
            if self.is_over(head, time_us, core) {
                self.end_waiting(head, core, out);
                continue;
            }
            self.leave(head);
            if time_us <= core.now_us || !self.steps_aside(head) {
                self.ordering.slots.get_mut(key).active = head;
            }
            self.admit(head, time_us, core, out);
        }
    }
}
