//! Direct calls, beside a service that can do the same.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::client::conn::http2::SendRequest;
use sluice_http2::adapter::{Adapter, Direct, DirectResponse};
use sluice_http2::connection::RequestHead;
use sluice_http2::drive::{Driver, Plain};
use sluice_http2::emit::EmitMode;
use sluice_http2::hpack::{Encoded, Field};
use sluice_http2::{Connection, Limits};
use tokio::io::duplex;

use super::support::*;

static CONSTANT: LazyLock<Encoded> =
    LazyLock::new(|| Encoded::new([Field::new("content-type", "text/plain"), Field::new("x-by", "direct")]));

/// - `/upload` tells the length of a body of up to 10,000 bytes; of larger ones, the service does;
/// - `/echo` is declined once it is whole, whatever its size;
/// - `/status/N` gives that status, with a body if there may be one;
/// - `/never` has no end.
#[derive(Clone, Default)]
struct TestDirect {
    /// Calls without an end that have begun.
    begun: Arc<AtomicUsize>,
    /// Calls that were dropped before their end.
    dropped: Arc<AtomicUsize>,
}

const LENGTH_MAX: usize = 10_000;

impl Direct for TestDirect {
    type Call = Pin<Box<dyn Future<Output = DirectResponse> + Send>>;

    fn takes(&mut self, head: RequestHead<'_>) -> Option<usize> {
        match head.path()? {
            b"/upload" => Some(LENGTH_MAX),
            b"/echo" | b"/never" => Some(usize::MAX),
            path if path.starts_with(b"/status/") => Some(0),
            _ => None,
        }
    }

    fn call(&mut self, head: RequestHead<'_>, body: &[u8]) -> Option<Self::Call> {
        let mut response = DirectResponse { constant: Some(&CONSTANT), ..DirectResponse::default() };
        let mut receipt = HeaderValue::from_static("0123");
        receipt.set_sensitive(true);
        response.fields.push((HeaderName::from_static("x-receipt"), receipt));
        match head.path()? {
            b"/upload" => {
                assert!(body.len() <= LENGTH_MAX && *body == *pattern(body.len()));
                assert_eq!(head.field(b"x-last"), Some(&b"last"[..]), "the head is whole, too");
                response.body = Bytes::from(told(body.len()));
            }
            b"/never" => {
                self.begun.fetch_add(1, Ordering::Relaxed);
                let guard = CountDrop(self.dropped.clone());
                return Some(Box::pin(async move {
                    let _guard = guard;
                    std::future::pending().await
                }));
            }
            b"/echo" => return None,
            path => {
                response.status = StatusCode::from_bytes(path.rsplit(|&byte| byte == b'/').next()?).ok()?;
                response.body = Bytes::from_static(b"body");
            }
        }
        Some(Box::pin(async move {
            tokio::task::yield_now().await;
            response
        }))
    }
}

/// What a direct call says of a body.
fn told(bytes: usize) -> String {
    format!("{bytes} bytes, directly")
}

/// What the service says of a body.
fn served(bytes: usize) -> String {
    format!("{bytes} bytes of the pattern, trailers: ")
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn connect(direct: TestDirect) -> SendRequest<AnyBody> {
    let (near, far) = duplex(64 << 10);
    let limits = Arc::new(Limits::default());
    let adapter = Adapter::with_direct(TestService, direct, &limits);
    let driver =
        Driver::new(Plain::new(far), adapter, |now_us| Connection::new(limits, EmitMode::Auto, now_us));
    tokio::spawn(driver);
    client(near).await
}

/// A body in pieces, with trailers if they are wanted.
fn pieces(bytes: usize, piece: usize, trailers: Option<HeaderMap>) -> AnyBody {
    let whole = pattern(bytes);
    let data: Vec<_> = (0..bytes).step_by(piece).map(|at| whole.slice(at..bytes.min(at + piece))).collect();
    let frames = data.into_iter().map(Frame::data).chain(trailers.map(Frame::trailers));
    StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, Error>).collect::<Vec<_>>())).boxed()
}

/// A request that states the length of its body.
fn stating(path: &str, bytes: usize, body: AnyBody) -> Request<AnyBody> {
    let mut request = request("POST", path, body);
    request.headers_mut().insert(CONTENT_LENGTH, bytes.into());
    request
}

/// What `/upload` says of a body whose length is stated.
async fn length(sender: &SendRequest<AnyBody>, bytes: usize, body: AnyBody) -> String {
    told_of(sender, stating("/upload", bytes, body)).await
}

async fn told_of(sender: &SendRequest<AnyBody>, mut request: Request<AnyBody>) -> String {
    request.headers_mut().insert("x-last", HeaderValue::from_static("last"));
    let (status, body) = ask(&mut sender.clone(), request).await;
    assert_eq!(status, StatusCode::OK);
    String::from_utf8(body.to_vec()).expect("text")
}

#[tokio::test]
async fn bodies_come_whole_however_they_are_sent() {
    let sender = connect(TestDirect::default()).await;
    assert_eq!(told_of(&sender, request("POST", "/upload", no_body())).await, told(0));
    for bytes in [1, 1_000, LENGTH_MAX] {
        assert_eq!(length(&sender, bytes, full(pattern(bytes))).await, told(bytes));
        for piece in [bytes.div_ceil(2), bytes.div_ceil(7), bytes.div_ceil(50)] {
            assert_eq!(length(&sender, bytes, pieces(bytes, piece, None)).await, told(bytes));
        }
    }
}

