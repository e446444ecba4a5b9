//! In the steady state a request and its response take nothing from the allocator, besides the response's own bytes.

mod wire;

use std::cell::Cell;
use std::future::{Ready, ready};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluice_alloc_count::{Counting, Mode, counts, set_mode};
use sluice_http2::adapter::{Adapter, Direct, DirectResponse, RequestBody};
use sluice_http2::connection::RequestHead;
use sluice_http2::drive::Driver;
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{flag, kind, write};
use sluice_http2::hpack::{Encoded, Encoder, Field};
use sluice_http2::{Connection, Event, Limits};
use tower_service::Service;

use wire::{Rounds, counting_alone, turn};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests at once, and how often.
const AT_ONCE: u32 = 32;
const ROUNDS: u32 = 100;

/// What a client says first; its window is never small.
fn hello() -> Vec<u8> {
    let mut hello = wire::hello(&[]);
    write::window_update(&mut hello, 0, 1 << 24);
    hello
}

/// What a client sends in one round: requests with a small body in two pieces, and windows for the last round's responses.
fn round(encoder: &mut Encoder, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for stream in (0..AT_ONCE).map(|index| 1 + 2 * (number * AT_ONCE + index)) {
        let mut block = Vec::new();
        let path = format!("/v1/queues/jobs-{}/messages", stream % 10);
        let fields: [(&[u8], &[u8]); 5] = [
            (b":method", b"POST"),
            (b":scheme", b"https"),
            (b":path", path.as_bytes()),
            (b":authority", b"localhost"),
            (b"content-length", b"100"),
        ];
        encoder.encode(fields, &mut block);
        write::header(&mut bytes, block.len(), kind::HEADERS, flag::END_HEADERS, stream);
        bytes.extend_from_slice(&block);
        for flags in [0, flag::END_STREAM] {
            write::header(&mut bytes, 50, kind::DATA, flags, stream);
            bytes.extend_from_slice(&[7; 50]);
        }
    }
    write::window_update(&mut bytes, 0, AT_ONCE * 20_000);
    bytes
}

fn serve(
    connection: &mut Connection,
    mut input: &[u8],
    now_us: u64,
    constant: &Encoded,
    body: &Bytes,
) -> usize {
    let mut answered = 0;
    while let Some(event) = connection.next_event(&mut input, now_us) {
        let Event::Data { stream, data, end } = event else { continue };
        connection.consumed(stream, data.len());
        if !end {
            continue;
        }
        connection
            .respond(stream, 200, Some(constant), [Field::new("content-length", "3")], false)
            .expect("open");
        connection.send_body(stream, body.clone(), true).expect("open");
        answered += 1;
    }
    loop {
        let bytes = connection.plan(now_us, usize::MAX).len();
        if bytes == 0 {
            return answered;
        }
        connection.wrote(bytes);
    }
}

#[test]
fn a_request_and_its_response_allocate_nothing() {
    let _counting = counting_alone();
    let constant = Encoded::new([Field::new("content-type", "application/json")]);
    for body in [3, 20_000].map(|bytes| Bytes::from(vec![7; bytes])) {
        let mut connection = Connection::new(Arc::new(Limits::default()), EmitMode::Auto, 0);
        serve(&mut connection, &hello(), 0, &constant, &body);
        let mut encoder = Encoder::new();
        let rounds: Vec<_> = (0..2 * ROUNDS).map(|number| round(&mut encoder, number)).collect();
        let (first, then) = rounds.split_at(ROUNDS as usize);
        let mut serve_all = |rounds: &[Vec<u8>]| {
            rounds.iter().map(|bytes| serve(&mut connection, bytes, 1, &constant, &body)).sum::<usize>()
        };
        serve_all(first);
        set_mode(Mode::Count);
        let before = counts();
        let answered = serve_all(then);
        let taken = counts().since(&before);
        set_mode(Mode::Off);
        assert_eq!(answered, (ROUNDS * AT_ONCE) as usize);
        // A table may find out late that it wants to be larger: once, not per request.
        assert!(
            taken.allocations <= 2,
            "{} of {answered} requests of {} bytes",
            taken.allocations,
            body.len()
        );
    }
}

static CONSTANT: LazyLock<Encoded> =
    LazyLock::new(|| Encoded::new([Field::new("content-type", "application/json")]));

/// Answers every request with a body, as a direct call.
struct Answers(Bytes);

impl Direct for Answers {
    type Call = Ready<DirectResponse>;

    fn takes(&mut self, _: RequestHead<'_>) -> Option<usize> {
        Some(1_000)
    }

    fn call(&mut self, head: RequestHead<'_>, body: &[u8]) -> Option<Self::Call> {
        assert!(body.len() == 100 && head.method() == b"POST");
        let body = self.0.clone();
        Some(ready(DirectResponse { constant: Some(&CONSTANT), body, ..DirectResponse::default() }))
    }
}

/// Is never asked.
struct NoService;

impl Service<Request<RequestBody>> for NoService {
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Response<Full<Bytes>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        panic!("{} {}", request.method(), request.uri())
    }
}

#[test]
fn a_direct_call_allocates_nothing() {
    let _counting = counting_alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    for body in [3, 20_000].map(|bytes| Bytes::from(vec![7; bytes])) {
        let mut encoder = Encoder::new();
        let rounds = (0..2 * ROUNDS).map(|number| round(&mut encoder, number));
        let wire = Rounds::new([hello()].into_iter().chain(rounds), Rc::new(Cell::new(true)));
        let limits = Arc::new(Limits::default());
        let adapter = Adapter::with_direct(NoService, Answers(body.clone()), &limits);
        let make = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
        let mut driver = pin!(Driver::new(wire, adapter, make));
        turn(&mut driver, 1 + ROUNDS);
        set_mode(Mode::Count);
        let before = counts();
        turn(&mut driver, ROUNDS);
        let taken = counts().since(&before);
        set_mode(Mode::Off);
        // The date, if a second begins, and a table that finds out late that it wants to be larger.
        assert!(taken.allocations <= 8, "{} of {}", taken.allocations, ROUNDS * AT_ONCE);
    }
}
