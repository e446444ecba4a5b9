//! The protocols that answer a connection's requests, put together at the top of the crate.

use std::future::Future;
use std::sync::Arc;

use http::{Request, Response};
use sluice_calls::access::Peer;
use sluice_http2::adapter::Direct;

use super::activity::Activity;
use super::body::{Body, Inbound};
use super::context::Context;

/// Answers requests. Its functions have no `self`: what requests share is in the [`Context`].
pub(crate) trait Service: Send + 'static {
    /// The short way of some calls over HTTP/2.
    type Hot: Direct<Call: Send> + Unpin + Send;

    /// Begins what goes on beside the connections, until the server stops.
    fn begin(context: &Arc<Context>);

    /// The short way for one connection.
    fn hot(context: Arc<Context>, activity: Arc<Activity>, peer: Arc<Peer>) -> Self::Hot;

    /// Answers a request.
    fn answer(
        context: Arc<Context>,
        activity: Arc<Activity>,
        peer: Arc<Peer>,
        request: Request<Inbound>,
    ) -> impl Future<Output = Response<Body>> + Send;
}
