//! A sorted index: slots in the order of what lies in them, in blocks of bounded length.
//!
//! It holds no keys: who asks compares them in its own slots. A slot costs four to eight bytes. It is derived
//! from the slots, and is rebuilt after a restart.

use std::cmp::Ordering;

use crate::store::slot::Slot;

/// Slots of a block at most; one that is full is cut in two.
const BLOCK_MAX: usize = 512;
/// Slots of a block and the next one together under which they become one.
const BLOCK_MIN: usize = BLOCK_MAX / 4;

/// Slots in order.
#[derive(Debug)]
pub(crate) struct SortedIndex<T> {
    /// None of them is empty.
    blocks: Vec<Vec<Slot<T>>>,
}

impl<T> Default for SortedIndex<T> {
    fn default() -> Self {
        SortedIndex { blocks: Vec::new() }
    }
}

impl<T> SortedIndex<T> {
    /// Adds a slot. `order` tells where another slot stands, seen from this one.
    pub(crate) fn insert(&mut self, slot: Slot<T>, order: impl Fn(Slot<T>) -> Ordering) {
        let (block, at) = self.find(order);
        if self.blocks.is_empty() {
            self.blocks.push(Vec::new());
        }
        // Behind all others: at the end of the last block.
        let (block, at) =
            if block == self.blocks.len() { (block - 1, self.blocks[block - 1].len()) } else { (block, at) };
        self.blocks[block].insert(at, slot);
        if self.blocks[block].len() > BLOCK_MAX {
            let upper = self.blocks[block].split_off(BLOCK_MAX / 2);
            self.blocks.insert(block + 1, upper);
        }
    }

    /// Takes out the first slot that is not before what `order` looks for.
    pub(crate) fn remove(&mut self, order: impl Fn(Slot<T>) -> Ordering) {
        let (block, at) = self.find(order);
        let Some(slots) = self.blocks.get_mut(block) else { return };
        slots.remove(at);
        if slots.is_empty() {
            self.blocks.remove(block);
        } else if let Some(next) = self.blocks.get(block + 1)
            && self.blocks[block].len() + next.len() < BLOCK_MIN
        {
            let next = self.blocks.remove(block + 1);
            self.blocks[block].extend(next);
        }
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// The slots from the first one on that is not before what `order` looks for: it tells where a slot
    /// stands, seen from there.
    pub(crate) fn from(&self, order: impl Fn(Slot<T>) -> Ordering) -> impl Iterator<Item = Slot<T>> + '_ {
        let (block, at) = self.find(order);
        let (first, rest) = match self.blocks.get(block..) {
            Some([first, rest @ ..]) => (&first[at..], rest),
            _ => (&[][..], &[][..]),
        };
        first.iter().chain(rest.iter().flatten()).copied()
    }

    /// Block and place of the first slot that is not before; behind the last block if there is none.
    fn find(&self, order: impl Fn(Slot<T>) -> Ordering) -> (usize, usize) {
        let is_before = |slot: &Slot<T>| order(*slot) == Ordering::Less;
        let block = self.blocks.partition_point(|slots| slots.last().is_some_and(is_before));
        let at = self.blocks.get(block).map_or(0, |slots| slots.partition_point(is_before));
        (block, at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;

    #[test]
    fn slots_stand_in_order_while_they_come_and_go() {
        let (mut index, mut model) = (SortedIndex::<()>::default(), BTreeSet::new());
        for round in 0..30_000u64 {
            let slot = Slot::new((mix(round) % 5_000) as u32);
            let is_falling = round > 20_000;
            if model.contains(&slot) {
                model.remove(&slot);
                index.remove(|other| other.cmp(&slot));
            } else if !is_falling {
                model.insert(slot);
                index.insert(slot, |other| other.cmp(&slot));
            }
            if round % 1_000 == 0 {
                assert!(index.from(|_| Ordering::Greater).eq(model.iter().copied()));
                let from = Slot::new((round % 4_999) as u32);
                assert!(index.from(|other| other.cmp(&from)).eq(model.range(from..).copied()));
            }
        }
        let last: Vec<Slot<()>> = model.iter().copied().collect();
        for slot in last {
            index.remove(|other| other.cmp(&slot));
        }
        assert!(index.blocks.is_empty());
    }
}
