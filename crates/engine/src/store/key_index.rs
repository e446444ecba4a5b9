//! Where what belongs to a key lies. Keys have a scope, such as the slot of a queue: the same key in another
//! is another key.
//!
//! An index holds no keys, and is derived from the slots that do.

use crate::hash::hash;
use crate::store::hash_index::HashIndex;
use crate::store::slab::{Item, Slab};
use crate::store::slot::Slot;

/// An item that is found by its key.
pub(crate) trait Keyed: Item {
    /// Where the key counts.
    fn scope(&self) -> u64;
    fn key(&self) -> &[u8];

    /// True if it is found by its key, or has none.
    fn is_indexed(&self) -> bool {
        true
    }
}

/// The slots of keys.
#[derive(Debug)]
pub(crate) struct KeyIndex<T>(HashIndex<T>);

impl<T> Default for KeyIndex<T> {
    fn default() -> Self {
        KeyIndex(HashIndex::default())
    }
}

impl<T: Keyed> KeyIndex<T> {
    /// Keys in the index.
    pub(crate) fn len(&self) -> u32 {
        self.0.len()
    }

    /// The slot of a key that is known.
    #[inline]
    pub(crate) fn find<const CHUNK: usize>(
        &self,
        slots: &Slab<T, CHUNK>,
        scope: u64,
        key: &[u8],
    ) -> Option<Slot<T>> {
        self.find_hashed(slots, hash(scope, key), scope, key)
    }

    /// The slot of a key, which is what `new` gives if it is not known; then the second is true.
    #[inline]
    pub(crate) fn enter<const CHUNK: usize>(
        &mut self,
        slots: &mut Slab<T, CHUNK>,
        scope: u64,
        key: &[u8],
        new: impl FnOnce() -> T,
    ) -> (Slot<T>, bool) {
        let hash = hash(scope, key);
        if let Some(slot) = self.find_hashed(slots, hash, scope, key) {
            return (slot, false);
        }
        let slot = slots.insert(new());
        self.0.insert(hash, slot);
        (slot, true)
    }

    /// Empties the slot of a key, which is forgotten.
    pub(crate) fn remove<const CHUNK: usize>(&mut self, slots: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        let known = slots.get(slot);
        if known.is_indexed() {
            self.0.remove(hash(known.scope(), known.key()), slot);
        }
        slots.free(slot);
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild<const CHUNK: usize>(&mut self, slots: &Slab<T, CHUNK>) {
        for (slot, known) in slots.iter().filter(|(_, known)| known.is_indexed()) {
            self.0.insert(hash(known.scope(), known.key()), slot);
        }
    }

    #[inline]
    fn find_hashed<const CHUNK: usize>(
        &self,
        slots: &Slab<T, CHUNK>,
        hash: u64,
        scope: u64,
        key: &[u8],
    ) -> Option<Slot<T>> {
        self.0.find(hash, |slot| {
            let known = slots.get(slot);
            known.scope() == scope && known.key() == key
        })
    }
}
