//! A connection takes no more memory than its limits say, whatever its client does.

use std::future::{Future, Pending, Ready, pending, ready};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use sluice_alloc_count::{Counting, Mode, counts, set_mode};
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::{Driver, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{PREFACE, Setting, flag, kind, write};
use sluice_http2::hpack::Encoder;
use sluice_http2::{Connection, Limits};
use tower_service::Service;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Gives a script, and takes what is planned or nothing.
struct Script {
    bytes: Vec<u8>,
    read: usize,
    reads_answers: bool,
}

impl Wire for Script {
    fn poll_read(&mut self, _: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let rest = &self.bytes[self.read..];
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        self.read += read;
        if read == 0 { Poll::Pending } else { Poll::Ready(Ok(read)) }
    }

    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>> {
        loop {
            let bytes = connection.plan(now_us, usize::MAX).len();
            if bytes == 0 {
                return Poll::Ready(Ok(()));
            }
            if !self.reads_answers {
                return Poll::Pending;
            }
            connection.wrote(bytes);
        }
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn written(&self) -> u64 {
        0
    }
}

/// Never answers, and keeps every request.
struct Silent;

impl Service<Request<RequestBody>> for Silent {
    type Response = Response<Endless>;
    type Error = io::Error;
    type Future = Keeping;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Keeping {
        Keeping { _request: request, never: pending() }
    }
}

struct Keeping {
    _request: Request<RequestBody>,
    never: Pending<io::Result<Response<Endless>>>,
}

impl Future for Keeping {
    type Output = io::Result<Response<Endless>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.never).poll(context)
    }
}

/// Answers with a body that has no end.
struct Talkative;

impl Service<Request<RequestBody>> for Talkative {
    type Response = Response<Endless>;
    type Error = io::Error;
    type Future = Ready<io::Result<Response<Endless>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        ready(Ok(Response::new(Endless)))
    }
}

struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![7; 8 << 10])))))
    }
}

/// As many requests as a connection may have, with as large heads as they may have, and bodies byte by byte.
fn greedy_client(limits: &Limits, window: u32) -> Vec<u8> {
    let mut script = PREFACE.to_vec();
    write::settings(&mut script, &[Setting::InitialWindowSize(window)]);
    write::settings_ack(&mut script);
    let mut encoder = Encoder::new();
    let streams: Vec<u32> = (0..limits.streams).map(|index| 1 + 2 * index).collect();
    for &stream in &streams {
        let head: [(&[u8], &[u8]); 4] =
            [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"a")];
        // The first few have as many fields as they may; the others leave room for all of them.
        let fields = if stream < 40 { 900 } else { 2 };
        let mut block = Vec::new();
        encoder
            .encode(head.into_iter().chain(std::iter::repeat_n((&b"a"[..], &b"b"[..]), fields)), &mut block);
        write::header(&mut script, block.len(), kind::HEADERS, flag::END_HEADERS, stream);
        script.extend(block);
    }
    let bytes = limits.connection_receive_bytes as usize;
    for &stream in streams.iter().cycle().take(bytes) {
        write::header(&mut script, 1, kind::DATA, 0, stream);
        script.push(7);
    }
    script
}

/// Bytes that a connection holds after the script, with a service.
fn held<S>(script: Vec<u8>, reads_answers: bool, limits: &Arc<Limits>, service: S) -> u64
where
    S: Service<Request<RequestBody>, Response = Response<Endless>, Error = io::Error> + Unpin,
    S::Future: Future<Output = io::Result<Response<Endless>>>,
{
    let wire = Script { bytes: script, read: 0, reads_answers };
    let mut context = Context::from_waker(Waker::noop());
    set_mode(Mode::Count);
    let before = counts();
    let adapter = Adapter::new(service, limits);
    let mut driver =
        pin!(Driver::new(wire, adapter, |now_us| Connection::new(limits.clone(), EmitMode::Auto, now_us)));
    for _ in 0..100 {
        assert!(driver.as_mut().poll(&mut context).is_pending(), "the connection has ended");
    }
    let held = counts().since(&before).held_bytes;
    set_mode(Mode::Off);
    held as u64
}

#[test]
fn a_greedy_client_gets_no_more_memory_than_the_limits_say() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let most = Limits::default().connection_bytes_max();
    assert!((9 << 20..10 << 20).contains(&most), "the documentation says some 9.5 MiB, not {most}");
    // Smaller, since it takes a frame for each byte.
    let limits = Arc::new(Limits { connection_receive_bytes: 128 << 10, ..Limits::default() });
    let most = limits.connection_bytes_max();

    let held_requests = held(greedy_client(&limits, 0), true, &limits, Silent);
    let held_responses = held(greedy_client(&limits, 0), true, &limits, Talkative);
    let held_unread = held(greedy_client(&limits, 1 << 20), false, &limits, Talkative);
    for held in [held_requests, held_responses, held_unread] {
        assert!(held <= most, "{held} of {most} bytes");
    }
    assert!(held_requests > 1 << 20 && held_responses > 1 << 20, "{held_requests}, {held_responses}");

    let mut hello = PREFACE.to_vec();
    write::settings(&mut hello, &[]);
    let idle = held(hello, true, &limits, Silent);
    assert!(idle < 16 << 10, "{idle} bytes while idle");
}
