//! The layout of a message to send: fields of a fixed length, those that few have, and the steps that it
//! carries, each of which holds an item of its own.

use crate::blob::BlobHead;
use crate::command::{Deliver, RecordSink, SendItem};
use crate::item::{Chain, Steps};
use crate::limits::{ATTEMPTS_MAX, PRIORITY_MAX};
use crate::queue::record::Gathered;
use crate::queue::record::options::write_options;
use crate::settings::Backoff;
use crate::wire::{Put, Reader};

/// The flags of an item.
mod tag {
    pub(super) const DELIVER_NOW: u8 = 0;
    pub(super) const DELIVER_AFTER: u8 = 1;
    pub(super) const DELIVER_AT: u8 = 2;
    pub(super) const DELIVER_MASK: u8 = 3;
    pub(super) const HAS_BACKOFF: u8 = 4;
    pub(super) const HAS_OPTIONS: u8 = 8;
}

/// An item as it lies in a record.
#[derive(Clone, Copy)]
pub(crate) struct SendItemRecord<'a> {
    pub(crate) blob_len: u32,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u16,
    pub(crate) deliver: Deliver,
    pub(crate) backoff: Option<Backoff>,
    /// Bytes that [`crate::queue::record::options::read_options`] reads; decoding the record has seen that it
    /// can.
    pub(crate) options: Option<&'a [u8]>,
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
    /// True if it says nothing that has to be looked at before it is ready.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        let sound = self.priority <= PRIORITY_MAX && self.max_attempts <= ATTEMPTS_MAX;
        sound & (self.deliver == Deliver::Now) & self.backoff.is_none() & self.options.is_none()
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
    let Some(options) = item.options else { return };
    let mut given = Vec::new();
    let chain = match options.chain {
        Chain::None => None,
        Chain::Laid(laid) => Some(laid),
        Chain::Given(steps) => {
            given.reserve(256);
            write_chain(&mut given, steps);
            Some(given.as_slice())
        }
    };
    write_options(sink, options, chain);
}

/// Appends the steps that an item carries: whether there is one for its failure, which comes first then, and
/// the others in order. Each has its length before it, so that the first one can be taken off.
pub(crate) fn write_chain(out: &mut Vec<u8>, steps: &Steps<'_>) {
    out.bool(steps.on_failure.is_some());
    for step in steps.all() {
        let start = out.len();
        out.u16(0);
        out.bool(step.own_payload);
        out.name(step.queue);
        let headers = out.len();
        out.u16(0);
        if !step.own_payload {
            for (name, value) in step.item.headers {
                out.bytes16(name.as_bytes());
                out.bytes16(value.as_bytes());
            }
        }
        set_length(out, headers);
        let mut item = Gathered(Vec::with_capacity(64));
        encode_send_item(&step.item, &mut item);
        out.raw(&item.0);
        set_length(out, start);
    }
}

/// Writes how much follows into the two bytes at `start`.
fn set_length(out: &mut [u8], start: usize) {
    let len = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&len.to_le_bytes());
}
