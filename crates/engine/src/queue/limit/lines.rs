//! Lines of messages with one limit key in one queue, and which of them go on.

use crate::core::Core;
use crate::limit::IDLE_LIMIT_KEYS_MAX;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::state::limit::Timed;
use crate::queue::state::{LimitKeySlot, LimitSlot, LineSlot, QueueSlot};
use crate::store::slot::Slot;

impl QueueModule {
    /// Empties a line whose messages were purged, and lets it belong to its queue's limit, with what is in
    /// flight.
    #[inline]
    pub(crate) fn freshen_line(&mut self, line: LineSlot) {
        if !self.is_fresh(line) {
            self.freshen_stale_line(line);
        }
    }

    /// True if a line is of its queue's generation, and belongs to its limit.
    #[inline]
    pub(crate) fn is_fresh(&self, line: LineSlot) -> bool {
        let known = self.queue_limits.lines.slots.get(line);
        let queue = self.queues.get(known.queue);
        let current = known.generation == queue.waiting_generation && !queue.deleted;
        current && self.limit_of(known.of) == queue.limit
    }

    /// Derives which messages were put back last, after all slots were read. The lists of lines of earlier
    /// generations are void.
    pub(crate) fn derive_put_back(&mut self) {
        let lines = &mut self.queue_limits.lines.slots;
        let mut put_back = Vec::new();
        for (slot, line) in lines.iter().filter(|(_, line)| !line.waiting.is_empty()) {
            let queue = self.queues.get(line.queue);
            if line.generation == queue.waiting_generation && !queue.deleted {
                put_back.push((slot, line.derive_put_back(&self.messages)));
            }
        }
        put_back.into_iter().for_each(|(slot, last)| lines.get_mut(slot).last_put_back = last);
    }

    /// The limit of a key, if that is any.
    #[inline]
    fn limit_of(&self, key: LimitKeySlot) -> LimitSlot {
        if key == Slot::NIL { Slot::NIL } else { self.queue_limits.keys.slots.get(key).limit }
    }

    #[inline(never)]
    fn freshen_stale_line(&mut self, line: LineSlot) {
        let known = self.queue_limits.lines.slots.get(line);
        let queue = self.queues.get(known.queue);
        let bound = self.limit_of(known.of);
        if known.generation != queue.waiting_generation || queue.deleted {
            let known = self.queue_limits.lines.slots.get_mut(line);
            known.generation = queue.waiting_generation;
            known.empty();
        }
        if bound != queue.limit {
            let limit = queue.limit;
            self.unbind_line(line);
            if limit != Slot::NIL {
                self.bind_line(line, limit);
            }
        }
    }

    fn bind_line(&mut self, line: LineSlot, limit: LimitSlot) {
        let known = self.queue_limits.lines.slots.get(line);
        let leased = known.leased;
        let (key, new) = self.queue_limits.keys.enter(limit, &known.key);
        let of = self.queue_limits.keys.slots.get_mut(key);
        of.in_flight += leased;
        let next = std::mem::replace(&mut of.lines, line);
        if new {
            let limit = self.queue_limits.slots.get_mut(limit);
            limit.keys += 1;
            of.version = limit.version;
        }
        let known = self.queue_limits.lines.slots.get_mut(line);
        (known.of, known.prev, known.next) = (key, Slot::NIL, next);
        if next == Slot::NIL {
            self.queue_limits.keys.idle -= 1;
        } else {
            self.queue_limits.lines.slots.get_mut(next).prev = line;
        }
        self.touch_limit_key(key);
    }

    fn unbind_line(&mut self, line: LineSlot) {
        let known = self.queue_limits.lines.slots.get_mut(line);
        let key = std::mem::replace(&mut known.of, Slot::NIL);
        if key == Slot::NIL {
            return;
        }
        let (prev, next, leased) = (known.prev, known.next, known.leased);
        if next != Slot::NIL {
            self.queue_limits.lines.slots.get_mut(next).prev = prev;
        }
        if prev != Slot::NIL {
            self.queue_limits.lines.slots.get_mut(prev).next = next;
        }
        let of = self.queue_limits.keys.slots.get_mut(key);
        of.in_flight -= leased;
        if prev == Slot::NIL {
            of.lines = next;
            self.queue_limits.keys.idle += u32::from(next == Slot::NIL);
        }
        self.touch_limit_key(key);
    }

