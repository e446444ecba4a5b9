//! Bytes to records. Nothing is copied: lists stay in the body and are walked there.

use crate::command::{Deliver, Settlement};
use crate::error::Error;
use crate::id::{BlobRef, MessageId, NamespaceId, Receipt};
use crate::limits::{ATTEMPTS_MAX, PRIORITY_MAX};
use crate::record::table::{RareRecord, head, layout, read_rare};
use crate::record::{EXTEND_ITEM_BYTES, RECEIPT_BYTES, SETTLE_ITEM_BYTES, fields, tag};
use crate::settings::Backoff;
use crate::wire::Reader;

/// Which function reads a record. The hot ones are read apart, and never lie in one enum: their fields stay in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tick,
    Send,
    Receive,
    Settle,
    Extend,
    Rare,
}

#[derive(Clone, Copy)]
pub(crate) struct SendRecord<'a> {
    pub(crate) namespace: NamespaceId,
    /// Not yet known to be text.
    pub(crate) queue: &'a [u8],
    pub(crate) idempotency_key: &'a [u8],
    pub(crate) request_digest: u64,
    pub(crate) count: u32,
    /// Of all blobs together.
    pub(crate) bytes: u64,
    /// Whether there are items, and none has more than a priority and a number of attempts, both within their limits.
    pub(crate) are_plain: bool,
    items: Reader<'a>,
}

#[derive(Clone, Copy)]
pub(crate) struct SendItemRecord<'a> {
    pub(crate) blob_len: u32,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u16,
    pub(crate) deliver: Deliver,
    pub(crate) backoff: Option<Backoff>,
    /// To be read by [`crate::record::read_options`]; that it can be was seen when the record was decoded.
    pub(crate) options: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
pub(crate) struct ReceiveRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) max_messages: u32,
    pub(crate) max_bytes: u32,
    pub(crate) lease_ms: u64,
    /// Name of the consumer, not yet known to be text; may be empty.
    pub(crate) consumer: &'a [u8],
    /// Whether any queue has a weight.
    pub(crate) by_weight: bool,
    queues: Reader<'a>,
}

#[derive(Clone, Copy)]
pub(crate) struct SettleRecord<'a> {
    pub(crate) namespace: NamespaceId,
    items: &'a [[u8; SETTLE_ITEM_BYTES]],
}

#[derive(Clone, Copy)]
pub(crate) struct SettleItemRecord {
    pub(crate) receipt: Receipt,
    pub(crate) settlement: Settlement,
    /// Item and length of the error text among the record's blobs.
    pub(crate) error: Option<(u32, u32)>,
    /// The same of the result.
    pub(crate) result: Option<(u32, u32)>,
}

#[derive(Clone, Copy)]
pub(crate) struct ExtendRecord<'a> {
    pub(crate) namespace: NamespaceId,
    items: &'a [[u8; EXTEND_ITEM_BYTES]],
}

/// A list of message ids.
#[derive(Clone, Copy)]
pub(crate) struct Ids<'a> {
    pub(crate) items: &'a [[u8; 12]],
}

/// Tells how to read a body. A body that no [`crate::Command`] wrote is a bug or damage: [`Error::Internal`], here and
/// from the functions that read it.
#[inline]
pub(crate) fn kind_of(body: &[u8]) -> Result<Kind, Error> {
    match body.first_chunk::<2>() {
        Some(&head::TICK) => Ok(Kind::Tick),
        Some(&head::SEND) => Ok(Kind::Send),
        Some(&head::RECEIVE) => Ok(Kind::Receive),
        Some(&head::SETTLE) => Ok(Kind::Settle),
        Some(&head::EXTEND) => Ok(Kind::Extend),
        Some(&[kind, found]) if found == layout(kind) => Ok(Kind::Rare),
        _ => Err(unreadable(body)),
    }
}

/// Reads the fields after kind and layout, all of them and no more.
#[inline]
fn read<'a, T>(body: &'a [u8], fields: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Result<T, Error> {
    let mut reader = Reader::new(body);
    reader.array::<2>();
    match fields(&mut reader) {
        Some(record) if reader.is_empty() => Ok(record),
        _ => Err(unreadable(body)),
    }
}

#[inline]
pub(crate) fn send(body: &[u8]) -> Result<SendRecord<'_>, Error> {
    read(body, decode_send)
}

#[inline]
pub(crate) fn receive(body: &[u8]) -> Result<ReceiveRecord<'_>, Error> {
    read(body, decode_receive)
}

