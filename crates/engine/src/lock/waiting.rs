//! Lines: who waits on, who is next, and what ends.

use crate::core::Core;
use crate::core::wheel::FIRE_COST;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::limits::{LOCK_HOLDERS_MAX, LOCK_TAKE_MS};
use crate::lock::state::claim::Claim;
use crate::lock::state::{ClaimSlot, LockSlot, PlaceSlot};
use crate::lock::{LockModule, SLICE_PLACES};
use crate::locks::{LockMode, LockNotice, LockTicket};
use crate::outcome::Outcome;
use crate::plant::{self, Plant};
use crate::store::slot::Slot;

impl LockModule {
    /// Lets a claim wait on for a time from now. One that does not wait any more is no error.
    pub(crate) fn wait(&mut self, ticket: LockTicket, wait_ms: u32, core: &Core) -> Result<(), Error> {
        let found = self.claims.numbered(ticket.slot, ticket.number);
        if let Some(slot) = found.filter(|slot| self.claims.slots.get(*slot).waits) {
            self.claims.set_due(slot, core.now_us + u64::from(wait_ms) * 1_000, core.now_us);
        }
        Ok(())
    }

    /// Ends a claim whose caller has gone, unless another has made the same request since. One that has
    /// ended, or was granted since its number was told, is no error.
    pub(crate) fn leave(
        &mut self,
        claim: LockTicket,
        calls: u16,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let found = self.claims.numbered(claim.slot, claim.number);
        let is_last =
            |slot: &ClaimSlot| self.claims.slots.get(*slot).calls == calls && !self.is_pinned(*slot);
        if let Some(slot) = found.filter(|slot| is_last(slot) || plant::is(Plant::LeaveForOthers)) {
            self.end_claim(slot, out);
            self.grant_woken(&mut { SLICE_PLACES }, core, out);
        }
        Ok(())
    }

    /// Ends claims whose time has come, until they had `budget` places.
    pub(crate) fn end_due(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        if self.claims.wheel.len() == 0 {
            return;
        }
        let mut left = *budget * FIRE_COST;
        while let Some(slot) = self.claims.wheel.due(&mut self.claims.slots, core.now_us, &mut left) {
            // What became free before this wait was over is granted before, however late both are seen.
            if self.claims.slots.get(slot).waits && !self.woken.is_empty() {
                *budget = left / FIRE_COST;
                self.grant_woken(budget, core, out);
                left = *budget * FIRE_COST;
                continue;
            }
            // The wheel has counted one of them.
            left = left.saturating_sub((self.end_claim(slot, out) - 1) * FIRE_COST);
        }
        *budget = left / FIRE_COST;
    }

    /// Ends a claim: it holds nothing and waits for nothing any more. Who waited is told. Returns the number
    /// of its places.
    pub(crate) fn end_claim(&mut self, slot: ClaimSlot, out: &mut Outcome) -> usize {
        let claim = self.claims.slots.get(slot);
        let (waits, mut at) = (claim.waits, claim.places);
        if waits {
            let ticket = LockTicket { number: claim.number, slot: slot.index() };
            out.locks.push(LockNotice { ticket, grant: None });
        }
        let mut places = 0;
        while at != Slot::NIL {
            places += 1;
            let lock = self.places.get(at).lock;
            self.leave_place(at, waits);
            if !(waits && plant::is(Plant::ForgetNextInLine)) {
                self.wake(lock);
            }
            let next = self.places.get(at).next;
            self.places.free(at);
            at = next;
        }
        self.claims.remove(slot);
        places
    }

    fn leave_place(&mut self, place: PlaceSlot, waits: bool) {
        let lock = self.places.get(place).lock;
        self.note_change(lock);
        let lock = self.locks.slots.get_mut(lock);
        if waits {
            lock.waiting.unlink(&mut self.places, place);
            lock.waiting_count -= 1;
        } else {
            lock.holders.unlink(&mut self.places, place);
            lock.holder_count -= 1;
        }
    }

