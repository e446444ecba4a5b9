//! Sending: the JSON of messages, decoded without an allocation per message.

mod batch;
mod fields;

use http::StatusCode;
use http::header::{HeaderMap, HeaderValue};
use http::response::Response;
use sluice_engine::command::SendItem;
use sluice_engine::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use sluice_node::{Sending, Sent};

pub(crate) use batch::Batch;
pub use fields::MESSAGE_FIELDS;
#[cfg(test)]
pub(crate) use fields::{GROUP_FIELDS, GROUP_MESSAGE_FIELDS, STEP_FIELDS};

use sluice_calls::CallError;
use sluice_calls::access::Right;

use crate::hot::send::{allow_queues, begin, parents};
use crate::http::route::call::Call;
use crate::json::{Fault, object, push_number};
use crate::net::body::{Body, Inbound};
use crate::net::respond::Json;

/// The field with the key under which a send is done once.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// `POST P/queues/{queue}/messages`
pub(crate) async fn send(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, call.context.body_limits.send).await?;
    let batch = Batch::read(upload.bytes(), call.node().limits())?;
    if !call.may_everywhere(Right::Send) {
        let parents = batch.with_items(|items| {
            allow_queues(call.asking(), items)?;
            Ok::<_, CallError>(parents(items))
        })?;
        call.allow_messages(Right::Result, parents.into_iter()).await?;
    }
    let sending = batch.with_items(|items| propose(call, items))?;
    Ok(answer(&sending.done().await?, batch.is_list).into())
}

/// Sends `items`, which the caller may, to the queue in the path, under the idempotency key in the headers.
pub(crate) fn propose(call: &Call<'_>, items: &[SendItem<'_>]) -> Result<Sending, CallError> {
    let key = idempotency_key(&call.head.headers)?;
    Ok(begin(call.node(), call.namespace_id()?, call.name, key, items)?)
}

/// `{"id"}` or `{"ids"}`. What a message by its unique key, or the request by its idempotency key, repeats is a duplicate.
pub(crate) fn answer(sent: &Sent, is_list: bool) -> Json {
    let mut out = Vec::with_capacity(64 + sent.count as usize * 23);
    object(&mut out, |o| {
        if is_list {
            o.list("ids", sent.ids(), |out, id| {
                out.push(b'"');
                out.extend_from_slice(&id.to_text());
                out.push(b'"');
            });
        } else {
            o.ascii("id", &sent.first.to_text());
        }
        o.boolean("duplicate", sent.duplicate || (!is_list && sent.duplicates.is_some()));
        if is_list && let Some(duplicates) = &sent.duplicates {
            o.list("duplicates", duplicates.items.iter(), |out, item| push_number(out, u64::from(*item)));
        }
    });
    Json::new(StatusCode::CREATED, out)
}

pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<&[u8], CallError> {
    only_key(headers.get_all(IDEMPOTENCY_KEY).iter().map(HeaderValue::as_bytes))
}

/// The one key among the values that a request gives; empty: none.
pub(crate) fn only_key<'h>(mut values: impl Iterator<Item = &'h [u8]>) -> Result<&'h [u8], CallError> {
    let Some(key) = values.next() else { return Ok(b"") };
    let visible = key.iter().all(|byte| (0x20..0x7f).contains(byte));
    if values.next().is_some() {
        return Err(Fault::new("duplicate_field", "the header is given twice")
            .inside("Idempotency-Key")
            .into());
    }
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX || !visible {
        let reason = format!("expected 1 to {IDEMPOTENCY_KEY_BYTES_MAX} characters of printable ASCII");
        return Err(Fault::invalid(reason).inside("Idempotency-Key").into());
    }
    Ok(key)
}
