//! The layouts of receive, settle and extend.

use crate::blob::BlobHead;
use crate::command::{Receive, RecordSink, SettleItem, Settlement};
use crate::id::{BlobRef, NamespaceId, Receipt};
use crate::layout::{
    LIST_HEAD_BYTES, RECEIPT_BYTES, fixed_items, list_head, receipt_at, receipt_into, u32_at, u64_at,
};
use crate::queue::record::cost::{NUMBER_BYTES, with_cost, without_cost};
use crate::wire::Reader;

/// Bytes of an item of a settle record: a receipt, the settlement, flags, the length of the error text, and a
/// delay, or the length of the result; where a flag says so, a cost to add is the upper part of that.
const SETTLE_ITEM_BYTES: usize = RECEIPT_BYTES + 12;
/// Bytes of an item of an extend record: a receipt and a lease.
const EXTEND_ITEM_BYTES: usize = RECEIPT_BYTES + 8;

/// Bytes of settlements in an item of a settle record.
mod tag {
    pub(super) const ACK: u8 = 0;
    pub(super) const NACK: u8 = 1;
    pub(super) const NACK_DELAY: u8 = 2;
    pub(super) const RELEASE: u8 = 3;
    pub(super) const REJECT: u8 = 4;
    pub(super) const GIVE_BACK: u8 = 5;
    /// Flag beside `ACK`: a result, whose length stands where others have their delay.
    pub(super) const HAS_RESULT: u8 = 1;
    /// Flag: a cost to add.
    pub(super) const HAS_COST: u8 = 2;
}

#[derive(Clone, Copy)]
pub(crate) struct ReceiveRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) max_messages: u32,
    pub(crate) max_bytes: u32,
    pub(crate) lease_ms: u64,
    /// Name of the consumer, not yet known to be text; may be empty.
    pub(crate) consumer: &'a [u8],
    /// True if any queue has a weight.
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
    pub(crate) add_cost: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct ExtendRecord<'a> {
    pub(crate) namespace: NamespaceId,
    items: &'a [[u8; EXTEND_ITEM_BYTES]],
}

#[inline]
pub(crate) fn decode_receive<'a>(reader: &mut Reader<'a>) -> Option<ReceiveRecord<'a>> {
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

#[inline(always)] // As for `decode_send`.
pub(crate) fn decode_settle<'a>(reader: &mut Reader<'a>) -> Option<SettleRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let items: &[[u8; SETTLE_ITEM_BYTES]] = fixed_items(reader)?;
    let sound = |item: &[u8; SETTLE_ITEM_BYTES]| {
        let result_fits = item[29] & tag::HAS_RESULT == 0 || item[28] == tag::ACK;
        item[28] <= tag::GIVE_BACK && item[29] <= tag::HAS_RESULT | tag::HAS_COST && result_fits
    };
    items.iter().all(sound).then_some(())?;
    Some(SettleRecord { namespace, items })
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
            let (mut delay_ms, mut add_cost) = (u64_at(bytes, 32), 0);
            if bytes[29] & tag::HAS_COST != 0 {
                (delay_ms, add_cost) = without_cost(delay_ms);
            }
            let settlement = match bytes[28] {
                tag::NACK => Settlement::Nack { delay_ms: None },
                tag::NACK_DELAY => Settlement::Nack { delay_ms: Some(delay_ms) },
                tag::RELEASE => Settlement::Release { delay_ms },
                tag::GIVE_BACK => Settlement::GiveBack { delay_ms },
                tag::REJECT => Settlement::Reject,
                _ => Settlement::Ack,
            };
            let len = u32::from(u16::from_le_bytes([bytes[30], bytes[31]]));
            let error = (len > 0).then_some((blobs, len));
            blobs += u32::from(len > 0);
            let has_result = bytes[29] & tag::HAS_RESULT != 0;
            let result = has_result.then_some((blobs, delay_ms as u32));
            blobs += u32::from(has_result);
            SettleItemRecord { receipt: receipt_at(bytes), settlement, error, result, add_cost }
        })
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        self.items().flat_map(move |item| item.blobs(index))
    }
}

impl SettleItemRecord {
    /// Its blobs: error text and result, as far as there are.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<> {
        let blobs = [self.error, self.result].into_iter().flatten();
        blobs.map(move |(item, len)| BlobRef { index, item, len })
    }

    /// The only item of a list, as part of a record in which its first blob has the number `next_blob`; sets
    /// that to the number behind its last one.
    pub(crate) fn with_blobs_from(self, next_blob: &mut u32) -> SettleItemRecord {
        let first = *next_blob;
        let numbered = |blob: Option<(u32, u32)>| blob.map(|(item, len)| (first + item, len));
        *next_blob += u32::from(self.error.is_some()) + u32::from(self.result.is_some());
        SettleItemRecord { error: numbered(self.error), result: numbered(self.result), ..self }
    }
}

