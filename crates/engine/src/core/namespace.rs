//! A namespace: name, quotas, what of them is used, and the last id given.

use crate::error::Error;
use crate::settings::Quotas;
use crate::store::NIL;
use crate::store::slab::PlainItem;
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

pub(crate) type NamespaceSlot = Slot<Namespace>;

/// A namespace, or a vacant slot.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// Its number; never reused.
    pub(crate) number: u32,
    pub(crate) name: Box<str>,
    pub(crate) shard: u32,
    pub(crate) quotas: Quotas,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) created_at_us: u64,
    /// The last id given, of whichever epoch.
    pub(crate) last_sequence: u64,
    /// Queues, the deleted ones that are not swept yet included.
    pub(crate) queue_slots: u32,
    pub(crate) deleted: bool,
    /// Modules that still hold something of it, once it is deleted. Derived.
    pub(crate) sweeping: u8,
    next_vacant: Option<NamespaceSlot>,
}

impl Namespace {
    pub(crate) fn new(number: u32, name: &str, shard: u32, quotas: Quotas, now_us: u64) -> Namespace {
        Namespace {
            number,
            name: name.into(),
            shard,
            quotas,
            messages: 0,
            bytes: 0,
            created_at_us: now_us,
            last_sequence: 0,
            queue_slots: 0,
            deleted: false,
            sweeping: 0,
            next_vacant: None,
        }
    }

    /// Checks that it may hold so many messages more.
    #[inline(always)]
    pub(crate) fn admit_messages(&self, messages: u64) -> Result<(), Error> {
        let (limit, held) = (self.quotas.messages, self.messages);
        if limit > 0 && held + messages > limit {
            return Err(Error::QuotaExceeded { what: "messages", limit, held, more: messages });
        }
        Ok(())
    }

    /// Checks that it may hold so many bytes more.
    #[inline(always)]
    pub(crate) fn admit_bytes(&self, bytes: u64) -> Result<(), Error> {
        let (limit, held) = (self.quotas.bytes, self.bytes);
        if limit > 0 && held + bytes > limit {
            return Err(Error::QuotaExceeded { what: "bytes", limit, held, more: bytes });
        }
        Ok(())
    }
}

impl PlainItem for Namespace {
    const BLOCK: usize = 4;

    fn vacant(next: NamespaceSlot) -> Self {
        Namespace { next_vacant: Some(next), ..Namespace::new(NIL, "", 0, Quotas::default(), 0) }
    }

    fn next_vacant(&self) -> Option<NamespaceSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u32(self.number);
        out.name(&self.name);
        out.u32(self.shard);
        self.quotas.write(out);
        out.u64(self.messages);
        out.u64(self.bytes);
        out.u64(self.created_at_us);
        out.u64(self.last_sequence);
        out.u32(self.queue_slots);
        out.bool(self.deleted);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let number = reader.u32()?;
        let name = reader.name()?;
        let shard = reader.u32()?;
        let quotas = Quotas::read(reader)?;
        let mut namespace = Namespace::new(number, name, shard, quotas, 0);
        namespace.messages = reader.u64()?;
        namespace.bytes = reader.u64()?;
        namespace.created_at_us = reader.u64()?;
        namespace.last_sequence = reader.u64()?;
        namespace.queue_slots = reader.u32()?;
        namespace.deleted = reader.bool()?;
        Some(namespace)
    }
}
