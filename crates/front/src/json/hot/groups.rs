//! Groups: messages in several queues, and one that follows when all of them have ended.

use http::StatusCode;
use sluice_calls::{CallError, Permit};
use sluice_engine::Error;
use sluice_engine::command::QueueItem;
use sluice_engine::id::MessageId;

use super::send::Batch;
use crate::json::{Json, object};

/// Sends the members of a group and its callback.
pub(super) async fn send(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    body: &[u8],
) -> Result<Json, CallError> {
    let (batch, queues) = Batch::read_group(body, permit.calls().limits())?;
    let (headers, tags, plain) = (batch.headers(), batch.tags(), batch.options());
    let steps = batch.steps(&headers, &tags, &plain);
    let chains = batch.chains(&steps);
    let options = batch.chained(plain.clone(), &chains);
    let items = batch.items(&headers, &tags, &options).into_iter();
    let mut members: Vec<QueueItem<'_>> =
        items.zip(queues).map(|(item, queue)| QueueItem { queue: batch.text(queue), item }).collect();
    let cleared = permit.onward(members.iter().map(|member| &member.item))?.cleared().await?;
    let Some(callback) = members.pop() else {
        return Err(Error::Internal { reason: "a group without callback was read".into() }.into());
    };
    let sent = cleared.send_group(idempotency_key, &members, &callback).await?;
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
    Ok(Json::new(StatusCode::CREATED, out))
}
