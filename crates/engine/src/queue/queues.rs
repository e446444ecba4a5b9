//! Queues: create, set, purge, delete.

use crate::core::namespace::NamespaceSlot;
use crate::core::{Core, internal};
use crate::error::Error;
use crate::id::{NamespaceId, QueueId};
use crate::outcome::{Outcome, Reply};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::message::lookup::{queue_hash, queue_not_found};
use crate::queue::state::QueueSlot;
use crate::queue::state::queue::{Queue, Ready};
use crate::queue::state::work::Work;
use crate::rules::name_rule;
use crate::settings::QueuePatch;
use crate::store::list::List;

impl QueueModule {
    pub(crate) fn queue_set(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        patch: &QueuePatch,
        create: bool,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        core.expect_behaviour(patch.since())?;
        let found = self.find_queue(namespace_slot, name);
        self.check_limit(namespace_slot, found, patch)?;
        if let Some(target) = &patch.dead_letter_queue {
            self.check_dead_letter_queue(namespace_slot, name, target, core)?;
        }
        let queue_slot = match found {
            Some(slot) => slot,
            None if !create => return Err(queue_not_found(name)),
            None => self.create_queue(namespace_slot, name, core)?,
        };
        self.pins.keep(queue_slot);
        let queue = self.queues.get_mut(queue_slot);
        queue.settings.change(patch);
        if patch.placement.is_some() {
            self.reorder_turns(queue_slot);
            self.unpark_queue(queue_slot, core, out);
        }
        let queue = self.queues.get_mut(queue_slot);
        let number = QueueId(queue.number);
        out.reply = Reply::Queue { queue: number, created: found.is_none() };
        if patch.paused == Some(false) && queue.ready.occupied != 0 {
            out.ready.push(number);
        }
        if patch.retain_done_count.is_some() || patch.retain_done_ms.is_some() {
            self.begin_work(Work::Queue(queue_slot), core, out);
        }
        if patch.push_url.is_some() {
            self.index_push(queue_slot);
        }
        self.follow_search_index(queue_slot, core);
        self.follow_limit(queue_slot, core, out);
        Ok(())
    }

    /// Enters a queue into those that push, or takes it out.
    fn index_push(&mut self, slot: QueueSlot) {
        let queue = self.queues.get(slot);
        if queue.deleted || queue.settings.push_url.is_empty() {
            self.pushes.remove(&queue.number);
        } else {
            self.pushes.insert(queue.number, slot);
        }
    }

    /// Refuses more queues than there may be.
    pub(crate) fn admit_queues(
        &self,
        namespace_slot: NamespaceSlot,
        count: u64,
        core: &Core,
    ) -> Result<(), Error> {
        let limit = u64::from(core.limits.queues);
        if u64::from(self.queues.used()) + count > limit {
            return Err(Error::LimitExceeded { what: "queues", limit });
        }
        let held = self.indexes.get(namespace_slot).queues.len() as u64;
        let limit = core.namespaces.get(namespace_slot).quotas.queues;
        if limit > 0 && held + count > limit {
            return Err(Error::QuotaExceeded { what: "queues", limit, held, more: count });
        }
        Ok(())
    }

    fn create_queue(
        &mut self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &mut Core,
    ) -> Result<QueueSlot, Error> {
        name_rule("queue", name).map_err(internal)?;
        self.admit_queues(namespace_slot, 1, core)?;
        Ok(self.make_queue(namespace_slot, name, core))
    }

    /// Makes a queue that was admitted, with the settings that its namespace has for such names; returns its
    /// slot.
    pub(crate) fn make_queue(
        &mut self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &mut Core,
    ) -> QueueSlot {
        let number = self.next_queue;
        self.next_queue += 1;
        let mut queue = Queue::new(number, namespace_slot, name, core.now_us);
        if !self.indexes.get(namespace_slot).defaults.is_empty() {
            queue.settings = self.settings_of_new(namespace_slot, name);
        }
        let limit = self.indexes.get(namespace_slot).limits.get(&*queue.settings.limit).copied();
        let slot = self.queues.insert(queue);
        if let Some(limit) = limit {
            self.join_limit(slot, limit);
        }
        core.namespaces.get_mut(namespace_slot).queue_slots += 1;
        self.index_queue(slot);
        self.follow_search_index(slot, core);
        if !self.consumers.orphans.is_empty() {
            self.adopt_consumers(slot, core);
        }
        slot
    }

