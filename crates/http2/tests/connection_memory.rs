//! A connection takes no more memory than its limits say, whatever its client does.

mod wire;

use std::cell::Cell;
use std::future::{Future, Pending, PollFn, Ready, pending, poll_fn, ready};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Empty;
use sluice_alloc_count::{Counting, Mode, counts, set_mode};
use sluice_http2::adapter::{Adapter, Direct, DirectResponse, RequestBody};
use sluice_http2::connection::RequestHead;
use sluice_http2::drive::{Driver, Handler};
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{Setting, flag, kind, write};
use sluice_http2::hpack::Encoder;
use sluice_http2::{Connection, Limits};
use tower_service::Service;

use wire::{Rounds, counting_alone, hello, turn};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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

/// Answers with large heads and nothing else, as a service and directly. They are made when they are asked
/// for.
struct Boastful;

type Made<T> = PollFn<fn(&mut Context<'_>) -> Poll<T>>;

fn large_head() -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    static VALUE: LazyLock<HeaderValue> =
        LazyLock::new(|| HeaderValue::from_maybe_shared("~".repeat(1_024)).expect("a value"));
    std::iter::repeat_with(|| (header::LINK, VALUE.clone())).take(30)
}

impl Service<Request<RequestBody>> for Boastful {
    type Response = Response<Empty<Bytes>>;
    type Error = io::Error;
    type Future = Made<io::Result<Response<Empty<Bytes>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        poll_fn(|_| {
            let mut response = Response::new(Empty::new());
            large_head().for_each(|(name, value)| {
                response.headers_mut().append(name, value);
            });
            Poll::Ready(Ok(response))
        })
    }
}

impl Direct for Boastful {
    type Call = Made<DirectResponse>;

    fn takes(&mut self, _: RequestHead<'_>) -> Option<usize> {
        Some(0)
    }

    fn call(&mut self, _: RequestHead<'_>, _: &[u8]) -> Option<Self::Call> {
        Some(poll_fn(|_| {
            Poll::Ready(DirectResponse { fields: large_head().collect(), ..DirectResponse::default() })
        }))
    }
}

/// Answers with nothing, and counts how often. Its futures are as large as those of a server may be.
struct Brief(Rc<Cell<u32>>);

impl Service<Request<RequestBody>> for Brief {
    type Response = Response<Empty<Bytes>>;
    type Error = io::Error;
    type Future = Large;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Large {
        self.0.set(self.0.get() + 1);
        Large([0; 4 << 10])
    }
}

struct Large([u8; 4 << 10]);

impl Future for Large {
    type Output = io::Result<Response<Empty<Bytes>>>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        debug_assert_eq!(self.0[0], 0);
        Poll::Ready(Ok(Response::new(Empty::new())))
    }
}

/// As many requests as a connection may have, with as large heads as they may have, and bodies byte by byte.
fn greedy_client(limits: &Limits, window: u32) -> Vec<u8> {
    let mut script = hello(&[Setting::InitialWindowSize(window)]);
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

/// Bytes that a connection holds after the script, with a handler.
fn held<H>(script: Vec<u8>, reads_answers: bool, limits: &Arc<Limits>, handler: impl FnOnce() -> H) -> u64
where
    H: Handler + Unpin,
{
    let wire = Rounds::new([script], Rc::new(Cell::new(reads_answers)));
    set_mode(Mode::Count);
    let before = counts();
    let connection = |now_us| Connection::new(limits.clone(), EmitMode::Auto, now_us);
    let mut driver = pin!(Driver::new(wire, handler(), connection));
    turn(&mut driver, 100);
    let held = counts().since(&before).held_bytes;
    set_mode(Mode::Off);
    held as u64
}

#[test]
fn a_greedy_client_gets_no_more_memory_than_the_limits_say() {
    let _counting = counting_alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let most = Limits::default().connection_bytes_max();
    assert!((9 << 20..10 << 20).contains(&most), "the documentation says some 9.8 MiB, not {most}");
    // Smaller, since it takes a frame for each byte.
    let limits = Arc::new(Limits { connection_receive_bytes: 128 << 10, ..Limits::default() });
    let most = limits.connection_bytes_max();

    let silent = || Adapter::new(Silent, &limits);
    let talkative = || Adapter::new(Talkative, &limits);
    let held_requests = held(greedy_client(&limits, 0), true, &limits, silent);
    let held_responses = held(greedy_client(&limits, 0), true, &limits, talkative);
    let held_unread = held(greedy_client(&limits, 1 << 20), false, &limits, talkative);
    for held in [held_requests, held_responses, held_unread] {
        assert!(held <= most, "{held} of {most} bytes");
    }
    assert!(held_requests > 1 << 20 && held_responses > 1 << 20, "{held_requests}, {held_responses}");

    let idle = held(hello(&[]), true, &limits, silent);
    assert!(idle < 16 << 10, "{idle} bytes while idle");
}

/// As many requests without bodies as a connection may have at once, after others.
fn requests(encoder: &mut Encoder, limits: &Limits, after: u32) -> Vec<u8> {
    let mut script = Vec::new();
    for stream in (after..after + limits.streams).map(|index| 1 + 2 * index) {
        let head: [(&[u8], &[u8]); 4] =
            [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"a")];
        let mut block = Vec::new();
        encoder.encode(head, &mut block);
        write::header(&mut script, block.len(), kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream);
        script.extend(block);
    }
    script
}

