//! Dead letters: redrive and delete, one by one or all. One that was held when it died stays in its queue,
//! and a redrive holds it again: no way leads around whoever has to approve it.

pub(crate) mod forwarding;
pub(crate) mod redriving;

use crate::core::Core;
use crate::error::Error;
use crate::event::{EventDetail, EventKind};
use crate::id::{MessageId, NamespaceId};
use crate::outcome::{Outcome, Reply};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::record::dead::Ids;
use crate::queue::state::flow::End;
use crate::queue::state::message::{Reason, mark};
use crate::queue::state::work::Work;
use crate::queue::state::{MessageSlot, QueueSlot};

impl QueueModule {
    /// Without ids: all that are dead at this moment; they turn ready, or held, in slices, oldest first. One
    /// whose unique key another message has by then, or for which there is no room, stays dead.
    pub(crate) fn dead_redrive(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        ids: &Ids<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let queue_slot = self.require_queue(namespace, name, core)?;
        if ids.is_empty() {
            self.stop_redrive(queue_slot);
            let queue = self.queues.get_mut(queue_slot);
            let messages = queue.counters.states[State::Dead as usize];
            queue.dead_generation += 1;
            queue.dead_redriven_below = queue.dead_generation;
            self.begin_work(Work::Queue(queue_slot), core, out);
            out.reply = Reply::Count { messages };
            return Ok(());
        }
        let mut slots = Vec::new();
        for id in ids.iter() {
            slots.push(self.dead_slot(queue_slot, namespace, id, core)?);
        }
        slots.sort_unstable();
        slots.dedup();
        slots.iter().for_each(|&slot| self.settle_failure(slot, core, out));
        self.admit_redrive(queue_slot, &slots, core)?;
        self.each_dead(queue_slot, namespace, ids, core, out, |queues, slot, core, out| {
            queues.redrive(slot, core, out);
        })
    }

    /// Without ids: all that are dead at this moment. They are gone at once for all who ask, and freed in
    /// slices.
    pub(crate) fn dead_delete(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        ids: &Ids<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let queue_slot = self.require_queue(namespace, name, core)?;
        if ids.is_empty() {
            self.stop_redrive(queue_slot);
            let messages = self.drop_counters(queue_slot, &[State::Dead], core);
            self.tell_dropped(queue_slot, messages, "deleted", core, out);
            let queue = self.queues.get_mut(queue_slot);
            queue.dead_generation += 1;
            queue.dead_deleted_below = queue.dead_generation;
            self.begin_work(Work::Queue(queue_slot), core, out);
            out.reply = Reply::Count { messages };
            return Ok(());
        }
        self.each_dead(queue_slot, namespace, ids, core, out, |queues, slot, core, out| {
            let queue = queues.queues.get_mut(queues.messages.get(slot).queue);
            queue.counters.dropped += 1;
            queues.totals.dropped += 1;
            queues.tell_more(slot, EventKind::Dropped, EventDetail::Why("deleted"), core, out);
            queues.remove(slot, End::Failed, core, out);
        })
    }

    /// Does the same to each of some dead letters, all or none; an id that is given twice counts once.
    fn each_dead(
        &mut self,
        queue_slot: QueueSlot,
        namespace: NamespaceId,
        ids: &Ids<'_>,
        core: &mut Core,
        out: &mut Outcome,
        change: impl Fn(&mut QueueModule, MessageSlot, &mut Core, &mut Outcome),
    ) -> Result<(), Error> {
        for id in ids.iter() {
            self.dead_slot(queue_slot, namespace, id, core)?;
        }
        let mut messages = 0;
        for id in ids.iter() {
            if let Ok(slot) = self.dead_slot(queue_slot, namespace, id, core) {
                change(self, slot, core, out);
                messages += 1;
            }
        }
        out.reply = Reply::Count { messages };
        Ok(())
    }

    fn dead_slot(
        &mut self,
        queue_slot: QueueSlot,
        namespace: NamespaceId,
        id: MessageId,
        core: &mut Core,
    ) -> Result<MessageSlot, Error> {
        let found = if id.namespace == namespace { self.find_message(id, core) } else { None };
        let found = found.filter(|&slot| self.messages.get(slot).queue == queue_slot);
        let Some(slot) = found else { return Err(Error::MessageNotFound { id: id.to_string() }) };
        match self.messages.get(slot).state {
            Some(State::Dead) => Ok(slot),
            state => {
                let state = state.map_or("gone", State::name);
                Err(Error::WrongState { id: id.to_string(), state, expected: State::Dead.name() })
            }
        }
    }

    /// Dead to ready, or to held if it was held when it died: attempts and deliveries count from 0 again, the
    /// history stays.
    pub(crate) fn redrive(&mut self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        let message = self.messages.get_mut(slot);
        message.attempts = 0;
        message.deliveries = 0;
        self.queues.get_mut(message.queue).counters.redriven += 1;
        self.totals.redriven += 1;
        self.tell(slot, EventKind::Redriven, core, out);
        self.retake_unique(slot, core);
        self.forget_end(slot);
        self.begin_age(slot, core);
        let message = self.messages.get_mut(slot);
        if message.is_marked(mark::UNAPPROVED) {
            message.marks &= !mark::UNAPPROVED;
            self.make_held(slot, Reason::Hold, core, out);
            self.claim_ordering(slot);
        } else {
            self.make_ready(slot, core, out);
        }
        // Its parents may have failed meanwhile.
        if self.flow_of(slot).is_some_and(|flow| self.flows.slots.get(flow).waiting) {
            self.list_judgement(slot, core);
        }
    }

    /// Refuses to redrive dead letters for which there is no room, or no unique key.
    pub(crate) fn admit_redrive(
        &self,
        queue_slot: QueueSlot,
        slots: &[MessageSlot],
        core: &Core,
    ) -> Result<(), Error> {
        let bytes = slots.iter().map(|&slot| u64::from(self.messages.get(slot).blob_len)).sum();
        self.admit_room(queue_slot, slots.len() as u64, bytes)?;
        self.admit_unique_redrive(slots, core)
    }

    /// True if a dead letter can be redriven as far as room and its unique key are concerned.
    pub(crate) fn can_redrive(&self, slot: MessageSlot, core: &Core) -> bool {
        let message = self.messages.get(slot);
        self.has_room_for(message.queue, message) && self.rival(slot, core).is_none()
    }

    /// A dead letter that cannot be redriven goes behind all others.
    pub(crate) fn stay_dead(&mut self, slot: MessageSlot) {
        let message = self.messages.get_mut(slot);
        let queue = self.queues.get_mut(message.queue);
        queue.redrive.left -= u64::from(queue.redrive.covers(message.generation));
        message.generation = queue.dead_generation;
        queue.dead.unlink(&mut self.messages, slot);
        queue.dead.push_back(&mut self.messages, slot);
    }
}
