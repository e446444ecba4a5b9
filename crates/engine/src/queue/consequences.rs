//! Consequences: the one loop in which they are done.
//!
//! A transition changes one message and lists what follows from it; it never calls the consequence of
//! another. At the end of each record the loop takes the consequences in order, up to a budget. What is left
//! is part of the state, and goes on with the next record, or with a tick that is due at once.

use crate::core::{Core, agree};
use crate::event::Watched;
use crate::id::MessageId;
use crate::limits::SLICE_ITEMS;
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::MessageSlot;
use crate::queue::state::consequence::Consequence;
use crate::queue::state::limit::Timed;

/// Messages or queues that one consequence, or one kind of sliced work, handles before the next has its turn.
pub(crate) const TURN: usize = 64;
/// Cost of a pending send, in messages that are merely changed.
const SEND_COST: usize = 8;
/// Average cost of a consequence with all that follows from it, in messages that are merely changed. A record
/// has this budget for each that it lists, so that what is left does not grow without end.
const COST_PER_CONSEQUENCE: usize = 2 * SEND_COST;

impl QueueModule {
    /// Appends a consequence to those that are still to be done.
    pub(crate) fn list(&mut self, consequence: Consequence) {
        self.consequences.push_back(consequence);
    }

    /// Ends a record: does what follows from it, if there is anything.
    #[inline(always)]
    pub(crate) fn end_record(&mut self, core: &mut Core, out: &mut Outcome) {
        let entails = !self.consequences.is_empty() | (self.consumers.totals.attached > 0);
        if entails | core.watched.has(Watched::EVENTS) {
            self.follow_up(core, out);
        }
    }

    /// Ends a record: does consequences within its budget, delivers to consumers with credit, and tells
    /// events of deliveries.
    #[inline(never)]
    pub(crate) fn follow_up(&mut self, core: &mut Core, out: &mut Outcome) {
        let new = self.consequences.len().saturating_sub(self.backlog);
        let mut budget = SLICE_ITEMS.max(COST_PER_CONSEQUENCE * new).saturating_sub(self.spent);
        self.settle_consequences(&mut budget, core, out);
        if self.consumers.totals.attached > 0 {
            self.deliver_all(&mut budget, core, out);
        }
        if core.watched.has(Watched::EVENTS) {
            self.tell_deliveries(core, out);
        }
    }

    /// Does consequences in order, with those that they list, until none is left or `budget` is used up.
    /// `budget` counts messages that are changed.
    #[inline]
    pub(crate) fn settle_consequences(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        if !self.consequences.is_empty() {
            self.settle_listed(budget, core, out);
        }
    }

    #[inline(never)]
    fn settle_listed(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(consequence) = self.consequences.pop_front()
        {
            let given = TURN.min(*budget);
            let mut left = given;
            if !self.settle_consequence(consequence, &mut left, core, out) {
                self.consequences.push_back(consequence);
            }
            let used = (given - left).max(1);
            self.spent += used;
            *budget = budget.saturating_sub(used);
        }
    }

    /// Does one consequence; false if `budget` was used up before it was done, and it has to be listed again.
    fn settle_consequence(
        &mut self,
        next: Consequence,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        match next {
            Consequence::End(id) => self.end_if_over(id, core, out),
            Consequence::Judge(id) => {
                if let Some(slot) = self.find_listed(id, core) {
                    self.judge(slot, core, out);
                }
            }
            Consequence::TellChildren(parent) => return self.tell_children(parent, budget, core, out),
            Consequence::Activate(key) => return self.activate_listed(key, budget, core, out),
            Consequence::Send(pending) => {
                *budget = budget.saturating_sub(SEND_COST);
                self.send_pending(pending, core, out);
            }
            Consequence::Limit(slot) => {
                self.queue_limits.slots.get_mut(slot).touched = false;
                self.look_at_timed(Timed::Limit(slot), budget, core, out);
            }
            Consequence::LimitKey(key) => {
                self.queue_limits.keys.slots.get_mut(key).touched = false;
                self.look_at_timed(Timed::Key(key), budget, core, out);
            }
            Consequence::Trim(queue) => self.make_room(queue, budget, core, out),
        }
        true
    }

    /// Lists the end of a message that waits and may be delivered from `time_us` on, if it is over by then.
    pub(crate) fn check_end(&mut self, slot: MessageSlot, time_us: u64, core: &Core) {
        if self.is_over(slot, time_us, core) {
            self.list_end(slot, core);
        }
    }

    /// Lists the end of a message that is over.
    #[cold]
    pub(crate) fn list_end(&mut self, slot: MessageSlot, core: &Core) {
        let id = self.id_of_slot(slot, core);
        self.list(Consequence::End(id));
    }

    fn end_if_over(&mut self, id: MessageId, core: &mut Core, out: &mut Outcome) {
        let Some(slot) = self.find_listed(id, core) else { return };
        let message = self.messages.get(slot);
        let time_us = match message.state {
            Some(State::Delayed | State::Blocked) => message.time_us,
            Some(State::Held) => self.due_of_held(slot),
            Some(State::Ready) => 0,
            Some(State::Leased | State::Dead | State::Done) | None => return,
        };
        if self.is_over(slot, time_us, core) {
            self.end_waiting_in_line(slot, core, out);
        }
    }

    /// Checks that what is marked as listed is listed once, and that nothing else is listed.
    pub(crate) fn recount_consequences(&self) -> Result<(), String> {
        let listed = |consequence| self.consequences.contains(&consequence);
        let marked =
            self.flows.parents.iter().map(|(slot, parent)| (Consequence::TellChildren(slot), parent.working));
        let keys = self.ordering.slots.iter().map(|(slot, key)| (Consequence::Activate(slot), key.working));
        let limits =
            self.queue_limits.slots.iter().map(|(slot, limit)| (Consequence::Limit(slot), limit.touched));
        let limit_keys = self.queue_limits.keys.slots.iter();
        let limit_keys = limit_keys.map(|(slot, key)| (Consequence::LimitKey(slot), key.touched));
        let sends = self.pending_sends.iter().map(|(slot, _)| (Consequence::Send(slot), true));
        let mut marks = 0;
        for (consequence, mark) in marked.chain(keys).chain(limits).chain(limit_keys).chain(sends) {
            if listed(consequence) != mark {
                return Err(format!("{consequence:?} is marked {mark}, and listed otherwise"));
            }
            marks += u64::from(mark);
        }
        let by_mark = self.consequences.iter().filter(|consequence| consequence.has_mark());
        agree("consequences that have a mark", by_mark.count() as u64, marks)?;
        let owing = self.queues.iter().filter(|(_, queue)| queue.trim.owed > 0);
        match owing.map(|(slot, _)| slot).find(|&slot| !listed(Consequence::Trim(slot))) {
            Some(slot) => Err(format!("queue {slot} owes room, and making it is not listed")),
            None => Ok(()),
        }
    }
}
