//! Reads of locks.

use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::id::NamespaceId;
use crate::lock::LockModule;
use crate::lock::state::claim::Claim;
use crate::lock::state::{LockSlot, PlaceSlot};
use crate::locks::{LockHolderView, LockView, LockWaiterView};

impl LockModule {
    pub(crate) fn lock(
        &self,
        namespace: NamespaceId,
        key: &str,
        detail: usize,
        core: &Core,
    ) -> Option<LockView> {
        let slot = self.locks.find(core.namespace_slot(namespace)?, key)?;
        Some(self.view(slot, detail))
    }

    pub(crate) fn locks_after(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Vec<LockView> {
        let Some(namespace) = core.namespace_slot(namespace) else { return Vec::new() };
        self.order
            .page(namespace.index(), prefix, after, &self.locks.slots)
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|slot| self.view(slot, 1))
            .collect()
    }

    fn view(&self, slot: LockSlot, detail: usize) -> LockView {
        let lock = self.locks.slots.get(slot);
        let keys = |claim: &Claim| self.places_of(claim).count() as u32;
        let holder = |place: PlaceSlot| {
            let claim = self.claim_of(place);
            let (owner, mode) = (claim.owner(), claim.mode());
            let until_us = self.until_us(self.places.get(place).claim);
            LockHolderView { owner, mode, number: claim.number, until_us, keys: keys(claim) }
        };
        let waiter = |place: PlaceSlot| {
            let claim = self.claim_of(place);
            LockWaiterView { owner: claim.owner(), mode: claim.mode(), keys: keys(claim) }
        };
        LockView {
            key: String::from_utf8_lossy(&lock.key).into_owned(),
            holders: lock.holders.iter(&self.places).take(detail).map(holder).collect(),
            holder_count: lock.holder_count.into(),
            waiters: lock.waiting.iter(&self.places).take(detail).map(waiter).collect(),
            waiter_count: lock.waiting_count,
        }
    }
}
