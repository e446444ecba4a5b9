//! The steps of a message as they lie among its options: reading them, one after the other, and their blobs.

use crate::command::{RecordSink, SendItem};
use crate::id::BlobRef;
use crate::item::{Chain, Step, Steps};
use crate::queue::record::item::{SendItemRecord, read_send_item, send_blob};
use crate::queue::record::options::read_options;
use crate::wire::Reader;

/// One step as it lies in a record, and in the state.
#[derive(Clone, Copy)]
pub(crate) struct StepRecord<'a> {
    pub(crate) own_payload: bool,
    pub(crate) queue: &'a str,
    /// Headers of a step without a payload of its own: see [`read_headers`].
    pub(crate) headers: &'a [u8],
    pub(crate) item: SendItemRecord<'a>,
}

/// The steps of an item whose payloads are blobs of its record.
fn with_payload<'s>(item: &'s SendItem<'_>) -> impl Iterator<Item = &'s Step<'s>> {
    let steps = match item.options.map(|options| options.chain) {
        Some(Chain::Given(steps)) => Some(steps),
        _ => None,
    };
    steps.into_iter().flat_map(Steps::all).filter(|step| step.own_payload)
}

/// Number of blobs of the steps of an item.
pub(crate) fn blob_count(item: &SendItem<'_>) -> u32 {
    if item.options.is_none() { 0 } else { with_payload(item).count() as u32 }
}

/// The blobs of the steps of an item. They follow those of all items.
pub(crate) fn write_blobs(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    if item.options.is_some() {
        with_payload(item).for_each(|step| send_blob(&step.item, sink));
    }
}

/// Splits a chain into the step for a failure and the other steps, each as it lies there; `None`: they were
/// not written by [`crate::queue::record::item::write_chain`].
pub(crate) fn split_chain(laid: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(laid);
    if !reader.bool()? {
        return Some((&[], &laid[1..]));
    }
    let len = 2 + reader.bytes16()?.len();
    laid.get(1..)?.split_at_checked(len)
}

/// Takes the first of some steps.
pub(crate) fn read_step<'a>(reader: &mut Reader<'a>) -> Option<StepRecord<'a>> {
    let mut fields = Reader::new(reader.bytes16()?);
    let (own_payload, queue) = (fields.bool()?, fields.name()?);
    let headers = fields.bytes16()?;
    let item = read_send_item(&mut fields)?;
    if let Some(options) = item.options {
        read_options(options)?;
    }
    fields.end()?;
    Some(StepRecord { own_payload, queue, headers, item })
}

/// All of some steps, as far as they can be read.
pub(crate) fn read_steps(laid: &[u8]) -> impl Iterator<Item = StepRecord<'_>> {
    let mut reader = Reader::new(laid);
    std::iter::from_fn(move || read_step(&mut reader))
}

/// The step for a failure, if there is one, and the other steps of an item as it lies in a record.
fn steps_of<'a>(item: &SendItemRecord<'a>) -> impl Iterator<Item = StepRecord<'a>> + use<'a> {
    let laid = match item.options.and_then(read_options).map(|options| options.chain) {
        Some(Chain::Laid(laid)) => laid.get(1..).unwrap_or_default(),
        _ => &[],
    };
    read_steps(laid)
}

/// The blobs of the steps of all items of a record: from `first` on, which is how many items there are.
pub(crate) fn step_blobs<'a>(
    index: u64,
    first: u32,
    items: impl Iterator<Item = SendItemRecord<'a>>,
) -> impl Iterator<Item = BlobRef> {
    let own = items.flat_map(|item| steps_of(&item)).filter(|step| step.own_payload);
    (first..).zip(own).map(move |(item, step)| BlobRef { index, item, len: step.item.blob_len })
}

/// Names and values of the headers of a step.
pub(crate) fn read_headers(laid: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let mut reader = Reader::new(laid);
    std::iter::from_fn(move || {
        let (name, value) = (reader.bytes16()?, reader.bytes16()?);
        Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?))
    })
}

/// Sees that all steps can be read.
pub(crate) fn chain_is_sound(laid: &[u8]) -> bool {
    let Some((on_failure, steps)) = split_chain(laid) else { return false };
    [on_failure, steps].into_iter().all(|laid| {
        let mut reader = Reader::new(laid);
        while !reader.is_empty() {
            if read_step(&mut reader).is_none() {
                return false;
            }
        }
        true
    })
}
