//! Holds: which messages are in the hands of which consumer.

use crate::core::Core;
use crate::error::Error;
use crate::id::{ConsumerId, MessageId, NamespaceId};
use crate::limits::CONSUMERS_MAX;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::record::consumer::ResumeRecord;
use crate::queue::state::consumer::{Consumer, Standing};
use crate::queue::state::{ConsumerSlot, HoldSlot, MessageSlot};
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn hold_by(&mut self, consumer: ConsumerSlot, message: MessageSlot) {
        let hold = self.consumers.hold(consumer, message);
        self.messages.get_mut(message).set_hold(hold);
        let known = self.consumers.slots.get(consumer);
        self.set_load(consumer, known.in_flight + 1, known.credit);
    }

    /// A leased message is no longer: its holder has one fewer.
    #[inline(never)]
    pub(crate) fn end_hold(&mut self, hold: HoldSlot) {
        let slot = self.consumers.let_go(hold);
        let consumer = self.consumers.slots.get(slot);
        self.set_load(slot, consumer.in_flight - 1, consumer.credit);
        self.consumers.forget_unused(slot);
    }

    /// Lets a consumer that pulls under a name hold what it was given; of very many names the later ones are
    /// not kept.
    #[inline(never)]
    pub(crate) fn hold_by_name(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
        out: &Outcome,
    ) {
        if out.deliveries.is_empty() {
            return;
        }
        let consumer = match self.consumers.find_puller(namespace.0, name) {
            Some(slot) => slot,
            None if self.consumers.slots.used() >= CONSUMERS_MAX => return,
            None => {
                let puller = Consumer::new(0, namespace.0, Standing::Pulls, name, core.now_us);
                self.consumers.add(puller)
            }
        };
        let mut held = 0;
        for delivery in &out.deliveries {
            let Some(message) = self.find_message(delivery.receipt.id, core) else { continue };
            let hold = self.consumers.hold(consumer, message);
            self.messages.get_mut(message).set_hold(hold);
            held += 1;
        }
        // It has no credit, so nobody's turn depends on what it holds.
        self.consumers.slots.get_mut(consumer).in_flight += held;
    }

    /// A consumer goes on with what others hold, or held before it.
    pub(crate) fn resume(
        &mut self,
        resume: &ResumeRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let consumer = self.attached_slot(resume.namespace, resume.consumer, core)?;
        let lease_ms = self.consumers.slots.get(consumer).lease_ms;
        for receipt in resume.receipts() {
            let held = self.extendable_slot(resume.namespace, &receipt, core);
            out.results.push(held.map(|slot| {
                let hold = self.messages.get(slot).hold();
                if hold != Slot::NIL {
                    self.end_hold(hold);
                }
                self.hold_by(consumer, slot);
                self.take_key(slot, consumer);
                self.extend_lease(slot, lease_ms, core);
            }));
        }
        Ok(())
    }

    /// A leased message was cancelled: a consumer that is attached hears of it.
    pub(crate) fn tell_holder(&self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        if message.hold() == Slot::NIL {
            return;
        }
        let holder = self.consumers.slots.get(self.consumers.holds.get(message.hold()).consumer);
        if holder.standing == Standing::Attached {
            let id = MessageId { namespace: NamespaceId(holder.namespace), sequence: message.sequence };
            out.cancelled.push((ConsumerId(holder.number), core.receipt(id, message.token)));
        }
    }

    /// True if a leased message is in the hands of a consumer that was detached, and never reached it as far
    /// as that counts.
    pub(crate) fn is_given_back(&self, slot: MessageSlot) -> bool {
        let message = self.messages.get(slot);
        message.hold() != Slot::NIL && {
            let consumer = self.consumers.slots.get(self.consumers.holds.get(message.hold()).consumer);
            consumer.standing == Standing::Detached && message.token > consumer.reached
        }
    }
}
