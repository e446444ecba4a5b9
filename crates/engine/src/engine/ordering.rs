//! Ordering keys: one message of a key goes on, the others wait for it in the order of sending.
//!
//! The active message keeps its key through delays, leases, failed attempts and while it is held; it gives it up when it
//! leaves the queue or dies. Messages that wait were possibly purged meanwhile: those are freed where they are met.

use super::Engine;
use super::sweep::Work;
use crate::outcome::Outcome;
use crate::state::message::BlockedBy;
use crate::store::NIL;

/// Purged messages that are freed at once where one is looked for that can go on.
const STALE_AT_ONCE: usize = 8;

impl Engine {
    /// Whether a message may go on as far as its ordering key is concerned; else it waits there.
    pub(super) fn pass_ordering(&mut self, slot: u32, key: u32, time_us: u64) -> bool {
        let active = self.ordering.slots.get(key).active;
        if active == NIL || active == slot || self.is_stale(active) {
            self.ordering.slots.get_mut(key).active = slot;
            return true;
        }
        self.enter_blocked(slot, BlockedBy::OrderingKey, time_us);
        self.ordering.slots.get_mut(key).waiting.push_back(&mut self.messages, slot);
        false
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

    /// Lets the next message of a key go on; false when the budget was used up on purged ones before.
    pub(super) fn activate_next(&mut self, key: u32, budget: &mut usize, out: &mut Outcome) -> bool {
        loop {
            let ordering = self.ordering.slots.get(key);
            let head = ordering.waiting.head;
            if ordering.active != NIL || head == NIL {
                return true;
            }
            if !self.is_stale(head) {
                let time_us = self.messages.get(head).time_us;
                self.leave(head);
                self.ordering.slots.get_mut(key).active = head;
                self.admit(head, time_us, out);
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            self.sweep_message(head, out);
        }
    }
}
