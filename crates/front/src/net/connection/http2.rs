//! HTTP/2, by `sluice-http2`.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::{Driver, Handler, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::limits::Allowance;
use sluice_http2::{Connection, Limits};

use super::stalls::CountStalls;
use super::{Conversation, Served};
use crate::net::activity::Verdict;
use crate::net::body::{Body, Inbound};
use crate::net::options::HttpOptions;
use crate::net::service::Service;

impl Served<'_> {
    /// Answers requests of HTTP/2 until the connection ends.
    pub(super) async fn speak_http2<S: Service>(self, wire: impl Wire + Unpin) {
        let (context, activity, peer) = (self.context, Arc::clone(&self.activity), Arc::clone(&self.peer));
        let calls = FunctionService(|request: Request<RequestBody>| {
            let request = request.map(Inbound::Http2);
            let answer = S::answer(Arc::clone(context), Arc::clone(&activity), Arc::clone(&peer), request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        let hot = S::hot(Arc::clone(context), Arc::clone(&self.activity), Arc::clone(&self.peer));
        let limits = match self.peer.is_node() {
            false => Arc::clone(&context.http2_limits),
            true => Arc::new(of_node(&context.http2_limits)),
        };
        let adapter = Adapter::with_direct(calls, hot, &limits);
        let connection = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
        let handler = CountStalls::new(adapter, &context.metrics);
        self.converse(Driver::new(wire, handler, connection)).await;
    }
}

/// The limits of a connection of another node, over which the clients of that node end their requests early.
/// The largest head of a client has its place beside the fields with which it is passed on.
fn of_node(limits: &Limits) -> Limits {
    let unlimited = Allowance { burst: u32::MAX, per_second: u32::MAX };
    Limits {
        resets: unlimited,
        late_frames: unlimited,
        header_list_bytes: 2 * limits.header_list_bytes,
        header_block_bytes: 2 * limits.header_block_bytes,
        ..limits.clone()
    }
}

/// A function as a service.
struct FunctionService<F>(F);

impl<F, A> tower_service::Service<Request<RequestBody>> for FunctionService<F>
where
    F: FnMut(Request<RequestBody>) -> A,
    A: Future<Output = Result<Response<Body>, Infallible>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = A;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> A {
        (self.0)(request)
    }
}

impl<W: Wire + Unpin, H: Handler + Unpin> Conversation for Driver<W, H> {
    fn shut_down(&mut self) {
        Driver::shut_down(self);
    }

    /// The driver of HTTP/2 keeps its own deadlines.
    fn verdict(&self, _: &HttpOptions) -> Verdict {
        Verdict::Keep(Duration::MAX)
    }
}
