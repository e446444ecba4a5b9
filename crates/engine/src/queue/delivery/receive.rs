//! Receive: leases the first messages in line, queue by queue or by weight.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::hash::mix;
use crate::id::{MessageId, NamespaceId, QueueId};
use crate::limits::{LEASE_MS_MAX, SLICE_ITEMS};
use crate::outcome::{Delivery, Outcome};
use crate::plant::{self, Plant};
use crate::queue::QueueModule;
use crate::queue::record::delivery::ReceiveRecord;
use crate::queue::state::options::Options;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::store::slot::Slot;

/// One queue of a receive by weight: smooth weighted round robin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighted {
    queue_slot: QueueSlot,
    weight: i64,
    /// Grows by the weight with each message that any of them gives; who has most gives next, and pays for
    /// all.
    current: i64,
}

/// Messages and bytes that one receive may still take.
pub(crate) struct Budget {
    namespace: NamespaceId,
    messages: u32,
    bytes: u64,
    lease_ms: u64,
    /// True if there are no more tokens.
    tokens_spent: bool,
    /// Ready messages past their end that it may still end.
    ends: usize,
    /// Ready messages that may not begin after all which may yet be put back.
    bounces: usize,
}

impl Budget {
    /// For giving to consumers one message at a time, of at most `most` that are looked at.
    pub(crate) fn for_consumer(namespace: NamespaceId, most: usize) -> Budget {
        Budget {
            namespace,
            messages: 0,
            bytes: u64::MAX,
            lease_ms: 0,
            tokens_spent: false,
            bounces: most,
            ends: most,
        }
    }

    /// Allows one more message, under this lease.
    pub(crate) fn give_one(&mut self, lease_ms: u64) {
        (self.messages, self.lease_ms) = (1, lease_ms);
    }

    /// True if nothing can be delivered any more.
    pub(crate) fn is_spent(&self) -> bool {
        self.tokens_spent
    }

    /// Without tokens nothing can be delivered. What was taken before is delivered.
    fn verdict(&self, out: &Outcome) -> Result<(), Error> {
        if self.tokens_spent && out.deliveries.is_empty() {
            return Err(Error::LimitExceeded { what: "deliveries ever made", limit: u64::MAX });
        }
        Ok(())
    }
}

impl QueueModule {
    #[inline]
    pub(crate) fn receive(
        &mut self,
        receive: &ReceiveRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        if receive.lease_ms > LEASE_MS_MAX {
            let reason = format!("a receive record with a lease of {} ms", receive.lease_ms);
            return Err(Error::Internal { reason });
        }
        let Some(namespace_slot) = core.live_namespace(receive.namespace) else {
            return Err(receive.namespace.not_found());
        };
        let mut budget = Budget {
            namespace: receive.namespace,
            messages: receive.max_messages.min(core.limits.receive_messages),
            bytes: u64::from(receive.max_bytes),
            lease_ms: receive.lease_ms,
            tokens_spent: false,
            ends: SLICE_ITEMS,
            bounces: SLICE_ITEMS,
        };
        let taken = self.take_from_queues(namespace_slot, receive, &mut budget, core, out);
        if !receive.consumer.is_empty()
            && let Ok(name) = std::str::from_utf8(receive.consumer)
        {
            self.hold_by_name(receive.namespace, name, core, out);
        }
        taken
    }

    /// Leases what is ready, and what becomes ready as a consequence, until the receive has what it asks for,
    /// nothing is left, or a slice of consequences is done.
    #[inline(always)]
    fn take_from_queues(
        &mut self,
        namespace_slot: NamespaceSlot,
        receive: &ReceiveRecord<'_>,
        budget: &mut Budget,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let mut left = SLICE_ITEMS;
        loop {
            if receive.by_weight {
                self.receive_by_weight(namespace_slot, receive, budget, core, out)?;
            } else {
                self.receive_in_order(namespace_slot, receive, budget, core, out)?;
            }
            if self.consequences.is_empty() || budget.messages == 0 || left == 0 {
                return Ok(());
            }
            self.settle_consequences(&mut left, core, out);
        }
    }

