//! Events as JSON, and as server-sent events.

use std::io::Write as _;

use sluice_node::{EventPosition, Gap, Told, ToldDetail};

use super::Form;
use crate::json::{Object, object};

/// How long a client that was cut off waits before it calls again, in milliseconds.
const RETRY_MS: u64 = 2_000;

/// Appends the fields of an event.
pub(crate) fn write_told(o: &mut Object<'_>, told: &Told) {
    o.text("type", told.kind.name());
    o.number("at_ms", told.at_us / 1_000);
    o.text("queue", &told.queue);
    if let Some(id) = told.id {
        o.ascii("id", &id.to_text());
    }
    if told.attempt > 0 {
        o.number("attempt", told.attempt.into());
    }
    match &told.detail {
        ToldDetail::None => {}
        ToldDetail::Until(until_us) => o.number("ready_at_ms", until_us / 1_000),
        ToldDetail::Lease(until_us, consumer) => {
            o.number("lease_until_ms", until_us / 1_000);
            if let Some(consumer) = consumer {
                o.text("consumer", &consumer.0.to_string());
            }
        }
        ToldDetail::Why(why) => o.text("reason", why),
        ToldDetail::From(from) => o.text("from_queue", from),
        ToldDetail::Many(messages, why) => {
            o.text("reason", why);
            o.number("messages", *messages);
        }
    }
}

/// Appends the fields of a gap.
pub(crate) fn write_gap(o: &mut Object<'_>, gap: &Gap) {
    o.text("type", "gap");
    o.text("reason", gap.why.name());
    if let Some(lost) = gap.lost {
        o.number("lost", lost);
    }
}

/// Server-sent events: lines of fields, and an empty one behind each event.
pub(super) struct ServerSent;

impl Form for ServerSent {
    fn begin(&self, out: &mut Vec<u8>, at: EventPosition) {
        line(out, format_args!("retry: {RETRY_MS}"));
        line(out, format_args!("id: {at}\n"));
    }

    fn event(&self, out: &mut Vec<u8>, at: EventPosition, told: &Told) {
        named(out, at, told.kind.name(), |o| write_told(o, told));
    }

    fn gap(&self, out: &mut Vec<u8>, at: EventPosition, gap: &Gap) {
        named(out, at, "gap", |o| write_gap(o, gap));
    }

    fn still_here(&self, out: &mut Vec<u8>, at: EventPosition) {
        line(out, format_args!(": still here"));
        line(out, format_args!("id: {at}\n"));
    }
}

/// JSON has no line breaks, so an event has one line of data.
fn named(out: &mut Vec<u8>, at: EventPosition, name: &str, fields: impl FnOnce(&mut Object<'_>)) {
    line(out, format_args!("id: {at}"));
    line(out, format_args!("event: {name}"));
    out.extend_from_slice(b"data: ");
    object(out, fields);
    out.extend_from_slice(b"\n\n");
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = writeln!(out, "{text}");
}
