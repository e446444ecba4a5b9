//! The layout of a send: a head, the queue and the key, then the items.

use crate::command::{RecordSink, Send};
use crate::id::{BlobRef, NamespaceId};
use crate::item::SendOptions;
use crate::layout::{u32_at, u64_at};
use crate::queue::record::chain::{step_blobs, write_blobs};
use crate::queue::record::item::{SendItemRecord, encode_send_item, read_send_item, send_blob};
use crate::queue::record::options::{are_options, read_options};
use crate::wire::Reader;

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
    /// True if there are items, and none has more than a priority and a number of attempts, both within their
    /// limits.
    pub(crate) are_plain: bool,
    items: Reader<'a>,
}

#[inline(always)] // Transactions read sends as well, and a call costs each send some 90 instructions.
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
        if item.options.is_some_and(|options| !are_options(options)) {
            return None;
        }
    }
    let namespace = NamespaceId(u32_at(head, 0));
    let request_digest = u64_at(head, 4);
    Some(SendRecord { namespace, queue, idempotency_key, request_digest, count, bytes, are_plain, items })
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
        let steps = step_blobs(index, self.count, self.items());
        let of_items = (0u32..).zip(self.items());
        of_items.map(move |(item, send)| BlobRef { index, item, len: send.blob_len }).chain(steps)
    }
}

/// The options of the items of one send. Most sends have one item: so those of the first are read once, those
/// of others each time that they are asked for.
pub(crate) struct ItemOptions<'a> {
    first: Option<SendOptions<'a>>,
}

impl<'a> ItemOptions<'a> {
    pub(crate) fn of(send: &SendRecord<'a>) -> Self {
        ItemOptions { first: send.items().next().and_then(|item| item.options).and_then(read_options) }
    }

    /// The options of the item at this place, if it has any; `place`: where they may lie meanwhile.
    #[inline]
    pub(crate) fn get<'o>(
        &'o self,
        at: u32,
        item: &SendItemRecord<'a>,
        place: &'o mut Option<SendOptions<'a>>,
    ) -> Option<&'o SendOptions<'a>> {
        if at == 0 {
            return self.first.as_ref();
        }
        *place = item.options.and_then(read_options);
        place.as_ref()
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
