//! Services that are not ready.

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::Handler;
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{PREFACE, flag, kind, write};
use sluice_http2::hpack::Encoder;
use sluice_http2::{Connection, Limits};
use tower_service::Service;

/// Is ready as told, and after that always; answers with an empty body.
struct Moody(VecDeque<Poll<Result<(), Tired>>>);

#[derive(Clone, Copy, Debug)]
struct Tired;

impl Service<Request<RequestBody>> for Moody {
    type Response = Response<Full<Bytes>>;
    type Error = Tired;
    type Future = Ready<Result<Self::Response, Tired>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Tired>> {
        self.0.pop_front().unwrap_or(Poll::Ready(Ok(())))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        ready(Ok(Response::new(Full::default())))
    }
}

fn send(connection: &mut Connection, adapter: &mut Adapter<Moody, Full<Bytes>>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(event) = connection.next_event(&mut rest, 0) {
        adapter.on_event(connection, event);
    }
    adapter.poll(&mut Context::from_waker(Waker::noop()), connection);
    let planned = connection.plan(0, usize::MAX).len();
    connection.wrote(planned);
}

fn get(encoder: &mut Encoder, stream: u32) -> Vec<u8> {
    let head: [(&[u8], &[u8]); 4] =
        [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"a")];
    let (mut block, mut bytes) = (Vec::new(), Vec::new());
    encoder.encode(head, &mut block);
    write::header(&mut bytes, block.len(), kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream);
    bytes.extend(block);
    bytes
}

#[test]
fn a_service_that_fails_to_become_ready_refuses_one_request() {
    let limits = Arc::new(Limits::default());
    let mut connection = Connection::new(limits.clone(), EmitMode::Auto, 0);
    let mut adapter = Adapter::new(Moody([Poll::Ready(Err(Tired))].into()), &limits);
    let mut hello = PREFACE.to_vec();
    write::settings(&mut hello, &[]);
    send(&mut connection, &mut adapter, &hello);
    let mut encoder = Encoder::new();
    // The second is in the place of the first.
    for stream in [1, 3] {
        send(&mut connection, &mut adapter, &get(&mut encoder, stream));
        assert_eq!(connection.streams(), 0);
    }
}
