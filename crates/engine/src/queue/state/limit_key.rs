//! State of limit keys: messages in flight and deliveries used up per key, and the line of each queue in
//! which messages of a key stand.

use crate::queue::state::message::Message;
use crate::queue::state::{LimitKeySlot, LimitSlot, LineSlot, MessageSlot, QueueSlot};
use crate::store::idle::{Idle, IdleKeys};
use crate::store::key::Key;
use crate::store::key_index::{KeyIndex, Keyed};
use crate::store::list::{Linked, List, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// One key of one limit, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct LimitKey {
    /// Slot of its limit.
    pub(crate) limit: LimitSlot,
    pub(crate) key: Key,
    /// Leased messages of its lines.
    pub(crate) in_flight: u32,
    /// Theoretical arrival time of the next delivery under the rate per key.
    pub(crate) arrival_ns: u64,
    /// The limit's version for which `arrival_ns` holds.
    pub(crate) version: u32,
    /// When more may go on, or it may be forgotten; 0: not by time.
    pub(crate) timer_us: u64,
    /// The first of its lines; `NIL`: it is kept for its arrival time.
    pub(crate) lines: LineSlot,
    /// True if it is listed among the consequences.
    pub(crate) touched: bool,
    next_vacant: Option<LimitKeySlot>,
}

impl PlainItem for LimitKey {
    const BLOCK: usize = 32;

    fn vacant(next: LimitKeySlot) -> Self {
        LimitKey {
            limit: Slot::NIL,
            key: Key::default(),
            in_flight: 0,
            arrival_ns: 0,
            version: 0,
            timer_us: 0,
            lines: Slot::NIL,
            touched: false,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<LimitKeySlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.limit.write(out);
        self.key.write(out);
        out.u32(self.in_flight);
        out.u64(self.arrival_ns);
        out.u32(self.version);
        out.u64(self.timer_us);
        self.lines.write(out);
        out.bool(self.touched);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(LimitKey {
            limit: Slot::read(reader)?,
            key: Key::read(reader)?,
            in_flight: reader.u32()?,
            arrival_ns: reader.u64()?,
            version: reader.u32()?,
            timer_us: reader.u64()?,
            lines: Slot::read(reader)?,
            touched: reader.bool()?,
            next_vacant: None,
        })
    }
}

impl Keyed for LimitKey {
    fn scope(&self) -> u64 {
        self.limit.index().into()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }
}

/// The keys of all limits.
#[derive(Debug, Default)]
pub(crate) struct LimitKeys {
    pub(crate) slots: Slab<LimitKey, 1024>,
    /// Index by limit and key. Derived.
    index: KeyIndex<LimitKey>,
    /// Keys that have no lines. Derived.
    pub(crate) idle: u32,
}

impl HeadPart for LimitKeys {
    fn write_head(&self, out: &mut Vec<u8>) {
        let LimitKeys { slots, index: _, idle: _ } = self;
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots = Slab::read_head(reader)?;
        Some(LimitKeys { slots, ..LimitKeys::default() })
    }
}

impl LimitKeys {
    /// The slot of a key of a limit; the second is true when it is new.
    pub(crate) fn enter(&mut self, limit: LimitSlot, key: &Key) -> (LimitKeySlot, bool) {
        let new = || LimitKey { limit, key: key.clone(), next_vacant: None, ..LimitKey::vacant(Slot::NIL) };
        let (slot, is_new) = self.index.enter(&mut self.slots, u64::from(limit.index()), key, new);
        self.idle += u32::from(is_new);
        (slot, is_new)
    }

    /// The slot of a key of a limit, if there is one.
    pub(crate) fn find(&self, limit: LimitSlot, key: &[u8]) -> Option<LimitKeySlot> {
        self.index.find(&self.slots, u64::from(limit.index()), key)
    }

    /// Forgets a key that has no lines.
    pub(crate) fn remove(&mut self, slot: LimitKeySlot) {
        self.idle -= 1;
        self.index.remove(&mut self.slots, slot);
    }

    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
        self.idle = self.slots.iter().filter(|(_, key)| key.lines == Slot::NIL).count() as u32;
    }
}

/// Time of a message that waits for its limit and was put back, in microseconds since the Unix epoch: one
/// long past, so that it says nothing of when the message may be delivered. Others have 0.
pub(crate) const PUT_BACK_US: u64 = 1;

/// The messages of one queue and limit key, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct KeyLine {
    /// Slot of its queue.
    pub(crate) queue: QueueSlot,
    pub(crate) key: Key,
    /// Slot of the key of the queue's limit; `NIL`: the queue had none when it was last looked at.
    pub(crate) of: LimitKeySlot,
    /// Messages that have the key, in whichever state.
    pub(crate) members: u32,
    /// Messages that are leased.
    pub(crate) leased: u32,
    /// The queue's waiting generation for which the following holds: of an earlier one, all of it is void.
    pub(crate) generation: u32,
    /// Messages that are ready.
    pub(crate) ready: u32,
    /// Cost of those. Derived.
    pub(crate) ready_cost: u64,
    /// Messages that wait.
    pub(crate) waiting_count: u32,
    /// Messages that wait for the limit: those that were put back, then the others, each in the order in
    /// which they came.
    pub(crate) waiting: List<Message, PLACE>,
    /// The last of those that were put back; `NIL`: there is none. Derived.
    pub(crate) last_put_back: MessageSlot,
    /// Neighbours among the lines of the key.
    pub(crate) prev: LineSlot,
    pub(crate) next: LineSlot,
    next_vacant: Option<LineSlot>,
}

