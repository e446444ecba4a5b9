//! State of unique keys: which message of a queue has a key, or had it in a window that has not ended.

use crate::core::wheel::{Timed, Wheel};
use crate::item::UniqueUntil;
use crate::queue::state::flow::End;
use crate::queue::state::{MessageSlot, UniqueSlot};
use crate::store::NIL;
use crate::store::idle::{Idle, IdleKeys};
use crate::store::key::Key;
use crate::store::key_index::{KeyIndex, Keyed};
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// One key of one queue, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct UniqueKey {
    /// Number of its queue: a key may outlive its messages, and never means another queue.
    queue: u32,
    key: Key,
    /// Messages that name it, in whichever state.
    members: u32,
    /// The message that has it; `NIL`: none.
    pub(crate) holder: MessageSlot,
    /// Sequence of the message that has it or had it last.
    pub(crate) first: u64,
    /// The event that frees it.
    pub(crate) until: UniqueUntil,
    /// The end of that message, if no message has the key.
    pub(crate) end: End,
    /// When it is free in any case, in microseconds since the Unix epoch.
    pub(crate) ends_us: u64,
    /// True if it counts although no message has it: then it waits in the wheel for its end.
    pub(crate) lingers: bool,
    link: Link<UniqueKey>,
    bucket: u16,
    next_vacant: Option<UniqueSlot>,
}

impl PlainItem for UniqueKey {
    const BLOCK: usize = 32;

    fn vacant(next: UniqueSlot) -> Self {
        UniqueKey {
            queue: NIL,
            key: Key::default(),
            members: 0,
            holder: Slot::NIL,
            first: 0,
            until: UniqueUntil::Gone,
            end: End::Failed,
            ends_us: 0,
            lingers: false,
            link: Link::UNLINKED,
            bucket: 0,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<UniqueSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u32(self.queue);
        self.key.write(out);
        out.u32(self.members);
        self.holder.write(out);
        out.u64(self.first);
        out.bool(self.until == UniqueUntil::Window);
        out.u8(End::byte(Some(self.end)));
        out.u64(self.ends_us);
        out.bool(self.lingers);
        self.link.prev.write(out);
        self.link.next.write(out);
        out.u16(self.bucket);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(UniqueKey {
            queue: reader.u32()?,
            key: Key::read(reader)?,
            members: reader.u32()?,
            holder: Slot::read(reader)?,
            first: reader.u64()?,
            until: if reader.bool()? { UniqueUntil::Window } else { UniqueUntil::Gone },
            end: End::of_byte(reader.u8()?)??,
            ends_us: reader.u64()?,
            lingers: reader.bool()?,
            link: Link::read(reader)?,
            bucket: reader.u16()?,
            next_vacant: None,
        })
    }
}

impl Linked<PLACE> for UniqueKey {
    fn link(&self) -> Link<UniqueKey> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<UniqueKey> {
        &mut self.link
    }
}

impl Timed for UniqueKey {
    fn due_us(&self) -> u64 {
        self.ends_us
    }

    fn bucket(&self) -> u16 {
        self.bucket
    }

