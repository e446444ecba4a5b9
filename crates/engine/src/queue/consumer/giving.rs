//! Delivery of ready messages to attached consumers with credit.

use crate::core::Core;
use crate::id::{ConsumerId, NamespaceId};
use crate::limits::SLICE_ITEMS;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::delivery::receive::Budget;
use crate::queue::state::QueueSlot;
use crate::queue::state::consumer::Turn;
use crate::queue::state::work::Work;
use crate::settings::Placement;

impl QueueModule {
    /// Delivers what is ready to consumers with credit, at most a slice in one record, and does the
    /// consequences of that within `budget`, in messages that are changed.
    #[cold]
    pub(crate) fn deliver_all(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        let mut deliveries = SLICE_ITEMS.saturating_sub(out.pushed.len());
        let mut ready = 0;
        loop {
            self.deliver_credited(&mut deliveries, core, out);
            self.deliver_woken(&mut deliveries, core, out);
            self.deliver_ready(&mut ready, &mut deliveries, core, out);
            if self.consequences.is_empty() || *budget == 0 {
                return;
            }
            self.settle_consequences(budget, core, out);
            // A queue in which messages became ready just before is not told again.
            ready = ready.saturating_sub(1);
        }
    }

    fn deliver_woken(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        let mut at = 0;
        while let Some(&slot) = self.consumers.woken.get(at) {
            at += 1;
            self.deliver_or_list(slot, budget, core, out);
        }
        self.consumers.woken.clear();
    }

    /// Delivers from the queues of `out.ready`, from place `seen` on, which becomes the number of all.
    fn deliver_ready(&mut self, seen: &mut usize, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while let Some(&queue) = out.ready.get(*seen) {
            *seen += 1;
            if let Some(slot) = self.queue_slot(queue, core) {
                self.deliver_or_list(slot, budget, core, out);
            }
        }
    }

    /// Gives what is parked with those that have credit again.
    fn deliver_credited(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while let Some(consumer) = self.consumers.credited.pop() {
            if !self.deliver_parked(consumer, budget, core, out) {
                let known = self.consumers.slots.get_mut(consumer);
                if !std::mem::replace(&mut known.working, true) {
                    self.list_work(Work::Consumer(consumer));
                }
            }
        }
    }

    pub(crate) fn deliver_or_list(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        if !self.work_on_deliveries(queue_slot, budget, core, out) {
            let queue = self.queues.get_mut(queue_slot);
            if !std::mem::replace(&mut queue.delivering, true) {
                self.list_work(Work::Deliver(queue_slot));
            }
        }
    }

    /// The same as sliced work. True when nothing is left to do.
    fn work_on_deliveries(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        // The queue may be gone since the work was listed.
        let queue = self.queues.get(queue_slot);
        if queue.turns.is_empty() || !self.has_ready(queue_slot, core) {
            return true;
        }
        let namespace = NamespaceId(core.namespaces.get(queue.namespace).number);
        let mut allowed = Budget::for_consumer(namespace, *budget);
        while self.has_ready(queue_slot, core) {
            let Some(&turn) = self.queues.get(queue_slot).turns.first() else { return true };
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let sticky = self.queues.get(queue_slot).settings.placement == Placement::Sticky;
            let Some(turn) = (if sticky { self.sticky_turn(queue_slot, turn, core) } else { Some(turn) })
            else {
                continue;
            };
            allowed.give_one(self.consumers.slots.get(turn.consumer).lease_ms);
            let before = out.deliveries.len();
            if !self.take_first(queue_slot, &mut allowed, core, out) {
                return allowed.is_spent();
            }
            if out.deliveries.len() > before {
                self.push(queue_slot, turn, core, out);
            }
        }
        true
    }

    /// The same for a queue whose deliveries are listed.
    pub(crate) fn end_deliveries(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        let done = self.work_on_deliveries(queue_slot, budget, core, out);
        if done {
            self.queues.get_mut(queue_slot).delivering = false;
        }
        done
    }

    /// The latest delivery goes to the consumer whose turn it is.
    fn push(&mut self, queue_slot: QueueSlot, turn: Turn, core: &mut Core, out: &mut Outcome) {
        let Some(delivery) = out.deliveries.pop() else { return };
        self.queues.get_mut(queue_slot).turns.remove(&turn);
        self.consumers.served += 1;
        let served = self.consumers.served;
        let consumer = self.consumers.slots.get_mut(turn.consumer);
        consumer.members[usize::from(turn.at)].served = served;
        out.pushed.push((ConsumerId(consumer.number), delivery));
        self.queues.get_mut(queue_slot).turns.insert(Turn { served, ..turn });
        let Some(message) = self.find_message(delivery.receipt.id, core) else { return };
        self.hold_by(turn.consumer, message);
    }
}
