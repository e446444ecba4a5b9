//! Intrusive first-in-first-out lists over messages, or over what else lies in a slab and has links.

use std::fmt;

use crate::store::slab::{Item, Slab};
use crate::store::slot::Slot;
use crate::wire::Reader;

/// Neighbours of an item in an intrusive list.
pub(crate) struct Link<T> {
    pub(crate) prev: Slot<T>,
    pub(crate) next: Slot<T>,
}

impl<T> Link<T> {
    /// Neighbours of what is on no list.
    pub(crate) const UNLINKED: Link<T> = Link { prev: Slot::NIL, next: Slot::NIL };

    /// Appends both.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.prev.write(out);
        self.next.write(out);
    }

    /// Reads what [`Link::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Link<T>> {
        Some(Link { prev: Slot::read(reader)?, next: Slot::read(reader)? })
    }
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Link<T> {}

impl<T> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <> {}", self.prev, self.next)
    }
}

/// Links of the one list or timer that an item's state puts it on.
pub(crate) const PLACE: usize = 0;

/// An item that may stand on a list which runs through its pair of links `K`.
pub(crate) trait Linked<const K: usize>: Item {
    fn link(&self) -> Link<Self>;
    fn link_mut(&mut self) -> &mut Link<Self>;
}

/// Ends of a list that runs through one pair of links (`K`) of its items.
pub(crate) struct List<T, const K: usize> {
    pub(crate) head: Slot<T>,
    pub(crate) tail: Slot<T>,
}

impl<T, const K: usize> Clone for List<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const K: usize> Copy for List<T, K> {}

impl<T, const K: usize> PartialEq for List<T, K> {
    fn eq(&self, other: &Self) -> bool {
        (self.head, self.tail) == (other.head, other.tail)
    }
}

impl<T, const K: usize> Eq for List<T, K> {}

impl<T, const K: usize> fmt::Debug for List<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.head, self.tail)
    }
}

impl<T, const K: usize> Default for List<T, K> {
    fn default() -> Self {
        List { head: Slot::NIL, tail: Slot::NIL }
    }
}

impl<T: Linked<K>, const K: usize> List<T, K> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == Slot::NIL
    }

    #[inline(always)]
    pub(crate) fn push_back<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        *items.get_mut(slot).link_mut() = self.link_behind();
        self.push_linked(items, slot);
    }

    /// The neighbours that an item will have which [`List::push_linked`] puts in next.
    #[inline(always)]
    pub(crate) fn link_behind(&self) -> Link<T> {
        Link { prev: self.tail, next: Slot::NIL }
    }

    /// Like [`List::push_back`], for an item that was made with [`List::link_behind`].
    #[inline(always)]
    pub(crate) fn push_linked<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        let tail = std::mem::replace(&mut self.tail, slot);
        if tail == Slot::NIL {
            self.head = slot;
        } else {
            items.get_mut(tail).link_mut().next = slot;
        }
    }

    pub(crate) fn push_front<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        self.insert_before(items, slot, self.head);
    }

    /// Puts an item before one of the list; before [`Slot::NIL`]: at the end.
    pub(crate) fn insert_before<const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        slot: Slot<T>,
        next: Slot<T>,
    ) {
        if next == Slot::NIL {
            return self.push_back(items, slot);
        }
        let prev = std::mem::replace(&mut items.get_mut(next).link_mut().prev, slot);
        *items.get_mut(slot).link_mut() = Link { prev, next };
        if prev == Slot::NIL {
            self.head = slot;
        } else {
            items.get_mut(prev).link_mut().next = slot;
        }
    }

    #[inline(always)]
    pub(crate) fn unlink<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        let Link { prev, next } = items.get(slot).link();
        if prev == Slot::NIL {
            self.head = next;
        } else {
            items.get_mut(prev).link_mut().next = next;
        }
        if next == Slot::NIL {
            self.tail = prev;
        } else {
            items.get_mut(next).link_mut().prev = prev;
        }
    }

    pub(crate) fn iter<'a, const CHUNK: usize>(
        &self,
        items: &'a Slab<T, CHUNK>,
    ) -> impl Iterator<Item = Slot<T>> + use<'a, K, T, CHUNK> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let slot = (at != Slot::NIL).then_some(at)?;
            at = items.get(slot).link().next;
            Some(slot)
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.head.write(out);
        self.tail.write(out);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(List { head: Slot::read(reader)?, tail: Slot::read(reader)? })
    }
}
