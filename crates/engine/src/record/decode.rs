//! Bytes to records. Nothing is copied: lists stay in the body and are walked there.

use super::fields;
use super::{LAYOUT, kind, tag};
use crate::command::{Deliver, Settlement};
use crate::error::Error;
use crate::id::{BlobRef, MessageId, NamespaceId, Receipt};
use crate::limits::Limits;
use crate::settings::{Backoff, QueuePatch, Quotas};
use crate::wire::Reader;

/// A record as read back. Its structure is sound; its values are what the writer gave.
#[derive(Clone)]
pub(crate) enum Record<'a> {
    Epoch { number: u32, behaviour: u16 },
    Configure(Box<Limits>),
    Tick,
    Send(SendRecord<'a>),
    Receive(ReceiveRecord<'a>),
    Settle(SettleRecord<'a>),
    Extend(ExtendRecord<'a>),
    NamespaceCreate { number: Option<NamespaceId>, name: &'a str, shard: u32, quotas: Quotas },
    NamespaceSet { namespace: NamespaceId, quotas: Quotas },
    NamespaceDelete { namespace: NamespaceId, force: bool },
    QueueSet { namespace: NamespaceId, queue: &'a str, patch: QueuePatch, create: bool },
    QueuePurge { namespace: NamespaceId, queue: &'a str },
    QueueDelete { namespace: NamespaceId, queue: &'a str },
    DeadRedrive { namespace: NamespaceId, queue: &'a str, ids: Ids<'a> },
    DeadDelete { namespace: NamespaceId, queue: &'a str, ids: Ids<'a> },
    HoldDamaged { id: MessageId, blob: BlobRef },
}

#[derive(Clone, Copy)]
pub(crate) struct SendRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) queue: &'a str,
    pub(crate) idempotency_key: &'a [u8],
    pub(crate) request_digest: u64,
    pub(crate) count: u32,
    items: Reader<'a>,
}

#[derive(Clone, Copy)]
pub(crate) struct SendItemRecord {
    pub(crate) blob_len: u32,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u16,
    pub(crate) deliver: Deliver,
    pub(crate) backoff: Option<Backoff>,
}

#[derive(Clone, Copy)]
pub(crate) struct ReceiveRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) max_messages: u32,
    pub(crate) max_bytes: u32,
    pub(crate) lease_ms: u64,
    queues: Reader<'a>,
}

#[derive(Clone, Copy)]
pub(crate) struct SettleRecord<'a> {
    pub(crate) namespace: NamespaceId,
    items: &'a [[u8; 32]],
}

#[derive(Clone, Copy)]
pub(crate) struct SettleItemRecord {
    pub(crate) receipt: Receipt,
    pub(crate) settlement: Settlement,
    /// Item and length of the error text among the record's blobs.
    pub(crate) error: Option<(u32, u32)>,
}

#[derive(Clone, Copy)]
pub(crate) struct ExtendRecord<'a> {
    pub(crate) namespace: NamespaceId,
    items: &'a [[u8; 28]],
}

/// A list of message ids.
#[derive(Clone, Copy)]
pub(crate) struct Ids<'a> {
    items: &'a [[u8; 12]],
}

/// Reads a body. A body that no [`crate::Command`] wrote is a bug or damage: [`Error::Internal`].
pub(crate) fn decode(body: &[u8]) -> Result<Record<'_>, Error> {
    let mut reader = Reader::new(body);
    let (Some(kind), Some(layout)) = (reader.u8(), reader.u8()) else {
        return Err(Error::Internal { reason: format!("a record of {} byte(s)", body.len()) });
    };
    if layout != LAYOUT {
        let reason = format!("record kind {kind} has layout {layout}, this version reads layout {LAYOUT}");
        return Err(Error::Internal { reason });
    }
    decode_kind(kind, &mut reader).ok_or_else(|| Error::Internal {
        reason: format!("a record of kind {kind} and {} bytes cannot be read", body.len()),
    })
}

