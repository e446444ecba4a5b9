//! Sticky placement: messages of an ordering key stay with one consumer.
//!
//! A key belongs to the consumer that had its last message, for as long as that is attached to the queue.
//! While that has no credit, the key's next message is *parked* with it: it stands in no ready list, so that
//! others flow past. A parked message goes on when its consumer has credit again or is detached, from the
//! front of its line. Of a key one message is in flight at a time, so a key whose consumer has left moves
//! when that has settled it, or the lease is over.

use crate::core::Core;
use crate::limits::SLICE_ITEMS;
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::consumer::{Standing, Turn};
use crate::queue::state::message::BlockedBy;
use crate::queue::state::sticky::sticky_hash;
use crate::queue::state::work::Work;
use crate::queue::state::{ConsumerSlot, MessageSlot, QueueSlot};
use crate::settings::Placement;
use crate::store::list::PLACE;
use crate::store::slot::Slot;

impl QueueModule {
    /// Gives the turn for the first in line of a queue, if consumers keep their keys there, instead of
    /// `turn`; `None`: it was parked.
    #[cold]
    pub(crate) fn sticky_turn(&mut self, queue_slot: QueueSlot, turn: Turn, core: &Core) -> Option<Turn> {
        let first = self.first_in_line(queue_slot)?;
        let Some((queue, hash)) = self.sticky_key(first) else { return Some(turn) };
        let Some(owner) = self.owner_of_key(queue_slot, queue, hash, core) else {
            let consumer = self.consumers.slots.get(turn.consumer).number;
            self.consumers.sticky.set(queue, hash, consumer);
            return Some(turn);
        };
        if self.consumers.slots.get(owner.consumer).has_credit() {
            return Some(owner);
        }
        self.park(first, owner.consumer);
        None
    }

    /// A consumer goes on with a message: its key comes along.
    pub(crate) fn take_key(&mut self, slot: MessageSlot, consumer: ConsumerSlot) {
        let queue = self.messages.get(slot).queue;
        if self.queues.get(queue).settings.placement == Placement::Sticky
            && let Some((queue, hash)) = self.sticky_key(slot)
        {
            let consumer = self.consumers.slots.get(consumer).number;
            self.consumers.sticky.set(queue, hash, consumer);
        }
    }

    /// The number of its queue, and what stands for its ordering key, of a message that has one.
    fn sticky_key(&self, slot: MessageSlot) -> Option<(u32, u64)> {
        let message = self.messages.get(slot);
        let options = self.extras.options(message.extras).filter(|options| options.ordering != Slot::NIL)?;
        Some((self.queues.get(message.queue).number, sticky_hash(self.ordering.key(options.ordering))))
    }

    /// The turn of the consumer that has a key, if that is attached to the queue.
    fn owner_of_key(&mut self, queue_slot: QueueSlot, queue: u32, hash: u64, core: &Core) -> Option<Turn> {
        let number = self.consumers.sticky.consumer(queue, hash)?;
        let namespace = core.namespaces.get(self.queues.get(queue_slot).namespace).number;
        let slot = *self.consumers.numbers.get(&(namespace, number))?;
        let consumer = self.consumers.slots.get(slot);
        if consumer.standing != Standing::Attached {
            return None;
        }
        let mut members = (0u8..).zip(&consumer.members);
        let (at, member) = members.find(|(_, member)| member.queue == queue_slot)?;
        Some(Turn { load: 0, served: member.served, consumer: slot, at })
    }

    /// Takes a ready message out of its line, until its consumer has credit.
    fn park(&mut self, slot: MessageSlot, consumer: ConsumerSlot) {
        self.leave(slot);
        self.enter_blocked(slot, BlockedBy::Consumer, 0);
        self.messages.get_mut(slot).token = consumer.index().into();
        let parked = &mut self.consumers.slots.get_mut(consumer).parked;
        parked.push_back(&mut self.messages, slot);
    }

