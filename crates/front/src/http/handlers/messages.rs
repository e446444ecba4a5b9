//! Looking at messages without taking them.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::{Right, Target};
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::id::MessageId;
use sluice_engine::query::{Attempt, AttemptEnd, Changed, Page, State};
use sluice_node::Stored;

use super::changes::version_text;
use super::consumers::write_holder;
use crate::http::codec::message::{write_checkpoint, write_payload, write_request, write_tags};
use crate::http::codec::message::{write_content, write_progress, write_times};
use crate::http::codec::query::integer;
use crate::http::codec::settings::write_backoff;
use crate::http::route::call::Call;
use crate::json::{Fault, Object, Read, more_fields, object};
use crate::net::body::Body;
use crate::net::options::FIELDS_BYTES;
use crate::net::respond;

/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["state", "cursor", "limit", "payload"];
/// Parameters of peek.
pub(crate) const PEEK_PARAMS: &[&str] = &["limit"];
/// Parameters of one message.
pub(crate) const SHOW_PARAMS: &[&str] = &["payload"];
/// Parameters of the list of dead letters.
pub(crate) const DEAD_PARAMS: &[&str] = &["cursor", "limit", "payload"];
/// Names of states.
pub(crate) const STATES: &[&str] = &["delayed", "ready", "leased", "held", "dead", "blocked", "done"];

const PAGE_MAX: u64 = 1_000;
const PAGE_DEFAULT: u64 = 100;
const PEEK_MAX: u64 = 100;
const PEEK_DEFAULT: u64 = 10;
/// Messages that are loaded at once with their histories, whose texts no size tells beforehand.
const SLICE: usize = 64;

