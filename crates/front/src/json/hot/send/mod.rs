//! Sending: the JSON of messages, decoded without an allocation per message.

mod batch;
mod fields;

use http::StatusCode;
use sluice_calls::hot::Sent;
use sluice_calls::{CallError, Permit};

pub(crate) use batch::Batch;
pub use fields::MESSAGE_FIELDS;
#[cfg(test)]
pub(crate) use fields::{GROUP_FIELDS, GROUP_MESSAGE_FIELDS, SEND_FIELDS, STEP_FIELDS};

use crate::json::{Json, object, push_number};

/// Sends a message or a list of them.
pub(super) async fn send(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    body: &[u8],
) -> Result<Json, CallError> {
    let batch = Batch::read(body, permit.calls().limits())?;
    let cleared = batch.with_items(|items| permit.onward(items))?.cleared().await?;
    let sending = batch.with_items(|items| cleared.begin_send(idempotency_key, items))?;
    Ok(answer(&sending.done().await?, batch.is_list))
}

/// `{"id"}` or `{"ids"}`. What a message by its unique key, or the request by its idempotency key, repeats is
/// a duplicate.
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