    /// A message with a limit key is gone: without messages the line is idle.
    #[inline]
    pub(crate) fn leave_key_line(&mut self, line: LineSlot) {
        if let Some(oldest) = self.queue_limits.lines.leave(line) {
            self.forget_line(oldest);
        }
    }

    /// Forgets the lines of a queue that is gone.
    pub(crate) fn forget_lines_of(&mut self, queue_slot: QueueSlot) {
        let lines = &mut self.queue_limits.lines;
        for line in lines.idle.take(&lines.slots, |line| line.queue == queue_slot) {
            self.forget_line(line);
        }
    }

    fn forget_line(&mut self, line: LineSlot) {
        self.unbind_line(line);
        self.queue_limits.lines.remove(line);
    }

    /// Lets go on what may of a key, and sets its time. False when the budget was used up before.
    pub(crate) fn look_at_key(
        &mut self,
        key: LimitKeySlot,
        budget: &mut usize,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        self.follow_rules(key, core);
        if self.queue_limits.keys.slots.get(key).lines == Slot::NIL {
            self.keep_or_forget_key(key, core);
            return true;
        }
        let done = self.admit_waiting(key, budget, core, out);
        let due_us = if done { self.key_due_us(key) } else { 0 };
        self.queue_limits.set_timer(Timed::Key(key), due_us);
        done
    }

    /// A key without messages is kept as long as its rate remembers their deliveries.
    #[inline(never)]
    fn keep_or_forget_key(&mut self, key: LimitKeySlot, core: &Core) {
        let known = self.queue_limits.keys.slots.get(key);
        let slot = known.limit;
        let limit = self.queue_limits.slots.get(slot);
        let until_us = self.key_arrival(key).div_ceil(1_000);
        let keep = limit.pace_per_key.is_some() && !limit.deleted && until_us > core.now_us;
        if known.touched || (keep && self.queue_limits.keys.idle <= IDLE_LIMIT_KEYS_MAX) {
            return self.queue_limits.set_timer(Timed::Key(key), if keep { until_us } else { 0 });
        }
        self.queue_limits.set_timer(Timed::Key(key), 0);
        self.queue_limits.keys.remove(key);
        let limit = self.queue_limits.slots.get_mut(slot);
        limit.keys -= 1;
        if limit.deleted {
            self.touch_limit(slot, false);
        }
    }

    fn admit_waiting(
        &mut self,
        key: LimitKeySlot,
        budget: &mut usize,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        let mut line = self.queue_limits.keys.slots.get(key).lines;
        while line != Slot::NIL {
            let next = self.queue_limits.lines.slots.get(line).next;
            self.freshen_line(line);
            let known = self.queue_limits.lines.slots.get(line);
            let waits = known.of == key && !known.waiting.is_empty();
            if waits && !self.admit_from_line(line, budget, core, out) {
                return false;
            }
            line = next;
        }
        true
    }

    /// Lets messages of a line go on as long as there is room. False when the budget was used up before.
    pub(crate) fn admit_from_line(
        &mut self,
        line: LineSlot,
        budget: &mut usize,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        loop {
            let known = self.queue_limits.lines.slots.get(line);
            let head = known.waiting.head;
            if head == Slot::NIL || !self.key_has_room(known.of, known.ahead(), core) {
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            self.leave(head);
            self.enter_ready(head, core, out);
        }
    }

    /// When the rate lets a line of a key go on of which nothing is ready; 0: time alone lets none go on.
    fn key_due_us(&self, key: LimitKeySlot) -> u64 {
        let known = self.queue_limits.keys.slots.get(key);
        let limit = self.queue_limits.slots.get(known.limit);
        let Some(pace) = limit.pace_per_key else { return 0 };
        if limit.rules().in_flight_per_key.is_some_and(|most| known.in_flight >= most) {
            return 0;
        }
        let mut line = known.lines;
        while line != Slot::NIL {
            let of = self.queue_limits.lines.slots.get(line);
            let fresh = of.generation == self.queues.get(of.queue).waiting_generation;
            if fresh && of.ready == 0 && of.waiting_count > 0 {
                return pace.next_us(self.key_arrival(key));
            }
            line = of.next;
        }
        0
    }
}