    /// Enters a queue into what is derived from it.
    pub(crate) fn index_queue(&mut self, slot: QueueSlot) {
        let queue = self.queues.get(slot);
        self.queue_numbers.insert(u64::from(queue.number), slot);
        if !queue.deleted {
            self.queue_names.insert(queue_hash(queue.namespace, &queue.name), slot);
            self.indexes.get_mut(queue.namespace).queues.insert(queue.name.clone(), slot);
        }
        self.index_push(slot);
    }

    /// Drops what waits. It is gone at once for all who ask; the messages are freed in slices.
    pub(crate) fn queue_purge(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let queue_slot = self.require_queue(namespace, name, core)?;
        let waiting = [State::Delayed, State::Ready, State::Held, State::Blocked];
        let messages = self.drop_counters(queue_slot, &waiting, core);
        self.tell_dropped(queue_slot, messages, "purged", core, out);
        let queue = self.queues.get_mut(queue_slot);
        queue.waiting_generation = queue.waiting_generation.wrapping_add(1);
        queue.ready = Ready::default();
        if let Some(fair) = &mut queue.fair {
            fair.rings = Default::default();
        }
        queue.held = List::default();
        queue.purge_cursor = queue.all.head;
        queue.purge_arrived = queue.arrived.first().copied().unwrap_or(0);
        queue.purge_until = core.namespaces.get(queue.namespace).last_sequence;
        self.begin_work(Work::Queue(queue_slot), core, out);
        out.reply = Reply::Count { messages };
        Ok(())
    }

    pub(crate) fn queue_delete(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let queue_slot = self.require_queue(namespace, name, core)?;
        self.expect_queue_decided(queue_slot)?;
        let messages = self.delete_queue(queue_slot, core, out);
        self.begin_work(Work::Queue(queue_slot), core, out);
        out.reply = Reply::Count { messages };
        Ok(())
    }

    /// Deletes a queue for all who ask; its messages are yet to be swept. Returns how many they are.
    pub(crate) fn delete_queue(&mut self, queue_slot: QueueSlot, core: &mut Core, out: &mut Outcome) -> u64 {
        self.leave_limit(queue_slot);
        self.stop_redrive(queue_slot);
        self.leave_consumers(queue_slot);
        self.pins.spare_nothing(queue_slot);
        let messages = self.drop_counters(queue_slot, &State::ALL, core);
        self.tell_dropped(queue_slot, messages, "queue_deleted", core, out);
        let queue = self.queues.get_mut(queue_slot);
        queue.deleted = true;
        self.queue_names.remove(queue_hash(queue.namespace, &queue.name), queue_slot);
        self.indexes.get_mut(queue.namespace).queues.remove(&queue.name);
        self.index_push(queue_slot);
        self.follow_search_index(queue_slot, core);
        messages
    }

    /// Takes all messages in some states out of the counters, as dropped. Returns how many they are.
    pub(crate) fn drop_counters(&mut self, queue_slot: QueueSlot, states: &[State], core: &mut Core) -> u64 {
        let queue = self.queues.get_mut(queue_slot);
        let (mut messages, mut bytes) = (0, 0);
        for &state in states {
            let count = std::mem::take(&mut queue.counters.states[state as usize]);
            self.totals.states[state as usize] -= count;
            if state == State::Blocked {
                queue.blocked_by = Default::default();
            }
            messages += count;
            bytes += std::mem::take(&mut queue.bytes[state as usize]);
        }
        for counters in [&mut queue.counters, &mut self.totals] {
            counters.bytes -= bytes;
            counters.dropped += messages;
        }
        let namespace = core.namespaces.get_mut(queue.namespace);
        namespace.messages -= messages;
        namespace.bytes -= bytes;
        messages
    }
}
