//! Layouts of schedule records. The message of a schedule is laid out like the item of a send.

use crate::blob::BlobHead;
use crate::command::{RecordSink, ScheduleFire, SchedulePut, SendItem};
use crate::core::field::{ReadField, WriteField};
use crate::id::NamespaceId;
use crate::item::SendOptions;
use crate::query::MessageTemplate;
use crate::queue::record::Gathered;
use crate::queue::record::item::{SendItemRecord, encode_send_item, read_send_item};
use crate::queue::record::options::read_options;
use crate::wire::{Put, Reader};

/// A schedule as it was put.
#[derive(Clone, Copy)]
pub(crate) struct SchedulePutRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) schedule: &'a str,
    pub(crate) queue: &'a str,
    pub(crate) next_at_us: u64,
    pub(crate) spec: &'a [u8],
    /// The bytes of `item`, as they lie in the record.
    pub(crate) template: &'a [u8],
    pub(crate) item: SendItemRecord<'a>,
}

pub(crate) fn encode_put(first: [u8; 2], put: &SchedulePut<'_>, sink: &mut impl RecordSink) {
    let mut template = Gathered(Vec::with_capacity(64));
    encode_send_item(put.item, &mut template);
    let mut body = Vec::with_capacity(192);
    body.raw(&first);
    body.u32(put.namespace.0);
    body.name(put.schedule);
    body.name(put.queue);
    body.u64(put.next_at_us);
    body.bytes16(put.spec);
    body.bytes16(&template.0);
    sink.body(&body);
    let item = put.item;
    BlobHead::with(item.content_type, item.headers, item.tags, |head| sink.blob(&[head, item.payload]));
}

pub(crate) fn decode_put<'a>(reader: &mut Reader<'a>) -> Option<SchedulePutRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let (schedule, queue) = (reader.name()?, reader.name()?);
    let (next_at_us, spec, template) = (reader.u64()?, reader.bytes16()?, reader.bytes16()?);
    let item = read_template(template)?;
    Some(SchedulePutRecord { namespace, schedule, queue, next_at_us, spec, template, item })
}

/// Reads the item that a schedule sends, and sees that its options can be read.
pub(crate) fn read_template(template: &[u8]) -> Option<SendItemRecord<'_>> {
    let mut reader = Reader::new(template);
    let item = read_send_item(&mut reader)?;
    if let Some(options) = item.options {
        read_options(options)?;
    }
    reader.is_empty().then_some(item)
}

pub(crate) fn encode_fire(fire: &ScheduleFire, out: &mut Vec<u8>) {
    out.u64(fire.number);
    out.u64(fire.instant_us);
    out.bool(fire.send);
    out.u64(fire.next_at_us);
}

pub(crate) fn decode_fire(reader: &mut Reader<'_>) -> Option<ScheduleFire> {
    Some(ScheduleFire {
        number: reader.u64()?,
        instant_us: reader.u64()?,
        send: reader.bool()?,
        next_at_us: reader.u64()?,
    })
}

impl MessageTemplate {
    /// The fields, without content type, headers and payload, which lie in the blob; and the optional ones.
    pub fn fields(&self) -> (SendItem<'static>, SendOptions<'_>) {
        let read = read_template(&self.bytes);
        let options = read.and_then(|item| item.options).and_then(read_options).unwrap_or_default();
        let item = read.map_or_else(SendItem::default, |item| SendItem {
            priority: item.priority,
            deliver: item.deliver,
            max_attempts: item.max_attempts,
            backoff: item.backoff,
            ..SendItem::default()
        });
        (item, options)
    }
}

impl WriteField for ScheduleFire {
    fn write(&self, out: &mut Vec<u8>) {
        encode_fire(self, out);
    }
}

impl<'a> ReadField<'a> for ScheduleFire {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        decode_fire(reader)
    }
}
