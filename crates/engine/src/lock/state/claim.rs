//! Claims: what one caller asks for or holds.

use crate::core::wheel::{Timed, Wheel};
use crate::hash::mix;
use crate::id::EPOCH_SHIFT;
use crate::limits::LOCK_CLAIMS_MAX;
use crate::lock::state::{ClaimSlot, PlaceSlot};
use crate::locks::LockMode;
use crate::store::hash_index::HashIndex;
use crate::store::key::Key;
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// A claim to one or several keys, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) owner: Key,
    /// Digest of the request by which it is known again; zero: it is not.
    pub(crate) request: [u64; 2],
    /// Fencing token of its grant, or its number while it waits.
    pub(crate) number: u64,
    /// When its grant or its waiting ends, in microseconds since the Unix epoch.
    pub(crate) due_us: u64,
    link: Link<Claim>,
    /// Time for which it holds its keys unless it renews, in milliseconds.
    pub(crate) ttl_ms: u32,
    /// The first of its places; `NIL`: the slot is vacant.
    pub(crate) places: PlaceSlot,
    bucket: u16,
    /// Largest number of holders, if it counts.
    holders: u16,
    /// Number of times that it was asked for by the same request; wraps around.
    pub(crate) calls: u16,
    mode: u8,
    pub(crate) waits: bool,
}

const _: () = assert!(size_of::<Claim>() == 80);
/// The tag of a token takes the slot for the sequence of a message, which is never as small.
const _: () = assert!(LOCK_CLAIMS_MAX < 1 << EPOCH_SHIFT);

impl Claim {
    pub(crate) fn new(owner: &str, mode: LockMode, request: [u64; 2]) -> Claim {
        let (number, holders) = match mode {
            LockMode::Exclusive => (0, 0),
            LockMode::Shared => (1, 0),
            LockMode::Counting { holders } => (2, holders),
        };
        Claim {
            owner: Key::new(owner.as_bytes()),
            request,
            number: 0,
            due_us: 0,
            link: Link::UNLINKED,
            ttl_ms: 0,
            places: Slot::NIL,
            bucket: 0,
            holders,
            calls: 1,
            mode: number,
            waits: false,
        }
    }

    pub(crate) fn mode(&self) -> LockMode {
        match self.mode {
            0 => LockMode::Exclusive,
            1 => LockMode::Shared,
            _ => LockMode::Counting { holders: self.holders },
        }
    }

    pub(crate) fn owner(&self) -> String {
        String::from_utf8_lossy(&self.owner).into_owned()
    }
}

impl PlainItem for Claim {
    const BLOCK: usize = 32;

    fn vacant(next: ClaimSlot) -> Self {
        let mut vacant = Claim::new("", LockMode::Exclusive, [0; 2]);
        vacant.link.next = next;
        vacant
    }

    fn next_vacant(&self) -> Option<ClaimSlot> {
        (self.places == Slot::NIL).then_some(self.link.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.owner.write(out);
        self.request.iter().for_each(|word| out.u64(*word));
        out.u64(self.number);
        out.u64(self.due_us);
        self.link.write(out);
        out.u32(self.ttl_ms);
        self.places.write(out);
        out.u16(self.bucket);
        out.u16(self.holders);
        out.u16(self.calls);
        out.u8(self.mode);
        out.bool(self.waits);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Claim {
            owner: Key::read(reader)?,
            request: [reader.u64()?, reader.u64()?],
            number: reader.u64()?,
            due_us: reader.u64()?,
            link: Link::read(reader)?,
            ttl_ms: reader.u32()?,
            places: Slot::read(reader).filter(|places| *places != Slot::NIL)?,
            bucket: reader.u16()?,
            holders: reader.u16()?,
            calls: reader.u16()?,
            mode: reader.u8().filter(|mode| *mode <= 2)?,
            waits: reader.bool()?,
        })
    }
}

impl Linked<PLACE> for Claim {
    fn link(&self) -> Link<Claim> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Claim> {
        &mut self.link
    }
}

