//! Layouts and checks of attach, detach and resume.

use crate::command::{Attach, DETACH_GRACE_MS_MAX, RecordSink};
use crate::id::{ConsumerId, NamespaceId, Receipt};
use crate::layout::{RECEIPT_BYTES, fixed_items, receipt_at, receipt_into};
use crate::limits::{LEASE_MS_MAX, NAME_BYTES_MAX, RECEIVE_QUEUES_MAX};
use crate::wire::{Put, Reader};

/// A consumer that wants messages.
#[derive(Clone, Copy)]
pub(crate) struct AttachRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) name: &'a str,
    pub(crate) credit: u32,
    pub(crate) lease_ms: u64,
    pub(crate) grace_ms: u64,
    queues: Reader<'a>,
}

impl<'a> AttachRecord<'a> {
    /// Names of its queues, in order.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut queues = self.queues;
        std::iter::from_fn(move || queues.name())
    }
}

pub(crate) fn encode_attach(first: [u8; 2], attach: &Attach<'_>, sink: &mut impl RecordSink) {
    let mut out = Vec::with_capacity(192);
    out.raw(&first);
    out.u32(attach.namespace.0);
    out.name(attach.name);
    out.u32(attach.credit);
    out.u64(attach.lease_ms);
    out.u64(attach.grace_ms);
    out.u8(attach.queues.len() as u8);
    attach.queues.iter().for_each(|queue| out.name(queue));
    sink.body(&out);
}

/// Deliveries that a consumer takes over.
#[derive(Clone, Copy)]
pub(crate) struct ResumeRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) consumer: ConsumerId,
    receipts: &'a [[u8; RECEIPT_BYTES]],
}

impl<'a> ResumeRecord<'a> {
    /// Receipts of these deliveries, in order.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = Receipt> + use<'a> {
        self.receipts.iter().map(|bytes| receipt_at(bytes))
    }
}

pub(crate) fn encode_resume(
    first: [u8; 2],
    namespace: NamespaceId,
    consumer: ConsumerId,
    receipts: &[Receipt],
    sink: &mut impl RecordSink,
) {
    let mut out = Vec::with_capacity(32 + receipts.len() * RECEIPT_BYTES);
    out.raw(&first);
    out.u32(namespace.0);
    out.u64(consumer.0);
    out.u32(receipts.len() as u32);
    for receipt in receipts {
        let mut bytes = [0; RECEIPT_BYTES];
        receipt_into(&mut bytes, receipt);
        out.raw(&bytes);
    }
    sink.body(&out);
}

/// A consumer that gets nothing more.
#[derive(Clone, Copy)]
pub(crate) struct DetachRecord {
    pub(crate) namespace: NamespaceId,
    pub(crate) consumer: ConsumerId,
    pub(crate) grace_ms: u64,
    pub(crate) reached: u64,
}

pub(crate) fn encode_detach(
    first: [u8; 2],
    namespace: NamespaceId,
    consumer: ConsumerId,
    grace_ms: u64,
    reached: u64,
    sink: &mut impl RecordSink,
) {
    let mut body = Vec::with_capacity(32);
    body.raw(&first);
    body.u32(namespace.0);
    body.u64(consumer.0);
    body.u64(grace_ms);
    body.u64(reached);
    sink.body(&body);
}

/// Reads what [`encode_attach`] wrote; `None` also for what a check before the proposal refuses and what
/// would overflow.
pub(crate) fn decode_attach<'a>(reader: &mut Reader<'a>) -> Option<AttachRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let (name, credit, lease_ms) = (reader.name()?, reader.u32()?, reader.u64()?);
    let grace_ms = read_grace(reader)?;
    let count = reader.u8()?;
    if lease_ms > LEASE_MS_MAX || usize::from(count) > RECEIVE_QUEUES_MAX || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let queues = *reader;
    for _ in 0..count {
        reader.name()?;
    }
    Some(AttachRecord { namespace, name, credit, lease_ms, grace_ms, queues })
}

fn read_grace(reader: &mut Reader<'_>) -> Option<u64> {
    reader.u64().filter(|grace_ms| *grace_ms <= DETACH_GRACE_MS_MAX)
}

pub(crate) fn decode_detach(reader: &mut Reader<'_>) -> Option<DetachRecord> {
    let (namespace, consumer) = (NamespaceId(reader.u32()?), ConsumerId(reader.u64()?));
    let grace_ms = read_grace(reader)?;
    Some(DetachRecord { namespace, consumer, grace_ms, reached: reader.u64()? })
}

pub(crate) fn decode_resume<'a>(reader: &mut Reader<'a>) -> Option<ResumeRecord<'a>> {
    let (namespace, consumer) = (NamespaceId(reader.u32()?), ConsumerId(reader.u64()?));
    Some(ResumeRecord { namespace, consumer, receipts: fixed_items(reader)? })
}
