//! Dead letters that go to another queue: there they are ready, with attempts counted from 0, and tell where
//! they died and why.
//!
//! The queue is made by the first one. Where it cannot be, because it is closed or full, or may not be made,
//! they stay dead in their own.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::message::lookup::queue_not_found;
use crate::queue::state::MessageSlot;
use crate::queue::state::flow::End;
use crate::queue::state::message::Reason;
use crate::queue::state::origin::Origin;

/// Queues on the way from one to the last that a dead letter may come to.
const FORWARDS_MAX: usize = 100;
/// Queues of a cycle that an error names.
const NAMED_MAX: usize = 8;

impl QueueModule {
    /// Refuses a queue for dead letters that leads back to the one it is for, or that may not be made.
    pub(crate) fn check_dead_letter_queue(
        &self,
        namespace_slot: NamespaceSlot,
        name: &str,
        target: &str,
        core: &Core,
    ) -> Result<(), Error> {
        if target.is_empty() {
            return Ok(());
        }
        if target != name && !core.limits.auto_create && self.find_queue(namespace_slot, target).is_none() {
            return Err(queue_not_found(target));
        }
        self.check_circle(namespace_slot, name, target)
    }

    /// Refuses a way of dead letters that leads back to where it begins.
    pub(crate) fn check_circle(
        &self,
        namespace_slot: NamespaceSlot,
        name: &str,
        target: &str,
    ) -> Result<(), Error> {
        let mut way = vec![name];
        let mut at = target;
        while !at.is_empty() && at != name && way.len() <= FORWARDS_MAX {
            way.push(at);
            let next = self.find_queue(namespace_slot, at);
            at = next.map_or("", |slot| &*self.queues.get(slot).settings.dead_letter_queue);
        }
        let reason = match at {
            "" => return Ok(()),
            _ if at == name && way.len() <= NAMED_MAX => {
                format!("dead letters would go in a circle: {} -> {name}", way.join(" -> "))
            }
            _ if at == name => {
                let begin = way[..NAMED_MAX].join(" -> ");
                format!("dead letters would go in a circle of {} queues: {begin} -> ... -> {name}", way.len())
            }
            _ => format!("dead letters would go through more than {FORWARDS_MAX} queues: shorten the way"),
        };
        Err(Error::InvalidArgument { field: "dead_letter_queue".into(), reason })
    }

    /// Gives a message that has died, and is in no state, to the queue for dead letters of its own, if it has
    /// one that takes it. False if not.
    pub(crate) fn forward(
        &mut self,
        slot: MessageSlot,
        reason: Reason,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        let queue = self.queues.get(self.messages.get(slot).queue);
        if queue.settings.dead_letter_queue.is_empty() {
            return false;
        }
        let (namespace_slot, target) = (queue.namespace, queue.settings.dead_letter_queue.clone());
        let from = queue.name.clone();
        let to = match self.find_queue(namespace_slot, &target) {
            Some(to) => to,
            None if self.admit_new_queue(namespace_slot, &target, core).is_err() => return false,
            None => self.make_queue(namespace_slot, &target, core),
        };
        let bytes = u64::from(self.messages.get(slot).blob_len);
        let room = self.admit_to_queue(Some(to)).and_then(|()| self.admit_room(to, 1, bytes));
        if room.is_err() {
            return false;
        }
        // Its unique key is free in the old queue, and it does not have it in the new one: there is nothing
        // to refuse there.
        self.forward_in_flows(slot, reason, core, out);
        self.give_up_keys(slot, End::Failed, core);
        self.disarm(slot);
        self.forget_end(slot);
        self.change_queue(slot, to, core, out);
        // As for a redrive: it is wanted, whenever somebody comes to it.
        self.disarm(slot);
        self.forget_end(slot);
        let message = self.messages.get_mut(slot);
        message.attempts = 0;
        message.deliveries = 0;
        let extras = self.extras_slot(slot);
        self.extras.set_origin(extras, Origin::new(from, reason, core.now_us));
        self.begin_age(slot, core);
        self.admit(slot, 0, core, out);
        true
    }
}