    /// Lists a lock whose holders or first waiter have changed.
    fn wake(&mut self, lock: LockSlot) {
        if !std::mem::replace(&mut self.locks.slots.get_mut(lock).woken, true) {
            self.woken.push_back(lock);
        }
    }

    /// Grants claims that are next and have room, and forgets locks that are free, until `budget` places and
    /// locks are looked at.
    pub(crate) fn grant_woken(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(lock) = self.woken.pop_front()
        {
            self.locks.slots.get_mut(lock).woken = false;
            *budget -= 1;
            while let Some(claim) = self.next_of(lock, core) {
                if *budget == 0 {
                    self.wake(lock);
                    break;
                }
                *budget = budget.saturating_sub(self.grant(claim, lock, core, out));
            }
            let known = self.locks.slots.get(lock);
            if known.is_free() && !known.woken {
                self.order.remove(lock, &self.locks.slots);
                self.locks.remove(lock);
            }
        }
    }

    /// The first claim in the line of a lock, if it is the first for each of its keys and all have room.
    pub(crate) fn next_of(&self, lock: LockSlot, core: &Core) -> Option<ClaimSlot> {
        let lock = self.locks.slots.get(lock);
        let slot = self.places.get(lock.waiting.head.some()?).claim;
        let claim = self.claims.slots.get(slot);
        let may_go = |place: PlaceSlot| {
            let lock = self.places.get(place).lock;
            let is_first = self.locks.slots.get(lock).waiting.head == place;
            (is_first || plant::is(Plant::FirstKeyIsEnough)) && self.has_room(lock, claim)
        };
        let is_there = !core.namespaces.get(lock.namespace).deleted;
        (is_there && self.places_of(claim).all(may_go)).then_some(slot)
    }

    /// True if the holders of a lock leave room for a claim.
    pub(crate) fn has_room(&self, lock: LockSlot, claim: &Claim) -> bool {
        let lock = self.locks.slots.get(lock);
        let Some(first) = lock.holders.head.some() else { return true };
        match (claim.mode(), self.claim_of(first).mode()) {
            (LockMode::Shared, LockMode::Shared) => lock.holder_count < LOCK_HOLDERS_MAX,
            (LockMode::Counting { holders }, LockMode::Counting { .. }) => lock.holder_count < holders,
            (LockMode::Exclusive, LockMode::Shared) => plant::is(Plant::ExclusiveBesideShared),
            _ => false,
        }
    }

    /// Grants a claim that waited, which is the next of `lock`. Returns the number of its places.
    fn grant(&mut self, slot: ClaimSlot, lock: LockSlot, core: &mut Core, out: &mut Outcome) -> usize {
        let Some(number) = core.tokens.give() else { return self.end_claim(slot, out) };
        let claim = self.claims.slots.get_mut(slot);
        let number = if plant::is(Plant::ReuseLockNumber) { claim.number } else { number };
        let ticket = LockTicket { number: claim.number, slot: slot.index() };
        let (mut at, ttl_ms) = (claim.places, claim.ttl_ms.min(LOCK_TAKE_MS));
        (claim.number, claim.waits) = (number, false);
        let mut places = 0;
        while at != Slot::NIL {
            places += 1;
            self.leave_place(at, true);
            self.enter_place(at, false);
            let place = self.places.get(at);
            at = place.next;
            if place.lock != lock {
                self.wake(place.lock);
            }
        }
        self.claims.set_due(slot, core.now_us + u64::from(ttl_ms) * 1_000, core.now_us);
        let namespace = core.namespaces.get(self.locks.slots.get(lock).namespace).number;
        let grant = self.grant_of(slot, NamespaceId(namespace), core);
        out.locks.push(LockNotice { ticket, grant: Some(grant) });
        places
    }

    /// The places of a claim.
    pub(crate) fn places_of(&self, claim: &Claim) -> impl Iterator<Item = PlaceSlot> + '_ {
        let first = claim.places.some();
        std::iter::successors(first, |place| self.places.get(*place).next.some())
    }
}
