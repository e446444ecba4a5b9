//! Changing many messages in the background.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_engine::NamespaceId;
use sluice_engine::change::Verb;
use sluice_engine::query::State;
use sluice_node::bulk::{BulkAction, BulkRequest, BulkView, Filter, HeaderIs};

use super::changes::{Said, missing_to, text};
use super::messages::STATES;
use crate::http::route::call::Call;
use crate::json::{Fault, Object, Read, Reader, object};
use crate::net::arrived::Made;
use crate::net::body::{Body, Inbound};
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Fields of a bulk.
pub(crate) const BULK_FIELDS: &[&str] = &[
    "action",
    "filter",
    "to",
    "priority",
    "delay_ms",
    "deliver_at_ms",
    "max_attempts",
    "tags",
    "by",
    "why",
    "dry_run",
];
/// Fields of its filter.
pub(crate) const FILTER_FIELDS: &[&str] =
    &["queue", "state", "tag", "header", "sent_before_ms", "sent_after_ms", "attempts_min", "error_contains"];
/// What can be done.
pub(crate) const ACTIONS: &[&str] = &["cancel", "hold", "approve", "deny", "retry", "move", "change"];
const HEADER_FIELDS: &[&str] = &["name", "value"];

/// `POST P/bulk`
pub(crate) async fn start(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let request = read(upload.bytes(), call.namespace_id()?)?;
    match &request.action {
        BulkAction::Move { to } => call.allow_queue(Right::Send, to)?,
        BulkAction::Retry => call.allow_queue(Right::Send, &request.filter.queue)?,
        BulkAction::Deny => call.allow_dead_letters(&request.filter.queue).await?,
        _ => {}
    }
    let view = call.node().bulk_start(request).await?;
    let mut out = Vec::with_capacity(64);
    object(&mut out, |o| o.text("bulk", &id_text(view.id)));
    let mut response = respond::json(StatusCode::ACCEPTED, out);
    response.extensions_mut().insert(Made(format!("{}/{}", call.head.uri.path(), id_text(view.id))));
    Ok(response)
}

