//! Groups: messages in several queues, and one that follows when all of them have ended.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_calls::digest::group_digest;
use sluice_engine::Error;
use sluice_engine::command::{Group, QueueItem};
use sluice_engine::id::MessageId;
use sluice_engine::query::GroupView;

use crate::hot::send::allow_onward;
use crate::http::hot::send::{Batch, idempotency_key};
use crate::http::route::call::Call;
use crate::json::{Object, object};
use crate::net::body::{Body, Inbound};
use crate::net::respond;

/// `POST P/groups`
pub(crate) async fn send(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, call.context.body_limits.send).await?;
    let (batch, queues) = Batch::read_group(upload.bytes(), call.node().limits())?;
    let (headers, tags, plain) = (batch.headers(), batch.tags(), batch.options());
    let steps = batch.steps(&headers, &tags, &plain);
    let chains = batch.chains(&steps);
    let options = batch.chained(plain.clone(), &chains);
    let items = batch.items(&headers, &tags, &options).into_iter();
    let mut members: Vec<QueueItem<'_>> =
        items.zip(queues).map(|(item, queue)| QueueItem { queue: batch.text(queue), item }).collect();
    members.iter().try_for_each(|member| call.allow_queue(Right::Send, member.queue))?;
    let namespace = call.namespace_id()?;
    allow_onward(call.asking(), call.node(), namespace, members.iter().map(|member| &member.item)).await?;
    let idempotency_key = idempotency_key(&call.head.headers)?;
    let request_digest = if idempotency_key.is_empty() { 0 } else { group_digest(members.iter()) };
    let Some(callback) = members.pop() else {
        return Err(Error::Internal { reason: "a group without callback was read".into() }.into());
    };
    let group = Group { namespace, idempotency_key, request_digest, members: &members, callback: &callback };
    let sent = call.node().group_send(&group).await?;
    let id = |offset: u64| MessageId { sequence: sent.first.sequence.wrapping_add(offset), ..sent.first };
    let count = u64::from(sent.count.saturating_sub(1));
    let mut out = Vec::with_capacity(96 + count as usize * 23);
    object(&mut out, |o| {
        o.ascii("group", &id(count).to_text());
        o.list("ids", (0..count).map(id), |out, id| {
            out.push(b'"');
            out.extend_from_slice(&id.to_text());
            out.push(b'"');
        });
        o.boolean("duplicate", sent.duplicate);
    });
    Ok(respond::json(StatusCode::CREATED, out))
}

/// `GET P/groups/{id}`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let id: MessageId = call.name.parse()?;
    if id.namespace != call.namespace_id()? {
        return Err(Error::MessageNotFound { id: id.to_string() }.into());
    }
    call.allow_messages(Right::Result, std::iter::once(id)).await?;
    let view = call.node().group(id).await?;
    let mut out = Vec::with_capacity(128);
    object(&mut out, |o| {
        o.ascii("group", &id.to_text());
        write_counts(o, &view);
        o.text("callback", view.callback.name());
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// How many members of a group have ended, and how.
pub(crate) fn write_counts(o: &mut Object<'_>, view: &GroupView) {
    o.number("pending", view.pending.into());
    o.number("done", view.done.into());
    o.number("dead", view.dead.into());
}