#[tokio::test]
async fn what_is_not_for_a_direct_call_goes_to_the_service() {
    let sender = connect(TestDirect::default()).await;
    // Larger than allowed: known at first, found out in the last piece, or before it.
    for bytes in [LENGTH_MAX + 1, 200_000] {
        assert_eq!(length(&sender, bytes, full(pattern(bytes))).await, served(bytes));
        assert_eq!(length(&sender, bytes, pieces(bytes, 1_000, None)).await, served(bytes));
    }
    // Of no stated length: only the service waits for a body with a deadline of its own.
    let unstated = request("POST", "/upload", pieces(100, 10, None));
    assert_eq!(told_of(&sender, unstated).await, served(100));
    // Not taken at all, and declined.
    let answer = ask(&mut sender.clone(), request("GET", "/size/3", no_body())).await;
    assert_eq!(answer, (StatusCode::OK, pattern(3)));
    for bytes in [0, 3, 5_000, 400_000] {
        let asked = stating("/echo", bytes, pieces(bytes, 3_000, None));
        let answer = ask(&mut sender.clone(), asked).await;
        assert_eq!(answer, (StatusCode::OK, pattern(bytes)));
    }
}

/// Only the service knows how long to wait for whom.
#[tokio::test]
async fn a_body_that_lets_wait_for_itself_goes_to_the_service() {
    // None of it comes, or some.
    let asked = [[0..0, 0..5], [0..1, 1..5]].map(|pieces| {
        let mut pauses = [0, 3_000].into_iter();
        let slow = futures_util::StreamExt::then(futures_util::stream::iter(pieces), move |piece| {
            let pause = Duration::from_millis(pauses.next().unwrap_or_default());
            async move {
                tokio::time::sleep(pause).await;
                Ok::<_, Error>(Frame::data(pattern(5).slice(piece)))
            }
        });
        let request = stating("/upload", 5, StreamBody::new(slow).boxed());
        async move { told_of(&connect(TestDirect::default()).await, request).await }
    });
    assert_eq!(join_all(asked).await, [served(5), served(5)]);
}

/// RFC 9113 §8.1.
#[tokio::test]
async fn rfc9113_8_1_requests_with_trailers_go_to_the_service() {
    let mut sender = connect(TestDirect::default()).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    let body = pieces(5_000, 1_000, Some(trailers.clone()));
    let response = sender.send_request(stating("/echo", 5_000, body)).await.expect("an answer");
    let collected = response.into_body().collect().await.expect("a body");
    assert_eq!(collected.trailers(), Some(&trailers));
    assert_eq!(collected.to_bytes(), pattern(5_000));
    let text = length(&sender, 100, pieces(100, 10, Some(trailers))).await;
    assert_eq!(text, served(100) + "x-sum=\"7\"");
}

/// RFC 9110 §8.6, §9.3.2, §15.3.5.
#[tokio::test]
async fn rfc9110_responses_have_what_their_status_and_method_allow() {
    let mut sender = connect(TestDirect::default()).await;
    for (method, status, body) in
        [("GET", 201, "body"), ("HEAD", 200, ""), ("GET", 204, ""), ("GET", 304, ""), ("GET", 404, "body")]
    {
        let request = request(method, &format!("/status/{status}"), no_body());
        let response = sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status().as_u16(), status);
        let fields = response.headers();
        assert_eq!(fields.len(), if status == 204 || status == 304 { 4 } else { 5 }, "{fields:?}");
        assert!(fields["content-type"] == "text/plain" && fields["x-by"] == "direct");
        assert!(httpdate::parse_http_date(fields["date"].to_str().expect("text")).is_ok());
        assert_eq!(fields["x-receipt"], "0123");
        assert!(fields.get("content-length").is_none_or(|length| length == "4"));
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), body);
    }
}

/// RFC 9110 §10.1.1: who waits to be told to go on, the service tells.
#[tokio::test]
async fn rfc9110_10_1_1_requests_that_wait_for_continue_go_to_the_service() {
    let mut sender = connect(TestDirect::default()).await;
    let mut request = request("POST", "/upload", full(pattern(5)));
    request.headers_mut().insert("expect", HeaderValue::from_static("100-continue"));
    let (_, body) = ask(&mut sender, request).await;
    assert_eq!(body, served(5));
}

/// A call is dropped with its stream: reset by the peer, or by the end of the connection.
#[tokio::test]
async fn calls_end_with_their_streams() {
    let direct = TestDirect::default();
    let sender = connect(direct.clone()).await;
    let until = async |counter: &AtomicUsize, number| {
        while counter.load(Ordering::Relaxed) < number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let asked = || {
        let mut sender = sender.clone();
        async move { sender.send_request(request("POST", "/never", full(pattern(100)))).await.map(drop) }
    };
    let given_up = tokio::spawn(asked());
    until(&direct.begun, 1).await;
    assert_eq!(direct.dropped.load(Ordering::Relaxed), 0);
    given_up.abort();
    until(&direct.dropped, 1).await;
    let waiting = tokio::spawn(asked());
    until(&direct.begun, 2).await;
    assert_eq!(length(&sender, 10, full(pattern(10))).await, told(10), "others go on");
    assert_eq!(direct.dropped.load(Ordering::Relaxed), 1);
    waiting.abort();
    drop(sender);
    until(&direct.dropped, 2).await;
}

/// Bodies that are collected take no more than half of the connection's window: all of them come through.
#[tokio::test]
async fn many_bodies_at_once_do_not_hold_each_other_up() {
    let sender = connect(TestDirect::default()).await;
    let asked = (0..30).map(|number| {
        let mut sender = sender.clone();
        async move {
            let bytes = 90_000 + number;
            let answer = ask(&mut sender, stating("/echo", bytes, pieces(bytes, 1_000, None))).await;
            assert!(answer == (StatusCode::OK, pattern(bytes)));
        }
    });
    join_all(asked).await;
}
