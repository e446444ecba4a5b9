//! The layout of a send: a head, the queue and the key, then the items. Items of groups and schedules are
//! laid out alike.

use crate::blob::BlobHead;
use crate::command::{Deliver, RecordSink, Send, SendItem};
use crate::id::{BlobRef, NamespaceId};
use crate::layout::{u32_at, u64_at};
use crate::limits::{ATTEMPTS_MAX, PRIORITY_MAX};
use crate::queue::flow::chain_record::write_blobs;
use crate::queue::send::options::write_options;
use crate::settings::Backoff;
use crate::wire::Reader;

/// The flags of an item.
mod tag {
    pub(super) const DELIVER_NOW: u8 = 0;
    pub(super) const DELIVER_AFTER: u8 = 1;
    pub(super) const DELIVER_AT: u8 = 2;
    pub(super) const DELIVER_MASK: u8 = 3;
    pub(super) const HAS_BACKOFF: u8 = 4;
    pub(super) const HAS_OPTIONS: u8 = 8;
}

#[derive(Clone, Copy)]
pub(crate) struct SendRecord<'a> {
    pub(crate) namespace: NamespaceId,
    /// Not yet known to be text.
    pub(crate) queue: &'a [u8],
    pub(crate) idempotency_key: &'a [u8],
    pub(crate) request_digest: u64,
    pub(crate) count: u32,
    /// Bytes of all blobs together.
    pub(crate) bytes: u64,
    /// Whether there are items, and none has more than a priority and a number of attempts, both within their
    /// limits.
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
    /// Bytes that [`crate::queue::send::options::read_options`] reads; decoding the record has seen that it
    /// can.
    pub(crate) options: Option<&'a [u8]>,
}

#[inline]
pub(crate) fn decode_send<'a>(reader: &mut Reader<'a>) -> Option<SendRecord<'a>> {
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
        if item.options.is_some_and(|options| !crate::queue::send::options::are_options(options)) {
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
    let backoff = if flags & tag::HAS_BACKOFF != 0 { Some(Backoff::read(reader)?) } else { None };
    let options = if flags & tag::HAS_OPTIONS != 0 { Some(reader.bytes16()?) } else { None };
    Some((backoff, options))
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
        let steps = crate::queue::flow::chain_record::step_blobs(index, self.count, self.items());
        let of_items = (0u32..).zip(self.items());
        of_items.map(move |(item, send)| BlobRef { index, item, len: send.blob_len }).chain(steps)
    }
}

#[inline(always)]
pub(crate) fn encode_send(first: [u8; 2], send: &Send<'_>, sink: &mut impl RecordSink) {
    let mut head = [0u8; 21];
    [head[0], head[1]] = first;
    head[2..6].copy_from_slice(&send.namespace.0.to_le_bytes());
    head[6..14].copy_from_slice(&send.request_digest.to_le_bytes());
    head[14..18].copy_from_slice(&(send.items.len() as u32).to_le_bytes());
    head[18..20].copy_from_slice(&(send.idempotency_key.len() as u16).to_le_bytes());
    head[20] = send.queue.len() as u8;
    sink.body(&head);
    sink.body(send.queue.as_bytes());
    if !send.idempotency_key.is_empty() {
        sink.body(send.idempotency_key);
    }
    for item in send.items {
        encode_send_item(item, sink);
    }
    for item in send.items {
        send_blob(item, sink);
    }
    for item in send.items {
        write_blobs(item, sink);
    }
}

/// The one blob of an item.
#[inline(always)]
pub(crate) fn send_blob(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    BlobHead::with(item.content_type, item.headers, item.tags, |head| sink.blob(&[head, item.payload]));
}

#[inline(always)]
pub(crate) fn encode_send_item(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    let len = BlobHead::len_tagged(item.content_type, item.headers, item.tags) + item.payload.len();
    let (deliver, time) = match item.deliver {
        Deliver::Now => (tag::DELIVER_NOW, 0),
        Deliver::AfterMs(ms) => (tag::DELIVER_AFTER, ms),
        Deliver::AtUs(us) => (tag::DELIVER_AT, us),
    };
    let mut fixed = [0u8; 16];
    fixed[..4].copy_from_slice(&(len as u32).to_le_bytes());
    fixed[4] = item.priority;
    fixed[5] = deliver
        | if item.backoff.is_some() { tag::HAS_BACKOFF } else { 0 }
        | if item.options.is_some() { tag::HAS_OPTIONS } else { 0 };
    fixed[6..8].copy_from_slice(&item.max_attempts.to_le_bytes());
    fixed[8..].copy_from_slice(&time.to_le_bytes());
    if deliver == tag::DELIVER_NOW {
        sink.body(&fixed[..8]);
    } else {
        sink.body(&fixed);
    }
    if item.backoff.is_some() || item.options.is_some() {
        encode_optional(item, sink);
    }
}

/// Fields that few items have.
#[inline(never)]
fn encode_optional(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    if let Some(backoff) = &item.backoff {
        sink.body(&backoff.bytes());
    }
    if let Some(options) = item.options {
        write_options(sink, options);
    }
}
