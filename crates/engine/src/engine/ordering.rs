//! Ordering keys: one message of a key goes on, the others wait for it in the order of sending.
//!
//! A queue may say that a message which is delayed steps aside: then it is not the active one until its time has come.
//!
//! The active message keeps its key through delays, leases, failed attempts and while it is held; it gives it up when it
//! leaves the queue or dies. Messages that wait were possibly purged meanwhile: those are freed where they are met.

use super::Engine;
use super::sweep::Work;
use crate::outcome::Outcome;
use crate::plant::{self, Plant};
use crate::settings::OrderingRetry;
use crate::state::message::BlockedBy;
use crate::store::NIL;

/// Purged messages that are freed at once where one is looked for that can go on.
const STALE_AT_ONCE: usize = 8;

impl Engine {
    /// Whether a message may go on as far as its ordering key is concerned; else it waits there.
    pub(super) fn pass_ordering(&mut self, slot: u32, key: u32, time_us: u64) -> bool {
        if plant::is(Plant::PassOrderingKey) && self.messages.get(slot).sequence.is_multiple_of(4) {
            return true;
        }
        let active = self.ordering.slots.get(key).active;
        if active == NIL || active == slot || self.is_stale(active) {
            self.ordering.slots.get_mut(key).active = slot;
            return true;
        }
        self.enter_blocked(slot, BlockedBy::OrderingKey, time_us);
        self.ordering.slots.get_mut(key).wait(&mut self.messages, slot);
        false
    }

    /// A message that is about to be held, or moved while it is, blocks its ordering key if that is free.
    pub(super) fn claim_ordering(&mut self, slot: u32) {
        let Some(options) = self.extras.options(self.messages.get(slot).extras) else { return };
        let key = options.ordering;
        if key == NIL {
            return;
        }
        let known = self.ordering.slots.get(key);
        if known.is_free() && (known.active == NIL || self.is_stale(known.active)) {
            self.ordering.slots.get_mut(key).active = slot;
        }
    }

    /// Whether a message that is delayed lets the others of its ordering key go on.
    pub(super) fn steps_aside(&self, slot: u32) -> bool {
        let queue = self.queues.get(self.messages.get(slot).queue);
        queue.settings.ordering_retry == OrderingRetry::StepAside
    }

    /// A message is gone or dead: if it was the active one of its key, the next goes on.
    pub(super) fn free_ordering(&mut self, slot: u32, key: u32, out: &mut Outcome) {
        let ordering = self.ordering.slots.get_mut(key);
        if ordering.active != slot {
            return;
        }
        ordering.active = NIL;
        let mut budget = STALE_AT_ONCE;
        if !self.activate_next(key, &mut budget, out) {
            self.ordering.slots.get_mut(key).working = true;
            self.list_work(Work::OrderingKey(key));
        }
    }

    /// Lets the next message of a key go on; false when the budget was used up on purged ones, and ones that are over, before.
    pub(super) fn activate_next(&mut self, key: u32, budget: &mut usize, out: &mut Outcome) -> bool {
        loop {
            let ordering = self.ordering.slots.get(key);
            let head = ordering.first(&self.messages);
            if ordering.active != NIL || head == NIL {
                return true;
            }
            let time_us = self.messages.get(head).time_us;
            let stale = self.is_stale(head);
            if !stale && !self.is_over(head, time_us) {
                self.leave(head);
                self.ordering.slots.get_mut(key).active = head;
                self.admit(head, time_us, out);
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            if stale {
                self.sweep_message(head, out);
            } else {
                self.end_waiting(head, out);
            }
        }
    }
}