/// Messages that begin before another one.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    pub(crate) count: u32,
    /// Their cost.
    pub(crate) cost: u64,
}

impl Ahead {
    /// No messages.
    pub(crate) const NONE: Ahead = Ahead { count: 0, cost: 0 };
}

impl KeyLine {
    /// The ready ones, which begin before those that wait.
    #[inline]
    pub(crate) fn ahead(&self) -> Ahead {
        Ahead { count: self.ready, cost: self.ready_cost }
    }

    /// Forgets what is ready and what waits: all of it was purged.
    pub(crate) fn empty(&mut self) {
        (self.ready, self.ready_cost, self.waiting_count) = (0, 0, 0);
        (self.waiting, self.last_put_back) = (List::default(), Slot::NIL);
    }

    /// Puts a message to the others that were put back, which are first in line.
    pub(crate) fn put_back<const CHUNK: usize>(
        &mut self,
        messages: &mut Slab<Message, CHUNK>,
        slot: MessageSlot,
    ) {
        let next = match self.last_put_back.some() {
            Some(last) => Linked::<PLACE>::link(messages.get(last)).next,
            None => self.waiting.head,
        };
        self.waiting.insert_before(messages, slot, next);
        self.last_put_back = slot;
    }

    /// A message no longer waits.
    pub(crate) fn take_out<const CHUNK: usize>(
        &mut self,
        messages: &mut Slab<Message, CHUNK>,
        slot: MessageSlot,
    ) {
        if self.last_put_back == slot {
            self.last_put_back = Linked::<PLACE>::link(messages.get(slot)).prev;
        }
        self.waiting_count -= 1;
        self.waiting.unlink(messages, slot);
    }

    /// [`KeyLine::last_put_back`], as the messages tell it.
    pub(crate) fn derive_put_back<const CHUNK: usize>(&self, messages: &Slab<Message, CHUNK>) -> MessageSlot {
        let put_back = |slot: &MessageSlot| messages.get(*slot).time_us == PUT_BACK_US;
        self.waiting.iter(messages).take_while(put_back).last().unwrap_or(Slot::NIL)
    }
}

impl PlainItem for KeyLine {
    const BLOCK: usize = 32;

    fn vacant(next: LineSlot) -> Self {
        KeyLine {
            queue: Slot::NIL,
            key: Key::default(),
            of: Slot::NIL,
            members: 0,
            leased: 0,
            generation: 0,
            ready: 0,
            ready_cost: 0,
            waiting_count: 0,
            waiting: List::default(),
            last_put_back: Slot::NIL,
            prev: Slot::NIL,
            next: Slot::NIL,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<LineSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.queue.write(out);
        self.key.write(out);
        self.of.write(out);
        for number in [self.members, self.leased, self.generation, self.ready, self.waiting_count] {
            out.u32(number);
        }
        self.waiting.write(out);
        self.prev.write(out);
        self.next.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(KeyLine {
            queue: Slot::read(reader)?,
            key: Key::read(reader)?,
            of: Slot::read(reader)?,
            members: reader.u32()?,
            leased: reader.u32()?,
            generation: reader.u32()?,
            ready: reader.u32()?,
            waiting_count: reader.u32()?,
            ready_cost: 0,
            waiting: List::read(reader)?,
            last_put_back: Slot::NIL,
            prev: Slot::read(reader)?,
            next: Slot::read(reader)?,
            next_vacant: None,
        })
    }
}

impl Keyed for KeyLine {
    fn scope(&self) -> u64 {
        self.queue.index().into()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Idle for KeyLine {
    fn is_idle(&self) -> bool {
        self.members == 0
    }
}

/// The lines of all queues.
#[derive(Debug, Default)]
pub(crate) struct KeyLines {
    pub(crate) slots: Slab<KeyLine, 1024>,
    /// Lines without messages that are kept.
    pub(crate) idle: IdleKeys<KeyLine>,
    /// Index by queue and key. Derived.
    index: KeyIndex<KeyLine>,
}

impl HeadPart for KeyLines {
    fn write_head(&self, out: &mut Vec<u8>) {
        let KeyLines { slots, idle, index: _ } = self;
        slots.write_head(out);
        idle.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots: Slab<KeyLine, 1024> = Slab::read_head(reader)?;
        let idle = IdleKeys::read(reader, slots.slots())?;
        Some(KeyLines { slots, idle, ..KeyLines::default() })
    }
}

impl KeyLines {
    /// The line of a key, for one more message that has it.
    pub(crate) fn enter(&mut self, queue: QueueSlot, key: &[u8]) -> LineSlot {
        let new = || KeyLine {
            queue,
            key: Key::new(key),
            members: 1,
            next_vacant: None,
            ..KeyLine::vacant(Slot::NIL)
        };
        let (slot, is_new) = self.index.enter(&mut self.slots, u64::from(queue.index()), key, new);
        if !is_new {
            self.slots.get_mut(slot).members += 1;
        }
        slot
    }

    /// One message fewer is a member. Returns an idle line that has to be forgotten, if there are too many.
    pub(crate) fn leave(&mut self, slot: LineSlot) -> Option<LineSlot> {
        let line = self.slots.get_mut(slot);
        line.members -= 1;
        if line.members == 0 { self.idle.keep(&self.slots, slot) } else { None }
    }

    /// Forgets a line without members, which is no key's any more.
    pub(crate) fn remove(&mut self, slot: LineSlot) {
        self.index.remove(&mut self.slots, slot);
    }

    /// The limit key of a line.
    pub(crate) fn key(&self, slot: LineSlot) -> &[u8] {
        &self.slots.get(slot).key
    }

    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
    }
}
