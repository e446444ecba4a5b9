//! The gate of a limit: whether a delivery may begin, and how its beginning and end are counted.

use crate::core::Core;
use crate::limit::{Cost, Pace};
use crate::plant::{self, Plant};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::limit::{COSTS_SINCE, SPENT_STAYS_SINCE};
use crate::queue::state::limit_key::{Ahead, PUT_BACK_US};
use crate::queue::state::message::BlockedBy;
use crate::queue::state::queue::Queue;
use crate::queue::state::{ExtrasSlot, LimitKeySlot, LimitSlot, LineSlot, MessageSlot, QueueSlot};
use crate::store::slot::Slot;

impl QueueModule {
    /// Deliveries that a queue and its limit allow now.
    #[inline]
    pub(crate) fn room_to_begin(&self, queue: &Queue, core: &Core) -> u64 {
        if queue.settings.paused {
            0
        } else if queue.limit == Slot::NIL {
            u64::MAX
        } else {
            self.queue_limits.slots.get(queue.limit).room(core.now_us)
        }
    }

    /// True if any message of a queue may begin now, as far as the queue itself and its limit are concerned.
    #[inline(always)]
    pub(crate) fn has_room_to_begin(&self, queue: &Queue, core: &Core) -> bool {
        let open = !queue.settings.paused;
        open && (queue.limit == Slot::NIL || self.queue_limits.slots.get(queue.limit).has_room(core.now_us))
    }

    /// The line of a message's limit key; `NIL`: it has none.
    #[inline]
    pub(crate) fn key_line(&self, extras: ExtrasSlot) -> LineSlot {
        self.line_and_cost(extras).0
    }

    /// The same, and what a delivery of the message costs.
    #[inline]
    pub(crate) fn line_and_cost(&self, extras: ExtrasSlot) -> (LineSlot, Cost) {
        let options = self.extras.options(extras);
        options.map_or((Slot::NIL, Cost::default()), |options| (options.limit, options.cost))
    }

    /// True if a message may become ready as far as its limit key is concerned; else it waits in its line.
    pub(crate) fn pass_limit(&mut self, slot: MessageSlot, line: LineSlot, core: &Core) -> bool {
        self.freshen_line(line);
        let known = self.queue_limits.lines.slots.get(line);
        if known.waiting.is_empty() && self.key_has_room(known.of, known.ahead(), core) {
            return true;
        }
        self.block_by_limit(slot, line);
        false
    }

    /// True if one more message of a key may begin now, after others.
    #[inline]
    pub(crate) fn key_has_room(&self, key: LimitKeySlot, others: Ahead, core: &Core) -> bool {
        if key == Slot::NIL {
            return true;
        }
        let known = self.queue_limits.keys.slots.get(key);
        let limit = self.queue_limits.slots.get(known.limit);
        let more = u32::from(plant::is(Plant::ExceedLimit));
        let has_place = |most: u32| (most + more).saturating_sub(known.in_flight) > others.count;
        let allows = |pace: Pace| pace.allows_after(others.cost, self.key_arrival(key), core.now_us);
        limit.rules().in_flight_per_key.is_none_or(has_place) && limit.pace_per_key.is_none_or(allows)
    }

    /// The theoretical arrival time of a key's next delivery, under the rules in force.
    #[inline]
    pub(crate) fn key_arrival(&self, key: LimitKeySlot) -> u64 {
        let known = self.queue_limits.keys.slots.get(key);
        self.queue_limits.slots.get(known.limit).arrival_of_key(known.arrival_ns, known.version)
    }

    /// Lets a key's arrival time be kept as it is under the rules in force.
    pub(crate) fn follow_rules(&mut self, key: LimitKeySlot, core: &Core) {
        let known = self.queue_limits.keys.slots.get(key);
        let version = self.queue_limits.slots.get(known.limit).version;
        if known.version != version && core.expect_behaviour(SPENT_STAYS_SINCE).is_ok() {
            let arrival_ns = self.key_arrival(key);
            let known = self.queue_limits.keys.slots.get_mut(key);
            (known.arrival_ns, known.version) = (arrival_ns, version);
        }
    }

