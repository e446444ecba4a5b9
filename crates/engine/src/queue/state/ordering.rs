//! State of ordering keys: the message of a key that goes on, and those that wait for it.

use std::collections::BTreeMap;

use crate::queue::state::message::{Message, Messages};
use crate::queue::state::{MessageSlot, OrderingSlot, QueueSlot};
use crate::store::idle::{Idle, IdleKeys};
use crate::store::key::Key;
use crate::store::key_index::{KeyIndex, Keyed};
use crate::store::list::{List, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// One key of one queue, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct OrderingKey {
    /// Slot of its queue.
    pub(crate) queue: QueueSlot,
    key: Key,
    /// Messages that have it, in whichever state.
    messages: u32,
    /// The one message that may be delayed, ready, leased or held; `NIL`: none.
    pub(crate) active: MessageSlot,
    /// Waiting generation of the queue to which `waiting` belongs. Messages of earlier ones were purged, and
    /// are yet to be swept.
    generation: u32,
    /// Messages of this generation that wait for it, in the order of sending, without those in `returned`.
    waiting: List<Message, PLACE>,
    /// Messages that wait for the key and came when later ones waited already: they have stepped aside, or
    /// were held, moved or redriven. Slots by generation and sequence.
    returned: BTreeMap<(u32, u64), MessageSlot>,
    /// True if letting its next message go on is listed among the consequences.
    pub(crate) working: bool,
    next_vacant: Option<OrderingSlot>,
}

impl PlainItem for OrderingKey {
    const BLOCK: usize = 32;

