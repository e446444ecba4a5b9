//! Redrive of all dead letters of a queue at a rate: in slices, each at its time, oldest first.

use crate::core::Core;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::limits::SLICE_ITEMS;
use crate::outcome::{Outcome, Reply};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::QueueSlot;
use crate::queue::state::redrive::Redrive;
use crate::store::slot::Slot;

impl QueueModule {
    /// Redrives those that are dead at this moment, so many per second, instead of what was being redriven;
    /// 0: ends it.
    pub(crate) fn dead_redrive_rate(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        per_second: u32,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let queue_slot = self.require_queue(namespace, name, core)?;
        if per_second == 0 {
            let messages = self.queues.get(queue_slot).redrive.left;
            self.stop_redrive(queue_slot);
            out.reply = Reply::Count { messages };
            return Ok(());
        }
        self.stop_redrive(queue_slot);
        let next_us = core.now_us;
        let queue = self.queues.get_mut(queue_slot);
        let left = queue.counters.states[State::Dead as usize];
        queue.dead_generation += 1;
        queue.dead_redriven_below = 0;
        if left > 0 {
            queue.redrive = Redrive { per_second, below: queue.dead_generation, left, next_us };
            self.redrives.insert((next_us, queue_slot));
            self.redrive_slice(queue_slot, &mut { SLICE_ITEMS }, core, out);
        }
        out.reply = Reply::Count { messages: left };
        Ok(())
    }

    /// Stops a redrive at a rate; what is left stays dead.
    pub(crate) fn stop_redrive(&mut self, queue_slot: QueueSlot) {
        let redrive = std::mem::take(&mut self.queues.get_mut(queue_slot).redrive);
        self.redrives.remove(&(redrive.next_us, queue_slot));
    }

    fn redrive_slice(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let mut given = 0;
        while *budget > 0 && given < self.queues.get(queue_slot).redrive.slice() {
            let queue = self.queues.get(queue_slot);
            let head = queue.dead.head;
            if queue.redrive.left == 0 || head == Slot::NIL {
                return self.stop_redrive(queue_slot);
            }
            *budget -= 1;
            if self.is_stale(head) {
                self.sweep_message(head, core, out);
                continue;
            }
            given += 1;
            self.settle_failure(head, core, out);
            if self.can_redrive(head, core) {
                self.redrive(head, core, out);
            } else {
                self.stay_dead(head);
            }
        }
        let redrive = &mut self.queues.get_mut(queue_slot).redrive;
        if redrive.left == 0 {
            return self.stop_redrive(queue_slot);
        }
        self.redrives.remove(&(redrive.next_us, queue_slot));
        redrive.step(given, core.now_us);
        self.redrives.insert((redrive.next_us, queue_slot));
    }

    /// Lets happen what is due.
    pub(crate) fn fire_redrives(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(&(due_us, queue_slot)) = self.redrives.first()
            && due_us <= core.now_us
        {
            self.redrive_slice(queue_slot, budget, core, out);
        }
    }
}
