//! Streams of events and of changes over HTTP: server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::io;
use std::io::Write as _;

use bytes::Bytes;
use http::HeaderValue;
use http::header::HeaderName;
use http::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_calls::documents::watch::{Placed, Wanted as WantedDocuments, Watch as OfDocuments};
use sluice_calls::events::{EventPosition, Gap, Told, Wanted, read_position};
use sluice_calls::locks::watch::{Event as LockEvent, Wanted as WantedLock, Watch as OfLock};
use sluice_calls::statistics::{Event as StatisticsEvent, Wanted as WantedStatistics, Watch as OfStatistics};
use sluice_calls::{CallError, Fault};
use tokio::sync::mpsc::Receiver;

use super::codec::query_de::from_query;
use super::route::call::Call;
use crate::changes;
use crate::events::{Form, open, write_gap, write_told};
use crate::json::{Object, object};
use crate::net::body::Body;
use crate::net::respond;

/// Time after which a client that was cut off reconnects, in milliseconds.
const RETRY_MS: u64 = 2_000;
/// The field in which browsers say where they were.
const LAST_EVENT_ID: &str = "last-event-id";

/// Answers with the events of a namespace or a queue, as they happen.
pub(super) async fn stream<R>(call: &Call<'_>) -> Result<Response<Body>, CallError>
where
    R: DeserializeOwned + TryInto<Wanted, Error = Box<Fault>>,
{
    let request: R = from_query(call.head.uri.query(), false)?;
    let mut wanted: Wanted = request.try_into()?;
    if let Some(id) = last_event(call) {
        wanted.after = Some(read_position(id).map_err(of_last_event)?);
    }
    let pieces = open(call.context, &call.in_flight.share, &call.permit, wanted, ServerSent).await?;
    Ok(streamed(pieces))
}

/// Answers with the documents of a namespace as they are, and each change from then on.
pub(super) async fn documents(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let mut wanted: WantedDocuments = from_query(call.head.uri.query(), false)?;
    if let Some(id) = last_event(call) {
        wanted.set_last_event(id).map_err(of_last_event)?;
    }
    let source = OfDocuments::new(&call.permit, &wanted)?;
    Ok(streamed(changes::open(call.context, &call.in_flight.share, source, ServerSent).await?))
}

/// Answers with a lock as it is, and again after each change.
pub(super) async fn lock(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let WantedLock {} = from_query(call.head.uri.query(), false)?;
    let source = OfLock::new(&call.permit)?;
    Ok(streamed(changes::open(call.context, &call.in_flight.share, source, ServerSent).await?))
}

/// Answers with the figures of a namespace or a queue, and again each second.
pub(super) async fn statistics(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let wanted: WantedStatistics = from_query(call.head.uri.query(), false)?;
    let source = OfStatistics::new(&call.permit, &wanted)?;
    Ok(streamed(changes::open(call.context, &call.in_flight.share, source, ServerSent).await?))
}

/// The id of the last event that came. A browser calls again with the address that it was given and, in this
/// field, where it was.
fn last_event<'c>(call: &'c Call<'_>) -> Option<&'c [u8]> {
    let value = call.head.headers.get(LAST_EVENT_ID)?;
    Some(value.as_bytes()).filter(|id| !id.is_empty())
}

fn of_last_event(fault: Box<Fault>) -> Box<Fault> {
    fault.inside("Last-Event-ID")
}

fn streamed(pieces: Receiver<io::Result<Bytes>>) -> Response<Body> {
    let mut response = respond::streamed("text/event-stream", Body::stream(pieces));
    // A proxy that gathers answers would hold events back; nginx and others know this word.
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), no);
    response
}

/// Server-sent events: lines of fields, and an empty one behind each event.
struct ServerSent;

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

impl changes::Form<Placed> for ServerSent {
    fn event(&self, out: &mut Vec<u8>, Placed { position, event }: &Placed) {
        if let Some(position) = position {
            line(out, format_args!("id: {position}"));
        }
        let name = match &event.change {
            Some(change) => Some(if change.is_gone() { "gone" } else { "written" }),
            None => event.current.map(|_| "current"),
        };
        serialized(out, name, event);
    }
}

impl changes::Form<LockEvent> for ServerSent {
    fn event(&self, out: &mut Vec<u8>, event: &LockEvent) {
        serialized(out, event.lock.as_ref().map(|_| "lock"), event);
    }
}

impl changes::Form<StatisticsEvent> for ServerSent {
    fn event(&self, out: &mut Vec<u8>, event: &StatisticsEvent) {
        serialized(out, (!event.is_empty()).then_some("statistics"), event);
    }
}

/// An event with a name; without one only that the stream goes on.
fn serialized(out: &mut Vec<u8>, name: Option<&str>, event: &impl Serialize) {
    let Some(name) = name else { return line(out, format_args!(": still here\n")) };
    line(out, format_args!("event: {name}"));
    out.extend_from_slice(b"data: ");
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *out, event);
    out.extend_from_slice(b"\n\n");
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
