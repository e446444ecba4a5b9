//! The steps of a message, as they lie among its options: whether there is one for its failure, which comes
//! first then, and the others in order. Each has its length before it, so that the first one can be taken
//! off.

use crate::command::{RecordSink, SendItem};
use crate::error::Error;
use crate::id::BlobRef;
use crate::item::{CHAIN_BYTES_MAX, Chain, STEPS_MAX, Step, Steps};
use crate::limits::Limits;
use crate::queue::schedule::record::Gathered;
use crate::queue::send::check::check_send_item;
use crate::queue::send::options::read_options;
use crate::queue::send::record::{SendItemRecord, encode_send_item, read_send_item, send_blob};
use crate::rules::{at_most, invalid, name_rule};
use crate::wire::{Put, Reader};

/// One step as it lies in a record, and in the state.
#[derive(Clone, Copy)]
pub(crate) struct StepRecord<'a> {
    pub(crate) own_payload: bool,
    pub(crate) queue: &'a str,
    /// Headers of a step without a payload of its own: see [`read_headers`].
    pub(crate) headers: &'a [u8],
    pub(crate) item: SendItemRecord<'a>,
}

fn all<'s>(steps: &'s Steps<'_>) -> impl Iterator<Item = &'s Step<'s>> {
    steps.on_failure.into_iter().chain(steps.steps)
}

pub(crate) fn write_chain(out: &mut Vec<u8>, steps: &Steps<'_>) {
    out.bool(steps.on_failure.is_some());
    for step in all(steps) {
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

/// The steps of an item whose payloads are blobs of its record.
fn with_payload<'s>(item: &'s SendItem<'_>) -> impl Iterator<Item = &'s Step<'s>> {
    let steps = match item.options.map(|options| options.chain) {
        Some(Chain::Given(steps)) => Some(steps),
        _ => None,
    };
    steps.into_iter().flat_map(all).filter(|step| step.own_payload)
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

/// What follows a failure, then the other steps, each as it lies there; `None`: they were not written by
/// [`write_chain`].
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

/// Checks steps; returns the bytes of their payloads and headers.
pub(crate) fn check_chain(steps: &Steps<'_>, prefix: &str, limits: &Limits) -> Result<u64, Error> {
    at_most(&format!("{prefix}chain steps"), steps.steps.len() as u64, STEPS_MAX as u64)?;
    if steps.steps.is_empty() && steps.on_failure.is_none() {
        return Err(invalid(format!("{prefix}chain"), "it has no steps: leave it out".into()));
    }
    let mut bytes = 0;
    for (at, step) in steps.steps.iter().enumerate() {
        bytes += check_step(step, &format!("{prefix}chain[{at}]."), limits)?;
    }
    if let Some(step) = steps.on_failure {
        bytes += check_step(step, &format!("{prefix}on_failure."), limits)?;
    }
    let mut laid = Vec::with_capacity(256);
    write_chain(&mut laid, steps);
    at_most(&format!("{prefix}chain bytes beside payloads"), laid.len() as u64, CHAIN_BYTES_MAX as u64)?;
    Ok(bytes)
}

fn check_step(step: &Step<'_>, prefix: &str, limits: &Limits) -> Result<u64, Error> {
    name_rule("queue", step.queue)?;
    let item = &step.item;
    let options = item.options.copied().unwrap_or_default();
    for (field, given, reason) in [
        ("unique", options.unique.is_some(), "the duplicate of another message cannot go on with a chain"),
        ("depends_on", options.depends_on.is_some(), "a step waits for the one before it and no other"),
        ("chain", options.chain != Chain::None, "a step has none of its own"),
        ("content_type", !step.own_payload && !item.content_type.is_empty(), OF_THE_RESULT),
        ("tags", !step.own_payload && !item.tags.is_empty(), "they are kept with a payload, and it has none"),
    ] {
        if given {
            return Err(invalid(format!("{prefix}{field}"), format!("{reason}: leave it out")));
        }
    }
    check_send_item(item, prefix, limits)
}

const OF_THE_RESULT: &str = "it comes with the payload, which is the result of the step before";