impl<'a> ExtendRecord<'a> {
    pub(crate) fn items(&self) -> impl Iterator<Item = (Receipt, u64)> + use<'a> {
        self.items.iter().map(|bytes| (receipt_at(bytes), u64_at(bytes, RECEIPT_BYTES)))
    }
}

pub(crate) fn encode_receive(first: [u8; 2], receive: &Receive<'_>, sink: &mut impl RecordSink) {
    let mut fixed = [0u8; 24];
    [fixed[0], fixed[1]] = first;
    fixed[2..6].copy_from_slice(&receive.namespace.0.to_le_bytes());
    fixed[6..10].copy_from_slice(&receive.max_messages.to_le_bytes());
    fixed[10..14].copy_from_slice(&receive.max_bytes.to_le_bytes());
    fixed[14..22].copy_from_slice(&receive.lease_ms.to_le_bytes());
    fixed[22] = receive.queues.len() as u8;
    fixed[23] = receive.consumer.len() as u8;
    sink.body(&fixed);
    sink.body(receive.consumer.as_bytes());
    for (name, weight) in receive.queues {
        let weight = weight.to_le_bytes();
        sink.body(&[weight[0], weight[1], name.len() as u8]);
        sink.body(name.as_bytes());
    }
}

pub(crate) fn encode_settle(
    first: [u8; 2],
    namespace: NamespaceId,
    items: &[SettleItem<'_>],
    sink: &mut impl RecordSink,
) {
    sink.body(&list_head(first, namespace, items.len()));
    for item in items {
        let (how, delay_ms) = match item.settlement {
            Settlement::Ack => (tag::ACK, 0),
            Settlement::Nack { delay_ms: None } => (tag::NACK, 0),
            Settlement::Nack { delay_ms: Some(ms) } => (tag::NACK_DELAY, ms),
            Settlement::Release { delay_ms } => (tag::RELEASE, delay_ms),
            Settlement::GiveBack { delay_ms } => (tag::GIVE_BACK, delay_ms),
            Settlement::Reject => (tag::REJECT, 0),
        };
        let mut fixed = [0u8; SETTLE_ITEM_BYTES];
        receipt_into(&mut fixed, &item.receipt);
        fixed[28] = how;
        fixed[30..32].copy_from_slice(&(item.error.len() as u16).to_le_bytes());
        let mut last = delay_ms;
        if let Some(result) = &item.result {
            fixed[29] |= tag::HAS_RESULT;
            last = (BlobHead::len(result.content_type, &[]) + result.bytes.len()) as u64;
        }
        if item.add_cost > 0 {
            fixed[29] |= tag::HAS_COST;
            last = with_cost(last, item.add_cost);
        }
        fixed[32..].copy_from_slice(&last.to_le_bytes());
        sink.body(&fixed);
    }
    for item in items {
        if !item.error.is_empty() {
            sink.blob(&[item.error.as_bytes()]);
        }
        if let Some(result) = &item.result {
            BlobHead::with(result.content_type, &[], &[], |head| sink.blob(&[head, result.bytes]));
        }
    }
}

/// The body of a settle record with the same settlements, and neither texts nor results.
pub(crate) fn settle_without_blobs(body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    let (_, items) = body.split_at_mut(LIST_HEAD_BYTES);
    for item in items.chunks_exact_mut(SETTLE_ITEM_BYTES) {
        item[30..32].fill(0);
        if item[29] & tag::HAS_RESULT != 0 {
            item[29] &= !tag::HAS_RESULT;
            item[32..32 + NUMBER_BYTES].fill(0);
        }
    }
    body
}

pub(crate) fn encode_extend(
    first: [u8; 2],
    namespace: NamespaceId,
    items: &[(Receipt, u64)],
    sink: &mut impl RecordSink,
) {
    sink.body(&list_head(first, namespace, items.len()));
    for (receipt, lease_ms) in items {
        let mut fixed = [0u8; EXTEND_ITEM_BYTES];
        receipt_into(&mut fixed, receipt);
        fixed[RECEIPT_BYTES..].copy_from_slice(&lease_ms.to_le_bytes());
        sink.body(&fixed);
    }
}

#[inline]
pub(crate) fn decode_extend<'a>(reader: &mut Reader<'a>) -> Option<ExtendRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    Some(ExtendRecord { namespace, items: fixed_items(reader)? })
}
