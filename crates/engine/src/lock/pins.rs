//! Pins: grants that prepared transactions give, release or are proven by. Until such a transaction is
//! finished they do not end.

use std::collections::BTreeMap;

use crate::core::Core;
use crate::error::Error;
use crate::limits::DELAY_MS_MAX;
use crate::lock::LockModule;
use crate::lock::state::ClaimSlot;
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Grants by their claims.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    claims: BTreeMap<ClaimSlot, Pin>,
}

#[derive(Debug)]
struct Pin {
    /// Number of the transactions that pin it.
    count: u32,
    /// True if one of them, which is then the only one, releases it.
    is_released: bool,
    /// When the grant ends, once nothing pins it, in microseconds since the Unix epoch.
    until_us: u64,
}

impl HeadPart for Pins {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.claims.len() as u32);
        for (claim, pin) in &self.claims {
            claim.write(out);
            out.u32(pin.count);
            out.bool(pin.is_released);
            out.u64(pin.until_us);
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut claims = BTreeMap::new();
        for _ in 0..reader.u32()? {
            let claim = Slot::read(reader)?;
            let (count, is_released) = (reader.u32()?, reader.bool()?);
            claims.insert(claim, Pin { count, is_released, until_us: reader.u64()? });
        }
        Some(Pins { claims })
    }
}

impl Pins {
    /// Number of pins.
    pub(crate) fn count(&self) -> u64 {
        self.claims.values().map(|pin| u64::from(pin.count)).sum()
    }
}

impl LockModule {
    /// Pins a grant. `releases`: the transaction releases it.
    pub(crate) fn pin(&mut self, slot: ClaimSlot, releases: bool, core: &Core) {
        let until_us = self.claims.slots.get(slot).due_us;
        let pin = self.pins.claims.entry(slot).or_insert(Pin { count: 0, is_released: false, until_us });
        pin.count += 1;
        pin.is_released |= releases;
        if pin.count == 1 {
            self.claims.set_due(slot, core.now_us + DELAY_MS_MAX * 1_000, core.now_us);
        }
    }

    /// Lets go of a grant; one that is released now holds until then. `commit`: the transaction is committed.
    pub(crate) fn unpin(&mut self, slot: ClaimSlot, commit: bool, core: &Core) {
        let Some(pin) = self.pins.claims.get_mut(&slot) else { return };
        pin.count -= 1;
        if pin.count == 0 {
            let (until_us, is_ending) = (pin.until_us, pin.is_released && commit);
            self.pins.claims.remove(&slot);
            if !is_ending {
                self.claims.set_due(slot, until_us, core.now_us);
            }
        }
    }

    /// True if a prepared transaction gives or releases the grant, or is proven by it.
    pub(crate) fn is_pinned(&self, slot: ClaimSlot) -> bool {
        !self.pins.claims.is_empty() && self.pins.claims.contains_key(&slot)
    }

    /// Refuses to end a grant that is pinned.
    pub(crate) fn expect_decided(&self, slot: ClaimSlot) -> Result<(), Error> {
        if self.is_pinned(slot) { Err(self.in_doubt(slot)) } else { Ok(()) }
    }

    /// Refuses a grant that a prepared transaction releases.
    pub(crate) fn expect_kept(&self, slot: ClaimSlot) -> Result<(), Error> {
        let is_released = self.pins.claims.get(&slot).is_some_and(|pin| pin.is_released);
        if is_released { Err(self.in_doubt(slot)) } else { Ok(()) }
    }

    fn in_doubt(&self, slot: ClaimSlot) -> Error {
        let place = self.claims.slots.get(slot).places;
        let key = &self.locks.slots.get(self.places.get(place).lock).key;
        Error::InDoubt { what: format!("lock {:?}", String::from_utf8_lossy(key)) }
    }

    /// Sets when a grant or a wait ends; of one that is pinned, once nothing pins it.
    pub(crate) fn set_until(&mut self, slot: ClaimSlot, until_us: u64, core: &Core) {
        match self.pins.claims.get_mut(&slot) {
            Some(pin) => pin.until_us = until_us,
            None => self.claims.set_due(slot, until_us, core.now_us),
        }
    }

    /// When a grant or a wait ends, in microseconds since the Unix epoch.
    pub(crate) fn until_us(&self, slot: ClaimSlot) -> u64 {
        self.pins.claims.get(&slot).map_or(self.claims.slots.get(slot).due_us, |pin| pin.until_us)
    }
}