fn decode_kind<'a>(kind: u8, reader: &mut Reader<'a>) -> Option<Record<'a>> {
    let record = match kind {
        kind::TICK => Record::Tick,
        kind::SEND => Record::Send(decode_send(reader)?),
        kind::RECEIVE => Record::Receive(decode_receive(reader)?),
        kind::SETTLE => Record::Settle(decode_settle(reader)?),
        kind::EXTEND => {
            let namespace = NamespaceId(reader.u32()?);
            Record::Extend(ExtendRecord { namespace, items: fixed_items(reader)? })
        }
        kind::EPOCH => Record::Epoch { number: reader.u32()?, behaviour: reader.u16()? },
        kind::CONFIGURE => Record::Configure(Box::new(fields::read_limits(reader)?)),
        kind::NAMESPACE_CREATE => {
            let has_number = reader.bool()?;
            let number = NamespaceId(reader.u32()?);
            Record::NamespaceCreate {
                number: has_number.then_some(number),
                name: reader.name()?,
                shard: reader.u32()?,
                quotas: fields::read_quotas(reader)?,
            }
        }
        kind::NAMESPACE_SET => Record::NamespaceSet {
            namespace: NamespaceId(reader.u32()?),
            quotas: fields::read_quotas(reader)?,
        },
        kind::NAMESPACE_DELETE => {
            Record::NamespaceDelete { namespace: NamespaceId(reader.u32()?), force: reader.bool()? }
        }
        _ => decode_of_queue(kind, reader)?,
    };
    reader.end()?;
    Some(record)
}

fn decode_of_queue<'a>(kind: u8, reader: &mut Reader<'a>) -> Option<Record<'a>> {
    if kind == kind::HOLD_DAMAGED {
        let id = MessageId { namespace: NamespaceId(reader.u32()?), sequence: reader.u64()? };
        let blob = BlobRef { index: reader.u64()?, item: reader.u32()?, len: reader.u32()? };
        return Some(Record::HoldDamaged { id, blob });
    }
    let namespace = NamespaceId(reader.u32()?);
    let queue = reader.name()?;
    Some(match kind {
        kind::QUEUE_SET => {
            let create = reader.bool()?;
            Record::QueueSet { namespace, queue, patch: fields::read_patch(reader)?, create }
        }
        kind::QUEUE_PURGE => Record::QueuePurge { namespace, queue },
        kind::QUEUE_DELETE => Record::QueueDelete { namespace, queue },
        kind::DEAD_REDRIVE => {
            Record::DeadRedrive { namespace, queue, ids: Ids { items: fixed_items(reader)? } }
        }
        kind::DEAD_DELETE => {
            Record::DeadDelete { namespace, queue, ids: Ids { items: fixed_items(reader)? } }
        }
        _ => return None,
    })
}

fn decode_send<'a>(reader: &mut Reader<'a>) -> Option<SendRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let queue = reader.name()?;
    let request_digest = reader.u64()?;
    let count = reader.u32()?;
    let idempotency_key = reader.bytes16()?;
    let items = *reader;
    for _ in 0..count {
        read_send_item(reader)?;
    }
    Some(SendRecord { namespace, queue, idempotency_key, request_digest, count, items })
}

#[inline]
fn read_send_item(reader: &mut Reader<'_>) -> Option<SendItemRecord> {
    let fixed = reader.array::<8>()?;
    let flags = fixed[5];
    let deliver = match flags & tag::DELIVER_MASK {
        tag::DELIVER_NOW => Deliver::Now,
        tag::DELIVER_AFTER => Deliver::AfterMs(reader.u64()?),
        tag::DELIVER_AT => Deliver::AtUs(reader.u64()?),
        _ => return None,
    };
    let backoff = if flags & tag::HAS_BACKOFF != 0 { Some(fields::read_backoff(reader)?) } else { None };
    Some(SendItemRecord {
        blob_len: u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]),
        priority: fixed[4],
        max_attempts: u16::from_le_bytes([fixed[6], fixed[7]]),
        deliver,
        backoff,
    })
}

