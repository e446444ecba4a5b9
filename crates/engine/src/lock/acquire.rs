//! Acquire: a claim is granted, or waits, or is refused.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::core::tokens::none_left;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::limits::LOCK_CLAIMS_MAX;
use crate::lock::record::AcquireRecord;
use crate::lock::state::claim::Claim;
use crate::lock::state::place::Place;
use crate::lock::state::{ClaimSlot, LockSlot, PlaceSlot};
use crate::lock::{LOCKS_SINCE, LockModule, SLICE_PLACES};
use crate::locks::{LockGrant, LockTicket};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};

impl LockModule {
    pub(crate) fn acquire(
        &mut self,
        record: &AcquireRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        core.expect_behaviour(LOCKS_SINCE)?;
        let namespace = core.find_namespace(record.namespace)?;
        self.catch_up(core, out);
        if let Some(claim) = self.known(record, namespace, core) {
            return self.repeat(claim, record, core, out);
        }
        self.admit_claims(1)?;
        let taken = self.taken(record, namespace);
        if let Some(lock) = taken
            && record.wait_ms == 0
        {
            return Err(self.held(lock));
        }
        let number = core.tokens.give().ok_or_else(none_left)?;
        let slot = self.enter_claim(record, namespace, number, taken.is_some(), core);
        out.reply = self.standing(slot, record.namespace, core);
        Ok(())
    }

    /// Ends claims that are over and grants those behind them, a slice.
    pub(crate) fn catch_up(&mut self, core: &mut Core, out: &mut Outcome) {
        let mut budget = SLICE_PLACES;
        self.end_due(&mut budget, core, out);
        self.grant_woken(&mut budget, core, out);
    }

    /// Checks that there is room for claims.
    pub(crate) fn admit_claims(&self, claims: u32) -> Result<(), Error> {
        if self.claims.slots.used() + claims > LOCK_CLAIMS_MAX {
            return Err(Error::LimitExceeded { what: "lock claims", limit: LOCK_CLAIMS_MAX.into() });
        }
        Ok(())
    }

    /// Refuses a claim that would have to wait.
    pub(crate) fn expect_open(
        &self,
        record: &AcquireRecord<'_>,
        namespace: NamespaceSlot,
    ) -> Result<(), Error> {
        self.taken(record, namespace).map_or(Ok(()), |lock| Err(self.held(lock)))
    }

    /// The first lock that a claim would have to wait for.
    fn taken(&self, record: &AcquireRecord<'_>, namespace: NamespaceSlot) -> Option<LockSlot> {
        let claim = Claim::new(record.owner, record.mode, record.request);
        let of_key = |key| self.locks.find(namespace, key);
        let is_open = |lock| match record.if_absent {
            true => self.locks.slots.get(lock).is_free(),
            false => self.is_open(lock, &claim),
        };
        record.keys().filter_map(of_key).find(|lock| !is_open(*lock))
    }

    /// Grants a claim for which [`LockModule::expect_open`] has held; `number`: its fencing token.
    pub(crate) fn enter_granted(
        &mut self,
        record: &AcquireRecord<'_>,
        namespace: NamespaceSlot,
        number: u64,
        core: &Core,
    ) -> ClaimSlot {
        self.enter_claim(record, namespace, number, false, core)
    }

    /// Begins the time of a grant.
    pub(crate) fn begin_grant(&mut self, slot: ClaimSlot, namespace: NamespaceId, core: &Core) -> LockGrant {
        let until_us = core.now_us + u64::from(self.claims.slots.get(slot).ttl_ms) * 1_000;
        self.set_until(slot, until_us, core);
        self.grant_of(slot, namespace, core)
    }

    fn enter_claim(
        &mut self,
        record: &AcquireRecord<'_>,
        namespace: NamespaceSlot,
        number: u64,
        waits: bool,
        core: &Core,
    ) -> ClaimSlot {
        let mut claim = Claim::new(record.owner, record.mode, record.request);
        (claim.number, claim.ttl_ms, claim.waits) = (number, record.ttl_ms, waits);
        let wait_ms = if waits { record.wait_ms } else { record.ttl_ms };
        let slot = self.add(claim, record, namespace);
        self.claims.start(slot, core.now_us + u64::from(wait_ms) * 1_000, core.now_us);
        slot
    }

