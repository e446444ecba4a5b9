//! Long work in slices: what was purged or deleted is freed, dead letters are redriven.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::limits::SLICE_ITEMS;
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::consequences::TURN;
use crate::queue::state::message::SIBLINGS;
use crate::queue::state::work::Work;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::store::slot::Slot;

/// Items of a slice that forgetting a queue counts as: its idle keys are looked for among all that are kept.
const FORGET_ITEMS: usize = 8;

impl QueueModule {
    /// Lists work, unless it is listed, and does a first slice.
    pub(crate) fn begin_work(&mut self, work: Work, core: &mut Core, out: &mut Outcome) {
        self.list_work(work);
        self.do_work(SLICE_ITEMS, core, out);
    }

    pub(crate) fn list_work(&mut self, work: Work) {
        if let Work::Queue(slot) = work
            && std::mem::replace(&mut self.queues.get_mut(slot).working, true)
        {
            return;
        }
        self.work.push_back(work);
    }

    /// Does work, and what follows from it, until `budget` messages or queues were handled, in turn.
    pub(crate) fn do_work(&mut self, mut budget: usize, core: &mut Core, out: &mut Outcome) {
        while budget > 0
            && let Some(work) = self.work.pop_front()
        {
            let given = TURN.min(budget);
            let mut left = given;
            let done = match work {
                Work::Queue(slot) => self.work_on_queue(slot, &mut left, core, out),
                Work::Namespace(slot) => self.work_on_namespace(slot, &mut left, core, out),
                Work::Limit(slot) => self.work_on_limit(slot, &mut left, core, out),
                Work::LimitLines(slot) => self.work_on_lines(slot, &mut left, core, out),
                Work::Deliver(slot) => self.end_deliveries(slot, &mut left, core, out),
                Work::Consumer(slot) => self.work_on_consumer(slot, &mut left, core, out),
                Work::Search(slot) => self.work_on_search(slot, &mut left, core),
            };
            if !done {
                self.work.push_back(work);
            }
            budget -= (given - left).max(1);
            self.settle_consequences(&mut budget, core, out);
        }
    }

    /// True when nothing is left to do.
    fn work_on_queue(
        &mut self,
        slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        if self.queues.get(slot).deleted {
            return self.sweep_deleted(slot, budget, core, out);
        }
        let done = self.sweep_purged(slot, budget, core, out)
            && self.sweep_arrived(slot, budget, core, out)
            && self.sweep_dead(slot, budget, core, out)
            && self.redrive_all(slot, budget, core, out)
            && self.trim_done(slot, budget, core, out)
            && (!self.queues.get(slot).trim.running || self.trim(slot, budget, core, out));
        if done {
            self.queues.get_mut(slot).working = false;
        }
        done
    }

    fn sweep_deleted(
        &mut self,
        slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let Some(head) = self.any_message(slot) else {
                if self.queues.get(slot).search != Slot::NIL {
                    return false;
                }
                let queue = self.queues.remove(slot);
                let plain =
                    queue.fair.into_iter().flat_map(|fair| fair.plain).filter(|&lane| lane != Slot::NIL);
                self.lanes.forget_of(slot, plain);
                self.ordering.forget_of(slot);
                self.forget_lines_of(slot);
                self.queue_numbers.remove(u64::from(queue.number));
                core.namespaces.get_mut(queue.namespace).queue_slots -= 1;
                *budget = budget.saturating_sub(FORGET_ITEMS);
                return true;
            };
            *budget -= 1;
            self.sweep_message(head, core, out);
        }
        false
    }

    fn sweep_purged(
        &mut self,
        slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let queue = self.queues.get_mut(slot);
            let at = queue.purge_cursor;
            if at == Slot::NIL {
                return true;
            }
            let message = self.messages.get(at);
            if message.sequence > queue.purge_until {
                queue.purge_cursor = Slot::NIL;
                return true;
            }
            *budget -= 1;
            queue.purge_cursor = message.links[SIBLINGS].next;
            if queue.is_stale(message) && message.state != Some(State::Dead) {
                self.sweep_message(at, core, out);
            }
        }
        false
    }

    /// The same for messages that are not on the list of all.
    fn sweep_arrived(
        &mut self,
        slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let queue = self.queues.get_mut(slot);
            if queue.purge_arrived == 0 {
                return true;
            }
            let mut left =
                queue.arrived.range(queue.purge_arrived..=queue.purge_until.max(queue.purge_arrived));
            let Some(&sequence) = left.next().filter(|sequence| **sequence <= queue.purge_until) else {
                queue.purge_arrived = 0;
                return true;
            };
            *budget -= 1;
            queue.purge_arrived = sequence + 1;
            let Some(at) = self.indexes.get(queue.namespace).directory.get(sequence) else { continue };
            if self.is_stale(at) && self.messages.get(at).state != Some(State::Dead) {
                self.sweep_message(at, core, out);
            }
        }
        false
    }

    /// One of the messages of a queue, stale ones included.
    fn any_message(&self, slot: QueueSlot) -> Option<MessageSlot> {
        let queue = self.queues.get(slot);
        if queue.all.head != Slot::NIL {
            return Some(queue.all.head);
        }
        let sequence = *queue.arrived.first()?;
        self.indexes.get(queue.namespace).directory.get(sequence)
    }

    fn sweep_dead(
        &mut self,
        slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let queue = self.queues.get(slot);
            let head = queue.dead.head;
            if head == Slot::NIL || self.messages.get(head).generation >= queue.dead_deleted_below {
                return true;
            }
            *budget -= 1;
            self.sweep_message(head, core, out);
        }
        false
    }

    fn redrive_all(
        &mut self,
        slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let queue = self.queues.get(slot);
            let head = queue.dead.head;
            if head == Slot::NIL || self.messages.get(head).generation >= queue.dead_redriven_below {
                return true;
            }
            *budget -= 1;
            self.settle_failure(head, core, out);
            if self.can_redrive(head, core) {
                self.redrive(head, core, out);
            } else {
                self.stay_dead(head);
            }
        }
        false
    }

    /// Deletes the queues of a deleted namespace, and the namespace after all of them are swept.
    fn work_on_namespace(
        &mut self,
        slot: NamespaceSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let Some((_, &queue_slot)) = self.indexes.get(slot).queues.first_key_value() else {
                break;
            };
            *budget -= 1;
            self.delete_queue(queue_slot, core, out);
            self.list_work(Work::Queue(queue_slot));
        }
        let namespace = core.namespaces.get(slot);
        let done = namespace.queue_slots == 0
            && self.drop_limits_of(slot, budget)
            && self.drop_schedules_of(slot, budget, core, out)
            && self.drop_defaults_of(slot, budget);
        if done {
            core.end_sweep(slot);
            self.indexes.clear(slot);
        }
        done
    }
}
