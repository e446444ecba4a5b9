//! Recount of consumers, their holds and their turns.

use std::collections::BTreeSet;

use crate::core::{Core, agree};
use crate::query::{ConsumerTotals, State};
use crate::queue::QueueModule;
use crate::queue::state::ConsumerSlot;
use crate::queue::state::consumer::{Standing, Turn};
use crate::queue::state::message::BlockedBy;
use crate::queue::state::work::Work;
use crate::settings::Placement;
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn recount_consumers(&self, core: &Core) -> Result<(), String> {
        let (mut held, mut known, mut waiting) = (0, 0, 0);
        let mut totals = ConsumerTotals::default();
        for (slot, consumer) in self.consumers.slots.iter() {
            known += 1;
            if consumer.standing == Standing::Attached {
                totals.attached += 1;
                totals.credit += u64::from(consumer.credit);
                totals.in_flight += u64::from(consumer.in_flight);
            }
            let mut count = 0;
            for at in consumer.holds.iter(&self.consumers.holds) {
                let hold = self.consumers.holds.get(at);
                let message = self.messages.get(hold.message);
                let right = message.state == Some(State::Leased) && message.hold() == at;
                if !right || hold.consumer != slot {
                    return Err(format!("hold {at} of consumer {} is not right", consumer.number));
                }
                count += 1;
            }
            agree(&format!("held by consumer {}", consumer.number), count, consumer.in_flight.into())?;
            held += count;
            let by_number = self.consumers.numbers.get(&(consumer.namespace, consumer.number));
            agree(
                "slot by number",
                by_number.map_or(0, |s| u64::from(s.index()) + 1),
                u64::from(slot.index()) + 1,
            )?;
            let mut parked = 0;
            for at in consumer.parked.iter(&self.messages) {
                let message = self.messages.get(at);
                if message.blocked_by() != Some(BlockedBy::Consumer) || message.parked_with() != slot {
                    return Err(format!("message {} is not parked with consumer {slot}", message.sequence));
                }
                parked += 1;
            }
            waiting += parked;
            let unparks = consumer.unpark_cursor != Slot::NIL && !consumer.working;
            if unparks || (parked > 0 && consumer.has_credit() && !consumer.working) {
                return Err(format!("consumer {} has credit, and messages wait for it", consumer.number));
            }
            let idle = consumer.standing != Standing::Attached && count == 0 && !consumer.working;
            if idle {
                return Err(format!("consumer {} is kept, and nobody needs it", consumer.number));
            }
        }
        agree("attached", totals.attached, self.consumers.totals.attached)?;
        agree("credit", totals.credit, self.consumers.totals.credit)?;
        agree("held by those attached", totals.in_flight, self.consumers.totals.in_flight)?;
        agree("consumers by number", known, self.consumers.numbers.len() as u64)?;
        agree("holds", held, self.consumers.holds.used().into())?;
        let leased = self.messages.iter().map(|(_, message)| message);
        let leased = leased.filter(|m| m.state == Some(State::Leased) && m.hold() != Slot::NIL);
        agree("messages with a holder", leased.count() as u64, held)?;
        let by_consumer = self.messages.iter().map(|(_, message)| message.blocked_by());
        let by_consumer = by_consumer.filter(|by| *by == Some(BlockedBy::Consumer));
        agree("messages that wait for a consumer", by_consumer.count() as u64, waiting)?;
        if !self.consumers.sticky.is_sound() {
            return Err("the keys of consumers are not right".into());
        }
        if !self.consumers.woken.is_empty() || !self.consumers.credited.is_empty() {
            return Err("a queue is woken, and no record applies".into());
        }
        self.recount_turns(core)
    }

    fn recount_turns(&self, core: &Core) -> Result<(), String> {
        let (mut orphans, mut members) = (0, 0);
        for (slot, consumer) in self.consumers.slots.iter() {
            if consumer.standing != Standing::Attached {
                continue;
            }
            for (at, member) in (0u8..).zip(&consumer.members) {
                if member.queue == Slot::NIL {
                    orphans += 1;
                    let orphan = (consumer.namespace, member.name.clone(), slot, at);
                    if !self.consumers.orphans.contains(&orphan) {
                        return Err(format!("nobody waits for queue {:?}", member.name));
                    }
                    continue;
                }
                members += 1;
                let queue = self.queues.get(member.queue);
                if queue.name != member.name || queue.deleted || !queue.consumers.contains(&(slot, at)) {
                    return Err(format!("queue {:?} does not know its consumer", member.name));
                }
            }
        }
        agree("queues waited for", orphans, self.consumers.orphans.len() as u64)?;
        let of_queues = self.queues.iter().map(|(_, queue)| queue.consumers.len() as u64).sum();
        agree("consumers of queues", members, of_queues)?;
        for (slot, queue) in self.queues.iter() {
            let by_load = queue.settings.placement == Placement::LeastLoaded;
            let turn = |&(slot, at): &(ConsumerSlot, u8)| {
                let consumer = self.consumers.slots.get(slot);
                let load = if by_load { consumer.in_flight } else { 0 };
                let served = consumer.members[usize::from(at)].served;
                consumer.has_credit().then_some(Turn { load, served, consumer: slot, at })
            };
            let turns: BTreeSet<Turn> = queue.consumers.iter().filter_map(turn).collect();
            if turns != queue.turns {
                return Err(format!(
                    "queue {:?}: turns: counted {turns:?}, kept {:?}",
                    queue.name, queue.turns
                ));
            }
            let listed = self.work.contains(&Work::Deliver(slot));
            // A rate lets the next one begin when its timer fires.
            let due = self.next_limit_us().is_some_and(|due_us| due_us <= core.now_us);
            let waits = queue.limit != Slot::NIL && due;
            let stuck = !queue.turns.is_empty() && self.has_ready(slot, core) && !queue.delivering && !waits;
            if stuck || (queue.delivering && !listed) {
                return Err(format!("queue {:?}: messages are ready and consumers have credit", queue.name));
            }
        }
        Ok(())
    }
}
