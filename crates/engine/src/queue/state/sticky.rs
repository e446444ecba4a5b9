//! The consumers of ordering keys, in queues that keep a key with its consumer. Of very many keys those
//! that were used last are known.

use std::collections::BTreeMap;

use crate::hash::hash;
use crate::limits::STICKY_KEYS_MAX;
use crate::queue::state::StickySlot;
use crate::store::NIL;
use crate::store::list::{Link, Linked, List, PLACE};
use crate::store::slab::{Item, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// One key of one queue, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct StickyKey {
    /// Number of the queue.
    queue: u32,
    /// Stands for the key: two that have the same go to the same consumer, and no harm is done.
    hash: u64,
    /// Number of the consumer, which may be gone; 0: vacant, and the next vacant slot is `link.next`.
    consumer: u64,
    link: Link<StickyKey>,
}

const _: () = assert!(size_of::<StickyKey>() == 32);

impl Item for StickyKey {
    const BLOCK: usize = 64;

    fn vacant(next: StickySlot) -> Self {
        StickyKey { queue: NIL, hash: 0, consumer: 0, link: Link { prev: Slot::NIL, next } }
    }

    fn next_vacant(&self) -> Option<StickySlot> {
        (self.consumer == 0).then_some(self.link.next)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.queue);
        out.u64(self.hash);
        out.u64(self.consumer);
        self.link.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(StickyKey {
            queue: reader.u32()?,
            hash: reader.u64()?,
            consumer: reader.u64()?,
            link: Link::read(reader)?,
        })
    }
}

impl Linked<PLACE> for StickyKey {
    fn link(&self) -> Link<StickyKey> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<StickyKey> {
        &mut self.link
    }
}

/// The keys of all queues.
#[derive(Debug, Default)]
pub(crate) struct StickyKeys {
    pub(crate) slots: Slab<StickyKey, 1024>,
    /// Least recently used first.
    pub(crate) used: List<StickyKey, PLACE>,
    /// Index by queue and hash. Derived.
    index: BTreeMap<(u32, u64), StickySlot>,
}

/// The hash that stands for an ordering key.
pub(crate) fn sticky_hash(key: &[u8]) -> u64 {
    hash(0, key)
}

impl HeadPart for StickyKeys {
    fn write_head(&self, out: &mut Vec<u8>) {
        let StickyKeys { slots, used, index: _ } = self;
        slots.write_head(out);
        used.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots = Slab::read_head(reader)?;
        let used = List::read(reader)?;
        Some(StickyKeys { slots, used, ..StickyKeys::default() })
    }
}

impl StickyKeys {
    /// The number of the consumer that had this key last.
    pub(crate) fn consumer(&mut self, queue: u32, hash: u64) -> Option<u64> {
        let slot = *self.index.get(&(queue, hash))?;
        self.used.unlink(&mut self.slots, slot);
        self.used.push_back(&mut self.slots, slot);
        Some(self.slots.get(slot).consumer)
    }

    /// A consumer has this key from now on. Beyond the limit the key that was not used for longest is
    /// forgotten.
    pub(crate) fn set(&mut self, queue: u32, hash: u64, consumer: u64) {
        if let Some(&slot) = self.index.get(&(queue, hash)) {
            self.slots.get_mut(slot).consumer = consumer;
            return;
        }
        if self.slots.used() >= STICKY_KEYS_MAX {
            let oldest = self.used.head;
            self.used.unlink(&mut self.slots, oldest);
            let gone = self.slots.remove(oldest);
            self.index.remove(&(gone.queue, gone.hash));
        }
        let slot = self.slots.insert(StickyKey { queue, hash, consumer, link: Link::UNLINKED });
        self.used.push_back(&mut self.slots, slot);
        self.index.insert((queue, hash), slot);
    }

    /// True if order and index have each of them, once.
    pub(crate) fn is_sound(&self) -> bool {
        let known = self.slots.used() as usize;
        let found = |slot| {
            let key = self.slots.get(slot);
            self.index.get(&(key.queue, key.hash)) == Some(&slot)
        };
        self.index.len() == known
            && self.used.iter(&self.slots).take(known + 1).filter(|slot| found(*slot)).count() == known
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        self.index = self.slots.iter().map(|(slot, key)| ((key.queue, key.hash), slot)).collect();
    }
}
