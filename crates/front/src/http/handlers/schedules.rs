//! Schedules of a namespace: look, set, pause, trigger, delete.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_engine::NamespaceId;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::limits::{DELAY_MS_MAX, Limits};
use sluice_engine::options::{Expires, SendOptions};
use sluice_node::schedule::{EVERY_MS_MIN, MISSED, Missed, ScheduleSpec, When};
use sluice_node::{SCHEDULE_NEXT_MAX, Schedule};

use crate::hot::send::allow_onward;
use crate::http::codec::message::{write_payload, write_request, write_tags};
use crate::http::codec::send_options::{ON_DUPLICATE, UNTIL};
use crate::http::codec::settings::write_backoff;
use crate::http::hot::send::Batch;
use crate::http::route::call::Call;
use crate::json::{Fault, Object, Read, Reader, Text, object, push_number};
use crate::net::body::{Body, Inbound};
use crate::net::respond;

/// Fields of a schedule that is put.
pub(crate) const SCHEDULE_FIELDS: &[&str] = &["cron", "time_zone", "every_ms", "missed", "queue", "message"];
/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["after", "limit"];
/// Parameters of the next times.
pub(crate) const NEXT_PARAMS: &[&str] = &["count"];
const NEXT_DEFAULT: u64 = 10;
/// Most schedules of a page.
const PAGE_MAX: u64 = 1_000;
const PAGE_DEFAULT: u64 = 100;

