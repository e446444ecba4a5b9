//! The protocols that answer a connection's requests, put together at the top of the crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use sluice_calls::access::Peer;
use sluice_http2::adapter::Direct;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::body::{Body, Inbound};
use super::context::Context;

/// Answers requests. Its functions have no `self`: what requests share is in the [`Context`].
pub(crate) trait Service: Send + 'static {
    /// The short way of some calls over HTTP/2.
    type Hot: Direct<Call: Send> + Unpin + Send;

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

/// Protocol beside HTTP that a client may choose by ALPN (RFC 7301), on a listener with TLS.
pub trait AlpnHandler: fmt::Debug + Send + Sync {
    /// The protocol's name, for [`crate::tls::Tls::load`].
    fn name(&self) -> &'static [u8];

    /// Serves a connection whose client has chosen the protocol, until it ends. The future is dropped when
    /// the server stops, and when the client's certificate is taken no more.
    fn serve(&self, stream: TlsStream<TcpStream>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
