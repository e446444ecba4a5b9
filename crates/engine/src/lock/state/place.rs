//! Places: the part of a claim in one key.

use crate::lock::state::{ClaimSlot, LockSlot, PlaceSlot};
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::Reader;

pub(crate) type Places = Slab<Place, 1024>;

/// The part of a claim in one key, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Slot of its claim; `NIL`: the slot is vacant.
    pub(crate) claim: ClaimSlot,
    pub(crate) lock: LockSlot,
    /// Neighbours among the holders of the lock, or among those that wait for it.
    link: Link<Place>,
    /// The next place of the claim.
    pub(crate) next: PlaceSlot,
}

const _: () = assert!(size_of::<Place>() == 20);

impl Place {
    pub(crate) fn new(claim: ClaimSlot, lock: LockSlot, next: PlaceSlot) -> Place {
        Place { claim, lock, link: Link::UNLINKED, next }
    }
}

impl PlainItem for Place {
    const BLOCK: usize = 128;

    fn vacant(next: PlaceSlot) -> Self {
        Place { next, ..Place::new(Slot::NIL, Slot::NIL, Slot::NIL) }
    }

    fn next_vacant(&self) -> Option<PlaceSlot> {
        (self.claim == Slot::NIL).then_some(self.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.claim.write(out);
        self.lock.write(out);
        self.link.write(out);
        self.next.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Place {
            claim: Slot::read(reader).filter(|claim| *claim != Slot::NIL)?,
            lock: Slot::read(reader)?,
            link: Link::read(reader)?,
            next: Slot::read(reader)?,
        })
    }
}

impl Linked<PLACE> for Place {
    fn link(&self) -> Link<Place> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Place> {
        &mut self.link
    }
}
