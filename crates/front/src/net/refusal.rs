//! The answer to a request of HTTP/1.1 whose head was refused.

use std::sync::Arc;

use http::Request;
use http::header::CONNECTION;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Peer};

use super::activity::Activity;
use super::arrived::{Arrived, CLOSE, Finished};
use super::body::{Body, Inbound};
use super::context::Context;
use super::errors::HttpError as _;

/// Answers a request of HTTP/1.1 whose head was refused; `request` stands for it.
pub(crate) async fn refuse(
    context: Arc<Context>,
    activity: Arc<Activity>,
    peer: Arc<Peer>,
    request: Request<Inbound>,
    error: CallError,
) -> Response<Body> {
    let (arrived, _) = Arrived::new(context, &activity, peer, request);
    let Arrived { context, head, request_id, .. } = &arrived;
    context.error_log.log(&error, request_id, &head.method, head.uri.path());
    let status = error.status().as_u16();
    let mut response = error.into_response();
    response.headers_mut().insert(CONNECTION, CLOSE);
    let target = head.uri.path();
    arrived.finish(response, Finished { operation: None, status, caller: &Caller::Nobody, target }).await
}
