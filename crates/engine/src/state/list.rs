//! Intrusive first-in-first-out lists over messages.

use super::Messages;
use super::message::Link;
use crate::store::NIL;
use crate::wire::{Put, Reader};

/// Ends of a list that runs through one pair of links (`K`) of its messages.
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
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub(crate) fn push_back(&mut self, messages: &mut Messages, slot: u32) {
        let tail = std::mem::replace(&mut self.tail, slot);
        messages.get_mut(slot).links[K] = Link { prev: tail, next: NIL };
        if tail == NIL {
            self.head = slot;
        } else {
            messages.get_mut(tail).links[K].next = slot;
        }
    }

    pub(crate) fn push_front(&mut self, messages: &mut Messages, slot: u32) {
        self.insert_before(messages, slot, self.head);
    }

    /// Puts a message before one of the list; before `NIL`: at the end.
    pub(crate) fn insert_before(&mut self, messages: &mut Messages, slot: u32, next: u32) {
        if next == NIL {
            return self.push_back(messages, slot);
        }
        let prev = std::mem::replace(&mut messages.get_mut(next).links[K].prev, slot);
        messages.get_mut(slot).links[K] = Link { prev, next };
        if prev == NIL {
            self.head = slot;
        } else {
            messages.get_mut(prev).links[K].next = slot;
        }
    }

    #[inline]
    pub(crate) fn unlink(&mut self, messages: &mut Messages, slot: u32) {
        let Link { prev, next } = messages.get(slot).links[K];
        if prev == NIL {
            self.head = next;
        } else {
            messages.get_mut(prev).links[K].next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            messages.get_mut(next).links[K].prev = prev;
        }
    }

    pub(crate) fn iter<'a>(&self, messages: &'a Messages) -> impl Iterator<Item = u32> + use<'a, K> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let slot = (at != NIL).then_some(at)?;
            at = messages.get(slot).links[K].next;
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