#[inline]
pub(crate) fn settle(body: &[u8]) -> Result<SettleRecord<'_>, Error> {
    read(body, decode_settle)
}

#[inline]
pub(crate) fn extend(body: &[u8]) -> Result<ExtendRecord<'_>, Error> {
    read(body, |reader| {
        let namespace = NamespaceId(reader.u32()?);
        Some(ExtendRecord { namespace, items: fixed_items(reader)? })
    })
}

#[cold]
pub(crate) fn rare(body: &[u8]) -> Result<RareRecord<'_>, Error> {
    read(body, |reader| read_rare(body[0], reader))
}

#[cold]
fn unreadable(body: &[u8]) -> Error {
    let reason = match body {
        &[kind, found, ..] if found != layout(kind) => {
            format!("record kind {kind} has layout {found}, this program reads only layout {}", layout(kind))
        }
        [kind, ..] => format!("a record of kind {kind} and {} bytes cannot be read", body.len()),
        [] => "an empty record".into(),
    };
    Error::Internal { reason }
}

#[inline]
fn decode_send<'a>(reader: &mut Reader<'a>) -> Option<SendRecord<'a>> {
    let head = reader.array::<19>()?;
    let count = u32_at(head, 12);
    let key_len = u16::from_le_bytes([head[16], head[17]]);
    let queue = reader.raw(usize::from(head[18]))?;
    let idempotency_key = reader.raw(usize::from(key_len))?;
    let items = *reader;
    let (mut bytes, mut are_plain) = (0, count > 0);
    for _ in 0..count {
        let item = read_send_item(reader)?;
        bytes += u64::from(item.blob_len);
        are_plain &= item.is_plain();
        if item.options.is_some_and(|options| !crate::record::are_options(options)) {
            return None;
        }
    }
    let namespace = NamespaceId(u32_at(head, 0));
    let request_digest = u64_at(head, 4);
    Some(SendRecord { namespace, queue, idempotency_key, request_digest, count, bytes, are_plain, items })
}

#[inline(always)]
pub(crate) fn read_send_item<'a>(reader: &mut Reader<'a>) -> Option<SendItemRecord<'a>> {
    let fixed = reader.array::<8>()?;
    let flags = fixed[5];
    let deliver = match flags & tag::DELIVER_MASK {
        tag::DELIVER_NOW => Deliver::Now,
        tag::DELIVER_AFTER => Deliver::AfterMs(reader.u64()?),
        tag::DELIVER_AT => Deliver::AtUs(reader.u64()?),
        _ => return None,
    };
    let (mut backoff, mut options) = (None, None);
    if flags & (tag::HAS_BACKOFF | tag::HAS_OPTIONS) != 0 {
        (backoff, options) = read_optional(flags, reader)?;
    }
    Some(SendItemRecord {
        blob_len: u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]),
        priority: fixed[4],
        max_attempts: u16::from_le_bytes([fixed[6], fixed[7]]),
        deliver,
        backoff,
        options,
    })
}

/// Fields that few items have: kept out of the way of the others.
#[inline(never)]
fn read_optional<'a>(flags: u8, reader: &mut Reader<'a>) -> Option<(Option<Backoff>, Option<&'a [u8]>)> {
    let backoff = if flags & tag::HAS_BACKOFF != 0 { Some(fields::read_backoff(reader)?) } else { None };
    let options = if flags & tag::HAS_OPTIONS != 0 { Some(reader.bytes16()?) } else { None };
    Some((backoff, options))
}

#[inline]
fn decode_receive<'a>(reader: &mut Reader<'a>) -> Option<ReceiveRecord<'a>> {
    let head = reader.array::<22>()?;
    let (count, consumer_len) = (head[20], head[21]);
    let consumer = reader.raw(usize::from(consumer_len))?;
    let queues = *reader;
    let mut by_weight = false;
    for _ in 0..count {
        by_weight |= read_weighted(reader)?.1 > 0;
    }
    Some(ReceiveRecord {
        namespace: NamespaceId(u32_at(head, 0)),
        max_messages: u32_at(head, 4),
        max_bytes: u32_at(head, 8),
        lease_ms: u64_at(head, 12),
        consumer,
        by_weight,
        queues,
    })
}

#[inline]
fn read_weighted<'a>(reader: &mut Reader<'a>) -> Option<(&'a [u8], u16)> {
    let [low, high, len] = *reader.array::<3>()?;
    Some((reader.raw(usize::from(len))?, u16::from_le_bytes([low, high])))
}

