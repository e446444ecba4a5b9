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
use sluice_http2::{Connection, Limits};
use tower_service::Service;

use super::activity::Verdict;
use super::stalls::CountStalls;
use super::{Conversation, Served};
use crate::http::body::{Body, Inbound};
use crate::http::direct::HotCalls;
use crate::http::dispatch::handle;
use crate::http::options::{HEAD_BYTES_MAX, HttpOptions, STREAMS_MAX};

/// What a connection of HTTP/2 may take of memory and time.
pub(in crate::http) fn limits(options: &HttpOptions) -> Limits {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Limits {
        streams: STREAMS_MAX,
        header_list_bytes: HEAD_BYTES_MAX as u32,
        header_block_bytes: HEAD_BYTES_MAX as u32,
        preface_us: us(options.head_timeout),
        frame_us: us(options.head_timeout),
        // As good as any sign of life.
        settings_ack_us: us(options.ping_interval),
        // Whoever reads a body has a deadline for it, and an answer when it is over: this one is for bodies that nobody reads.
        body_stall_us: us(options.body_timeout).saturating_mul(2),
        read_stall_us: us(options.write_timeout),
        keep_alive_us: us(options.ping_interval),
        idle_us: us(options.idle_timeout),
        ..Limits::default()
    }
}

impl Served<'_> {
    /// Answers requests of HTTP/2 until the connection ends.
    pub(super) async fn speak_http2(self, wire: impl Wire + Unpin) {
        let (context, activity, peer) = (self.context, Arc::clone(&self.activity), Arc::clone(&self.peer));
        let calls = Calls(|request: Request<RequestBody>| {
            let request = request.map(Inbound::Http2);
            let answer = handle(Arc::clone(context), Arc::clone(&activity), Arc::clone(&peer), request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        let hot = HotCalls {
            context: Arc::clone(context),
            activity: Arc::clone(&self.activity),
            peer: Arc::clone(&self.peer),
        };
        let limits = Arc::clone(&context.http2_limits);
        let adapter = Adapter::with_direct(calls, hot, &limits);
        let connection = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
        let handler = CountStalls::new(adapter, &context.metrics);
        self.converse(Driver::new(wire, handler, connection)).await;
    }
}

/// A function as a service.
struct Calls<F>(F);

impl<F, A> Service<Request<RequestBody>> for Calls<F>
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

    /// Its deadlines are its own.
    fn verdict(&self, _: &HttpOptions) -> Verdict {
        Verdict::Keep(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_valid_and_bound_a_connections_memory_as_the_docs_say() {
        let limits = limits(&HttpOptions::default());
        assert_eq!(limits.validate(), Ok(()));
        assert!(limits.connection_bytes_max() < 10 << 20, "{}", limits.connection_bytes_max());
    }
}