/// `GET P/schedules`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    // One more than asked for tells whether there is a next page.
    let mut schedules = call.node().schedules(call.namespace_id()?, params.text("after"), limit + 1).await?;
    let more = schedules.len() > limit;
    schedules.truncate(limit);
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("schedules", &schedules, |out, schedule| object(out, |o| write_schedule(o, schedule)));
        if let Some(last) = schedules.last().filter(|_| more) {
            o.text("next", &last.view.name);
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/schedules/{schedule}`, with what it sends.
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    call.room_for(1)?;
    let (schedule, blob) = call.node().schedule_message(call.namespace_id()?, call.name).await?;
    let mut out = Vec::new();
    object(&mut out, |o| {
        write_schedule(o, &schedule);
        o.object("message", |o| {
            write_payload(o, &blob);
            if let Some(blob) = MessageBlob::parse(&blob) {
                write_tags(o, blob.tags());
            }
            let (item, options) = schedule.view.message.fields();
            write_fields(o, &item);
            write_options(o, &options);
        });
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `PUT P/schedules/{schedule}`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, call.context.body_limits.send).await?;
    let read = Put::read(upload.bytes(), call.node().limits())?;
    let message = &read.message;
    let (headers, tags, plain) = (message.headers(), message.tags(), message.options());
    let steps = message.steps(&headers, &tags, &plain);
    let chains = message.chains(&steps);
    let options = message.chained(plain.clone(), &chains);
    let items = message.items(&headers, &tags, &options);
    let item = items.first().ok_or_else(|| Fault::missing("message", "a schedule sends a message"))?;
    let namespace = call.namespace_id()?;
    call.allow_queue(Right::Send, &read.queue)?;
    allow_onward(call.asking(), call.node(), namespace, [item]).await?;
    let put = call.node().schedule_put(namespace, call.name, &read.queue, &read.spec, item);
    let (schedule, created) = put.await?;
    Ok(one(if created { StatusCode::CREATED } else { StatusCode::OK }, &schedule))
}

/// `DELETE P/schedules/{schedule}`
pub(crate) async fn delete(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    call.node().schedule_delete(call.namespace_id()?, call.name).await?;
    let mut out = Vec::new();
    object(&mut out, |_| {});
    Ok(respond::json(StatusCode::OK, out))
}

/// `POST P/schedules/{schedule}/pause` and `.../resume`
pub(crate) async fn pause(call: &Call<'_>, paused: bool) -> Result<Response<Body>, CallError> {
    let schedule = call.node().schedule_pause(call.namespace_id()?, call.name, paused).await?;
    Ok(one(StatusCode::OK, &schedule))
}

/// `POST P/schedules/{schedule}/trigger`
pub(crate) async fn trigger(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let namespace = call.namespace_id()?;
    allow_message(call, namespace).await?;
    let (id, duplicate) = call.node().schedule_trigger(namespace, call.name).await?;
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.ascii("id", &id.to_text());
        o.boolean("duplicate", duplicate);
    });
    Ok(respond::json(StatusCode::CREATED, out))
}

/// Whether the caller may send what the schedule of the path sends, and to where it does.
async fn allow_message(call: &Call<'_>, namespace: NamespaceId) -> Result<(), CallError> {
    if call.may_everywhere(Right::Send) {
        return Ok(());
    }
    let schedule = call.node().schedule(namespace, call.name).await?;
    call.allow_queue(Right::Send, &schedule.view.queue)?;
    let (_, options) = schedule.view.message.fields();
    if options.reply_to.is_empty() { Ok(()) } else { call.allow_queue(Right::Send, options.reply_to) }
}

/// `GET P/schedules/{schedule}/next`
pub(crate) async fn next(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let count = call.query()?.integer("count", 1, SCHEDULE_NEXT_MAX as u64, NEXT_DEFAULT)?;
    let instants = call.node().schedule_next(call.namespace_id()?, call.name, count as usize).await?;
    let mut out = Vec::new();
    object(&mut out, |o| o.list("next_at_ms", &instants, |out, us| push_number(out, us / 1_000)));
    Ok(respond::json(StatusCode::OK, out))
}

fn one(status: StatusCode, schedule: &Schedule) -> Response<Body> {
    let mut out = Vec::new();
    object(&mut out, |o| write_schedule(o, schedule));
    respond::json(status, out)
}

/// A schedule as it comes in.
struct Put<'a> {
    queue: String,
    spec: ScheduleSpec,
    message: Batch<'a>,
}

impl<'a> Put<'a> {
    fn read(body: &'a [u8], limits: &Limits) -> Read<Put<'a>> {
        let mut reader = Reader::new(body)?;
        let (mut cron, mut time_zone, mut every_ms, mut queue) = (None, None, None, None);
        let (mut missed, mut message) = (Missed::default(), None);
        reader.object(SCHEDULE_FIELDS, |reader, name| {
            match name {
                "cron" => cron = Some(owned(reader)?),
                "time_zone" => time_zone = Some(owned(reader)?),
                "every_ms" => every_ms = Some(reader.integer(EVERY_MS_MIN, DELAY_MS_MAX)?),
                "queue" => queue = Some(owned(reader)?),
                "missed" => missed = read_missed(&owned(reader)?)?,
                _ => message = Some(Batch::read_one(reader, limits)?),
            }
            Ok(())
        })?;
        let mut message = message.ok_or_else(|| Fault::missing("message", "a schedule sends a message"))?;
        message.finish(reader.finish()?).map_err(|fault| fault.inside("message"))?;
        let when = match (cron, every_ms, time_zone) {
            (Some(_), Some(_), _) => return Err(Fault::conflict("cron", "every_ms")),
            (None, Some(_), Some(_)) => return Err(Fault::conflict("time_zone", "every_ms")),
            (None, None, _) => return Err(Fault::missing("cron", "a schedule needs cron or every_ms")),
            (None, Some(every_ms), None) => When::Every { every_ms },
            (Some(expression), None, time_zone) => {
                When::Cron { expression, time_zone: time_zone.unwrap_or_else(|| "UTC".to_owned()) }
            }
        };
        let queue = queue.ok_or_else(|| Fault::missing("queue", "a schedule sends to a queue"))?;
        Ok(Put { queue, spec: ScheduleSpec { when, missed }, message })
    }
}

fn owned(reader: &mut Reader<'_>) -> Read<String> {
    let text: Text<'_> = reader.string()?;
    Ok(text.get(reader.scratch()).to_owned())
}

fn read_missed(text: &str) -> Read<Missed> {
    let at = MISSED.iter().position(|word| *word == text).ok_or_else(|| Fault::one_of(&MISSED, text))?;
    Ok([Missed::Once, Missed::All, Missed::Skip][at])
}

fn write_schedule(o: &mut Object<'_>, schedule: &Schedule) {
    let view = &schedule.view;
    o.text("name", &view.name);
    if let Some(spec) = &schedule.spec {
        match &spec.when {
            When::Cron { expression, time_zone } => {
                o.text("cron", expression);
                o.text("time_zone", time_zone);
            }
            When::Every { every_ms } => o.number("every_ms", *every_ms),
        }
        o.text("missed", MISSED[spec.missed as usize]);
    }
    o.text("queue", &view.queue);
    o.boolean("paused", view.paused);
    if let Some(at_us) = view.next_at_us {
        o.number("next_at_ms", at_us / 1_000);
    }
    o.number("fired", view.fired);
    o.number("duplicates", view.duplicates);
    o.number("refused", view.refused);
    if let Some(at_us) = view.last_at_us {
        o.number("last_at_ms", at_us / 1_000);
    }
    if let Some(id) = view.last_id {
        o.ascii("last_id", &id.to_text());
    }
    if let Some(code) = &view.last_error {
        o.text("last_error", code);
    }
    o.number("created_at_ms", view.created_at_us / 1_000);
}

fn write_fields(o: &mut Object<'_>, item: &SendItem<'_>) {
    if item.priority > 0 {
        o.number("priority", item.priority.into());
    }
    if let Deliver::AfterMs(delay_ms) = item.deliver {
        o.number("delay_ms", delay_ms);
    }
    if item.max_attempts > 0 {
        o.number("max_attempts", item.max_attempts.into());
    }
    if let Some(backoff) = &item.backoff {
        o.object("backoff", |o| write_backoff(o, backoff));
    }
}

fn write_options(o: &mut Object<'_>, options: &SendOptions<'_>) {
    for (name, key) in [
        ("ordering_key", options.ordering_key),
        ("fair_key", options.fair_key),
        ("limit_key", options.limit_key),
    ] {
        if !key.is_empty() {
            o.text(name, &String::from_utf8_lossy(key));
        }
    }
    if let Some(unique) = &options.unique {
        o.object("unique", |o| {
            o.text("key", &String::from_utf8_lossy(unique.key));
            o.number("window_ms", unique.window_ms);
            o.text("until", UNTIL[unique.until as usize]);
            o.text("on_duplicate", ON_DUPLICATE[unique.on_duplicate as usize]);
        });
    }
    if let Expires::AfterMs(ttl_ms) = options.expires {
        o.number("ttl_ms", ttl_ms);
    }
    if options.result_ttl_ms > 0 {
        o.number("result_ttl_ms", options.result_ttl_ms);
    }
    write_request(o, options.correlation_id, options.reply_to);
    if options.hold {
        o.boolean("hold", true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<ScheduleSpec, String> {
        let put = Put::read(body.as_bytes(), &Limits::default());
        put.map(|put| put.spec).map_err(|fault| format!("{} {}: {}", fault.code, fault.field, fault.reason))
    }

    #[test]
    fn a_schedule_is_read() {
        let body = r#"{"cron":"0 9 * * *","queue":"a","missed":"skip","message":{"payload":"a\"b","headers":{"x":"\u0041"}}}"#;
        let put = Put::read(body.as_bytes(), &Limits::default()).unwrap();
        let when = When::Cron { expression: "0 9 * * *".into(), time_zone: "UTC".into() };
        assert_eq!(put.spec, ScheduleSpec { when, missed: Missed::Skip });
        let (headers, options) = (put.message.headers(), put.message.options());
        let items = put.message.items(&headers, &[], &options);
        assert_eq!((items[0].payload, items[0].headers), (&b"a\"b"[..], &[("x", "A")][..]));
    }

    #[test]
    fn mistakes_are_named() {
        for (body, expected) in [
            (r#"{"queue":"a","message":{"payload":""}}"#, "missing_field cron"),
            (r#"{"every_ms":1000,"queue":"a"}"#, "missing_field message"),
            (r#"{"every_ms":1000,"message":{"payload":""}}"#, "missing_field queue"),
            (r#"{"every_ms":999}"#, "invalid_argument every_ms"),
            (r#"{"every_ms":1000,"missed":"never"}"#, "invalid_argument missed"),
            (r#"{"every_ms":1000,"queue":"a","message":{}}"#, "missing_field message.payload"),
            (
                r#"{"every_ms":1000,"queue":"a","message":{"payload_base64":"!"}}"#,
                "invalid_argument message.payload_base64",
            ),
            (
                r#"{"every_ms":1000,"cron":"* * * * *","queue":"a","message":{"payload":""}}"#,
                "conflicting_fields",
            ),
            (
                r#"{"every_ms":1000,"time_zone":"UTC","queue":"a","message":{"payload":""}}"#,
                "conflicting_fields",
            ),
        ] {
            let told = read(body).unwrap_err();
            assert!(told.starts_with(expected), "{body}: {told}");
        }
    }
}