/// A client that says hello, and asks as often as it may.
fn asking_client(encoder: &mut Encoder, limits: &Limits) -> Vec<u8> {
    [hello(&[]), requests(encoder, limits, 0)].concat()
}

#[test]
fn heads_of_responses_that_nobody_reads_are_bounded_by_bytes_and_not_by_streams() {
    let _counting = counting_alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let limits = Arc::new(Limits::default());
    let script = || asking_client(&mut Encoder::new(), &limits);
    let of_calls = held(script(), false, &limits, || Adapter::new(Boastful, &limits));
    let of_direct_calls = held(script(), false, &limits, || Adapter::with_direct(Silent, Boastful, &limits));
    // What waits, what is planned, and the head that was too much, in buffers that double as they grow; and
    // 256 places.
    let most = 4 * u64::from(limits.backlog_bytes + limits.plan_bytes) + (1 << 20);
    for held in [of_calls, of_direct_calls] {
        assert!(held <= most && most < limits.connection_bytes_max(), "{held} of {most} bytes");
    }
}

const PAUSE_ROUNDS: usize = 8;

#[test]
fn an_idle_connection_lets_go_of_what_it_keeps_for_streams() {
    let _counting = counting_alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let _entered = runtime.enter();
    let (limits, mut encoder) = (Arc::new(Limits::default()), Encoder::new());
    // What a thread keeps for all its connections is there already.
    held(hello(&[]), true, &limits, || Adapter::new(Silent, &limits));
    let busy_round = asking_client(&mut encoder, &limits);
    let next_round = requests(&mut encoder, &limits, limits.streams);
    // In between nothing comes; it takes several rounds, as deadlines make turns of their own.
    let rounds = [vec![busy_round], vec![Vec::new(); PAUSE_ROUNDS], vec![next_round]].concat();
    let wire = Rounds::new(rounds, Rc::new(Cell::new(true)));
    let answered = Rc::new(Cell::new(0));
    set_mode(Mode::Count);
    let before = counts();
    let adapter = Adapter::new(Brief(answered.clone()), &limits);
    let connection = |now_us| Connection::new(limits.clone(), EmitMode::Auto, now_us);
    let mut driver = pin!(Driver::new(wire, adapter, connection));
    let mut held_after = |pause: Duration, turns: usize| {
        runtime.block_on(tokio::time::advance(pause));
        turn(&mut driver, turns as u32);
        counts().since(&before).held_bytes
    };
    let at_first = held_after(Duration::ZERO, 1);
    let idle = held_after(Duration::from_secs(1), 1);
    let again = held_after(Duration::ZERO, PAUSE_ROUNDS);
    set_mode(Mode::Off);
    assert_eq!(answered.get(), 2 * limits.streams);
    assert!(at_first > 1 << 20 && again > 1 << 20, "{at_first} and {again} bytes for all streams");
    assert!(idle < 16 << 10, "{idle} bytes while idle");
}
