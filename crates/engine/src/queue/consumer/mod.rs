//! Consumers with credit: messages that are ready go to those that are attached, as a consequence of whatever
//! made them ready or gave a consumer credit.
//!
//! A queue knows which of its consumers have credit, in the order in which their turns come: who was served
//! longest ago is next, or with `placement` `least_loaded` who holds the fewest. Those without credit stand
//! in no such order, so finding the next one never searches.
//!
//! A consumer that is detached gets nothing more. What it holds stays its own for a grace period, in which
//! its receipts count as before; what is left then goes back to its queue. The attempt does not count, unless
//! the consumer was lost and the delivery had reached it: then it may be what the consumer was lost of. A new
//! epoch detaches all, each with the grace period that it was attached with.
//!
//! Who pulls under a name is a consumer too, without queues and credit, as long as it holds something.

pub(crate) mod check;
pub(crate) mod giving;
pub(crate) mod holding;
pub(crate) mod recount;
pub(crate) mod sticky;
pub(crate) mod view;

use crate::core::Core;
use crate::error::Error;
use crate::id::{ConsumerId, NamespaceId};
use crate::limits::{CONSUMERS_MAX, SLICE_ITEMS};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::queue::QueueModule;
use crate::queue::message::lookup::queue_not_found;
use crate::queue::record::consumer::{AttachRecord, DetachRecord};
use crate::queue::state::consumer::{Consumer, Member, Standing, Turn};
use crate::queue::state::work::Work;
use crate::queue::state::{ConsumerSlot, QueueSlot};
use crate::settings::Placement;
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn attach(
        &mut self,
        attach: &AttachRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(attach.namespace)?;
        if self.consumers.slots.used() >= CONSUMERS_MAX {
            return Err(Error::LimitExceeded { what: "consumers", limit: u64::from(CONSUMERS_MAX) });
        }
        let mut members = Vec::new();
        for name in attach.queues() {
            let queue = self.find_queue(namespace_slot, name).unwrap_or(Slot::NIL);
            if queue == Slot::NIL && !core.limits.auto_create {
                return Err(queue_not_found(name));
            }
            members.push(Member { name: name.into(), queue, served: 0 });
        }
        let mut consumer = Consumer::new(0, attach.namespace.0, Standing::Attached, attach.name, core.now_us);
        consumer.lease_ms = attach.lease_ms;
        consumer.grace_ms = attach.grace_ms;
        consumer.members = members.into();
        let slot = self.consumers.add(consumer);
        self.join_queues(slot);
        self.set_credit(slot, attach.credit);
        out.reply = Reply::Consumer { consumer: ConsumerId(self.consumers.slots.get(slot).number) };
        Ok(())
    }

    /// Enters a consumer, which is attached and has no turns, into what its queues know of it.
    fn join_queues(&mut self, slot: ConsumerSlot) {
        let consumer = self.consumers.slots.get(slot);
        for (at, member) in (0u8..).zip(&consumer.members) {
            if member.queue == Slot::NIL {
                let orphan = (consumer.namespace, member.name.clone(), slot, at);
                self.consumers.orphans.insert(orphan);
            } else {
                self.queues.get_mut(member.queue).consumers.insert((slot, at));
            }
        }
    }

    /// The new total of a consumer's credit; what it holds beyond stays its own.
    pub(crate) fn credit(
        &mut self,
        namespace: NamespaceId,
        consumer: ConsumerId,
        credit: u32,
        core: &mut Core,
    ) -> Result<(), Error> {
        let slot = self.attached_slot(namespace, consumer, core)?;
        self.set_credit(slot, credit);
        Ok(())
    }

    pub(crate) fn detach_consumer(
        &mut self,
        detach: &DetachRecord,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let DetachRecord { namespace, consumer, grace_ms, reached } = *detach;
        let slot = self.attached_slot(namespace, consumer, core)?;
        self.begin_grace(slot, grace_ms, reached, core, out);
        self.do_work(SLICE_ITEMS, core, out);
        Ok(())
    }

    fn attached_slot(
        &mut self,
        namespace: NamespaceId,
        consumer: ConsumerId,
        core: &mut Core,
    ) -> Result<ConsumerSlot, Error> {
        core.find_namespace(namespace)?;
        let found = self.consumers.numbers.get(&(namespace.0, consumer.0)).copied();
        found
            .filter(|slot| self.consumers.slots.get(*slot).standing == Standing::Attached)
            .ok_or_else(|| Error::ConsumerNotFound { consumer: consumer.0.to_string() })
    }

    /// A consumer gets nothing more; what it holds goes back after so long.
    fn begin_grace(
        &mut self,
        slot: ConsumerSlot,
        grace_ms: u64,
        reached: u64,
        core: &Core,
        out: &mut Outcome,
    ) {
        self.set_credit(slot, 0);
        self.consumers.end_attachment(slot);
        let consumer = self.consumers.slots.get_mut(slot);
        consumer.grace_until_us = core.now_us + grace_ms * 1_000;
        consumer.reached = reached;
        consumer.ungraced = consumer.in_flight;
        let listed = std::mem::replace(&mut consumer.working, true);
        out.detached.push(ConsumerId(consumer.number));
        let consumer = self.consumers.slots.get(slot);
        for (at, member) in (0u8..).zip(&consumer.members) {
            if member.queue == Slot::NIL {
                let orphan = (consumer.namespace, member.name.clone(), slot, at);
                self.consumers.orphans.remove(&orphan);
            } else {
                self.queues.get_mut(member.queue).consumers.remove(&(slot, at));
            }
        }
        if !listed {
            self.list_work(Work::Consumer(slot));
        }
    }

    /// Detaches the consumers of a namespace, or all: they are gone with it, or with the epoch. What they
    /// hold stays their own as long as they asked for.
    pub(crate) fn detach_all(&mut self, namespace: Option<NamespaceId>, core: &Core, out: &mut Outcome) {
        let all: Vec<_> = match namespace {
            Some(of) => self.consumers.numbers.range((of.0, 0)..=(of.0, u64::MAX)).map(|(_, s)| *s).collect(),
            None => self.consumers.numbers.values().copied().collect(),
        };
        for slot in all {
            let consumer = self.consumers.slots.get(slot);
            if consumer.standing == Standing::Attached {
                let ends_now = plant::is(Plant::EndGraceWithEpoch);
                let grace_ms = if ends_now { 0 } else { consumer.grace_ms };
                self.begin_grace(slot, grace_ms, 0, core, out);
            }
        }
    }

    /// Goes on with what a consumer may be given, or gives back. True when nothing is left to do.
    pub(crate) fn work_on_consumer(
        &mut self,
        slot: ConsumerSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        if self.consumers.slots.get(slot).standing == Standing::Attached {
            return self.end_parked(slot, budget, core, out);
        }
        self.unpark_all(slot, budget, core, out) && self.work_on_grace(slot, budget, core)
    }

    /// Ends the leases of a detached consumer with its grace period. True when nothing is left to do.
    fn work_on_grace(&mut self, slot: ConsumerSlot, budget: &mut usize, core: &Core) -> bool {
        let until_us = self.consumers.slots.get(slot).grace_until_us;
        while *budget > 0 {
            let consumer = self.consumers.slots.get_mut(slot);
            let hold = consumer.holds.head;
            if hold == Slot::NIL || consumer.ungraced == 0 {
                consumer.working = false;
                self.consumers.forget_unused(slot);
                return true;
            }
            *budget -= 1;
            consumer.ungraced -= 1;
            consumer.holds.unlink(&mut self.consumers.holds, hold);
            consumer.holds.push_back(&mut self.consumers.holds, hold);
            let message = self.consumers.holds.get(hold).message;
            if self.messages.get(message).time_us > until_us {
                self.wheel.remove(&mut self.messages, message);
                self.messages.get_mut(message).time_us = until_us;
                self.wheel.insert(&mut self.messages, message, core.now_us);
            }
        }
        false
    }

    fn set_credit(&mut self, slot: ConsumerSlot, credit: u32) {
        let in_flight = self.consumers.slots.get(slot).in_flight;
        self.set_load(slot, in_flight, credit);
    }

    /// Updates the turns of a consumer after its load or credit has changed.
    fn set_load(&mut self, slot: ConsumerSlot, in_flight: u32, credit: u32) {
        let (had_credit, load) = self.consumers.set_load(slot, in_flight, credit);
        let has_credit = self.consumers.slots.get(slot).has_credit();
        if !had_credit && !has_credit {
            return;
        }
        let consumer = self.consumers.slots.get(slot);
        for (at, member) in (0u8..).zip(&consumer.members).filter(|(_, member)| member.queue != Slot::NIL) {
            let by_load = self.queues.get(member.queue).settings.placement == Placement::LeastLoaded;
            if had_credit == has_credit && !by_load {
                continue;
            }
            let turn = Turn { load: 0, served: member.served, consumer: slot, at };
            let queue = self.queues.get_mut(member.queue);
            if had_credit {
                queue.turns.remove(&Turn { load: if by_load { load } else { 0 }, ..turn });
            }
            if has_credit {
                queue.turns.insert(Turn { load: if by_load { in_flight } else { 0 }, ..turn });
                if !had_credit && queue.ready.occupied != 0 {
                    self.consumers.woken.push(member.queue);
                }
            }
        }
        if !had_credit {
            self.wake_parked(slot);
        }
    }

    /// The turns of a queue whose placement has changed.
    pub(crate) fn reorder_turns(&mut self, queue_slot: QueueSlot) {
        let queue = self.queues.get_mut(queue_slot);
        let by_load = queue.settings.placement == Placement::LeastLoaded;
        let turns = std::mem::take(&mut queue.turns).into_iter().map(|turn| {
            let load = if by_load { self.consumers.slots.get(turn.consumer).in_flight } else { 0 };
            Turn { load, ..turn }
        });
        queue.turns = turns.collect();
    }

    /// A queue is deleted: its consumers wait for another of its name.
    pub(crate) fn leave_consumers(&mut self, queue_slot: QueueSlot) {
        let queue = self.queues.get_mut(queue_slot);
        queue.turns.clear();
        for (slot, at) in std::mem::take(&mut queue.consumers) {
            let consumer = self.consumers.slots.get_mut(slot);
            let member = &mut consumer.members[usize::from(at)];
            member.queue = Slot::NIL;
            self.consumers.orphans.insert((consumer.namespace, member.name.clone(), slot, at));
        }
    }

    /// A queue is new: those that wait for one of its name are its consumers.
    pub(crate) fn adopt_consumers(&mut self, queue_slot: QueueSlot, core: &Core) {
        let queue = self.queues.get(queue_slot);
        let namespace = core.namespaces.get(queue.namespace).number;
        let from = (namespace, queue.name.clone(), Slot::new(0), 0);
        let until = (namespace, queue.name.clone(), Slot::NIL, u8::MAX);
        let waiting: Vec<_> = self.consumers.orphans.range(from..=until).cloned().collect();
        for orphan in waiting {
            self.consumers.orphans.remove(&orphan);
            let (_, _, slot, at) = orphan;
            let consumer = self.consumers.slots.get_mut(slot);
            let member = &mut consumer.members[usize::from(at)];
            member.queue = queue_slot;
            let served = member.served;
            let queue = self.queues.get_mut(queue_slot);
            queue.consumers.insert((slot, at));
            if consumer.has_credit() {
                let by_load = queue.settings.placement == Placement::LeastLoaded;
                let load = if by_load { consumer.in_flight } else { 0 };
                queue.turns.insert(Turn { load, served, consumer: slot, at });
            }
        }
    }

    /// Derives what queues know of consumers.
    pub(crate) fn derive_consumers(&mut self) {
        self.consumers.rebuild();
        let attached: Vec<_> = self
            .consumers
            .slots
            .iter()
            .filter(|(_, consumer)| consumer.standing == Standing::Attached)
            .map(|(slot, _)| slot)
            .collect();
        for slot in attached {
            self.join_queues(slot);
            let consumer = self.consumers.slots.get(slot);
            if !consumer.has_credit() {
                continue;
            }
            for (at, member) in (0u8..).zip(&consumer.members).filter(|(_, member)| member.queue != Slot::NIL)
            {
                let queue = self.queues.get_mut(member.queue);
                let by_load = queue.settings.placement == Placement::LeastLoaded;
                let load = if by_load { consumer.in_flight } else { 0 };
                queue.turns.insert(Turn { load, served: member.served, consumer: slot, at });
            }
        }
    }
}