fn decode_receive<'a>(reader: &mut Reader<'a>) -> Option<ReceiveRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let max_messages = reader.u32()?;
    let max_bytes = reader.u32()?;
    let lease_ms = reader.u64()?;
    let count = reader.u8()?;
    let _consumer = reader.name()?;
    let queues = *reader;
    for _ in 0..count {
        read_weighted(reader)?;
    }
    Some(ReceiveRecord { namespace, max_messages, max_bytes, lease_ms, queues })
}

fn read_weighted<'a>(reader: &mut Reader<'a>) -> Option<(&'a str, u16)> {
    let weight = reader.u16()?;
    Some((reader.name()?, weight))
}

fn decode_settle<'a>(reader: &mut Reader<'a>) -> Option<SettleRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let items: &[[u8; 32]] = fixed_items(reader)?;
    items.iter().all(|item| item[20] <= tag::REJECT && item[21] == 0).then_some(())?;
    Some(SettleRecord { namespace, items })
}

fn fixed_items<'a, const N: usize>(reader: &mut Reader<'a>) -> Option<&'a [[u8; N]]> {
    let count = reader.u32()? as usize;
    let (items, rest) = reader.raw(count.checked_mul(N)?)?.as_chunks::<N>();
    rest.is_empty().then_some(items)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn id_at(bytes: &[u8]) -> MessageId {
    MessageId { namespace: NamespaceId(u32_at(bytes, 0)), sequence: u64_at(bytes, 4) }
}

fn receipt_at(bytes: &[u8]) -> Receipt {
    Receipt { id: id_at(bytes), token: u64_at(bytes, 12) }
}

impl<'a> SendRecord<'a> {
    #[inline]
    pub(crate) fn items(&self) -> impl Iterator<Item = SendItemRecord> + use<'a> {
        let mut reader = self.items;
        (0..self.count).map_while(move |_| read_send_item(&mut reader))
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        (0u32..).zip(self.items()).map(move |(item, send)| BlobRef { index, item, len: send.blob_len })
    }
}

impl<'a> ReceiveRecord<'a> {
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&'a str, u16)> + use<'a> {
        let mut reader = self.queues;
        std::iter::from_fn(move || if reader.is_empty() { None } else { read_weighted(&mut reader) })
    }
}

impl<'a> SettleRecord<'a> {
    #[inline]
    pub(crate) fn items(&self) -> impl Iterator<Item = SettleItemRecord> + use<'a> {
        let mut blobs = 0;
        self.items.iter().map(move |bytes| {
            let delay_ms = u64_at(bytes, 24);
            let settlement = match bytes[20] {
                tag::NACK => Settlement::Nack { delay_ms: None },
                tag::NACK_DELAY => Settlement::Nack { delay_ms: Some(delay_ms) },
                tag::RELEASE => Settlement::Release { delay_ms },
                tag::REJECT => Settlement::Reject,
                _ => Settlement::Ack,
            };
            let len = u32::from(u16::from_le_bytes([bytes[22], bytes[23]]));
            let error = (len > 0).then_some((blobs, len));
            blobs += u32::from(len > 0);
            SettleItemRecord { receipt: receipt_at(bytes), settlement, error }
        })
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        self.items().filter_map(move |item| item.error.map(|(item, len)| BlobRef { index, item, len }))
    }
}

impl<'a> ExtendRecord<'a> {
    pub(crate) fn items(&self) -> impl Iterator<Item = (Receipt, u64)> + use<'a> {
        self.items.iter().map(|bytes| (receipt_at(bytes), u64_at(bytes, 20)))
    }
}

impl<'a> Ids<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = MessageId> + use<'a> {
        self.items.iter().map(|bytes| id_at(bytes))
    }
}