    /// The claim that was made by the same request, and has not ended.
    fn known(&self, record: &AcquireRecord<'_>, namespace: NamespaceSlot, core: &Core) -> Option<ClaimSlot> {
        let lock_of = |claim: ClaimSlot| self.places.get(self.claims.slots.get(claim).places).lock;
        let is_of_namespace = |claim| self.locks.slots.get(lock_of(claim)).namespace == namespace;
        // A claim that is over may still be there beside the one that was made after it, and their order in
        // the index is no part of the state.
        let is_live = |claim| self.claims.slots.get(claim).due_us > core.now_us;
        self.claims.by_request(record.request, |claim| is_of_namespace(claim) && is_live(claim))
    }

    /// A request that was made before: it has its grant, whose time begins anew, or waits on in its place.
    fn repeat(
        &mut self,
        slot: ClaimSlot,
        record: &AcquireRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let claim = self.claims.slots.get_mut(slot);
        (claim.calls, claim.ttl_ms) = (claim.calls.wrapping_add(1), record.ttl_ms);
        let waits = claim.waits;
        if waits && record.wait_ms == 0 {
            let lock = self.places.get(self.claims.slots.get(slot).places).lock;
            self.end_claim(slot, out);
            let held = self.held(lock);
            self.grant_woken(&mut { SLICE_PLACES }, core, out);
            return Err(held);
        }
        let left_ms = if waits { record.wait_ms } else { record.ttl_ms };
        self.set_until(slot, core.now_us + u64::from(left_ms) * 1_000, core);
        out.reply = self.standing(slot, record.namespace, core);
        Ok(())
    }

    /// The reply to who made a claim.
    fn standing(&self, slot: ClaimSlot, namespace: NamespaceId, core: &Core) -> Reply {
        let claim = self.claims.slots.get(slot);
        if claim.waits {
            let ticket = LockTicket { number: claim.number, slot: slot.index() };
            Reply::LockWaits { ticket, calls: claim.calls }
        } else {
            Reply::LockGranted { grant: self.grant_of(slot, namespace, core) }
        }
    }

    /// True if a claim that comes now is granted the lock at once.
    fn is_open(&self, lock: LockSlot, claim: &Claim) -> bool {
        let is_first = self.locks.slots.get(lock).waiting.is_empty() || plant::is(Plant::PassLockLine);
        is_first && self.has_room(lock, claim)
    }

    /// Enters a claim among the holders of its keys, or at the end of their lines.
    fn add(&mut self, claim: Claim, record: &AcquireRecord<'_>, namespace: NamespaceSlot) -> ClaimSlot {
        let waits = claim.waits;
        let slot = self.claims.add(claim);
        let mut next = PlaceSlot::NIL;
        for key in record.keys() {
            let (lock, is_new) = self.locks.enter(namespace, key);
            if is_new {
                self.order.insert(lock, &self.locks.slots);
            }
            next = self.places.insert(Place::new(slot, lock, next));
            self.enter_place(next, waits);
        }
        self.claims.slots.get_mut(slot).places = next;
        slot
    }

    /// Puts a place at the end of a list of its lock.
    pub(crate) fn enter_place(&mut self, place: PlaceSlot, waits: bool) {
        let lock = self.places.get(place).lock;
        self.note_change(lock);
        let lock = self.locks.slots.get_mut(lock);
        if waits {
            lock.waiting.push_back(&mut self.places, place);
            lock.waiting_count += 1;
        } else {
            lock.holders.push_back(&mut self.places, place);
            lock.holder_count += 1;
        }
    }

    /// The refusal of a claim that does not wait.
    fn held(&self, lock: LockSlot) -> Error {
        let lock = self.locks.slots.get(lock);
        let holder = lock.holders.iter(&self.places).next();
        let owner = holder.map_or_else(String::new, |place| self.claim_of(place).owner());
        let key = String::from_utf8_lossy(&lock.key).into_owned();
        Error::LockHeld { key, owner, waiting: lock.waiting_count.into() }
    }

    pub(crate) fn claim_of(&self, place: PlaceSlot) -> &Claim {
        self.claims.slots.get(self.places.get(place).claim)
    }
}