    fn set_bucket(&mut self, bucket: u16) {
        self.bucket = bucket;
    }
}

impl Keyed for UniqueKey {
    fn scope(&self) -> u64 {
        self.queue.into()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Idle for UniqueKey {
    fn is_idle(&self) -> bool {
        self.members == 0 && !self.lingers
    }
}

impl UniqueKey {
    fn is(&self, queue: u32, key: &[u8]) -> bool {
        self.queue == queue && *self.key == *key
    }

    /// Messages that name it, in whichever state.
    pub(crate) fn members(&self) -> u32 {
        self.members
    }
}

/// The unique keys of all queues.
#[derive(Debug, Default)]
pub(crate) struct UniqueKeys {
    pub(crate) slots: Slab<UniqueKey, 1024>,
    /// Keys that are free, have no messages, and are kept.
    pub(crate) idle: IdleKeys<UniqueKey>,
    /// Keys that linger, by their end.
    pub(crate) wheel: Wheel<UniqueKey>,
    /// Index by queue and key. Derived.
    index: KeyIndex<UniqueKey>,
    /// The key that was looked for last by those who are about to enter it, as a first guess.
    pub(crate) guess: UniqueSlot,
}

impl HeadPart for UniqueKeys {
    fn write_head(&self, out: &mut Vec<u8>) {
        let UniqueKeys { wheel, slots, idle, index: _, guess: _ } = self;
        wheel.write_head(out);
        slots.write_head(out);
        idle.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let wheel = Wheel::read_head(reader)?;
        let slots: Slab<UniqueKey, 1024> = Slab::read_head(reader)?;
        let idle = IdleKeys::read(reader, slots.slots())?;
        Some(UniqueKeys { wheel, slots, idle, ..UniqueKeys::default() })
    }
}

impl UniqueKeys {
    /// The slot of a key that is known.
    pub(crate) fn find(&self, queue: u32, key: &[u8]) -> Option<UniqueSlot> {
        self.index.find(&self.slots, u64::from(queue), key)
    }

    /// The slot of a key, for one more message that names it.
    pub(crate) fn enter(&mut self, queue: u32, key: &[u8]) -> UniqueSlot {
        if self.guess.index() < self.slots.slots() && self.slots.get(self.guess).is(queue, key) {
            self.slots.get_mut(self.guess).members += 1;
            return self.guess;
        }
        let new = || UniqueKey {
            queue,
            key: Key::new(key),
            members: 1,
            next_vacant: None,
            ..UniqueKey::vacant(Slot::NIL)
        };
        let (slot, is_new) = self.index.enter(&mut self.slots, u64::from(queue), key, new);
        if !is_new {
            self.slots.get_mut(slot).members += 1;
        }
        slot
    }

    /// One message fewer names it.
    pub(crate) fn leave(&mut self, slot: UniqueSlot) {
        self.slots.get_mut(slot).members -= 1;
        self.keep_idle(slot);
    }

    /// A message takes a key that is free.
    pub(crate) fn take(
        &mut self,
        slot: UniqueSlot,
        holder: MessageSlot,
        first: u64,
        until: UniqueUntil,
        ends_us: u64,
    ) {
        if self.slots.get(slot).lingers {
            self.wheel.remove(&mut self.slots, slot);
        }
        let key = self.slots.get_mut(slot);
        (key.lingers, key.holder, key.first) = (false, holder, first);
        (key.until, key.ends_us) = (until, ends_us);
    }

    /// The message that had a key has ended. If the key counts to the end of its window it lingers; of more
    /// than `most` that do, one that would end next is free before its time.
    pub(crate) fn give_back(&mut self, slot: UniqueSlot, end: End, now_us: u64, most: u32) {
        let key = self.slots.get_mut(slot);
        (key.holder, key.end) = (Slot::NIL, end);
        if key.until == UniqueUntil::Gone || key.ends_us <= now_us {
            return self.keep_idle(slot);
        }
        key.lingers = true;
        self.wheel.insert(&mut self.slots, slot, now_us);
        if self.wheel.len() > most
            && let Some(first) = self.wheel.first()
        {
            self.end_lingering(first);
        }
    }

    /// A key that lingers is free.
    pub(crate) fn end_lingering(&mut self, slot: UniqueSlot) {
        self.wheel.remove(&mut self.slots, slot);
        self.slots.get_mut(slot).lingers = false;
        self.keep_idle(slot);
    }

    fn keep_idle(&mut self, slot: UniqueSlot) {
        if self.slots.get(slot).is_idle()
            && let Some(oldest) = self.idle.keep(&self.slots, slot)
        {
            self.index.remove(&mut self.slots, oldest);
        }
    }

    /// The key itself.
    pub(crate) fn key(&self, slot: UniqueSlot) -> &[u8] {
        &self.slots.get(slot).key
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
    }

    /// Compares index and slots.
    pub(crate) fn recount(&self) -> Result<(), String> {
        self.idle.recount(&self.slots).map_err(|why| format!("unique keys: {why}"))?;
        for (slot, key) in self.slots.iter() {
            if self.find(key.queue, &key.key) != Some(slot) {
                return Err(format!("unique key {slot} is not in the index"));
            }
        }
        let lingering = self.slots.iter().filter(|(_, key)| key.lingers).count();
        let listed = self.wheel.iter(&self.slots).filter(|&(bucket, slot)| {
            let key = self.slots.get(slot);
            key.lingers && usize::from(key.bucket) == bucket && key.holder == Slot::NIL
        });
        let figures = (lingering, listed.count(), self.wheel.len() as usize, self.slots.used());
        if (figures.0, figures.0, self.index.len()) != (figures.1, figures.2, figures.3) {
            return Err(format!("unique keys that linger, listed, timers, slots: {figures:?}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::idle::IDLE_KEYS_MAX;

    #[test]
    fn keys_that_linger_are_bounded_in_number_and_those_that_end_first_go_first() {
        let mut keys = UniqueKeys::default();
        let lingers = |keys: &UniqueKeys, n: u64| {
            keys.find(1, &n.to_le_bytes()).is_some_and(|slot| keys.slots.get(slot).lingers)
        };
        for n in 0..100u64 {
            let slot = keys.enter(1, &n.to_le_bytes());
            keys.take(slot, Slot::new(7), n + 1, UniqueUntil::Window, 1_000_000 + (n ^ 5) * 5_000_000);
            keys.give_back(slot, End::Done, 0, 10);
            keys.leave(slot);
            keys.recount().unwrap();
        }
        assert_eq!(((0..100).filter(|&n| lingers(&keys, n)).count(), keys.wheel.len()), (10, 10));
        assert!(!lingers(&keys, 3) && lingers(&keys, 99));
        assert!(keys.find(2, &99u64.to_le_bytes()).is_none(), "it belongs to its queue");
        let mut budget = 10_000;
        while let Some(slot) = keys.wheel.due(&mut keys.slots, 600_000_000, &mut budget) {
            keys.end_lingering(slot);
        }
        assert!((0..100).all(|n| !lingers(&keys, n)));
        keys.recount().unwrap();
    }

    #[test]
    fn a_key_that_its_messages_alone_need_is_idle_without_them_and_goes_before_later_ones() {
        let mut keys = UniqueKeys::default();
        let slots: Vec<_> = (0..2 * IDLE_KEYS_MAX as u64)
            .map(|n| {
                let slot = keys.enter(1, &n.to_le_bytes());
                keys.take(slot, Slot::new(7), n + 1, UniqueUntil::Gone, 1_000);
                keys.give_back(slot, End::Done, 5, 10);
                assert_eq!(keys.slots.get(slot).holder, Slot::NIL);
                keys.leave(slot);
                keys.recount().unwrap();
                slot
            })
            .collect();
        assert_eq!(keys.slots.used() as usize, IDLE_KEYS_MAX);
        let first_kept = IDLE_KEYS_MAX as u64;
        assert_eq!(keys.find(1, &(first_kept - 1).to_le_bytes()), None);
        assert_eq!(keys.find(1, &first_kept.to_le_bytes()), Some(slots[IDLE_KEYS_MAX]));
        // One that is used again is not forgotten when its turn comes.
        assert_eq!(keys.enter(1, &first_kept.to_le_bytes()), slots[IDLE_KEYS_MAX]);
        let another = keys.enter(1, b"another");
        keys.leave(another);
        assert!(keys.find(1, &first_kept.to_le_bytes()).is_some());
        keys.recount().unwrap();
    }
}
