//! The layout of a group: as that of a send, with a queue before each item, and the callback as the last one.

use crate::command::{Group, QueueItem, RecordSink};
use crate::id::{BlobRef, NamespaceId};
use crate::queue::record::chain;
use crate::queue::record::item::{SendItemRecord, encode_send_item, read_send_item, send_blob};
use crate::queue::record::options::read_options;
use crate::queue::record::send::SendRecord;
use crate::wire::{Put, Reader};

fn items<'g>(group: &'g Group<'_>) -> impl Iterator<Item = &'g QueueItem<'g>> {
    group.members.iter().chain(std::iter::once(group.callback))
}

pub(crate) fn encode(first: [u8; 2], group: &Group<'_>, sink: &mut impl RecordSink) {
    let mut head = Vec::with_capacity(64);
    head.raw(&first);
    head.u32(group.namespace.0);
    head.u64(group.request_digest);
    head.bytes16(group.idempotency_key);
    head.u32(group.members.len() as u32 + 1);
    sink.body(&head);
    for QueueItem { queue, item } in items(group) {
        sink.body(&[queue.len() as u8]);
        sink.body(queue.as_bytes());
        encode_send_item(item, sink);
    }
    items(group).for_each(|queue_item| send_blob(&queue_item.item, sink));
    items(group).for_each(|queue_item| chain::write_blobs(&queue_item.item, sink));
}

pub(crate) fn blob_count(group: &Group<'_>) -> u32 {
    items(group).map(|queue_item| 1 + chain::blob_count(&queue_item.item)).sum()
}

/// Messages in several queues, of which the last follows the others.
#[derive(Clone, Copy)]
pub(crate) struct GroupRecord<'a> {
    pub(crate) namespace: NamespaceId,
    request_digest: u64,
    idempotency_key: &'a [u8],
    /// The callback included.
    pub(crate) count: u32,
    items: Reader<'a>,
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Option<GroupRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let (request_digest, idempotency_key) = (reader.u64()?, reader.bytes16()?);
    let count = reader.u32()?;
    let items = *reader;
    for _ in 0..count {
        reader.name()?;
        if let Some(options) = read_send_item(reader)?.options {
            read_options(options)?;
        }
    }
    (count > 0).then_some(GroupRecord { namespace, request_digest, idempotency_key, count, items })
}

impl<'a> GroupRecord<'a> {
    /// Queues and items; the callback comes last.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&'a str, SendItemRecord<'a>)> + use<'a> {
        let mut reader = self.items;
        (0..self.count).map_while(move |_| Some((reader.name()?, read_send_item(&mut reader)?)))
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> impl Iterator<Item = BlobRef> + use<'a> {
        let steps = chain::step_blobs(index, self.count, self.items().map(|(_, item)| item));
        let of_items = (0u32..).zip(self.items());
        of_items.map(move |(item, (_, send))| BlobRef { index, item, len: send.blob_len }).chain(steps)
    }

    /// The head of a send to a queue that has this one's key.
    pub(crate) fn head(&self, queue: &'a str) -> SendRecord<'a> {
        SendRecord::head(self.namespace, queue, self.idempotency_key, self.request_digest, self.count)
    }
}
