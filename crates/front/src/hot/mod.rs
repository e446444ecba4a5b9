//! The calls that carry messages and receipts. Their requests are decoded from a [`source`], which is JSON or
//! a message of gRPC, without an allocation per message; protocols write what they answer.
//!
//! `send`, `receive`, `settle`, `extend`, `groups`, `schedules` and
//! `transactions` are the calls; `options`, `parents` and
//! `content` are parts of their requests.

pub(crate) mod content;
pub(crate) mod extend;
mod groups;
pub(crate) mod options;
mod parents;
pub(crate) mod receive;
pub(crate) mod schedules;
pub(crate) mod send;
pub(crate) mod settle;
pub(crate) mod source;
pub(crate) mod transactions;

use std::sync::Arc;

use sluice_calls::hot::receive::Room;
use sluice_calls::hot::{Delivered, Sent};
use sluice_calls::operation::Hot;
use sluice_calls::schedules::Schedule;
use sluice_calls::transactions::{Committed, Received, StageResults};
use sluice_calls::unary::Done;
use sluice_calls::{CallError, Permit};
use sluice_engine::Error;

use settle::Outcome;
use source::Source;

pub(crate) use groups::SentGroup;

/// A request as its protocol has it.
pub(crate) struct Request<'k, S> {
    /// Its fields.
    pub(crate) source: S,
    /// Empty: none.
    pub(crate) idempotency_key: &'k [u8],
    /// Memory for the answer.
    pub(crate) room: Arc<dyn Room>,
}

/// The answer to a hot call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The messages that were sent; the request was a list, or one message.
    Sent { sent: Sent, is_list: bool },
    /// The messages that were received.
    Delivered(Vec<Delivered>),
    /// The messages that were received in a transaction.
    Received(Box<Received>),
    /// The result of each item, in the order of the request, which was a list, or one item.
    Settled { results: Vec<Result<(), Error>>, is_list: bool },
    /// The group that was sent.
    Group(SentGroup),
    /// The operations that were done together.
    Committed(Box<Committed>),
    /// The operations that are staged.
    Staged(Box<StageResults>),
    /// The schedule that was put.
    Schedule(Box<Done<Schedule>>),
}

/// Runs a call.
///
/// # Errors
/// Those of the operation.
pub(crate) async fn run<'b>(
    permit: &Permit<'_>,
    call: Hot,
    request: Request<'_, impl Source<'b>>,
) -> Result<Answer, CallError> {
    let Request { source, idempotency_key, room } = request;
    match call {
        Hot::Send => send::send(permit, idempotency_key, source).await,
        Hot::Receive => receive::receive(permit, room, source).await,
        Hot::ReceiveMany => receive::receive_many(permit, room, source).await,
        Hot::Settle => settle::settle(permit, None, source).await,
        Hot::Ack => settle::settle(permit, Some(Outcome::Ack), source).await,
        Hot::Nack => settle::settle(permit, Some(Outcome::Nack), source).await,
        Hot::Release => settle::settle(permit, Some(Outcome::Release), source).await,
        Hot::Reject => settle::settle(permit, Some(Outcome::Reject), source).await,
        Hot::Extend => extend::extend(permit, source).await,
        Hot::GroupSend => groups::send(permit, idempotency_key, source).await,
        Hot::SchedulePut => schedules::put(permit, source).await,
        Hot::TransactionCommit => transactions::commit(permit, idempotency_key, source).await,
        Hot::TransactionStage => transactions::stage(permit, source).await,
        Hot::TransactionClose => transactions::close(permit, source).await,
    }
}
