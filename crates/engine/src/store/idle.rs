//! Keys that nothing needs at the moment. The latest are kept, so that who names one again finds it as it
//! was.

use std::collections::{BTreeSet, VecDeque};

use super::slab::{Slab, Slot};
use crate::wire::{Put, Reader};

/// Slots of one kind that are listed as idle at most.
pub(crate) const IDLE_KEYS_MAX: usize = 256;

/// What may be kept although nothing needs it.
pub(crate) trait Idle: Slot {
    /// Whether nothing needs it.
    fn is_idle(&self) -> bool;
    /// Whether it is listed in [`IdleKeys`].
    fn is_listed_idle(&self) -> bool;
    /// Notes whether it is listed in [`IdleKeys`].
    fn set_listed_idle(&mut self, listed: bool);
}

/// Slots that have become idle, oldest first. One that is needed again stays listed until it is the oldest:
/// so what comes and goes all the time is neither listed nor taken out each time.
#[derive(Debug, Default)]
pub(crate) struct IdleKeys(VecDeque<u32>);

impl IdleKeys {
    /// Keeps a slot that has become idle. Returns another one, idle and no longer listed, which has to be
    /// forgotten for it.
    #[inline]
    pub(crate) fn keep<T: Idle, const CHUNK: usize>(
        &mut self,
        slots: &mut Slab<T, CHUNK>,
        slot: u32,
    ) -> Option<u32> {
        if slots.get(slot).is_listed_idle() { None } else { self.list(slots, slot) }
    }

    fn list<T: Idle, const CHUNK: usize>(&mut self, slots: &mut Slab<T, CHUNK>, slot: u32) -> Option<u32> {
        slots.get_mut(slot).set_listed_idle(true);
        self.0.push_back(slot);
        if self.0.len() <= IDLE_KEYS_MAX {
            return None;
        }
        let oldest = self.0.pop_front()?;
        slots.get_mut(oldest).set_listed_idle(false);
        slots.get(oldest).is_idle().then_some(oldest)
    }

    /// Takes out those that belong to something that is gone, and returns them.
    pub(crate) fn take<T: Idle, const CHUNK: usize>(
        &mut self,
        slots: &Slab<T, CHUNK>,
        belongs: impl Fn(&T) -> bool,
    ) -> VecDeque<u32> {
        let (gone, left) = self.0.iter().partition(|&&slot| belongs(slots.get(slot)));
        self.0 = left;
        gone
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.0.len() as u32);
        self.0.iter().for_each(|&slot| out.u32(slot));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u32()?;
        let slots: Option<_> = (0..count).map(|_| reader.u32()).collect();
        slots.map(IdleKeys)
    }

    /// Notes in the slots which of them are listed, after all were read.
    pub(crate) fn rebuild<T: Idle, const CHUNK: usize>(&self, slots: &mut Slab<T, CHUNK>) {
        for &slot in &self.0 {
            slots.get_mut(slot).set_listed_idle(true);
        }
    }

    /// Checks that what is noted as listed is, once, and that everything idle is.
    pub(crate) fn recount<T: Idle, const CHUNK: usize>(&self, slots: &Slab<T, CHUNK>) -> Result<(), String> {
        let listed: BTreeSet<u32> = self.0.iter().copied().collect();
        let mut found = 0;
        for (slot, item) in slots.iter() {
            if item.is_listed_idle() != listed.contains(&slot) || (item.is_idle() && !item.is_listed_idle()) {
                return Err(format!("slot {slot} is idle and not listed, or listed otherwise than noted"));
            }
            found += usize::from(item.is_listed_idle());
        }
        let figures = [found, listed.len(), self.0.len()];
        if figures != [found; 3] || found > IDLE_KEYS_MAX {
            return Err(format!("idle keys found, listed, in the list: {figures:?}"));
        }
        Ok(())
    }
}
