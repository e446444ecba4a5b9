//! Queues: look, set, pause, close, purge, delete.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::{Right, Target};
use sluice_engine::query::{Counters, QueueView, State};
use sluice_engine::settings::QueuePatch;

use crate::http::codec::settings::{read_patch, write_settings};
use crate::http::route::call::Call;
use crate::json::{Object, object};
use crate::net::body::{Body, Inbound};
use crate::net::context::now_ms;
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["prefix", "after", "limit"];
/// Most queues of a page.
const PAGE_MAX: u64 = 1_000;
const PAGE_DEFAULT: u64 = 100;

/// `GET P/queues`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let prefix = params.text("prefix").unwrap_or_default();
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    // One more than asked for tells whether there is a next page.
    let namespace = call.namespace_id()?;
    let mut queues = call.node().queues(namespace, prefix, params.text("after"), limit + 1).await?;
    let more = queues.len() > limit;
    queues.truncate(limit);
    let next = queues.last().filter(|_| more).map(|last| last.name.clone());
    let namespace = call.namespace_name();
    queues.retain(|queue| call.caller.may(Right::Observe, Target::Queue(namespace, &queue.name)).is_ok());
    let mut out = Vec::with_capacity(64 + queues.len() * 600);
    object(&mut out, |o| {
        o.list("queues", &queues, |out, queue| {
            object(out, |o| write_queue(o, namespace, queue));
        });
        if let Some(next) = next {
            o.text("next", &next);
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/queues/{queue}`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let queue = call.node().queue(call.namespace_id()?, call.name).await?;
    Ok(answer(call, StatusCode::OK, &queue))
}

/// `PUT P/queues/{queue}` with `create`, else `PATCH`
pub(crate) async fn set(
    call: &Call<'_>,
    body: &mut Inbound,
    create: bool,
) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let patch = read_patch(upload.bytes())?;
    if let Some(to) = patch.dead_letter_queue.as_deref().filter(|to| !to.is_empty()) {
        call.allow_queue(Right::Operate, to)?;
        // Dead letters are ready there, as what is sent is.
        call.allow_queue(Right::Send, to)?;
    }
    let (queue, created) = call.node().queue_set(call.namespace_id()?, call.name, patch, create).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer(call, status, &queue))
}

/// `DELETE P/queues/{queue}`
pub(crate) async fn delete(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let messages = call.node().queue_delete(call.namespace_id()?, call.name).await?;
    Ok(count("deleted", messages))
}

/// `POST P/queues/{queue}/pause` or `resume`
pub(crate) async fn pause(call: &Call<'_>, paused: bool) -> Result<Response<Body>, CallError> {
    mark(call, QueuePatch { paused: Some(paused), ..QueuePatch::default() }).await
}

/// `POST P/queues/{queue}/close` or `open`
pub(crate) async fn close(call: &Call<'_>, closed: bool) -> Result<Response<Body>, CallError> {
    mark(call, QueuePatch { closed: Some(closed), ..QueuePatch::default() }).await
}

async fn mark(call: &Call<'_>, patch: QueuePatch) -> Result<Response<Body>, CallError> {
    let (queue, _) = call.node().queue_set(call.namespace_id()?, call.name, patch, false).await?;
    Ok(answer(call, StatusCode::OK, &queue))
}

/// `POST P/queues/{queue}/purge`
pub(crate) async fn purge(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let messages = call.node().queue_purge(call.namespace_id()?, call.name).await?;
    Ok(count("purged", messages))
}

/// `{"<name>": messages}`
pub(crate) fn count(name: &'static str, messages: u64) -> Response<Body> {
    let mut out = Vec::new();
    object(&mut out, |o| o.number(name, messages));
    respond::json(StatusCode::OK, out)
}

fn answer(call: &Call<'_>, status: StatusCode, queue: &QueueView) -> Response<Body> {
    let mut out = Vec::with_capacity(600);
    object(&mut out, |o| write_queue(o, call.namespace_name(), queue));
    respond::json(status, out)
}

fn write_queue(o: &mut Object<'_>, namespace: &str, queue: &QueueView) {
    o.text("name", &queue.name);
    o.text("namespace", namespace);
    write_settings(o, &queue.settings);
    write_counts(o, &queue.counters);
    let blocked = [
        ("ordering_key", queue.blocked_by_ordering_key),
        ("limit", queue.blocked_by_limit),
        ("parents", queue.blocked_by_parents),
        ("consumer", queue.blocked_by_consumer),
    ];
    if blocked.iter().any(|(_, count)| *count > 0) {
        o.object("blocked_by", |o| blocked.into_iter().for_each(|(name, count)| o.number(name, count)));
    }
    o.object("totals", |o| {
        totals(&queue.counters).into_iter().for_each(|(name, value)| o.number(name, value))
    });
    o.number("bytes", queue.counters.bytes);
    o.number("created_at_ms", queue.created_at_us / 1_000);
    if let Some(redriving) = queue.redriving {
        o.object("redriving", |o| {
            o.number("left", redriving.left);
            o.number("per_second", u64::from(redriving.per_second));
        });
    }
    if let Some(at_us) = queue.oldest_ready_at_us {
        o.number("oldest_ready_age_ms", now_ms().saturating_sub(at_us / 1_000));
    }
}

/// Appends the messages in each state.
pub(crate) fn write_counts(o: &mut Object<'_>, counters: &Counters) {
    o.object("counts", |o| {
        State::ALL.into_iter().zip(counters.states).for_each(|(state, value)| o.number(state.name(), value));
    });
}

/// What has ever happened, by name.
pub(crate) fn totals(counters: &Counters) -> [(&'static str, u64); 14] {
    [
        ("sent", counters.sent),
        ("delivered", counters.delivered),
        ("acked", counters.acked),
        ("nacked", counters.nacked),
        ("released", counters.released),
        ("rejected", counters.rejected),
        ("expired", counters.expired),
        ("died", counters.died),
        ("redriven", counters.redriven),
        ("dropped", counters.dropped),
        ("replies_lost", counters.replies_lost),
        ("cancelled", counters.cancelled),
        ("moved_in", counters.moved_in),
        ("moved_out", counters.moved_out),
    ]
}