impl Timed for Claim {
    fn due_us(&self) -> u64 {
        self.due_us
    }

    fn bucket(&self) -> u16 {
        self.bucket
    }

    fn set_bucket(&mut self, bucket: u16) {
        self.bucket = bucket;
    }
}

/// All claims, each with a timer.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub(crate) slots: Slab<Claim, 1024>,
    pub(crate) wheel: Wheel<Claim>,
    /// Claims that are known by their requests. Derived.
    requests: HashIndex<Claim>,
}

impl HeadPart for Claims {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Claims { slots, wheel, requests: _ } = self;
        wheel.write_head(out);
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let wheel = Wheel::read_head(reader)?;
        Some(Claims { wheel, slots: Slab::read_head(reader)?, ..Claims::default() })
    }
}

impl Claims {
    /// Enters a claim with its first place and without a timer.
    pub(crate) fn add(&mut self, claim: Claim) -> ClaimSlot {
        let request = claim.request;
        let slot = self.slots.insert(claim);
        if request != [0; 2] {
            self.requests.insert(request_hash(request), slot);
        }
        slot
    }

    /// Sets the timer of a claim that has none yet: when its grant or its waiting ends.
    pub(crate) fn start(&mut self, slot: ClaimSlot, due_us: u64, now_us: u64) {
        self.slots.get_mut(slot).due_us = due_us;
        self.wheel.insert(&mut self.slots, slot, now_us);
    }

    /// Sets it again.
    pub(crate) fn set_due(&mut self, slot: ClaimSlot, due_us: u64, now_us: u64) {
        self.wheel.remove(&mut self.slots, slot);
        self.start(slot, due_us, now_us);
    }

    /// Forgets a claim.
    pub(crate) fn remove(&mut self, slot: ClaimSlot) {
        self.wheel.remove(&mut self.slots, slot);
        let request = self.slots.get(slot).request;
        if request != [0; 2] {
            self.requests.remove(request_hash(request), slot);
        }
        self.slots.free(slot);
    }

    /// Claims for which a request with this digest was made; the caller compares the namespace.
    pub(crate) fn by_request(
        &self,
        request: [u64; 2],
        is_it: impl Fn(ClaimSlot) -> bool,
    ) -> Option<ClaimSlot> {
        if request == [0; 2] {
            return None;
        }
        self.requests
            .find(request_hash(request), |slot| self.slots.get(slot).request == request && is_it(slot))
    }

    /// The claim in a place of the slab that has this number.
    pub(crate) fn numbered(&self, slot: u32, number: u64) -> Option<ClaimSlot> {
        let found = (slot < self.slots.slots()).then(|| ClaimSlot::new(slot))?;
        let claim = self.slots.get(found);
        (claim.places != Slot::NIL && claim.number == number).then_some(found)
    }

    pub(crate) fn rebuild(&mut self) {
        for (slot, claim) in self.slots.iter().filter(|(_, claim)| claim.request != [0; 2]) {
            self.requests.insert(request_hash(claim.request), slot);
        }
    }

    /// Compares timers and requests with the claims.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let timed = self.wheel.iter(&self.slots).filter(|&(bucket, slot)| {
            let claim = self.slots.get(slot);
            claim.places != Slot::NIL && usize::from(claim.bucket) == bucket
        });
        let figures = [timed.count(), self.wheel.len() as usize, self.slots.used() as usize];
        if figures != [figures[0]; 3] {
            return Err(format!("claims listed by time, timers, claims: {figures:?}"));
        }
        let known = self.slots.iter().filter(|(_, claim)| claim.request != [0; 2]);
        let mut count = 0;
        for (slot, claim) in known {
            count += 1;
            if self.by_request(claim.request, |found| found == slot).is_none() {
                return Err(format!("claim {slot} is not found by its request"));
            }
        }
        crate::core::agree("requests of claims", count, self.requests.len().into())
    }
}

fn request_hash([high, low]: [u64; 2]) -> u64 {
    mix(high ^ mix(low))
}
