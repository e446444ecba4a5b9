//! Fair keys: the lanes in which ready messages of one queue stand, and the rings in which lanes take turns.
//!
//! A queue pays for it from its first message with a fair key on: until then its ready messages stand on
//! plain lists.

use crate::queue::state::message::Message;
use crate::queue::state::{LaneSlot, PRIORITIES, QueueSlot};
use crate::store::idle::{Idle, IdleKeys};
use crate::store::key::Key;
use crate::store::key_index::{KeyIndex, Keyed};
use crate::store::list::{List, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// The ready messages of one queue, fair key and priority; or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// Slot of its queue.
    pub(crate) queue: QueueSlot,
    key: Key,
    pub(crate) priority: u8,
    /// Messages that have the key and priority, in whichever state; and one for a lane of the empty key.
    pub(crate) members: u32,
    /// The queue's waiting generation of its list: of an earlier one, the list and the place in the ring are
    /// void.
    pub(crate) generation: u32,
    pub(crate) messages: List<Message, PLACE>,
    /// True if it stands in its ring: it does as long as it has messages.
    pub(crate) listed: bool,
    /// Neighbours in the ring.
    pub(crate) prev: LaneSlot,
    pub(crate) next: LaneSlot,
    /// Messages that it may still give in this turn.
    pub(crate) left: u16,
    next_vacant: Option<LaneSlot>,
}

impl PlainItem for Lane {
    const BLOCK: usize = 32;

    fn vacant(next: LaneSlot) -> Self {
        Lane {
            queue: Slot::NIL,
            key: Key::default(),
            priority: 0,
            members: 0,
            generation: 0,
            messages: List::default(),
            listed: false,
            prev: Slot::NIL,
            next: Slot::NIL,
            left: 0,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<LaneSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.queue.write(out);
        self.key.write(out);
        out.u8(self.priority);
        out.u32(self.members);
        out.u32(self.generation);
        self.messages.write(out);
        out.bool(self.listed);
        self.prev.write(out);
        self.next.write(out);
        out.u16(self.left);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Lane {
            queue: Slot::read(reader)?,
            key: Key::read(reader)?,
            priority: reader.u8()?,
            members: reader.u32()?,
            generation: reader.u32()?,
            messages: List::read(reader)?,
            listed: reader.bool()?,
            prev: Slot::read(reader)?,
            next: Slot::read(reader)?,
            left: reader.u16()?,
            next_vacant: None,
        })
    }
}

impl Idle for Lane {
    fn is_idle(&self) -> bool {
        self.members == 0
    }
}

impl Lane {
    /// A lane with one message that has the key.
    fn with_one(queue: QueueSlot, priority: u8, key: &[u8]) -> Lane {
        Lane { queue, key: Key::new(key), priority, members: 1, next_vacant: None, ..Lane::vacant(Slot::NIL) }
    }
}

/// Ends of a ring of lanes: the head gives until its turn is over, then it goes behind the tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ring {
    pub(crate) head: LaneSlot,
    pub(crate) tail: LaneSlot,
}

impl Default for Ring {
    fn default() -> Self {
        Ring { head: Slot::NIL, tail: Slot::NIL }
    }
}

/// Rings and plain lanes of a queue, from its first message with a fair key on.
#[derive(Clone, Debug)]
pub(crate) struct Fair {
    /// Rings by priority.
    pub(crate) rings: [Ring; PRIORITIES],
    /// The lanes of messages without a fair key, by priority; `NIL`: not needed so far.
    pub(crate) plain: [LaneSlot; PRIORITIES],
}

impl Default for Fair {
    fn default() -> Self {
        Fair { rings: [Ring::default(); PRIORITIES], plain: [Slot::NIL; PRIORITIES] }
    }
}

impl Fair {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (ring, plain) in self.rings.iter().zip(&self.plain) {
            ring.head.write(out);
            ring.tail.write(out);
            plain.write(out);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Fair> {
        let mut fair = Fair::default();
        for (ring, plain) in fair.rings.iter_mut().zip(&mut fair.plain) {
            *ring = Ring { head: Slot::read(reader)?, tail: Slot::read(reader)? };
            *plain = Slot::read(reader)?;
        }
        Some(fair)
    }
}

/// The lanes of all queues.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) slots: Slab<Lane, 1024>,
    /// Lanes without messages that are kept.
    pub(crate) idle: IdleKeys<Lane>,
    /// Index by queue, priority and key; without lanes of the empty key, which their queue knows. Derived.
    index: KeyIndex<Lane>,
}