    /// Takes a parked message off the list that it waits on.
    pub(crate) fn leave_parked(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let (consumer, before) = (message.parked_with(), message.links[PLACE].prev);
        let consumer = self.consumers.slots.get_mut(consumer);
        if consumer.unpark_cursor == slot {
            consumer.unpark_cursor = before;
        }
        consumer.parked.unlink(&mut self.messages, slot);
    }

    /// Lets a parked message go on, before all others of its line.
    fn unpark(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        if self.is_stale(slot) {
            return self.sweep_message(slot, core, out);
        }
        self.leave(slot);
        self.admit(slot, 0, core, out);
        // It may have been over, or have to wait for its limit.
        if self.messages.get(slot).state == Some(State::Ready) {
            self.move_to_front(slot);
        }
    }

    /// Gives a consumer that has credit what is parked with it. True when nothing is left to do.
    pub(crate) fn deliver_parked(
        &mut self,
        consumer: ConsumerSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        loop {
            let known = self.consumers.slots.get(consumer);
            let slot = known.parked.head;
            if !known.has_credit() || slot == Slot::NIL {
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let queue = self.messages.get(slot).queue;
            self.unpark(slot, core, out);
            self.deliver_or_list(queue, budget, core, out);
        }
    }

    /// Lets what is parked in a queue go on after its placement was set, unless it is still sticky. What is
    /// more than a slice is listed as work.
    pub(crate) fn unpark_queue(&mut self, queue_slot: QueueSlot, core: &mut Core, out: &mut Outcome) {
        if self.queues.get(queue_slot).settings.placement == Placement::Sticky {
            return;
        }
        let consumers: Vec<_> =
            self.queues.get(queue_slot).consumers.iter().map(|(consumer, _)| *consumer).collect();
        let mut parked = false;
        for slot in consumers {
            let consumer = self.consumers.slots.get_mut(slot);
            consumer.unpark_cursor = consumer.parked.tail;
            parked |= !consumer.parked.is_empty();
            if !consumer.parked.is_empty() && !std::mem::replace(&mut consumer.working, true) {
                self.list_work(Work::Consumer(slot));
            }
        }
        if parked {
            self.do_work(SLICE_ITEMS, core, out);
        }
    }

    /// Lets what is parked in queues that are no longer sticky go on. The last goes first, since each goes to
    /// the front of its line. True when nothing is left to do.
    fn unpark_moved(
        &mut self,
        consumer: ConsumerSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        loop {
            let slot = self.consumers.slots.get(consumer).unpark_cursor;
            if slot == Slot::NIL {
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let message = self.messages.get(slot);
            let sticky = self.queues.get(message.queue).settings.placement == Placement::Sticky;
            self.consumers.slots.get_mut(consumer).unpark_cursor = message.links[PLACE].prev;
            if !sticky {
                self.unpark(slot, core, out);
            }
        }
    }

    /// Lets everything go on that is parked with a consumer which is detached, what came last first, so that
    /// what came first stands first. True when nothing is left.
    pub(crate) fn unpark_all(
        &mut self,
        consumer: ConsumerSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let slot = self.consumers.slots.get(consumer).parked.tail;
            if slot == Slot::NIL {
                return true;
            }
            *budget -= 1;
            self.unpark(slot, core, out);
        }
        self.consumers.slots.get(consumer).parked.is_empty()
    }

    /// Delivers what is parked with a consumer that has credit again.
    pub(crate) fn wake_parked(&mut self, consumer: ConsumerSlot) {
        if !self.consumers.slots.get(consumer).parked.is_empty() {
            self.consumers.credited.push(consumer);
        }
    }

    /// Goes on giving what is parked, as sliced work. True when nothing is left to do.
    pub(crate) fn end_parked(
        &mut self,
        consumer: ConsumerSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        let done = self.unpark_moved(consumer, budget, core, out)
            && self.deliver_parked(consumer, budget, core, out);
        if done {
            self.consumers.slots.get_mut(consumer).working = false;
        }
        done
    }
}
