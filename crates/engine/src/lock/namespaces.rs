//! The module's part in the deletion of namespaces.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::lock::{LockModule, SLICE_PLACES};
use crate::outcome::Outcome;
use crate::store::slot::Slot;

impl LockModule {
    /// Lists a namespace that is marked as deleted, whose claims are to be ended.
    pub(crate) fn begin_sweep(&mut self, slot: NamespaceSlot, core: &mut Core) {
        core.begin_sweep(slot);
        self.swept.push_back(slot);
    }

    /// Ends a slice of claims of deleted namespaces.
    pub(crate) fn sweep_slice(&mut self, core: &mut Core, out: &mut Outcome) {
        let mut budget = SLICE_PLACES;
        self.sweep(&mut budget, core, out);
        self.grant_woken(&mut budget, core, out);
    }

    /// Ends claims of deleted namespaces, until `budget` of their places and locks are done.
    pub(crate) fn sweep(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(&slot) = self.swept.front()
        {
            let Some(lock) = self.order.from(slot.index(), &[], &self.locks.slots).next() else {
                self.swept.pop_front();
                core.end_sweep(slot);
                continue;
            };
            let lock = self.locks.slots.get(lock);
            let place = if lock.waiting.is_empty() { lock.holders.head } else { lock.waiting.head };
            if place != Slot::NIL {
                *budget = budget.saturating_sub(self.end_claim(self.places.get(place).claim, out));
            }
            self.grant_woken(budget, core, out);
        }
    }
}
