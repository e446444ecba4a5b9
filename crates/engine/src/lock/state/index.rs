//! Locks of each namespace in the order of their keys. Derived.

use crate::core::namespace::NamespaceSlot;
use crate::lock::state::LockSlot;
use crate::lock::state::lock::{Lock, Locks};
use crate::store::arena::Arena;
use crate::store::sorted_index::SortedIndex;

/// Locks by namespace and key.
#[derive(Debug, Default)]
pub(crate) struct LockOrder(Arena<SortedIndex<Lock>, 64>);

impl LockOrder {
    /// Adds empty indexes until there are as many as slots of namespaces.
    pub(crate) fn cover(&mut self, slots: u32) {
        while self.0.len() < slots as usize {
            self.0.push(SortedIndex::default());
        }
    }

    pub(crate) fn insert(&mut self, slot: LockSlot, locks: &Locks) {
        let lock = locks.slots.get(slot);
        let key: &[u8] = &lock.key;
        let of_namespace = self.0.get_mut(lock.namespace.index());
        of_namespace.insert(slot, |other| (*locks.slots.get(other).key).cmp(key));
    }

    pub(crate) fn remove(&mut self, slot: LockSlot, locks: &Locks) {
        let lock = locks.slots.get(slot);
        let key: &[u8] = &lock.key;
        self.0.get_mut(lock.namespace.index()).remove(|other| (*locks.slots.get(other).key).cmp(key));
    }

    /// Locks of a namespace in the order of their keys, from this key on.
    pub(crate) fn from<'a>(
        &'a self,
        namespace: NamespaceSlot,
        key: &[u8],
        locks: &'a Locks,
    ) -> impl Iterator<Item = LockSlot> + 'a {
        self.0.get(namespace.index()).from(|other| (*locks.slots.get(other).key).cmp(key))
    }
}