/// `GET P/messages/{id}`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let payload = call.query()?.boolean("payload", true)?;
    let id: MessageId = call.name.parse()?;
    // A message of another namespace is as good as none: ids must not be a way around namespaces.
    if id.namespace != call.namespace_id()? {
        return Err(Error::MessageNotFound { id: id.to_string() }.into());
    }
    call.allow_messages(Right::Observe, std::iter::once(id)).await?;
    call.room_for(1)?;
    let stored = call.node().message(id, payload).await?;
    let mut out = Vec::with_capacity(512);
    let receipt = shows_receipt(call, &stored.queue);
    object(&mut out, |o| write_stored(o, &stored, receipt));
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/queues/{queue}/messages`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let state = match params.text("state") {
        None => None,
        Some(text) => Some(read_state(text).map_err(|fault| fault.inside("state"))?),
    };
    let payload = params.boolean("payload", false)?;
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    page(call, state, read_cursor(params.text("cursor"))?, limit, payload).await
}

/// `GET P/queues/{queue}/dead`
pub(crate) async fn dead(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let payload = params.boolean("payload", true)?;
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    page(call, Some(State::Dead), read_cursor(params.text("cursor"))?, limit, payload).await
}

/// `GET P/queues/{queue}/peek`
pub(crate) async fn peek(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let limit = call.query()?.integer("limit", 1, PEEK_MAX, PEEK_DEFAULT)? as usize;
    let bytes_max = call.room_for(limit)?;
    let (messages, truncated) =
        call.node().peek(call.namespace_id()?, call.name, limit, bytes_max as u64).await?;
    let mut page = PageWriter::new(call);
    messages.iter().for_each(|stored| page.push(stored));
    Ok(page.finish(|o| {
        if truncated {
            o.boolean("truncated", true);
        }
    }))
}

async fn page(
    call: &Call<'_>,
    state: Option<State>,
    cursor: Option<u64>,
    limit: usize,
    payload: bool,
) -> Result<Response<Body>, CallError> {
    let namespace = call.namespace_id()?;
    let look = async |cursor, limit, payload| {
        call.node().messages(namespace, call.name, state, cursor, limit, payload).await
    };
    let mut page = PageWriter::new(call);
    let mut next = cursor;
    if payload {
        let bytes_max = call.room_for(limit)?;
        while page.count < limit {
            // The sizes first: large payloads are not even loaded when the page has no room for them.
            let asked = SLICE.min(limit - page.count);
            let mut found = look(next, asked, false).await?;
            let all = found.items.len();
            let fit = fitting(&found, bytes_max.saturating_sub(page.out.len()));
            if fit == 0 && page.count > 0 && all > 0 {
                break;
            }
            if all > 0 {
                let most = if fit == all { asked } else { fit.max(1) };
                found = look(next, most, true).await?;
            }
            found.items.iter().for_each(|stored| page.push(stored));
            next = found.next;
            if next.is_none() || fit < all || all < asked {
                break;
            }
        }
    } else {
        call.in_flight.share.reserve(limit * FIELDS_BYTES)?;
        let found = look(next, limit, false).await?;
        found.items.iter().for_each(|stored| page.push(stored));
        next = found.next;
    }
    Ok(page.finish(|o| {
        if let Some(next) = next {
            o.text("next", &next.to_string());
        }
    }))
}

/// How many messages of a page have at most so many bytes together.
fn fitting(page: &Page<Stored>, bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fit = page.items.iter().take_while(|stored| {
        bytes += stored.view.blob.len as usize;
        bytes <= bytes_max
    });
    fit.count()
}

/// A page that is being written.
struct PageWriter {
    out: Vec<u8>,
    count: usize,
    /// Whether messages are shown with their receipts.
    receipts: bool,
}

impl PageWriter {
    /// Of messages of the queue in the path.
    fn new(call: &Call<'_>) -> PageWriter {
        PageWriter { out: br#"{"messages":["#.to_vec(), count: 0, receipts: shows_receipt(call, call.name) }
    }

    fn push(&mut self, stored: &Stored) {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.count += 1;
        object(&mut self.out, |o| write_stored(o, stored, self.receipts));
    }

    /// Ends the list; `fields` writes what stands beside it.
    fn finish(mut self, fields: impl FnOnce(&mut Object<'_>)) -> Response<Body> {
        self.out.push(b']');
        more_fields(&mut self.out, fields);
        respond::json(StatusCode::OK, self.out)
    }
}

fn read_state(text: &str) -> Read<State> {
    State::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| Fault::one_of(STATES, text))
}

pub(crate) fn read_cursor(text: Option<&str>) -> Read<Option<u64>> {
    match text {
        None => Ok(None),
        Some(text) => match integer(text, 0, u64::MAX) {
            Ok(cursor) => Ok(Some(cursor)),
            Err(_) => Err(Fault::invalid("expected the value of next from the page before").inside("cursor")),
        },
    }
}

/// Whether the caller may see receipts of a queue: who may not settle with one has no use for the secret.
fn shows_receipt(call: &Call<'_>, queue: &str) -> bool {
    call.caller.may(Right::Receive, Target::Queue(call.namespace_name(), queue)).is_ok()
}

fn write_stored(o: &mut Object<'_>, stored: &Stored, receipt: bool) {
    let view = &stored.view;
    o.ascii("id", &view.id.to_text());
    o.text("queue", &stored.queue);
    o.text("state", view.state.name());
    o.number("priority", u64::from(view.priority));
    o.number("attempts", u64::from(view.attempts));
    o.number("max_attempts", u64::from(view.max_attempts));
    o.number("deliveries", u64::from(view.deliveries));
    o.number("sent_at_ms", view.sent_at_us / 1_000);
    if let Some(at_us) = view.deadline_us {
        o.number("deadline_ms", at_us / 1_000);
    }
    if let Some(receipt) = view.receipt.as_ref().filter(|_| receipt) {
        o.ascii("receipt", &receipt.to_text());
    }
    for (name, key) in [
        ("ordering_key", &view.ordering_key),
        ("fair_key", &view.fair_key),
        ("limit_key", &view.limit_key),
        ("unique_key", &view.unique_key),
    ] {
        if !key.is_empty() {
            o.text(name, &String::from_utf8_lossy(key));
        }
    }
    if let Some(end_us) = view.expires_at_us {
        o.number("expires_at_ms", end_us / 1_000);
    }
    if let Some(blocked_by) = view.blocked_by {
        o.text("blocked_by", blocked_by);
    }
    if let Some(holder) = &view.holder {
        write_holder(o, holder);
    }
    if !view.from_queue.is_empty() {
        o.text("from_queue", &view.from_queue);
    }
    if let Some(reason) = view.reason {
        o.text("reason", reason);
    }
    if let Some(at_us) = view.reason_at_us {
        o.number("reason_at_ms", at_us / 1_000);
    }
    if view.cancelled {
        o.boolean("cancelled", true);
    }
    o.text("version", &version_text(view.version));
    write_backoff(o, &view.backoff);
    if let Some(blob) = &stored.blob {
        write_payload(o, blob);
    }
    if stored.damaged {
        o.boolean("payload_damaged", true);
    }
    let tagged = stored.tags.as_ref().or(stored.blob.as_ref()).and_then(|blob| MessageBlob::parse(blob));
    if let Some(blob) = tagged {
        write_tags(o, blob.tags());
    }
    write_request(o, &view.correlation_id, &view.reply_to);
    if let Some(progress) = &view.progress {
        write_progress(o, progress.percent, stored.note.as_deref(), progress.at_us);
    }
    if let Some(checkpoint) = &stored.checkpoint {
        write_checkpoint(o, checkpoint);
    }
    if let Some(result) = &stored.result {
        write_content(o, ["result", "result_base64", "result_content_type"], result);
    }
    write_times(o, view.done_at_us, view.kept_until_us);
    o.number("size_bytes", u64::from(view.blob.len));
    o.list("history", view.history.iter().enumerate(), |out, (at, attempt)| {
        let error = stored.errors.get(at).and_then(Option::as_deref);
        object(out, |o| write_attempt(o, attempt, error));
    });
    if !view.changes.is_empty() {
        o.list("changes", view.changes.iter().zip(&stored.notes), |out, (changed, note)| {
            object(out, |o| write_changed(o, changed, note.as_deref()));
        });
    }
}

fn write_changed(o: &mut Object<'_>, changed: &Changed, note: Option<&[u8]>) {
    o.text("change", changed.verb.name());
    o.number("at_ms", changed.at_us / 1_000);
    let Some(note) = note.and_then(MessageBlob::parse) else { return };
    for (name, value) in note.headers().filter(|(_, value)| !value.is_empty()) {
        o.foreign(name, value);
    }
}

fn write_attempt(o: &mut Object<'_>, attempt: &Attempt, error: Option<&str>) {
    let end = match attempt.end {
        AttemptEnd::Nacked => "nacked",
        AttemptEnd::Released => "released",
        AttemptEnd::Rejected => "rejected",
        AttemptEnd::Expired => "expired",
    };
    o.number("attempt", u64::from(attempt.number));
    o.text("end", end);
    o.number("started_at_ms", attempt.started_at_us / 1_000);
    o.number("ended_at_ms", attempt.ended_at_us / 1_000);
    if let Some(error) = error {
        o.text("error", error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_cursors_are_checked() {
        for (name, state) in STATES.iter().zip(State::ALL) {
            assert_eq!(read_state(name).unwrap(), state);
        }
        assert!(read_state("gone").unwrap_err().reason.starts_with("expected one of delayed, ready"));
        assert_eq!(read_cursor(Some("17")).unwrap(), Some(17));
        assert_eq!(read_cursor(Some("x")).unwrap_err().field, "cursor");
    }
}
