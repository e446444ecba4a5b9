//! Locks: keys with their holders and those that wait.

use crate::core::namespace::NamespaceSlot;
use crate::lock::state::place::Place;
use crate::lock::state::{LockSlot, PlaceSlot};
use crate::store::key::Key;
use crate::store::key_index::{KeyIndex, Keyed};
use crate::store::list::{List, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// A key that is held or waited for, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    /// Empty: the slot is vacant.
    pub(crate) key: Key,
    pub(crate) namespace: NamespaceSlot,
    /// Places of its holders in the order of their grants; of a vacant slot, the next one is the head.
    pub(crate) holders: List<Place, PLACE>,
    /// Places of those that wait, in their order.
    pub(crate) waiting: List<Place, PLACE>,
    pub(crate) waiting_count: u32,
    pub(crate) holder_count: u16,
    /// True if it is listed among those whose next ones may be granted.
    pub(crate) woken: bool,
}

const _: () = assert!(size_of::<Lock>() == 56);

impl Lock {
    fn new(namespace: NamespaceSlot, key: &[u8]) -> Lock {
        Lock {
            key: Key::new(key),
            namespace,
            holders: List::default(),
            waiting: List::default(),
            waiting_count: 0,
            holder_count: 0,
            woken: false,
        }
    }

    /// True if nobody holds it or waits for it.
    pub(crate) fn is_free(&self) -> bool {
        self.holders.is_empty() && self.waiting.is_empty()
    }
}

impl PlainItem for Lock {
    const BLOCK: usize = 64;

    fn vacant(next: LockSlot) -> Self {
        let mut vacant = Lock::new(Slot::NIL, &[]);
        vacant.holders.head = PlaceSlot::new(next.index());
        vacant
    }

    fn next_vacant(&self) -> Option<LockSlot> {
        self.key.is_empty().then(|| LockSlot::new(self.holders.head.index()))
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.key.write(out);
        self.namespace.write(out);
        self.holders.write(out);
        self.waiting.write(out);
        out.u32(self.waiting_count);
        out.u16(self.holder_count);
        out.bool(self.woken);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Lock {
            key: Key::read(reader).filter(|key| !key.is_empty())?,
            namespace: Slot::read(reader)?,
            holders: List::read(reader)?,
            waiting: List::read(reader)?,
            waiting_count: reader.u32()?,
            holder_count: reader.u16()?,
            woken: reader.bool()?,
        })
    }
}

impl Keyed for Lock {
    fn scope(&self) -> u64 {
        self.namespace.index().into()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }
}

/// All locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    pub(crate) slots: Slab<Lock, 1024>,
    /// Index by namespace and key. Derived.
    index: KeyIndex<Lock>,
}

impl HeadPart for Locks {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Locks { slots, index: _ } = self;
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Locks { slots: Slab::read_head(reader)?, ..Locks::default() })
    }
}

impl Locks {
    pub(crate) fn find(&self, namespace: NamespaceSlot, key: &str) -> Option<LockSlot> {
        self.index.find(&self.slots, namespace.index().into(), key.as_bytes())
    }

    /// The lock of a key; the second is true when it is new.
    pub(crate) fn enter(&mut self, namespace: NamespaceSlot, key: &str) -> (LockSlot, bool) {
        let key = key.as_bytes();
        self.index.enter(&mut self.slots, namespace.index().into(), key, || Lock::new(namespace, key))
    }

    /// Forgets a lock that is free.
    pub(crate) fn remove(&mut self, slot: LockSlot) {
        self.index.remove(&mut self.slots, slot);
    }

    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
    }

    pub(crate) fn indexed(&self) -> u32 {
        self.index.len()
    }
}
