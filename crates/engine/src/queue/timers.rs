//! Tick: what is due happens, a slice at a time.

use crate::core::Core;
use crate::core::wheel::FIRE_COST;
use crate::event::EventKind;
use crate::limits::SLICE_ITEMS;
use crate::outcome::Outcome;
use crate::plant::{self, Plant};
use crate::query::{AttemptEnd, State};
use crate::queue::QueueModule;
use crate::queue::state::MessageSlot;
use crate::queue::state::message::Reason;

/// Part of a tick's slice that limits, redrives and work have, however many timers are due.
const FOR_OTHERS: usize = SLICE_ITEMS / 4;

impl QueueModule {
    pub(crate) fn tick(&mut self, core: &mut Core, out: &mut Outcome) {
        let mut budget = (SLICE_ITEMS - FOR_OTHERS) * FIRE_COST;
        self.settle_within(&mut budget, core, out);
        while let Some(slot) = self.wheel.due(&mut self.messages, core.now_us, &mut budget) {
            self.fire(slot, core, out);
            self.settle_within(&mut budget, core, out);
        }
        self.fire_expiries(&mut budget, core, out);
        while self.unique.wheel.len() > 0
            && let Some(key) = self.unique.wheel.due(&mut self.unique.slots, core.now_us, &mut budget)
        {
            self.unique.end_lingering(key);
        }
        let mut budget = budget / FIRE_COST + FOR_OTHERS;
        self.fire_limits(&mut budget, core, out);
        self.fire_redrives(&mut budget, core, out);
        self.do_work(budget, core, out);
    }

    /// Does consequences within `budget`, the rest of the tick's budget for timers: [`FIRE_COST`] for each
    /// message that is changed.
    #[inline]
    pub(crate) fn settle_within(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        if !self.consequences.is_empty() {
            let mut left = budget.div_ceil(FIRE_COST);
            self.settle_consequences(&mut left, core, out);
            *budget = (*budget).min(left * FIRE_COST);
        }
    }

    fn fire(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        if self.is_stale(slot) {
            return self.sweep_message(slot, core, out);
        }
        match self.messages.get(slot).state {
            Some(State::Leased) => self.expire(slot, core, out),
            Some(State::Done) => self.end_keeping(slot, core, out),
            _ => {
                self.tell(slot, EventKind::Due, core, out);
                self.make_ready(slot, core, out);
            }
        }
    }

    /// The lease has ended by itself: a failed attempt. The next one is ready at once, since the lease was
    /// its delay.
    fn expire(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        if self.is_cancelled(slot) {
            return self.remove_cancelled(slot, core, out);
        }
        if self.is_given_back(slot) {
            self.count_each(slot, |counters| counters.released += 1);
            self.tell(slot, EventKind::Released, core, out);
            self.record_attempt(slot, AttemptEnd::Released, None, core, out);
            return self.release(slot, 0, core, out);
        }
        self.tell(slot, EventKind::Expired, core, out);
        self.record_attempt(slot, AttemptEnd::Expired, None, core, out);
        let message = self.messages.get(slot);
        if !plant::is(Plant::DropCounter) {
            self.queues.get_mut(message.queue).counters.expired += 1;
        }
        self.totals.expired += 1;
        if self.is_spent(message) {
            self.make_dead(slot, Reason::MaxAttempts, core, out);
        } else {
            self.make_ready(slot, core, out);
        }
    }
}
