//! Intrusive first-in-first-out lists over messages, or over what else lies in a slab and has links.

use crate::store::NIL;
use crate::store::slab::{Slab, Slot};
use crate::wire::{Put, Reader};

/// Neighbours in an intrusive list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

/// Neighbours of what is on no list.
pub(crate) const UNLINKED: Link = Link { prev: NIL, next: NIL };

/// What may stand on a list that runs through its pair of links `K`.
pub(crate) trait Linked<const K: usize>: Slot {
    fn link(&self) -> Link;
    fn link_mut(&mut self) -> &mut Link;
}

/// Ends of a list that runs through one pair of links (`K`) of its items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct List<const K: usize> {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl<const K: usize> Default for List<K> {
    fn default() -> Self {
        List { head: NIL, tail: NIL }
    }
}

impl<const K: usize> List<K> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline(always)]
    pub(crate) fn push_back<T: Linked<K>, const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        slot: u32,
    ) {
        *items.get_mut(slot).link_mut() = self.link_behind();
        self.push_linked(items, slot);
    }

    /// The neighbours that an item will have which [`List::push_linked`] puts in next.
    #[inline(always)]
    pub(crate) fn link_behind(&self) -> Link {
        Link { prev: self.tail, next: NIL }
    }

    /// Like [`List::push_back`], for an item that was made with [`List::link_behind`].
    #[inline(always)]
    pub(crate) fn push_linked<T: Linked<K>, const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        slot: u32,
    ) {
        let tail = std::mem::replace(&mut self.tail, slot);
        if tail == NIL {
            self.head = slot;
        } else {
            items.get_mut(tail).link_mut().next = slot;
        }
    }

    pub(crate) fn push_front<T: Linked<K>, const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        slot: u32,
    ) {
        self.insert_before(items, slot, self.head);
    }

    /// Puts an item before one of the list; before `NIL`: at the end.
    pub(crate) fn insert_before<T: Linked<K>, const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        slot: u32,
        next: u32,
    ) {
        if next == NIL {
            return self.push_back(items, slot);
        }
        let prev = std::mem::replace(&mut items.get_mut(next).link_mut().prev, slot);
        *items.get_mut(slot).link_mut() = Link { prev, next };
        if prev == NIL {
            self.head = slot;
        } else {
            items.get_mut(prev).link_mut().next = slot;
        }
    }

    #[inline(always)]
    pub(crate) fn unlink<T: Linked<K>, const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: u32) {
        let Link { prev, next } = items.get(slot).link();
        if prev == NIL {
            self.head = next;
        } else {
            items.get_mut(prev).link_mut().next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            items.get_mut(next).link_mut().prev = prev;
        }
    }

    pub(crate) fn iter<'a, T: Linked<K>, const CHUNK: usize>(
        &self,
        items: &'a Slab<T, CHUNK>,
    ) -> impl Iterator<Item = u32> + use<'a, K, T, CHUNK> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let slot = (at != NIL).then_some(at)?;
            at = items.get(slot).link().next;
            Some(slot)
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.head);
        out.u32(self.tail);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(List { head: reader.u32()?, tail: reader.u32()? })
    }
}
