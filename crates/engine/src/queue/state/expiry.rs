//! When messages end that still wait: a second timer for those that have such a time.

use crate::core::wheel::{Timed, Wheel};
use crate::queue::state::{ExpirySlot, MessageSlot};
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// The end of one message, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Expiry {
    /// Slot of the message.
    pub(crate) message: MessageSlot,
    /// When it ends if it waits then, in microseconds since the Unix epoch; 0: never.
    pub(crate) end_us: u64,
    /// When its sender wants it to end; 0: never. If this is not its end, its queue's `max_age_ms` is.
    pub(crate) own_us: u64,
    /// True if its timer is set: until it fires, or the message is dead, done or gone.
    pub(crate) armed: bool,
    bucket: u16,
    link: Link<Expiry>,
    next_vacant: Option<ExpirySlot>,
}

impl PlainItem for Expiry {
    const BLOCK: usize = 64;

    fn vacant(next: ExpirySlot) -> Self {
        Expiry {
            message: Slot::NIL,
            end_us: 0,
            own_us: 0,
            armed: false,
            bucket: 0,
            link: Link::UNLINKED,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<ExpirySlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.message.write(out);
        out.u64(self.end_us);
        out.u64(self.own_us);
        out.bool(self.armed);
        out.u16(self.bucket);
        self.link.prev.write(out);
        self.link.next.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Expiry {
            message: Slot::read(reader)?,
            end_us: reader.u64()?,
            own_us: reader.u64()?,
            armed: reader.bool()?,
            bucket: reader.u16()?,
            link: Link::read(reader)?,
            next_vacant: None,
        })
    }
}

impl Linked<PLACE> for Expiry {
    fn link(&self) -> Link<Expiry> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Expiry> {
        &mut self.link
    }
}

impl Timed for Expiry {
    fn due_us(&self) -> u64 {
        self.end_us
    }

    fn bucket(&self) -> u16 {
        self.bucket
    }

    fn set_bucket(&mut self, bucket: u16) {
        self.bucket = bucket;
    }
}

/// The ends of all messages that have one.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    pub(crate) slots: Slab<Expiry, 1024>,
    pub(crate) wheel: Wheel<Expiry>,
}

impl HeadPart for Expiries {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Expiries { wheel, slots } = self;
        wheel.write_head(out);
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let wheel = Wheel::read_head(reader)?;
        let slots = Slab::read_head(reader)?;
        Some(Expiries { wheel, slots })
    }
}

impl Expiries {
    /// A message gets room for an end, which `own_us` is if its sender wants one.
    pub(crate) fn add(&mut self, message: MessageSlot, own_us: u64, now_us: u64) -> ExpirySlot {
        let slot =
            self.slots.insert(Expiry { message, own_us, next_vacant: None, ..Expiry::vacant(Slot::NIL) });
        self.set(slot, own_us, now_us);
        slot
    }

    /// Sets an end and the timer for it; 0: none.
    pub(crate) fn set(&mut self, slot: ExpirySlot, end_us: u64, now_us: u64) {
        self.disarm(slot);
        let expiry = self.slots.get_mut(slot);
        expiry.end_us = end_us;
        if end_us > 0 {
            expiry.armed = true;
            self.wheel.insert(&mut self.slots, slot, now_us);
        }
    }

    /// Takes the timer out, if it is set.
    pub(crate) fn disarm(&mut self, slot: ExpirySlot) {
        if self.slots.get(slot).armed {
            self.wheel.remove(&mut self.slots, slot);
            self.slots.get_mut(slot).armed = false;
        }
    }

    /// Compares timers and slots.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let armed = self.slots.iter().filter(|(_, expiry)| expiry.armed).count();
        let listed = self.wheel.iter(&self.slots).filter(|&(bucket, slot)| {
            let expiry = self.slots.get(slot);
            expiry.armed && usize::from(expiry.bucket) == bucket
        });
        let figures = (armed, listed.count(), self.wheel.len() as usize);
        if figures.0 != figures.1 || figures.0 != figures.2 {
            return Err(format!("expiries armed, listed, timers: {figures:?}"));
        }
        Ok(())
    }
}
