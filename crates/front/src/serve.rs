//! The server: the network below, and the protocols that it speaks.

use std::future::Future;
use std::sync::Arc;

use http::{Request, Response};
use sluice_calls::Calls;
use sluice_calls::access::Peer;
use tokio::net::TcpListener;

use crate::grpc;
use crate::http::direct::HotCalls;
use crate::http::dispatch::handle;
use crate::http::figures::keep_telling;
use crate::net::activity::Activity;
use crate::net::body::{Body, Inbound};
use crate::net::context::Context;
use crate::net::listener::{self, Stopped};
use crate::net::options::HttpOptions;
use crate::net::passing::take_sender;
use crate::net::service::Service;

/// Serves HTTP/1.1 and HTTP/2 on `listener` until `shutdown` resolves: over TLS when [`HttpOptions::tls`] is
/// there, else in clear text.
///
/// Then it accepts no more, ends the waits of receives, tells every connection to close (`connection: close`,
/// GOAWAY), lets requests in flight finish within [`HttpOptions::shutdown_grace`], and cuts what is left;
/// administrative acts get some seconds more. The node is not shut down: that is for the caller, afterwards.
pub async fn serve(
    listener: TcpListener,
    calls: Calls,
    options: HttpOptions,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    listener::serve::<Protocols>(listener, calls, options, shutdown).await
}

/// The HTTP API and gRPC, told apart by the content type of a request.
#[derive(Debug)]
struct Protocols;

impl Service for Protocols {
    type Hot = HotCalls;

    fn begin(context: &Arc<Context>) {
        if context.options.telemetry.is_some() {
            tokio::spawn(keep_telling(Arc::clone(context)));
        }
    }

    fn hot(context: Arc<Context>, activity: Arc<Activity>, peer: Arc<Peer>) -> HotCalls {
        HotCalls { context, activity, peer }
    }

    async fn answer(
        context: Arc<Context>,
        activity: Arc<Activity>,
        peer: Arc<Peer>,
        mut request: Request<Inbound>,
    ) -> Response<Body> {
        let peer = take_sender(peer, request.headers_mut());
        if grpc::is_call(request.headers()) {
            return grpc::handle(context, activity, peer, request).await;
        }
        handle(context, activity, peer, request).await
    }
}