/// `GET P/bulk`
pub(crate) fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let views = call.node().bulks(call.namespace_id()?);
    let mut out = Vec::with_capacity(64 + views.len() * 512);
    object(&mut out, |o| {
        o.list("bulks", &views, |out, view| object(out, |o| write(o, view)));
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/bulk/{bulk}`
pub(crate) fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let view = call.node().bulk(call.namespace_id()?, read_id(call.name)?)?;
    Ok(answer(&view))
}

/// `DELETE P/bulk/{bulk}`
pub(crate) async fn cancel(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let view = call.node().bulk_cancel(call.namespace_id()?, read_id(call.name)?).await?;
    Ok(answer(&view))
}

fn answer(view: &BulkView) -> Response<Body> {
    let mut out = Vec::with_capacity(512);
    object(&mut out, |o| write(o, view));
    respond::json(StatusCode::OK, out)
}

fn id_text(id: u64) -> String {
    format!("{id:016x}")
}

fn read_id(text: &str) -> Result<u64, CallError> {
    let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let id = if digits { u64::from_str_radix(text, 16).ok() } else { None };
    let bulk = || text.chars().take(64).collect();
    Ok(id.ok_or_else(|| sluice_engine::Error::BulkNotFound { bulk: bulk() })?)
}

fn read(body: &[u8], namespace: NamespaceId) -> Read<BulkRequest> {
    let mut reader = Reader::new(body)?;
    let (mut said, mut filter, mut verb, mut dry_run) = (Said::default(), None, None, false);
    reader.object(BULK_FIELDS, |reader, name| {
        match name {
            "action" => verb = Some(read_verb(reader)?),
            "filter" => filter = Some(read_filter(reader)?),
            "dry_run" => dry_run = reader.boolean()?,
            name => {
                said.field(reader, name)?;
            }
        }
        Ok(())
    })?;
    reader.finish()?;
    let verb = verb.ok_or_else(|| Fault::missing("action", "say what is to be done with the messages"))?;
    let filter =
        filter.ok_or_else(|| Fault::missing("filter", "say which messages, at least their queue"))?;
    let (by, why) = (std::mem::take(&mut said.by), std::mem::take(&mut said.why));
    Ok(BulkRequest { namespace, filter, action: action(verb, said)?, by, why, dry_run })
}

/// The action with its fields, and no fields that another has.
fn action(verb: Verb, said: Said) -> Read<BulkAction> {
    let sets = said.priority.is_some()
        || said.deliver.is_some()
        || said.max_attempts.is_some()
        || said.tags.is_some();
    if said.to.is_some() && verb != Verb::Move {
        return Err(Fault::invalid("only the action move takes it: leave it out").inside("to"));
    }
    if sets && verb != Verb::Change {
        let reason = "priority, delay_ms, deliver_at_ms, max_attempts and tags belong to the action change";
        return Err(Fault::invalid(reason).inside("action"));
    }
    Ok(match verb {
        Verb::Move => BulkAction::Move { to: said.to.ok_or_else(missing_to)? },
        Verb::Change => BulkAction::Set {
            priority: said.priority,
            deliver: said.deliver,
            max_attempts: said.max_attempts,
            tags: said.tags,
        },
        Verb::Cancel => BulkAction::Cancel,
        Verb::Hold => BulkAction::Hold,
        Verb::Approve => BulkAction::Approve,
        Verb::Deny => BulkAction::Deny,
        Verb::Retry => BulkAction::Retry,
    })
}

fn read_verb(reader: &mut Reader<'_>) -> Read<Verb> {
    let name = text(reader)?;
    let found = Verb::ALL.into_iter().find(|verb| verb.name() == name);
    found.ok_or_else(|| Fault::one_of(ACTIONS, &name))
}

fn read_filter(reader: &mut Reader<'_>) -> Read<Filter> {
    let (mut filter, mut queue) = (Filter::default(), None);
    reader.object(FILTER_FIELDS, |reader, name| {
        match name {
            "queue" => queue = Some(text(reader)?),
            "state" => {
                let name = text(reader)?;
                let state = State::ALL.into_iter().find(|state| state.name() == name);
                filter.state = Some(state.ok_or_else(|| Fault::one_of(STATES, &name))?);
            }
            "tag" => filter.tag = Some(text(reader)?),
            "header" => filter.header = Some(read_header(reader)?),
            "sent_before_ms" => filter.sent_before_ms = Some(reader.integer(0, u64::MAX)?),
            "sent_after_ms" => filter.sent_after_ms = Some(reader.integer(0, u64::MAX)?),
            "attempts_min" => {
                filter.attempts_min = Some(reader.integer(0, u64::from(u16::MAX))? as u16);
            }
            _ => filter.error_contains = Some(text(reader)?),
        }
        Ok(())
    })?;
    filter.queue = queue.ok_or_else(|| Fault::missing("queue", "name the queue of the messages"))?;
    Ok(filter)
}

fn read_header(reader: &mut Reader<'_>) -> Read<HeaderIs> {
    let (mut name, mut value) = (None, None);
    reader.object(HEADER_FIELDS, |reader, field| {
        let place = if field == "name" { &mut name } else { &mut value };
        *place = Some(text(reader)?);
        Ok(())
    })?;
    Ok(HeaderIs {
        name: name.ok_or_else(|| Fault::missing("name", "name the header"))?,
        value: value.ok_or_else(|| Fault::missing("value", "give the header's whole value"))?,
    })
}

fn write(o: &mut Object<'_>, view: &BulkView) {
    let request = &view.request;
    o.text("bulk", &id_text(view.id));
    o.text("state", view.state.name());
    o.text("action", request.action.verb().name());
    if let BulkAction::Move { to } = &request.action {
        o.text("to", to);
    }
    o.object("filter", |o| write_filter(o, &request.filter));
    for (name, text) in [("by", &request.by), ("why", &request.why)] {
        if !text.is_empty() {
            o.text(name, text);
        }
    }
    o.boolean("dry_run", request.dry_run);
    o.number("total", view.total);
    o.number("scanned", view.scanned);
    o.number("matched", view.matched);
    o.number("changed", view.changed);
    o.number("skipped", view.skipped);
    o.number("started_at_ms", view.started_at_us / 1_000);
    if let Some(at_us) = view.ended_at_us {
        o.number("ended_at_ms", at_us / 1_000);
    }
    if let Some(error) = &view.error {
        o.object("error", |o| {
            o.text("code", error.code());
            o.text("message", &error.to_string());
        });
    }
}

fn write_filter(o: &mut Object<'_>, filter: &Filter) {
    o.text("queue", &filter.queue);
    if let Some(state) = filter.state {
        o.text("state", state.name());
    }
    if let Some(tag) = &filter.tag {
        o.text("tag", tag);
    }
    if let Some(header) = &filter.header {
        o.object("header", |o| {
            o.text("name", &header.name);
            o.text("value", &header.value);
        });
    }
    for (name, number) in [
        ("sent_before_ms", filter.sent_before_ms),
        ("sent_after_ms", filter.sent_after_ms),
        ("attempts_min", filter.attempts_min.map(u64::from)),
    ] {
        if let Some(number) = number {
            o.number(name, number);
        }
    }
    if let Some(text) = &filter.error_contains {
        o.text("error_contains", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> String {
        let fault = read(body.as_bytes(), NamespaceId::DEFAULT).unwrap_err();
        format!("{} {}", fault.code, fault.field)
    }

    #[test]
    fn the_whole_filter_is_read() {
        let body = r#"{"action":"move","to":"b","dry_run":true,"by":"ann","filter":{"queue":"a","state":"dead",
            "tag":"t","header":{"name":"n","value":"v"},"sent_before_ms":9,"sent_after_ms":3,"attempts_min":2,
            "error_contains":"451"}}"#;
        let request = read(body.as_bytes(), NamespaceId::DEFAULT).unwrap();
        assert_eq!(request.action, BulkAction::Move { to: "b".into() });
        let filter = Filter {
            queue: "a".into(),
            state: Some(State::Dead),
            tag: Some("t".into()),
            header: Some(HeaderIs { name: "n".into(), value: "v".into() }),
            sent_before_ms: Some(9),
            sent_after_ms: Some(3),
            attempts_min: Some(2),
            error_contains: Some("451".into()),
        };
        assert_eq!((request.filter, request.dry_run, request.by.as_str()), (filter, true, "ann"));
    }

    #[test]
    fn actions_are_those_of_the_engine() {
        assert_eq!(Verb::ALL.map(Verb::name), ACTIONS);
    }

    #[test]
    fn mistakes_are_named() {
        for (body, expected) in [
            ("", "invalid_json "),
            (r#"{"filter":{"queue":"a"}}"#, "missing_field action"),
            (r#"{"action":"hold"}"#, "missing_field filter"),
            (r#"{"action":"hold","filter":{}}"#, "missing_field filter.queue"),
            (r#"{"action":"burn","filter":{"queue":"a"}}"#, "invalid_argument action"),
            (r#"{"action":"move","filter":{"queue":"a"}}"#, "missing_field to"),
            (r#"{"action":"hold","to":"b","filter":{"queue":"a"}}"#, "invalid_argument to"),
            (r#"{"action":"hold","priority":1,"filter":{"queue":"a"}}"#, "invalid_argument action"),
            (
                r#"{"action":"hold","filter":{"queue":"a","header":{"name":"n"}}}"#,
                "missing_field filter.header.value",
            ),
            (r#"{"action":"hold","filter":{"queue":"a","state":"gone"}}"#, "invalid_argument filter.state"),
            (r#"{"action":"hold","filter":{"queue":"a","x":1}}"#, "unknown_field filter.x"),
        ] {
            assert_eq!(told(body), expected, "{body}");
        }
    }
}
