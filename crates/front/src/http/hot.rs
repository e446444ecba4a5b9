//! The calls that carry messages and receipts, over HTTP.

use std::sync::Arc;

use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::operation::Hot;

use super::codec::idempotency::idempotency_key;
use super::handlers::documents::expect_no_conditions_of_operations;
use super::route::call::Call;
use crate::hot::{Request, run};
use crate::json::Reader;
use crate::json::answers::answer as document;
use crate::net::body::{Body, Inbound};
use crate::net::options::SMALL_BODY_BYTES_MAX;

/// Runs a call.
pub(super) async fn answer(
    call: &Call<'_>,
    hot: Hot,
    body: &mut Inbound,
) -> Result<Response<Body>, CallError> {
    let limits = call.context.body_limits();
    let bytes_max = match hot {
        Hot::Send | Hot::GroupSend | Hot::SchedulePut | Hot::TransactionCommit => limits.send,
        Hot::TransactionStage => limits.send,
        Hot::Receive | Hot::ReceiveMany | Hot::TransactionClose => SMALL_BODY_BYTES_MAX,
        Hot::Settle | Hot::Ack | Hot::Nack | Hot::Release | Hot::Reject | Hot::Extend => limits.contents(),
    };
    if matches!(hot, Hot::TransactionCommit | Hot::TransactionStage | Hot::TransactionClose) {
        expect_no_conditions_of_operations(&call.head.headers)?;
    }
    let upload = call.json(body, bytes_max).await?;
    let idempotency_key = match hot {
        Hot::Send | Hot::GroupSend | Hot::TransactionCommit => idempotency_key(&call.head.headers)?,
        Hot::TransactionStage | Hot::TransactionClose => b"",
        Hot::SchedulePut | Hot::Receive | Hot::ReceiveMany | Hot::Extend => b"",
        Hot::Settle | Hot::Ack | Hot::Nack | Hot::Release | Hot::Reject => b"",
    };
    let source = Reader::new(upload.bytes())?;
    let room = Arc::clone(&call.in_flight.share);
    let answer = run(&call.permit, hot, Request { source, idempotency_key, room }).await?;
    Ok(document(answer)?.into())
}
