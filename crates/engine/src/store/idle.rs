//! Keys that no message needs at the moment. The latest are kept, so that who names one again finds it as it
//! was.

use std::collections::{BTreeSet, VecDeque};

use crate::store::slab::{Item, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Slots of one kind that are listed as idle at most.
pub(crate) const IDLE_KEYS_MAX: usize = 256;

/// An item that may be kept although no message needs it.
pub(crate) trait Idle: Item {
    /// True if no message needs it.
    fn is_idle(&self) -> bool;
}

/// Slots that have become idle, oldest first. One that is needed again stays listed until it is the oldest:
/// so what comes and goes all the time is neither listed nor taken out each time.
#[derive(Debug)]
pub(crate) struct IdleKeys<T> {
    slots: VecDeque<Slot<T>>,
    /// The same slots. Derived.
    listed: SlotSet,
}

impl<T> Default for IdleKeys<T> {
    fn default() -> Self {
        IdleKeys { slots: VecDeque::new(), listed: SlotSet::default() }
    }
}

impl<T: Idle> IdleKeys<T> {
    /// Keeps a slot that has become idle. Returns another one, idle and no longer listed, which has to be
    /// forgotten for it.
    #[inline]
    pub(crate) fn keep<const CHUNK: usize>(
        &mut self,
        items: &Slab<T, CHUNK>,
        slot: Slot<T>,
    ) -> Option<Slot<T>> {
        if self.listed.contains(slot.index()) { None } else { self.list(items, slot) }
    }

    fn list<const CHUNK: usize>(&mut self, items: &Slab<T, CHUNK>, slot: Slot<T>) -> Option<Slot<T>> {
        self.listed.insert(slot.index());
        self.slots.push_back(slot);
        if self.slots.len() <= IDLE_KEYS_MAX {
            return None;
        }
        let oldest = self.slots.pop_front()?;
        self.listed.remove(oldest.index());
        items.get(oldest).is_idle().then_some(oldest)
    }

    /// Takes out the slots whose items belong to something that is gone, and returns them.
    pub(crate) fn take<const CHUNK: usize>(
        &mut self,
        items: &Slab<T, CHUNK>,
        belongs: impl Fn(&T) -> bool,
    ) -> VecDeque<Slot<T>> {
        let (gone, left): (VecDeque<Slot<T>>, _) =
            self.slots.iter().partition(|&&slot| belongs(items.get(slot)));
        self.slots = left;
        gone.iter().for_each(|&slot| self.listed.remove(slot.index()));
        gone
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.slots.len() as u32);
        self.slots.iter().for_each(|slot| slot.write(out));
    }

    /// Reads what [`IdleKeys::write`] wrote; `None` if a slot is not below `slots`, the number that the slab
    /// has.
    pub(crate) fn read(reader: &mut Reader<'_>, slots: u32) -> Option<Self> {
        let mut idle = IdleKeys::default();
        for _ in 0..reader.u32()? {
            let slot = Slot::read(reader).filter(|slot: &Slot<T>| slot.index() < slots)?;
            idle.slots.push_back(slot);
            idle.listed.insert(slot.index());
        }
        Some(idle)
    }

    /// Checks that all idle items are listed, that each is listed once, and that the set agrees with the
    /// list.
    pub(crate) fn recount<const CHUNK: usize>(&self, items: &Slab<T, CHUNK>) -> Result<(), String> {
        let in_list: BTreeSet<Slot<T>> = self.slots.iter().copied().collect();
        let mut found = 0;
        for (slot, item) in items.iter() {
            let listed = in_list.contains(&slot);
            if listed != self.listed.contains(slot.index()) || (item.is_idle() && !listed) {
                return Err(format!("slot {slot} is idle and not listed, or listed otherwise than noted"));
            }
            found += usize::from(listed);
        }
        let figures = [found, self.listed.len(), self.slots.len()];
        if figures != [found; 3] || found > IDLE_KEYS_MAX {
            return Err(format!("idle keys found, in the set, in the list: {figures:?}"));
        }
        Ok(())
    }
}

/// A set of slots: one bit for each up to the largest that was ever in it.
#[derive(Debug, Default)]
struct SlotSet(Vec<u64>);

impl SlotSet {
    #[inline]
    fn contains(&self, slot: u32) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    fn insert(&mut self, slot: u32) {
        let word = slot as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: u32) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}
