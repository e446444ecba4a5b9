//! A full count of what the module keeps.

use crate::core::{Core, agree};
use crate::lock::LockModule;
use crate::lock::state::lock::Lock;
use crate::lock::state::{LockSlot, PlaceSlot};
use crate::locks::LockMode;

impl LockModule {
    /// Compares lists, counts, timers and indexes with the claims. Slow: looks at everything.
    pub(crate) fn recount(&self, core: &Core) -> Result<(), String> {
        self.claims.recount()?;
        let places = self.claims.slots.iter().map(|(_, claim)| self.places_of(claim).count() as u64).sum();
        agree("places of claims", places, self.places.used().into())?;
        agree("locks by key", self.locks.slots.used().into(), self.locks.indexed().into())?;
        let mut listed = 0;
        for (slot, lock) in self.locks.slots.iter() {
            listed += self.recount_lock(slot, lock, core)?;
        }
        agree("places in lists", listed, self.places.used().into())?;
        agree("locks in order", self.order.recount(&self.locks.slots)?, self.locks.slots.used().into())?;
        let woken = self.locks.slots.iter().filter(|(_, lock)| lock.woken).count();
        agree("woken locks", woken as u64, self.woken.len() as u64)
    }

    /// Checks the lists of a lock; their length.
    fn recount_lock(&self, slot: LockSlot, lock: &Lock, core: &Core) -> Result<u64, String> {
        let key = String::from_utf8_lossy(&lock.key);
        if self.locks.find(lock.namespace, &key) != Some(slot) {
            return Err(format!("lock {key:?} is not found by its key"));
        }
        let holders: Vec<PlaceSlot> = lock.holders.iter(&self.places).collect();
        let waiting: Vec<PlaceSlot> = lock.waiting.iter(&self.places).collect();
        agree("holders", holders.len() as u64, lock.holder_count.into())?;
        agree("waiting", waiting.len() as u64, lock.waiting_count.into())?;
        for (places, waits) in [(&holders, false), (&waiting, true)] {
            let is_its = |place: &PlaceSlot| {
                self.places.get(*place).lock == slot && self.claim_of(*place).waits == waits
            };
            if !places.iter().all(is_its) {
                return Err(format!("lock {key:?} lists a claim that is another's, or in another state"));
            }
        }
        if !waiting.is_sorted_by_key(|place| self.claim_of(*place).number) {
            return Err(format!("the line of lock {key:?} is not in the order of coming"));
        }
        self.recount_modes(&key, &holders)?;
        let is_stuck = lock.is_free() || self.next_of(slot, core).is_some();
        if is_stuck && !lock.woken {
            return Err(format!("lock {key:?} is free or has room for the next, and is not woken"));
        }
        Ok((holders.len() + waiting.len()) as u64)
    }

    /// Checks that holders may hold a lock together.
    fn recount_modes(&self, key: &str, holders: &[PlaceSlot]) -> Result<(), String> {
        let modes: Vec<LockMode> = holders.iter().map(|place| self.claim_of(*place).mode()).collect();
        let largest =
            modes.iter().map(|mode| if let LockMode::Counting { holders } = mode { *holders } else { 0 });
        let together = match modes.first() {
            None => true,
            Some(LockMode::Exclusive) => modes.len() == 1,
            Some(LockMode::Shared) => modes.iter().all(|mode| *mode == LockMode::Shared),
            Some(LockMode::Counting { .. }) => {
                modes.iter().all(|mode| matches!(mode, LockMode::Counting { .. }))
                    && modes.len() <= usize::from(largest.max().unwrap_or(0))
            }
        };
        if together { Ok(()) } else { Err(format!("lock {key:?} has holders {modes:?}")) }
    }
}