#[inline]
fn decode_settle<'a>(reader: &mut Reader<'a>) -> Option<SettleRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let items: &[[u8; SETTLE_ITEM_BYTES]] = fixed_items(reader)?;
    let sound = |item: &[u8; SETTLE_ITEM_BYTES]| {
        item[28] <= tag::REJECT && (item[29] == 0 || (item[29] == tag::HAS_RESULT && item[28] == tag::ACK))
    };
    items.iter().all(sound).then_some(())?;
    Some(SettleRecord { namespace, items })
}

#[inline]
pub(crate) fn fixed_items<'a, const N: usize>(reader: &mut Reader<'a>) -> Option<&'a [[u8; N]]> {
    let count = reader.u32()? as usize;
    let (items, rest) = reader.raw(count.checked_mul(N)?)?.as_chunks::<N>();
    rest.is_empty().then_some(items)
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(crate) fn id_at(bytes: &[u8]) -> MessageId {
    MessageId { namespace: NamespaceId(u32_at(bytes, 0)), sequence: u64_at(bytes, 4) }
}

pub(crate) fn receipt_at(bytes: &[u8]) -> Receipt {
    Receipt { id: id_at(bytes), token: u64_at(bytes, 12), tag: u64_at(bytes, 20) }
}

impl SendItemRecord<'_> {
    /// Whether it says nothing that has to be looked at before it is ready.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let sound = self.priority <= PRIORITY_MAX && self.max_attempts <= ATTEMPTS_MAX;
        sound & (self.deliver == Deliver::Now) & self.backoff.is_none() & self.options.is_none()
    }
}

impl<'a> SendRecord<'a> {
    /// One without items.
    pub(crate) fn head(
        namespace: NamespaceId,
        queue: &'a str,
        idempotency_key: &'a [u8],
        request_digest: u64,
        count: u32,
    ) -> SendRecord<'a> {
        let (queue, items) = (queue.as_bytes(), Reader::new(&[]));
        let (bytes, are_plain) = (0, false);
        SendRecord { namespace, queue, idempotency_key, request_digest, count, bytes, are_plain, items }
    }

    #[inline(always)]
    pub(crate) fn items(&self) -> impl Iterator<Item = SendItemRecord<'a>> + use<'a> {
        let mut reader = self.items;
        (0..self.count).map_while(move |_| read_send_item(&mut reader))
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        let steps = crate::record::step_blobs(index, self.count, self.items());
        let of_items = (0u32..).zip(self.items());
        of_items.map(move |(item, send)| BlobRef { index, item, len: send.blob_len }).chain(steps)
    }
}

impl<'a> ReceiveRecord<'a> {
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&'a [u8], u16)> + use<'a> {
        let mut reader = self.queues;
        std::iter::from_fn(move || if reader.is_empty() { None } else { read_weighted(&mut reader) })
    }
}

impl<'a> SettleRecord<'a> {
    #[inline]
    pub(crate) fn items(&self) -> impl Iterator<Item = SettleItemRecord> + use<'a> {
        let mut blobs = 0;
        self.items.iter().map(move |bytes| {
            let delay_ms = u64_at(bytes, 32);
            let settlement = match bytes[28] {
                tag::NACK => Settlement::Nack { delay_ms: None },
                tag::NACK_DELAY => Settlement::Nack { delay_ms: Some(delay_ms) },
                tag::RELEASE => Settlement::Release { delay_ms },
                tag::REJECT => Settlement::Reject,
                _ => Settlement::Ack,
            };
            let len = u32::from(u16::from_le_bytes([bytes[30], bytes[31]]));
            let error = (len > 0).then_some((blobs, len));
            blobs += u32::from(len > 0);
            let has_result = bytes[29] == tag::HAS_RESULT;
            let result = has_result.then_some((blobs, delay_ms as u32));
            blobs += u32::from(has_result);
            SettleItemRecord { receipt: receipt_at(bytes), settlement, error, result }
        })
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        let of_item = |item: SettleItemRecord| [item.error, item.result].into_iter().flatten();
        self.items().flat_map(of_item).map(move |(item, len)| BlobRef { index, item, len })
    }
}

impl<'a> ExtendRecord<'a> {
    pub(crate) fn items(&self) -> impl Iterator<Item = (Receipt, u64)> + use<'a> {
        self.items.iter().map(|bytes| (receipt_at(bytes), u64_at(bytes, RECEIPT_BYTES)))
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