    /// True if a ready message with this line may begin as far as its limit key is concerned.
    #[inline]
    pub(crate) fn may_begin(&mut self, line: LineSlot, core: &Core) -> bool {
        if line == Slot::NIL {
            return true;
        }
        self.freshen_line(line);
        self.key_has_room(self.queue_limits.lines.slots.get(line).of, Ahead::NONE, core)
    }

    /// Sends a ready message that may not begin after all to the front of its line, behind those that were
    /// sent there before it; before [`COSTS_SINCE`] before them.
    pub(crate) fn bounce(&mut self, slot: MessageSlot, core: &Core) {
        let line = self.key_line(self.messages.get(slot).extras);
        self.leave(slot);
        let in_order = core.expect_behaviour(COSTS_SINCE).is_ok();
        self.enter_blocked(slot, BlockedBy::Limit, if in_order { PUT_BACK_US } else { 0 });
        let known = self.queue_limits.lines.slots.get_mut(line);
        if in_order {
            known.put_back(&mut self.messages, slot);
        } else {
            known.waiting.push_front(&mut self.messages, slot);
        }
        self.joined_line(line);
    }

    fn block_by_limit(&mut self, slot: MessageSlot, line: LineSlot) {
        self.enter_blocked(slot, BlockedBy::Limit, 0);
        self.queue_limits.lines.slots.get_mut(line).waiting.push_back(&mut self.messages, slot);
        self.joined_line(line);
    }

    /// One more message waits in a line.
    fn joined_line(&mut self, line: LineSlot) {
        let known = self.queue_limits.lines.slots.get_mut(line);
        known.waiting_count += 1;
        let key = known.of;
        if key != Slot::NIL {
            self.touch_limit_key(key);
        }
    }

    /// A message that waits in its line leaves it. The lines of stale messages are void.
    pub(crate) fn leave_line(&mut self, slot: MessageSlot) {
        if self.is_stale(slot) {
            return;
        }
        let line = self.key_line(self.messages.get(slot).extras);
        let known = self.queue_limits.lines.slots.get_mut(line);
        known.take_out(&mut self.messages, slot);
    }

    /// A message with this line, if any, becomes ready.
    #[inline]
    pub(crate) fn limit_ready(&mut self, queue_slot: QueueSlot, (line, cost): (LineSlot, Cost), core: &Core) {
        let limit = self.queues.get(queue_slot).limit;
        if limit != Slot::NIL && self.queue_limits.slots.get(limit).pace.is_some() {
            self.touch_used_up(limit, core);
        }
        if line != Slot::NIL {
            self.freshen_line(line);
            let known = self.queue_limits.lines.slots.get_mut(line);
            known.ready += 1;
            known.ready_cost += u64::from(cost.0);
        }
    }

    /// A message that was ready, and is not stale, is no longer.
    pub(crate) fn limit_unready(&mut self, extras: ExtrasSlot) {
        let (line, cost) = self.line_and_cost(extras);
        if line == Slot::NIL {
            return;
        }
        let known = self.queue_limits.lines.slots.get_mut(line);
        known.ready -= 1;
        known.ready_cost -= u64::from(cost.0);
        let key = known.of;
        if key != Slot::NIL && known.waiting_count > 0 {
            self.touch_limit_key(key);
        }
    }

    /// A ready message has become leased.
    pub(crate) fn begin_flight(&mut self, queue_slot: QueueSlot, extras: ExtrasSlot, core: &Core) {
        let slot = self.queues.get(queue_slot).limit;
        let (line, cost) = self.line_and_cost(extras);
        if slot != Slot::NIL {
            self.queue_limits.slots.get_mut(slot).in_flight += 1;
            self.spend_overall(slot, cost.0, core);
        }
        if line == Slot::NIL {
            return;
        }
        if slot == Slot::NIL && core.expect_behaviour(SPENT_STAYS_SINCE).is_ok() {
            // It may still belong to a limit that its queue has left.
            self.freshen_line(line);
        }
        let known = self.queue_limits.lines.slots.get_mut(line);
        known.ready -= 1;
        known.ready_cost -= u64::from(cost.0);
        known.leased += 1;
        let key = known.of;
        if key == Slot::NIL {
            return;
        }
        self.queue_limits.keys.slots.get_mut(key).in_flight += 1;
        self.spend_of_key(key, cost.0, core);
    }

