//! Waking: messages go on when places were freed, times have come, or rules have changed.

use crate::core::Core;
use crate::id::QueueId;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::state::consequence::Consequence;
use crate::queue::state::limit::Timed;
use crate::queue::state::{LimitKeySlot, LimitSlot, QueueSlot};
use crate::store::slab::Item as _;
use crate::store::slot::Slot;

impl QueueModule {
    /// Lists a look at a limit; `freed`: there may be room again.
    #[inline]
    pub(crate) fn touch_limit(&mut self, slot: LimitSlot, freed: bool) {
        let limit = self.queue_limits.slots.get_mut(slot);
        limit.freed |= freed;
        if !std::mem::replace(&mut limit.touched, true) {
            self.list(Consequence::Limit(slot));
        }
    }

    /// Lists a look at a limit key.
    #[inline]
    pub(crate) fn touch_limit_key(&mut self, key: LimitKeySlot) {
        let known = self.queue_limits.keys.slots.get_mut(key);
        if !std::mem::replace(&mut known.touched, true) {
            self.list(Consequence::LimitKey(key));
        }
    }

    /// Lets what may go on of a limit or limit key, and sets its time. A key for which `budget` was used up
    /// is listed again.
    pub(crate) fn look_at_timed(&mut self, timed: Timed, budget: &mut usize, core: &Core, out: &mut Outcome) {
        match timed {
            Timed::Limit(slot) => {
                *budget = budget.saturating_sub(1);
                self.look_at_limit(slot, core, out);
            }
            Timed::Key(key) => {
                if !self.look_at_key(key, budget, core, out) {
                    self.touch_limit_key(key);
                }
            }
        }
    }

    /// Wakes the queues of a limit which has room again, or sets the time at which it has.
    fn look_at_limit(&mut self, slot: LimitSlot, core: &Core, out: &mut Outcome) {
        let limit = self.queue_limits.slots.get_mut(slot);
        // Its time may have come before its timer fires.
        let freed = std::mem::take(&mut limit.freed) || limit.timer_us != 0;
        if limit.deleted {
            if limit.keys == 0 && limit.cursor == Slot::NIL && !limit.touched {
                self.queue_limits.slots.remove(slot);
            }
            return;
        }
        let limit = self.queue_limits.slots.get(slot);
        let has_ready = |queue: &&QueueSlot| self.queues.get(**queue).ready.occupied != 0;
        let mut due_us = 0;
        if limit.has_room(core.now_us) {
            if freed {
                let ready = limit.queues.iter().filter(has_ready);
                out.ready.extend(ready.map(|queue| QueueId(self.queues.get(*queue).number)));
            }
        } else if let Some(pace) = limit.pace
            && !pace.allows_after(0, limit.arrival_ns, core.now_us)
            && limit.queues.iter().any(|queue| has_ready(&queue))
        {
            due_us = pace.next_us(limit.arrival_ns);
        }
        self.queue_limits.set_timer(Timed::Limit(slot), due_us);
    }

    /// When the first limit or key has its time.
    pub(crate) fn next_limit_us(&self) -> Option<u64> {
        self.queue_limits.timers.first().map(|(time_us, _)| *time_us)
    }

    /// Lets happen what is due.
    pub(crate) fn fire_limits(&mut self, budget: &mut usize, core: &Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(&(time_us, timed)) = self.queue_limits.timers.first()
            && time_us <= core.now_us
        {
            *budget -= 1;
            self.queue_limits.set_timer(timed, 0);
            if let Timed::Limit(slot) = timed {
                self.queue_limits.slots.get_mut(slot).freed = true;
            }
            self.look_at_timed(timed, budget, core, out);
        }
    }

    /// The rules of a limit have changed, or it is deleted: looks at all its keys. True when nothing is left
    /// to do.
    pub(crate) fn work_on_limit(
        &mut self,
        slot: LimitSlot,
        budget: &mut usize,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            *budget -= 1;
            let cursor = self.queue_limits.slots.get(slot).cursor;
            if cursor.index() >= self.queue_limits.keys.slots.slots() {
                let limit = self.queue_limits.slots.get_mut(slot);
                (limit.cursor, limit.past) = (Slot::NIL, Vec::new());
                self.touch_limit(slot, false);
                return true;
            }
            let known = self.queue_limits.keys.slots.get(cursor);
            let of_it = known.next_vacant().is_none() && known.limit == slot;
            if of_it && !self.look_at_key(cursor, budget, core, out) {
                return false;
            }
            self.queue_limits.slots.get_mut(slot).cursor = cursor.next();
        }
        false
    }

    /// A queue has another limit: its lines follow. True when nothing is left to do.
    pub(crate) fn work_on_lines(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            *budget -= 1;
            let cursor = self.queues.get(queue_slot).lines_cursor;
            if cursor.index() >= self.queue_limits.lines.slots.slots() {
                self.queues.get_mut(queue_slot).lines_cursor = Slot::NIL;
                return true;
            }
            let line = self.queue_limits.lines.slots.get(cursor);
            if line.next_vacant().is_none() && line.queue == queue_slot {
                self.freshen_line(cursor);
                if !self.admit_from_line(cursor, budget, core, out) {
                    return false;
                }
            }
            self.queues.get_mut(queue_slot).lines_cursor = cursor.next();
        }
        false
    }
}
