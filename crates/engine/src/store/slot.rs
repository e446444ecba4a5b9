//! The place of an item in a slab, as a type: a slot of one kind of items is no slot of another.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::wire::{Put, Reader};

/// Where an item lies in a [`crate::store::slab::Slab`] of `T`; or [`Slot::NIL`]: nowhere.
#[repr(transparent)]
pub(crate) struct Slot<T>(u32, PhantomData<fn() -> T>);

impl<T> Slot<T> {
    /// No slot: the end of a list, or nothing there.
    pub(crate) const NIL: Slot<T> = Slot::new(u32::MAX);

    /// The slot with this index.
    #[inline(always)]
    pub(crate) const fn new(index: u32) -> Slot<T> {
        Slot(index, PhantomData)
    }

    /// Its place among the items of the slab, from 0; `u32::MAX` of [`Slot::NIL`].
    #[inline(always)]
    pub(crate) const fn index(self) -> u32 {
        self.0
    }

    /// The slot behind it.
    pub(crate) const fn next(self) -> Slot<T> {
        Slot::new(self.0 + 1)
    }

    /// `None` instead of [`Slot::NIL`].
    #[inline(always)]
    pub(crate) fn some(self) -> Option<Slot<T>> {
        if self == Slot::NIL { None } else { Some(self) }
    }

    /// Appends four bytes.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.u32(self.0);
    }

    /// Reads what [`Slot::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Slot<T>> {
        reader.u32().map(Slot::new)
    }
}

/// Appends slots with their number.
pub(crate) fn write_all<T>(slots: &VecDeque<Slot<T>>, out: &mut Vec<u8>) {
    out.u32(slots.len() as u32);
    slots.iter().for_each(|slot| slot.write(out));
}

/// Reads what [`write_all`] wrote.
pub(crate) fn read_all<T>(reader: &mut Reader<'_>) -> Option<VecDeque<Slot<T>>> {
    (0..reader.u32()?).map(|_| Slot::read(reader)).collect()
}

// Derived traits would ask for the same of `T`.

impl<T> Clone for Slot<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> PartialEq for Slot<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Slot<T> {}

impl<T> PartialOrd for Slot<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Slot<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Hash for Slot<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot::NIL
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> fmt::Display for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Slot::NIL { f.write_str("NIL") } else { self.0.fmt(f) }
    }
}
