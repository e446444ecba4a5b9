//! In the steady state a request and its response take nothing from the allocator, besides the response's own
//! bytes.

mod wire;

use std::cell::Cell;
use std::future::{Ready, ready};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use sluice_alloc_count::{Counting, Mode, counts, set_mode};
use sluice_http2::adapter::{Adapter, Direct, DirectResponse, RequestBody};
use sluice_http2::connection::RequestHead;
use sluice_http2::drive::{Driver, Handler};
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

/// The body of a request, in pieces.
type Pieces = &'static [usize];

/// What a client sends in one round: requests with a body in such pieces, or none, and windows for the last
/// round's responses.
fn round(encoder: &mut Encoder, number: u32, pieces: Pieces) -> Vec<u8> {
    let mut bytes = Vec::new();
    for stream in (0..AT_ONCE).map(|index| 1 + 2 * (number * AT_ONCE + index)) {
        let mut block = Vec::new();
        let path = format!("/v1/queues/jobs-{}/messages", stream % 10);
        let length = pieces.iter().sum::<usize>().to_string();
        let fields: [(&[u8], &[u8]); 6] = [
            (b":method", if pieces.is_empty() { b"GET" } else { b"POST" }),
            (b":scheme", b"https"),
            (b":path", path.as_bytes()),
            (b":authority", b"localhost"),
            (b"user-agent", b"client/1.0"),
            (b"content-length", length.as_bytes()),
        ];
        let end_of = |last: bool| if last { flag::END_STREAM } else { 0 };
        encoder.encode(fields, &mut block);
        let flags = flag::END_HEADERS | end_of(pieces.is_empty());
        write::header(&mut bytes, block.len(), kind::HEADERS, flags, stream);
        bytes.extend_from_slice(&block);
        for (index, &piece) in pieces.iter().enumerate() {
            write::header(&mut bytes, piece, kind::DATA, end_of(index + 1 == pieces.len()), stream);
            bytes.resize(bytes.len() + piece, 7);
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
        let rounds: Vec<_> = (0..2 * ROUNDS).map(|number| round(&mut encoder, number, &[50, 50])).collect();
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

/// What a handler takes from the allocator in a number of rounds, after as many.
fn taken_by(handler: impl Handler + Unpin, limits: Arc<Limits>, pieces: Pieces) -> u64 {
    let mut encoder = Encoder::new();
    let rounds = (0..2 * ROUNDS).map(|number| round(&mut encoder, number, pieces));
    let wire = Rounds::new([hello()].into_iter().chain(rounds), Rc::new(Cell::new(true)));
    let make = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
    let mut driver = pin!(Driver::new(wire, handler, make));
    turn(&mut driver, 1 + ROUNDS);
    set_mode(Mode::Count);
    let before = counts();
    turn(&mut driver, ROUNDS);
    let taken = counts().since(&before);
    set_mode(Mode::Off);
    taken.allocations
}

#[test]
fn a_direct_call_allocates_nothing() {
    let _counting = counting_alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    for body in [3, 20_000].map(|bytes| Bytes::from(vec![7; bytes])) {
        let limits = Arc::new(Limits::default());
        let taken = taken_by(Adapter::with_direct(NoService, Answers(body), &limits), limits, &[50, 50]);
        // The date, if a second begins, and a table that finds out late that it wants to be larger.
        assert!(taken <= 8, "{taken} of {}", ROUNDS * AT_ONCE);
    }
}

/// Answers every request as servers of files do, and does not look at its body.
struct Files(Bytes);

impl Service<Request<RequestBody>> for Files {
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Response<Full<Bytes>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        let mut response = Response::new(Full::new(self.0.clone()));
        for name in [header::SERVER, header::CONTENT_TYPE, header::ETAG] {
            response.headers_mut().insert(name, HeaderValue::from_static("a"));
        }
        ready(Ok(response))
    }
}

#[test]
fn a_call_of_a_service_allocates_little() {
    let _counting = counting_alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    // The map of the response is two; a body in one piece is another, and one in several pieces three.
    for (pieces, most) in [(&[][..], 2.1), (&[100], 3.1), (&[50, 50], 5.1)] {
        let limits = Arc::new(Limits::default());
        let taken = taken_by(Adapter::new(Files(Bytes::from_static(b"abc")), &limits), limits, pieces);
        let of_each = taken as f64 / f64::from(ROUNDS * AT_ONCE);
        assert!(of_each <= most, "{of_each} with a body of {pieces:?}");
    }
}
