//! The calls that carry messages and receipts, as JSON: decoded without an allocation per message. HTTP has
//! them as they are; gRPC for what is rare in them.

pub(crate) mod extend;
mod groups;
pub(crate) mod receive;
pub(crate) mod schedules;
pub(crate) mod send;
pub(crate) mod settle;

use std::sync::Arc;

use sluice_calls::hot::receive::Room;
use sluice_calls::{CallError, Operation, Permit};

use super::Json;
use settle::Outcome;

/// A request whose body is JSON.
pub(crate) struct Request<'b> {
    pub(crate) body: &'b [u8],
    /// Empty: none.
    pub(crate) idempotency_key: &'b [u8],
    /// Memory for the answer.
    pub(crate) room: Arc<dyn Room>,
}

/// Runs a call; `None`: it is none of these.
///
/// # Errors
/// Those of the operation.
pub(crate) async fn run(permit: &Permit<'_>, request: Request<'_>) -> Result<Option<Json>, CallError> {
    let Request { body, idempotency_key, room } = request;
    let answer = match permit.operation() {
        Operation::Send => send::send(permit, idempotency_key, body).await?,
        Operation::Receive => receive::receive(permit, room, body).await?,
        Operation::ReceiveMany => receive::receive_many(permit, room, body).await?,
        Operation::Settle => settle::settle(permit, None, body).await?,
        Operation::Ack => settle::settle(permit, Some(Outcome::Ack), body).await?,
        Operation::Nack => settle::settle(permit, Some(Outcome::Nack), body).await?,
        Operation::Release => settle::settle(permit, Some(Outcome::Release), body).await?,
        Operation::Reject => settle::settle(permit, Some(Outcome::Reject), body).await?,
        Operation::Extend => extend::extend(permit, body).await?,
        Operation::GroupSend => groups::send(permit, idempotency_key, body).await?,
        Operation::SchedulePut => schedules::put(permit, body).await?,
        _ => return Ok(None),
    };
    Ok(Some(answer))
}