    fn vacant(next: OrderingSlot) -> Self {
        OrderingKey {
            queue: Slot::NIL,
            key: Key::default(),
            messages: 0,
            active: Slot::NIL,
            generation: 0,
            waiting: List::default(),
            returned: BTreeMap::new(),
            working: false,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<OrderingSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.queue.write(out);
        self.key.write(out);
        out.u32(self.messages);
        self.active.write(out);
        out.u32(self.generation);
        self.waiting.write(out);
        out.bool(self.working);
        out.u32(self.returned.len() as u32);
        for ((generation, sequence), slot) in &self.returned {
            out.u32(*generation);
            out.u64(*sequence);
            slot.write(out);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let mut key = OrderingKey {
            queue: Slot::read(reader)?,
            key: Key::read(reader)?,
            messages: reader.u32()?,
            active: Slot::read(reader)?,
            generation: reader.u32()?,
            waiting: List::read(reader)?,
            returned: BTreeMap::new(),
            working: reader.bool()?,
            next_vacant: None,
        };
        for _ in 0..reader.u32()? {
            key.returned.insert((reader.u32()?, reader.u64()?), Slot::read(reader)?);
        }
        Some(key)
    }
}

impl Keyed for OrderingKey {
    fn scope(&self) -> u64 {
        self.queue.index().into()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Idle for OrderingKey {
    fn is_idle(&self) -> bool {
        self.messages == 0 && !self.working
    }
}

impl OrderingKey {
    /// Messages that have it, in whichever state.
    pub(crate) fn members(&self) -> u32 {
        self.messages
    }

    /// True if `waiting` belongs to this generation.
    pub(crate) fn is_of(&self, generation: u32) -> bool {
        self.generation == generation
    }

    /// Begins an empty list if this is another generation: messages of the one before were purged, and are
    /// swept by way of their queue.
    pub(crate) fn refresh(&mut self, generation: u32) {
        if self.generation != generation {
            self.generation = generation;
            self.waiting = List::default();
        }
    }

    /// True if none of its generation waits.
    pub(crate) fn is_free(&self) -> bool {
        self.waiting.is_empty() && self.first_returned().is_none()
    }

    /// Enters a message of its generation that waits, at its place in the order of sending.
    pub(crate) fn wait(&mut self, messages: &mut Messages, slot: MessageSlot) {
        let sequence = messages.get(slot).sequence;
        let last = self.waiting.tail;
        if last == Slot::NIL || messages.get(last).sequence < sequence {
            self.waiting.push_back(messages, slot);
        } else {
            self.returned.insert((self.generation, sequence), slot);
        }
    }

    /// Takes out a message, of whichever generation, that waits no longer.
    pub(crate) fn stop_waiting(&mut self, messages: &mut Messages, slot: MessageSlot) {
        let message = messages.get(slot);
        let (generation, sequence) = (message.generation, message.sequence);
        if self.returned.remove(&(generation, sequence)).is_none() && self.generation == generation {
            self.waiting.unlink(messages, slot);
        }
    }

    fn first_returned(&self) -> Option<(u64, MessageSlot)> {
        let of_generation = (self.generation, 0)..=(self.generation, u64::MAX);
        self.returned.range(of_generation).next().map(|((_, sequence), slot)| (*sequence, *slot))
    }

    /// The one that was sent first of those of its generation that wait; `NIL`: none does.
    pub(crate) fn first(&self, messages: &Messages) -> MessageSlot {
        let head = self.waiting.head;
        match self.first_returned() {
            Some((sequence, slot)) if head == Slot::NIL || sequence < messages.get(head).sequence => slot,
            _ => head,
        }
    }

    /// All of its generation that wait, in no order that means anything.
    pub(crate) fn all_waiting(&self, messages: &Messages) -> impl Iterator<Item = MessageSlot> {
        let of_generation = (self.generation, 0)..=(self.generation, u64::MAX);
        let returned = self.returned.range(of_generation).map(|(_, slot)| *slot);
        self.waiting.iter(messages).chain(returned)
    }
}

/// The ordering keys of all queues.
#[derive(Debug, Default)]
pub(crate) struct OrderingKeys {
    pub(crate) slots: Slab<OrderingKey, 1024>,
    /// Keys without messages that are kept.
    pub(crate) idle: IdleKeys<OrderingKey>,
    /// Index by queue and key. Derived.
    index: KeyIndex<OrderingKey>,
}

impl HeadPart for OrderingKeys {
    fn write_head(&self, out: &mut Vec<u8>) {
        let OrderingKeys { slots, idle, index: _ } = self;
        slots.write_head(out);
        idle.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots: Slab<OrderingKey, 1024> = Slab::read_head(reader)?;
        let idle = IdleKeys::read(reader, slots.slots())?;
        Some(OrderingKeys { slots, idle, ..OrderingKeys::default() })
    }
}

impl OrderingKeys {
    /// The slot of a key, for one more message that has it.
    pub(crate) fn enter(&mut self, queue: QueueSlot, key: &[u8]) -> OrderingSlot {
        let new = || OrderingKey {
            queue,
            key: Key::new(key),
            messages: 1,
            next_vacant: None,
            ..OrderingKey::vacant(Slot::NIL)
        };
        let (slot, is_new) = self.index.enter(&mut self.slots, u64::from(queue.index()), key, new);
        if !is_new {
            self.slots.get_mut(slot).messages += 1;
        }
        slot
    }

    /// One message fewer has it; without messages it is idle, unless it is listed among the consequences.
    pub(crate) fn leave(&mut self, slot: OrderingSlot) {
        self.slots.get_mut(slot).messages -= 1;
        self.keep_idle(slot);
    }

    /// Marks a key as no longer listed among the consequences; without messages it is idle.
    pub(crate) fn end_work(&mut self, slot: OrderingSlot) {
        self.slots.get_mut(slot).working = false;
        self.keep_idle(slot);
    }

    fn keep_idle(&mut self, slot: OrderingSlot) {
        if self.slots.get(slot).is_idle()
            && let Some(oldest) = self.idle.keep(&self.slots, slot)
        {
            self.index.remove(&mut self.slots, oldest);
        }
    }

    /// Forgets the keys of a queue that is gone.
    pub(crate) fn forget_of(&mut self, queue: QueueSlot) {
        for slot in self.idle.take(&self.slots, |key| key.queue == queue) {
            self.index.remove(&mut self.slots, slot);
        }
    }

    /// The key itself.
    pub(crate) fn key(&self, slot: OrderingSlot) -> &[u8] {
        &self.slots.get(slot).key
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
    }
}