fn scope(queue: QueueSlot, priority: u8) -> u64 {
    u64::from(queue.index()) << 8 | u64::from(priority)
}

impl Keyed for Lane {
    fn scope(&self) -> u64 {
        scope(self.queue, self.priority)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn is_indexed(&self) -> bool {
        !self.key.is_empty()
    }
}

impl HeadPart for Lanes {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Lanes { slots, idle, index: _ } = self;
        slots.write_head(out);
        idle.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots: Slab<Lane, 1024> = Slab::read_head(reader)?;
        let idle = IdleKeys::read(reader, slots.slots())?;
        Some(Lanes { slots, idle, ..Lanes::default() })
    }
}

impl Lanes {
    /// The lane of a key, for one more message that has it.
    pub(crate) fn enter(&mut self, queue: QueueSlot, priority: u8, key: &[u8]) -> LaneSlot {
        let new = || Lane::with_one(queue, priority, key);
        let (slot, is_new) = self.index.enter(&mut self.slots, scope(queue, priority), key, new);
        if !is_new {
            self.slots.get_mut(slot).members += 1;
        }
        slot
    }

    /// A lane for messages of a queue that have no key.
    pub(crate) fn enter_plain(&mut self, queue: QueueSlot, priority: u8) -> LaneSlot {
        self.slots.insert(Lane::with_one(queue, priority, &[]))
    }

    /// One message fewer has the key; without messages the lane is idle.
    pub(crate) fn leave(&mut self, slot: LaneSlot) {
        let lane = self.slots.get_mut(slot);
        lane.members -= 1;
        if lane.members == 0
            && let Some(oldest) = self.idle.keep(&self.slots, slot)
        {
            self.index.remove(&mut self.slots, oldest);
        }
    }

    /// Forgets the lanes of a queue that is gone, with those of the empty key (`plain`).
    pub(crate) fn forget_of(&mut self, queue: QueueSlot, plain: impl Iterator<Item = LaneSlot>) {
        let idle = self.idle.take(&self.slots, |lane| lane.queue == queue);
        for slot in plain.chain(idle) {
            self.index.remove(&mut self.slots, slot);
        }
    }

    /// The fair key of a lane.
    pub(crate) fn key(&self, slot: LaneSlot) -> &[u8] {
        &self.slots.get(slot).key
    }

    /// Appends a lane to a ring.
    pub(crate) fn link(&mut self, ring: &mut Ring, slot: LaneSlot) {
        let tail = std::mem::replace(&mut ring.tail, slot);
        let lane = self.slots.get_mut(slot);
        lane.listed = true;
        (lane.prev, lane.next) = (tail, Slot::NIL);
        if tail == Slot::NIL {
            ring.head = slot;
        } else {
            self.slots.get_mut(tail).next = slot;
        }
    }

    /// Puts a lane at the head of a ring.
    pub(crate) fn link_first(&mut self, ring: &mut Ring, slot: LaneSlot) {
        let head = std::mem::replace(&mut ring.head, slot);
        let lane = self.slots.get_mut(slot);
        lane.listed = true;
        (lane.prev, lane.next) = (Slot::NIL, head);
        if head == Slot::NIL {
            ring.tail = slot;
        } else {
            self.slots.get_mut(head).prev = slot;
        }
    }

    /// Takes a lane out of a ring.
    pub(crate) fn unlink(&mut self, ring: &mut Ring, slot: LaneSlot) {
        let lane = self.slots.get_mut(slot);
        lane.listed = false;
        let (prev, next) = (lane.prev, lane.next);
        if prev == Slot::NIL {
            ring.head = next;
        } else {
            self.slots.get_mut(prev).next = next;
        }
        if next == Slot::NIL {
            ring.tail = prev;
        } else {
            self.slots.get_mut(next).prev = prev;
        }
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
    }
}