    #[inline(always)]
    fn receive_in_order(
        &mut self,
        namespace_slot: NamespaceSlot,
        receive: &ReceiveRecord<'_>,
        budget: &mut Budget,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        for (name, _) in receive.queues() {
            let Some(queue_slot) = self.find_queue_again(namespace_slot, name) else { continue };
            while self.has_ready(queue_slot, core) {
                if !self.take_first(queue_slot, budget, core, out) {
                    return budget.verdict(out);
                }
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn receive_by_weight(
        &mut self,
        namespace_slot: NamespaceSlot,
        receive: &ReceiveRecord<'_>,
        budget: &mut Budget,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let mut weighted = std::mem::take(&mut self.weighted);
        weighted.clear();
        for (name, weight) in receive.queues() {
            let found =
                self.find_queue_again(namespace_slot, name).filter(|&slot| self.has_ready(slot, core));
            let weight = i64::from(weight.max(1));
            weighted.extend(found.map(|queue_slot| Weighted { queue_slot, weight, current: 0 }));
        }
        // Receives of few messages would all take from the heaviest queue if each began with it.
        let mut next = first_by_weight(&mut weighted, mix(core.tokens.given()));
        while next.is_some_and(|queue_slot| self.take_first(queue_slot, budget, core, out)) {
            weighted.retain(|queue| self.has_ready(queue.queue_slot, core));
            next = next_by_weight(&mut weighted);
        }
        self.weighted = weighted;
        budget.verdict(out)
    }

    /// True if it has something ready that may begin.
    #[inline(always)]
    pub(crate) fn has_ready(&self, queue_slot: QueueSlot, core: &Core) -> bool {
        let queue = self.queues.get(queue_slot);
        queue.ready.occupied != 0 && self.has_room_to_begin(queue, core)
    }

    /// Leases the first in line; false when the budget does not allow it.
    #[inline]
    pub(crate) fn take_first(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut Budget,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        let queue = self.queues.get(queue_slot);
        let Some(priority) = queue.ready.highest() else { return false };
        let first = match &queue.fair {
            None => queue.ready.lists[priority].head,
            Some(fair) => self.lanes.slots.get(fair.rings[priority].head).messages.head,
        };
        let limited = queue.limit != Slot::NIL;
        if let Some(&Options { expiry, limit: line, .. }) =
            self.extras.options(self.messages.get(first).extras)
        {
            if self.is_past(expiry, 0, core) {
                return self.end_instead(queue_slot, first, budget, core, out);
            }
            if limited && !self.may_begin(line, core) {
                return self.put_back(queue_slot, first, budget, core, out);
            }
        }
        let len = u64::from(self.messages.get(first).blob_len);
        if budget.messages == 0 || (len > budget.bytes && !out.deliveries.is_empty()) {
            return false;
        }
        let Some(token) = core.tokens.give() else {
            budget.tokens_spent = true;
            return false;
        };
        budget.messages -= 1;
        budget.bytes = budget.bytes.saturating_sub(len);
        let slot = self.lease_first(queue_slot, priority, budget.lease_ms, token, core);
        let message = self.messages.get(slot);
        let queue = self.queues.get(queue_slot);
        let id = MessageId { namespace: budget.namespace, sequence: message.sequence };
        out.deliveries.push(Delivery {
            receipt: core.receipt(id, token),
            queue: QueueId(queue.number),
            blob: message.blob(),
            lease_until_us: message.time_us,
            sent_at_us: message.sent_at_us,
            attempt: message.attempts,
            max_attempts: queue.max_attempts(message),
            deliveries: message.deliveries,
            priority: message.priority,
            has_details: self.has_details(message.extras),
        });
        if plant::is(Plant::DeliverTwice) && token.is_multiple_of(16) {
            self.make_ready(slot, core, out);
        }
        true
    }
}

impl QueueModule {
    /// Ends a ready message whose time is over; false when that was done often enough for one record: the
    /// queue is to be asked again.
    #[cold]
    fn end_instead(
        &mut self,
        queue_slot: QueueSlot,
        slot: MessageSlot,
        budget: &mut Budget,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        if budget.ends == 0 {
            self.announce_ready(queue_slot, out);
            return false;
        }
        budget.ends -= 1;
        self.end_waiting(slot, core, out);
        true
    }

    /// Puts a ready message back whose limit key is used up; false when that was done often enough for one
    /// record: the queue is to be asked again.
    #[cold]
    fn put_back(
        &mut self,
        queue_slot: QueueSlot,
        slot: MessageSlot,
        budget: &mut Budget,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        if budget.bounces == 0 {
            out.ready.push(QueueId(self.queues.get(queue_slot).number));
            return false;
        }
        budget.bounces -= 1;
        self.bounce(slot, core);
        true
    }
}

/// Slot of the queue that gives first, by chance in proportion to the weights.
fn first_by_weight(weighted: &mut [Weighted], chance: u64) -> Option<QueueSlot> {
    let total: i64 = weighted.iter().map(|queue| queue.weight).sum();
    let mut place = chance.checked_rem(total as u64)? as i64;
    let mut chosen = None;
    for queue in weighted {
        queue.current += queue.weight;
        if chosen.is_none() && place < queue.weight {
            queue.current -= total;
            chosen = Some(queue.queue_slot);
        }
        place -= queue.weight;
    }
    chosen
}

/// Slot of the queue that gives next.
fn next_by_weight(weighted: &mut [Weighted]) -> Option<QueueSlot> {
    let total: i64 = weighted.iter().map(|queue| queue.weight).sum();
    let mut best: Option<&mut Weighted> = None;
    for queue in weighted {
        queue.current += queue.weight;
        if best.as_ref().is_none_or(|best| queue.current > best.current) {
            best = Some(queue);
        }
    }
    let best = best?;
    best.current -= total;
    Some(best.queue_slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue that gives each of `count` messages of one receive.
    fn receive(weights: [i64; 3], count: usize, chance: u64) -> Vec<QueueSlot> {
        let mut weighted = Vec::new();
        for (queue_slot, weight) in (0..).map(QueueSlot::new).zip(weights) {
            weighted.push(Weighted { queue_slot, weight, current: 0 });
        }
        let mut given: Vec<_> = first_by_weight(&mut weighted, chance).into_iter().collect();
        given.extend(std::iter::repeat_with(|| next_by_weight(&mut weighted)).take(count - 1).flatten());
        given
    }

    fn shares(given: &[QueueSlot]) -> [usize; 3] {
        [0, 1, 2].map(|slot| given.iter().filter(|queue| queue.index() == slot).count())
    }

    #[test]
    fn receives_of_one_message_keep_the_proportion_too() {
        let given: Vec<_> = (0..10_000).flat_map(|n| receive([6, 3, 1], 1, mix(n))).collect();
        let [a, b, c] = shares(&given);
        assert!(a.abs_diff(6_000) < 200 && b.abs_diff(3_000) < 200 && c.abs_diff(1_000) < 200, "{a} {b} {c}");
    }

    #[test]
    fn one_receive_of_many_messages_keeps_it_within_a_message() {
        for chance in 0..10 {
            let [a, b, c] = shares(&receive([6, 3, 1], 100, chance));
            assert!(a.abs_diff(60) <= 1 && b.abs_diff(30) <= 1 && c.abs_diff(10) <= 1, "{a} {b} {c}");
        }
    }
}
