//! The calls that carry messages and receipts, over HTTP.

use std::sync::Arc;

use http::response::Response;
use sluice_calls::{CallError, Operation};

use super::codec::idempotency::idempotency_key;
use super::route::call::Call;
use crate::json::hot::{Request, run};
use crate::net::body::{Body, Inbound};
use crate::net::options::SMALL_BODY_BYTES_MAX;

/// Runs a call; `None`: it is none of these.
pub(super) async fn answer(call: &Call<'_>, body: &mut Inbound) -> Result<Option<Response<Body>>, CallError> {
    use Operation as O;
    let limits = &call.context.body_limits;
    let bytes_max = match call.operation() {
        O::Send | O::GroupSend | O::SchedulePut => limits.send,
        O::Receive | O::ReceiveMany => SMALL_BODY_BYTES_MAX,
        O::Settle | O::Ack | O::Nack | O::Release | O::Reject | O::Extend => limits.contents(),
        _ => return Ok(None),
    };
    let upload = call.json(body, bytes_max).await?;
    let idempotency_key = match call.operation() {
        O::Send | O::GroupSend => idempotency_key(&call.head.headers)?,
        _ => b"",
    };
    let room = Arc::clone(&call.in_flight.share);
    let request = Request { body: upload.bytes(), idempotency_key, room };
    Ok(run(&call.permit, request).await?.map(Response::from))
}
