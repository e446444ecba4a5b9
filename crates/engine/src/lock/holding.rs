//! Renew, release and break: what becomes of grants.

use crate::core::Core;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::lock::state::ClaimSlot;
use crate::lock::{LockModule, SLICE_PLACES};
use crate::locks::{LockGrant, LockToken};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::store::slot::Slot;

impl LockModule {
    /// Begins the time of a grant anew; 0: with the time that it had.
    pub(crate) fn renew(
        &mut self,
        namespace: NamespaceId,
        token: LockToken,
        ttl_ms: u32,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let slot = self.granted(namespace, token, core)?;
        let claim = self.claims.slots.get_mut(slot);
        if ttl_ms > 0 {
            claim.ttl_ms = ttl_ms;
        }
        let (until_us, calls) = (core.now_us + u64::from(claim.ttl_ms) * 1_000, claim.calls);
        self.set_until(slot, until_us, core);
        out.reply = Reply::LockGranted { grant: LockGrant { token, until_us, calls } };
        Ok(())
    }

    /// Ends a grant. One that was released with this token before is no error.
    pub(crate) fn release(
        &mut self,
        namespace: NamespaceId,
        token: LockToken,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        match self.granted(namespace, token, core) {
            Ok(slot) => {
                self.expect_decided(slot)?;
                self.end_grant(slot, core, out);
                Ok(())
            }
            Err(Error::LockLost { .. })
                if is_made(namespace, token, core) && core.tokens.is_settled(token.number) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a grant that its holder gives back.
    pub(crate) fn end_grant(&mut self, slot: ClaimSlot, core: &mut Core, out: &mut Outcome) {
        let number = self.claims.slots.get(slot).number;
        self.end_claim(slot, out);
        core.tokens.settle(number);
        self.grant_woken(&mut { SLICE_PLACES }, core, out);
    }

    /// Ends all grants of a key.
    pub(crate) fn break_key(
        &mut self,
        namespace: NamespaceId,
        key: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace = core.find_namespace(namespace)?;
        let mut holders = 0;
        if let Some(lock) = self.locks.find(namespace, key) {
            let holders_of = self.locks.slots.get(lock).holders.iter(&self.places);
            holders_of
                .map(|place| self.places.get(place).claim)
                .try_for_each(|slot| self.expect_decided(slot))?;
            while let head = self.locks.slots.get(lock).holders.head
                && head != Slot::NIL
            {
                holders += u32::from(self.claim_of(head).due_us > core.now_us);
                self.end_claim(self.places.get(head).claim, out);
            }
        }
        self.grant_woken(&mut { SLICE_PLACES }, core, out);
        out.reply = Reply::LockBroken { holders };
        Ok(())
    }

    /// Refuses unless this token proves a grant that holds a key.
    pub(crate) fn expect_held(
        &self,
        namespace: NamespaceId,
        token: LockToken,
        key: &str,
        core: &mut Core,
    ) -> Result<(), Error> {
        let slot = self.granted(namespace, token, core)?;
        self.expect_kept(slot)?;
        let holds = self
            .places_of(self.claims.slots.get(slot))
            .any(|place| *self.locks.slots.get(self.places.get(place).lock).key == *key.as_bytes());
        if holds { Ok(()) } else { Err(Error::LockOfOther { token: token.to_string(), key: key.to_owned() }) }
    }

    /// The claim that this token proves to be granted.
    pub(crate) fn granted(
        &self,
        namespace: NamespaceId,
        token: LockToken,
        core: &mut Core,
    ) -> Result<ClaimSlot, Error> {
        core.find_namespace(namespace)?;
        let is_good = |slot: &ClaimSlot| {
            let claim = self.claims.slots.get(*slot);
            !claim.waits && (claim.due_us > core.now_us || plant::is(Plant::RenewEndedGrant))
        };
        let found = self.claims.numbered(token.slot, token.number).filter(is_good);
        found
            .filter(|_| is_made(namespace, token, core))
            .ok_or_else(|| Error::LockLost { token: token.to_string() })
    }

    /// The grant of a claim that holds its keys.
    pub(crate) fn grant_of(&self, slot: ClaimSlot, namespace: NamespaceId, core: &Core) -> LockGrant {
        let claim = self.claims.slots.get(slot);
        let token = core.receipt_key.lock_token(namespace, claim.number, slot.index());
        LockGrant { token, until_us: self.until_us(slot), calls: claim.calls }
    }
}

/// True if the server has made a token for this namespace.
fn is_made(namespace: NamespaceId, token: LockToken, core: &Core) -> bool {
    core.receipt_key.lock_token(namespace, token.number, token.slot).tag ^ token.tag == 0
}
