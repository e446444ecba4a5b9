//! A session of a client that does not know of leaders, whose namespace another node leads: what the client
//! sends goes there, and what that node sends comes back, until one of the sides ends it. It ends with
//! `not_leader` like any other when the leadership moves.

use bytes::Bytes;
use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderValue};
use http::request::Parts;
use sluice_calls::CallError;
use sluice_engine::Error;

use super::calls::SessionCalls;
use super::outbox::Outbox;
use crate::grpc::status::{failure, status_in};
use crate::net::body::Inbound;
use crate::net::passing::{Asked, Passable};

/// A session that another node is to serve.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) calls: SessionCalls,
    /// The frames that have come, as they came.
    pub(super) frames: Bytes,
}

/// The request that has begun a session.
pub(super) struct Request {
    pub(super) head: Parts,
    pub(super) id: HeaderValue,
}

impl Request {
    /// Value of its `Authorization` field.
    pub(super) fn authorization(&self) -> Option<&[u8]> {
        self.head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes)
    }

    /// Passes the session on until it ends, or this node stops.
    ///
    /// # Errors
    /// Those of [`Asked::pass_on`]; `shutting_down`.
    pub(super) async fn pass_on(
        &self,
        begun: Begun,
        incoming: &mut Inbound,
        outbox: &Outbox,
    ) -> Result<(), CallError> {
        let Begun { calls, frames } = begun;
        let SessionCalls { context, peer, .. } = &calls;
        let asked = Asked { context, peer, head: &self.head, request_id: &self.id };
        let no_leader = || CallError::from(Error::NoLeader {});
        // None where this node leads meanwhile: the client opens another session.
        let answer = asked.pass_on(&calls.as_call(), Passable::begun(frames, incoming)).await;
        let answer = answer.ok_or_else(no_leader)??;
        match status_in(answer.headers()) {
            Some(trailers) => outbox.end(trailers),
            None if answer.status() != StatusCode::OK => return Err(no_leader()),
            None => outbox.pass(answer.into_body(), failure(&Error::OutcomeUnknown {}.into())),
        }
        tokio::select! {
            () = outbox.closed() => Ok(()),
            () = context.calls.stopping() => Err(Error::ShuttingDown {}.into()),
        }
    }
}
