//! Recount of limits, their keys, and the lines of these.

use crate::core::{Core, agree};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::limit::Timed;
use crate::queue::state::limit_key::Ahead;
use crate::queue::state::message::BlockedBy;
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn recount_limits(&self, core: &Core) -> Result<(), String> {
        for (slot, limit) in self.queue_limits.slots.iter() {
            let what = |field: &str| format!("limit {:?}: {field}", limit.name);
            let queues = || self.queues.iter().filter(move |(_, queue)| queue.limit == slot);
            let slots: Vec<_> = queues().map(|(slot, _)| slot).collect();
            if slots != limit.queues || (limit.deleted && !slots.is_empty()) {
                return Err(what("the queues that follow it"));
            }
            let leased = queues().map(|(_, queue)| queue.counters.states[State::Leased as usize]).sum();
            agree(&what("in flight"), leased, limit.in_flight)?;
            let keys = self.queue_limits.keys.slots.iter().filter(|(_, key)| key.limit == slot).count();
            agree(&what("keys"), keys as u64, u64::from(limit.keys))?;
            if limit.cursor == Slot::NIL && !limit.past.is_empty() {
                return Err(what("it keeps past rates, and no look through its keys runs"));
            }
            let by_rate = limit.pace.filter(|pace| pace.allowed(limit.arrival_ns, core.now_us) == 0);
            let waits = queues().any(|(_, queue)| queue.ready.occupied != 0);
            if by_rate.is_some() && waits && limit.timer_us == 0 && !limit.touched {
                return Err(what("it is used up, messages wait, and no time is set"));
            }
        }
        self.recount_key_lines()?;
        self.recount_limit_keys(core)
    }

    fn recount_key_lines(&self) -> Result<(), String> {
        let lines = &self.queue_limits.lines.slots;
        self.queue_limits.lines.idle.recount(lines).map_err(|why| format!("lines: {why}"))?;
        let zeros = || vec![0; lines.slots() as usize];
        let (mut members, mut leased, mut ready, mut cost_ready) = (zeros(), zeros(), zeros(), zeros());
        let mut waiting = 0;
        for (slot, message) in self.messages.iter() {
            let (line, cost) = self.line_and_cost(message.extras);
            if line == Slot::NIL {
                continue;
            }
            let at = line.index() as usize;
            members[at] += 1;
            leased[at] += u64::from(message.state == Some(State::Leased));
            if message.state == Some(State::Ready) && !self.is_stale(slot) {
                ready[at] += 1;
                cost_ready[at] += u64::from(cost.0);
            }
            waiting += u64::from(message.blocked_by() == Some(BlockedBy::Limit) && !self.is_stale(slot));
        }
        let mut listed = 0;
        for (slot, line) in lines.iter() {
            let at = slot.index() as usize;
            agree("members of a line", members[at], line.members.into())?;
            agree("leased of a line", leased[at], line.leased.into())?;
            let queue = self.queues.get(line.queue);
            if line.generation != queue.waiting_generation || queue.deleted {
                continue;
            }
            agree("ready of a line", ready[at], line.ready.into())?;
            agree("cost of what is ready of a line", cost_ready[at], line.ready_cost)?;
            let mut count = 0;
            for message in line.waiting.iter(&self.messages) {
                let of = self.messages.get(message);
                if of.blocked_by() != Some(BlockedBy::Limit) || self.key_line(of.extras) != slot {
                    return Err(format!("message {} does not wait in its line", of.sequence));
                }
                count += 1;
            }
            agree("waiting in a line", count, line.waiting_count.into())?;
            if line.last_put_back != line.derive_put_back(&self.messages) {
                return Err("another message was put back last into a line".into());
            }
            listed += count;
        }
        agree("blocked by limits", waiting, listed)
    }

    fn recount_limit_keys(&self, core: &Core) -> Result<(), String> {
        let mut idle = 0;
        for (slot, key) in self.queue_limits.keys.slots.iter() {
            let rules = self.queue_limits.slots.get(key.limit).rules();
            let (mut leased, mut before, mut at) = (0, Slot::NIL, key.lines);
            while at != Slot::NIL {
                let line = self.queue_limits.lines.slots.get(at);
                if line.of != slot || line.prev != before || line.key != key.key {
                    return Err(format!("line {at} does not belong to its key"));
                }
                leased += u64::from(line.leased);
                let queue = self.queues.get(line.queue);
                let fresh = line.generation == queue.waiting_generation && queue.limit == key.limit;
                let (room, room_at_all) =
                    (self.key_has_room(slot, line.ahead(), core), self.key_has_room(slot, Ahead::NONE, core));
                if fresh && line.waiting_count > 0 && line.ready == 0 && !key.touched {
                    let look_comes = self.queue_limits.slots.get(key.limit).cursor <= slot;
                    let by_time = rules.rate_per_key.is_some() && key.timer_us != 0;
                    let in_flight = rules.in_flight_per_key.is_some_and(|most| key.in_flight >= most);
                    if room && !by_time && !look_comes {
                        return Err(format!("nothing goes on of limit key {slot}, and messages wait"));
                    }
                    if !room_at_all && !in_flight && !by_time && !look_comes {
                        return Err(format!(
                            "limit key {slot} is used up, messages wait, and no time is set"
                        ));
                    }
                }
                (before, at) = (at, line.next);
            }
            agree("in flight of a limit key", leased, key.in_flight.into())?;
            idle += u64::from(key.lines == Slot::NIL);
            let timed = self.queue_limits.timers.contains(&(key.timer_us, Timed::Key(slot)));
            agree("time of a limit key", timed.into(), (key.timer_us != 0).into())?;
        }
        agree("limit keys without messages", idle, self.queue_limits.keys.idle.into())
    }
}
