//! Telling events to those who watch. While nobody does, a message without options costs no more than one
//! look at a flag in a send, an ack and a record; what is told is put together out of line.

use crate::core::Core;
use crate::event::{Event, EventDetail, EventKind, Watched};
use crate::id::{ConsumerId, MessageId, NamespaceId, QueueId};
use crate::outcome::{Delivery, Outcome};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::message::Reason;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::store::slot::Slot;

impl QueueModule {
    /// Something happened to a message, which is still in its slot and in its queue.
    #[inline(always)]
    pub(crate) fn tell(&self, slot: MessageSlot, kind: EventKind, core: &Core, out: &mut Outcome) {
        if core.watched.has(Watched::EVENTS) {
            self.tell_more(slot, kind, EventDetail::None, core, out);
        }
    }

    /// The same, and why.
    #[inline]
    pub(crate) fn tell_why(
        &self,
        slot: MessageSlot,
        kind: EventKind,
        why: Reason,
        core: &Core,
        out: &mut Outcome,
    ) {
        if core.watched.has(Watched::EVENTS) {
            self.tell_more(slot, kind, EventDetail::Why(why.name().unwrap_or_default()), core, out);
        }
    }

    /// The same, with what is to say beside.
    #[cold]
    pub(crate) fn tell_more(
        &self,
        slot: MessageSlot,
        kind: EventKind,
        detail: EventDetail,
        core: &Core,
        out: &mut Outcome,
    ) {
        if !core.watched.has(Watched::EVENTS) {
            return;
        }
        let message = self.messages.get(slot);
        let id = self.id_of_slot(slot, core);
        let queue = QueueId(self.queues.get(message.queue).number);
        let namespace = id.namespace;
        let attempt = match kind {
            EventKind::Acked
            | EventKind::Nacked
            | EventKind::Released
            | EventKind::Rejected
            | EventKind::Expired
            | EventKind::Died => message.attempts,
            EventKind::Sent
            | EventKind::Delayed
            | EventKind::Due
            | EventKind::Delivered
            | EventKind::Redriven
            | EventKind::Retried
            | EventKind::Held
            | EventKind::Approved
            | EventKind::Changed
            | EventKind::Moved
            | EventKind::Cancelled
            | EventKind::Dropped => 0,
        };
        out.events.push(Event { kind, namespace, queue, id: Some(id), attempt, detail });
    }

    /// Plain messages were sent.
    #[cold]
    pub(crate) fn tell_sent(
        &self,
        queue_slot: QueueSlot,
        first: u64,
        count: u32,
        core: &Core,
        out: &mut Outcome,
    ) {
        let queue = self.queues.get(queue_slot);
        let namespace = NamespaceId(core.namespaces.get(queue.namespace).number);
        out.events.extend((first..first + u64::from(count)).map(|sequence| Event {
            kind: EventKind::Sent,
            namespace,
            queue: QueueId(queue.number),
            id: Some(MessageId { namespace, sequence }),
            attempt: 0,
            detail: EventDetail::None,
        }));
    }

    /// Messages of a queue are gone, all at once.
    pub(crate) fn tell_dropped(
        &self,
        queue_slot: QueueSlot,
        messages: u64,
        why: &'static str,
        core: &Core,
        out: &mut Outcome,
    ) {
        if !core.watched.has(Watched::EVENTS) || messages == 0 {
            return;
        }
        let queue = self.queues.get(queue_slot);
        out.events.push(Event {
            kind: EventKind::Dropped,
            namespace: NamespaceId(core.namespaces.get(queue.namespace).number),
            queue: QueueId(queue.number),
            id: None,
            attempt: 0,
            detail: EventDetail::Many { messages, why, name: queue.name.clone() },
        });
    }

    /// At the end of a record: whatever it gave away.
    pub(crate) fn tell_deliveries(&self, core: &Core, out: &mut Outcome) {
        let Outcome { deliveries, pushed, events, .. } = out;
        events.extend(deliveries.iter().map(|delivery| self.delivered(delivery, None, core)));
        events.extend(
            pushed.iter().map(|(consumer, delivery)| self.delivered(delivery, Some(*consumer), core)),
        );
    }

    fn delivered(&self, delivery: &Delivery, consumer: Option<ConsumerId>, core: &Core) -> Event {
        let id = delivery.receipt.id;
        let consumer = consumer.or_else(|| {
            let message = self.messages.get(self.message_slot(id, core)?);
            let held = message.state == Some(State::Leased) && message.hold() != Slot::NIL;
            let holder = held.then(|| self.consumers.holds.get(message.hold()).consumer)?;
            Some(ConsumerId(self.consumers.slots.get(holder).number))
        });
        Event {
            kind: EventKind::Delivered,
            namespace: id.namespace,
            queue: delivery.queue,
            id: Some(id),
            attempt: delivery.attempt,
            detail: EventDetail::Lease { until_us: delivery.lease_until_us, consumer },
        }
    }
}
