//! Reads of consumers.

use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use crate::query::{ConsumerState, ConsumerTotals, ConsumerView, HeldView, Holder, State};
use crate::queue::QueueModule;
use crate::queue::state::consumer::Standing;
use crate::queue::state::{ConsumerSlot, MessageSlot};
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn consumers(
        &self,
        namespace: NamespaceId,
        after: Option<ConsumerId>,
        limit: usize,
    ) -> Vec<ConsumerView> {
        let from = after.map_or(0, |after| after.0.saturating_add(1));
        self.consumers
            .numbers
            .range((namespace.0, from)..=(namespace.0, u64::MAX))
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|(_, &slot)| self.consumer_view(slot))
            .collect()
    }

    pub(crate) fn consumer_totals(&self) -> ConsumerTotals {
        self.consumers.totals
    }

    pub(crate) fn consumer(&self, namespace: NamespaceId, consumer: ConsumerId) -> Option<ConsumerView> {
        let slot = self.consumers.numbers.get(&(namespace.0, consumer.0))?;
        Some(self.consumer_view(*slot))
    }

    pub(crate) fn held(&self, namespace: NamespaceId, consumer: ConsumerId, limit: usize) -> Vec<HeldView> {
        let Some(&slot) = self.consumers.numbers.get(&(namespace.0, consumer.0)) else { return Vec::new() };
        let holds = self.consumers.slots.get(slot).holds.iter(&self.consumers.holds);
        let view = |hold| {
            let message = self.messages.get(self.consumers.holds.get(hold).message);
            HeldView {
                id: MessageId { namespace, sequence: message.sequence },
                queue: self.queues.get(message.queue).name.to_string(),
                attempt: message.attempts,
                leased_at_us: message.started_at_us,
                lease_until_us: message.time_us,
            }
        };
        holds.take(limit.min(PAGE_ITEMS_MAX)).map(view).collect()
    }

    fn consumer_view(&self, slot: ConsumerSlot) -> ConsumerView {
        let consumer = self.consumers.slots.get(slot);
        let oldest = consumer.holds.head;
        let oldest =
            (oldest != Slot::NIL).then(|| self.messages.get(self.consumers.holds.get(oldest).message));
        ConsumerView {
            id: ConsumerId(consumer.number),
            name: consumer.name.to_string(),
            state: match consumer.standing {
                Standing::Attached => ConsumerState::Attached,
                Standing::Detached => ConsumerState::Detached,
                Standing::Pulls => ConsumerState::Pulling,
            },
            queues: consumer.members.iter().map(|member| member.name.to_string()).collect(),
            credit: consumer.credit,
            in_flight: consumer.in_flight,
            lease_ms: consumer.lease_ms,
            since_us: consumer.since_us,
            oldest_lease_us: oldest.map(|message| message.started_at_us),
        }
    }

    pub(crate) fn is_held(&self, receipt: &Receipt, now_us: u64, core: &Core) -> bool {
        self.message_slot(receipt.id, core).is_some_and(|slot| {
            let message = self.messages.get(slot);
            message.state == Some(State::Leased)
                && message.token == receipt.token
                && message.time_us > now_us
                && core.receipt_key.made(receipt)
        })
    }

    /// In whose hands a leased message is, as far as that has a name or a number.
    pub(crate) fn holder(&self, slot: MessageSlot) -> Option<Holder> {
        let message = self.messages.get(slot);
        let leased = message.state == Some(State::Leased);
        let hold = if leased { message.hold() } else { Slot::NIL };
        (hold != Slot::NIL).then(|| {
            let consumer = self.consumers.slots.get(self.consumers.holds.get(hold).consumer);
            Holder { consumer: ConsumerId(consumer.number), name: consumer.name.clone() }
        })
    }
}
