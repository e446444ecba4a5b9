//! Layouts of records about locks.

use crate::command::RecordSink;
use crate::core::field::{ReadField, WriteField};
use crate::id::NamespaceId;
use crate::limits::{LOCK_HOLDERS_MAX, LOCK_KEYS_MAX, LOCK_TTL_MS_MAX, LOCK_WAIT_MS_MAX};
use crate::locks::{LockAcquire, LockMode, LockTicket, LockToken};
use crate::wire::{Put, Reader};

/// Bit of the byte of a mode: the claim is for keys that nobody has.
const IF_ABSENT: u8 = 0x80;

/// A claim that is made.
#[derive(Clone, Copy)]
pub(crate) struct AcquireRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) owner: &'a str,
    pub(crate) mode: LockMode,
    pub(crate) ttl_ms: u32,
    pub(crate) wait_ms: u32,
    pub(crate) if_absent: bool,
    pub(crate) request: [u64; 2],
    keys: Reader<'a>,
}

impl<'a> AcquireRecord<'a> {
    /// Its keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut keys = self.keys;
        std::iter::from_fn(move || keys.name())
    }
}

pub(crate) fn encode_acquire(first: [u8; 2], acquire: &LockAcquire<'_>, sink: &mut impl RecordSink) {
    let mut out = Vec::with_capacity(192);
    out.raw(&first);
    out.u32(acquire.namespace.0);
    out.name(acquire.owner);
    let (mode, holders) = match acquire.mode {
        LockMode::Exclusive => (0, 0),
        LockMode::Shared => (1, 0),
        LockMode::Counting { holders } => (2, holders),
    };
    out.u8(if acquire.if_absent { mode | IF_ABSENT } else { mode });
    out.u16(holders);
    out.u32(acquire.ttl_ms);
    out.u32(acquire.wait_ms);
    acquire.request.iter().for_each(|word| out.u64(*word));
    out.u8(acquire.keys.len() as u8);
    acquire.keys.iter().for_each(|key| out.name(key));
    sink.body(&out);
}

/// Reads what [`encode_acquire`] wrote; `None` also for what a check before the proposal refuses.
pub(crate) fn decode_acquire<'a>(reader: &mut Reader<'a>) -> Option<AcquireRecord<'a>> {
    let (namespace, owner) = (NamespaceId(reader.u32()?), reader.name()?);
    let (form, holders) = (reader.u8()?, reader.u16()?);
    let if_absent = form & IF_ABSENT != 0;
    let mode = match (form & !IF_ABSENT, holders) {
        (0, 0) => LockMode::Exclusive,
        (1, 0) => LockMode::Shared,
        (2, holders) if (1..=LOCK_HOLDERS_MAX).contains(&holders) => LockMode::Counting { holders },
        _ => return None,
    };
    let ttl_ms = reader.u32().filter(|ttl_ms| (1..=LOCK_TTL_MS_MAX).contains(ttl_ms))?;
    let wait_ms = reader.u32().filter(|wait_ms| *wait_ms <= if if_absent { 0 } else { LOCK_WAIT_MS_MAX })?;
    let request = [reader.u64()?, reader.u64()?];
    let count = reader.u8().filter(|count| (1..=LOCK_KEYS_MAX).contains(&usize::from(*count)))?;
    let keys = *reader;
    for _ in 0..count {
        reader.name().filter(|key| !key.is_empty())?;
    }
    Some(AcquireRecord { namespace, owner, mode, ttl_ms, wait_ms, if_absent, request, keys })
}

impl WriteField for LockToken {
    fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.number);
        out.u32(self.slot);
        out.u64(self.tag);
    }
}

impl<'a> ReadField<'a> for LockToken {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(LockToken { number: reader.u64()?, slot: reader.u32()?, tag: reader.u64()? })
    }
}

impl WriteField for LockTicket {
    fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.number);
        out.u32(self.slot);
    }
}

impl<'a> ReadField<'a> for LockTicket {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(LockTicket { number: reader.u64()?, slot: reader.u32()? })
    }
}