    /// Adds to what a leased message has cost: the limit of its queue, and its limit key there, have spent so
    /// much more. Where there is neither, nothing is spent.
    #[inline(never)]
    pub(crate) fn add_cost(&mut self, slot: MessageSlot, cost: u32, core: &Core) {
        let message = self.messages.get(slot);
        let (queue_slot, line) = (message.queue, self.key_line(message.extras));
        let limit = self.queues.get(queue_slot).limit;
        if limit == Slot::NIL || plant::is(Plant::ForgetCost) {
            return;
        }
        self.spend_overall(limit, cost, core);
        if line != Slot::NIL {
            self.freshen_line(line);
            let key = self.queue_limits.lines.slots.get(line).of;
            self.spend_of_key(key, cost, core);
        }
    }

    /// Another cost for the deliveries of a message that waits.
    pub(crate) fn set_cost(&mut self, slot: MessageSlot, cost: Cost) {
        let extras = self.extras_slot(slot);
        let options = self.extras.enter_options(extras);
        let options = self.extras.options.get_mut(options);
        let before = std::mem::replace(&mut options.cost, cost);
        let line = options.limit;
        if line == Slot::NIL || self.messages.get(slot).state != Some(State::Ready) || self.is_stale(slot) {
            return;
        }
        let known = self.queue_limits.lines.slots.get_mut(line);
        known.ready_cost = known.ready_cost - u64::from(before.0) + u64::from(cost.0);
        let key = known.of;
        if key != Slot::NIL {
            self.touch_limit_key(key);
        }
    }

    #[inline]
    fn spend_overall(&mut self, slot: LimitSlot, cost: u32, core: &Core) {
        let limit = self.queue_limits.slots.get_mut(slot);
        if let Some(pace) = limit.pace {
            limit.arrival_ns = pace.spend(cost, limit.arrival_ns, core.now_us);
            self.touch_used_up(slot, core);
        }
    }

    #[inline]
    fn spend_of_key(&mut self, key: LimitKeySlot, cost: u32, core: &Core) {
        let arrival_ns = self.key_arrival(key);
        let known = self.queue_limits.keys.slots.get_mut(key);
        let limit = self.queue_limits.slots.get(known.limit);
        if let Some(pace) = limit.pace_per_key {
            known.arrival_ns = pace.spend(cost, arrival_ns, core.now_us);
            known.version = limit.version;
            self.touch_waited_for(key);
        }
    }

    /// Lists a look at a limit that is used up or waits for its time.
    fn touch_used_up(&mut self, slot: LimitSlot, core: &Core) {
        let limit = self.queue_limits.slots.get(slot);
        if limit.timer_us != 0 || !limit.has_room(core.now_us) {
            self.touch_limit(slot, false);
        }
    }

    /// The same for a key: nothing comes of a look at one whose only line is empty.
    #[inline]
    fn touch_waited_for(&mut self, key: LimitKeySlot) {
        let known = self.queue_limits.keys.slots.get(key);
        if known.lines != Slot::NIL && known.timer_us == 0 {
            let line = self.queue_limits.lines.slots.get(known.lines);
            if line.next == Slot::NIL && line.waiting.is_empty() {
                return;
            }
        }
        self.touch_limit_key(key);
    }

    /// A leased message of a queue that is not deleted is no longer.
    pub(crate) fn end_flight(&mut self, queue_slot: QueueSlot) {
        let slot = self.queues.get(queue_slot).limit;
        if slot != Slot::NIL {
            let limit = self.queue_limits.slots.get_mut(slot);
            let was_used_up = limit.rules().in_flight.is_some_and(|most| limit.in_flight >= u64::from(most));
            limit.in_flight -= 1;
            if was_used_up {
                self.touch_limit(slot, true);
            }
        }
    }

    /// A leased message, of a deleted queue too, is no longer, as far as its limit key is concerned.
    pub(crate) fn end_flight_of_key(&mut self, extras: ExtrasSlot) {
        let line = self.key_line(extras);
        if line == Slot::NIL {
            return;
        }
        let known = self.queue_limits.lines.slots.get_mut(line);
        known.leased -= 1;
        let key = known.of;
        if key != Slot::NIL {
            self.queue_limits.keys.slots.get_mut(key).in_flight -= 1;
            self.touch_waited_for(key);
        }
    }
}
