//! Bodies: reading those of requests within bounds of size, time and memory; those of answers.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Waker, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sluice_engine::Error;
use sluice_http2::adapter::{BodyError, RequestBody};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::errors::ApiError;
use super::in_flight::InFlight;

/// Slowest rate at which a body may come in the long run, in bytes a second.
const BODY_RATE_MIN: u64 = 128 << 10;
/// Memory that is set aside at once for an announced body, in bytes; the rest follows as it comes.
const BODY_RESERVE_BYTES: usize = 1 << 20;
/// Pieces of answers up to this size are not kept until they are written.
const COPIED_BYTES: usize = 1 << 10;
/// How much of a refused body is read and dropped, so that the client gets to read the answer.
const DRAIN_BYTES_MAX: usize = 32 << 20;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// The bytes of request bodies in memory, over all requests.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    used: AtomicUsize,
    max: usize,
}

impl BodyBudget {
    pub(crate) fn new(max: usize) -> BodyBudget {
        BodyBudget { used: AtomicUsize::new(0), max }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes so many bytes; false when there is no room, and then nothing is taken.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let fits = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    /// Gives bytes back that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A request's body in memory; gives its share of the budget back when dropped.
#[derive(Debug)]
pub(crate) struct Upload<'b> {
    bytes: Bytes,
    budget: &'b BodyBudget,
    reserved: usize,
}

impl Upload<'_> {
    /// The body.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to keep pieces of it.
    pub(crate) fn shared(&self) -> Bytes {
        self.bytes.clone()
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), ApiError> {
        let before = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.reserved += bytes;
        if before + bytes > self.budget.max {
            return Err(Error::Overloaded { what: "request bodies", retry_after_ms: 1_000 }.into());
        }
        Ok(())
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.reserved, Ordering::Relaxed);
    }
}

/// The body of a request: on its way, or there already, from a protocol that has read it.
#[derive(Debug)]
pub(crate) enum Inbound {
    Http1(Incoming),
    Http2(RequestBody),
    There(Bytes),
}

/// Why the body of a request ends before its end.
#[derive(Debug)]
pub(crate) enum InboundError {
    Http1(hyper::Error),
    Http2(BodyError),
}

impl fmt::Display for InboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InboundError::Http1(error) => error.fmt(f),
            InboundError::Http2(error) => error.fmt(f),
        }
    }
}

impl http_body::Body for Inbound {
    type Data = Bytes;
    type Error = InboundError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waker: &mut Waker<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        match &mut *self {
            Inbound::Http1(body) => Pin::new(body)
                .poll_frame(waker)
                .map(|frame| frame.map(|frame| frame.map_err(InboundError::Http1))),
            Inbound::Http2(body) => Pin::new(body)
                .poll_frame(waker)
                .map(|frame| frame.map(|frame| frame.map_err(InboundError::Http2))),
            Inbound::There(bytes) if bytes.is_empty() => Poll::Ready(None),
            Inbound::There(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Inbound::Http1(body) => body.is_end_stream(),
            Inbound::Http2(body) => body.is_end_stream(),
            Inbound::There(bytes) => bytes.is_empty(),
        }
    }
}

/// How a body is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRules {
    /// Largest body, in bytes.
    pub(crate) bytes_max: usize,
    /// See [`super::HttpOptions::body_timeout`].
    pub(crate) timeout: Duration,
}

/// Reads a body of a request with these `headers`.
pub(crate) async fn read<'b, B>(
    mut incoming: B,
    headers: &HeaderMap,
    rules: BodyRules,
    budget: &'b BodyBudget,
) -> Result<Upload<'b>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<usize>().ok());
    let mut upload = Upload { bytes: Bytes::new(), budget, reserved: 0 };
    let result = match announced {
        _ if !is_plain(headers) => Err(encoded(headers)),
        Some(length) if length > rules.bytes_max => Err(ApiError::body_too_large(rules.bytes_max)),
        _ => fill(&mut upload, &mut incoming, announced, rules).await,
    };
    match result {
        Ok(()) => Ok(upload),
        Err(error) => {
            let unread =
                matches!(error.code(), "body_too_large" | "overloaded" | "unsupported_content_encoding");
            if unread && !headers.contains_key(EXPECT) {
                drain(&mut incoming).await;
            }
            Err(error)
        }
    }
}

/// Whether the codings of a body leave it as it is.
fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

#[cold]
fn encoded(headers: &HeaderMap) -> ApiError {
    let codings: Vec<_> = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes).collect();
    let codings = String::from_utf8_lossy(&codings.join(&b", "[..])).chars().take(64).collect::<String>();
    let message = format!(
        "Content-Encoding is {codings:?}: send the body as it is. A payload may be compressed by whoever sends it, and \
         say so in a header of the message (Sluice-Header-Content-Encoding on the raw routes)"
    );
    ApiError::new("unsupported_content_encoding", message).with(|o| o.text("content_encoding", &codings))
}

/// By how much later than without them a body may come to its end of which so many bytes are here.
pub(crate) fn allowance(bytes: usize) -> Duration {
    Duration::from_millis(bytes as u64 * 1_000 / BODY_RATE_MIN)
}

async fn fill<B>(
    upload: &mut Upload<'_>,
    incoming: &mut B,
    announced: Option<usize>,
    rules: BodyRules,
) -> Result<(), ApiError>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let started = Instant::now();
    let mut gathered: Vec<u8> = Vec::new();
    let mut received = 0usize;
    while !incoming.is_end_stream() {
        let frame = match timeout_at(started + rules.timeout + allowance(received), incoming.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                return Err(ApiError::new("incomplete_body", format!("the body broke off: {error}")));
            }
            Err(_) => {
                let message =
                    format!("the body came too slowly: {received} bytes in {:?}", started.elapsed());
                return Err(ApiError::new("request_timeout", message));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        received += data.len();
        if received > rules.bytes_max {
            return Err(ApiError::body_too_large(rules.bytes_max));
        }
        upload.reserve(data.len())?;
        // Most bodies come in one piece, which is then used where it lies.
        if received == data.len() {
            upload.bytes = data;
            continue;
        }
        if gathered.is_empty() {
            gathered.reserve(announced.unwrap_or(0).clamp(received, received + BODY_RESERVE_BYTES));
            gathered.extend_from_slice(&upload.bytes);
            upload.bytes = Bytes::new();
        }
        gathered.extend_from_slice(&data);
    }
    if !gathered.is_empty() {
        upload.bytes = gathered.into();
    }
    Ok(())
}

/// Reads and drops what a client still sends after it was refused: a connection closed on unread bytes would be
/// reset, and the answer lost.
async fn drain<B>(incoming: &mut B)
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let deadline = Instant::now() + DRAIN_TIME_MAX;
    let mut dropped = 0;
    while dropped < DRAIN_BYTES_MAX && !incoming.is_end_stream() {
        match timeout_at(deadline, incoming.frame()).await {
            Ok(Some(Ok(frame))) => dropped += frame.data_ref().map_or(0, Bytes::len),
            _ => break,
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Body {
    content: Content,
    /// What follows the content.
    trailers: Option<HeaderMap>,
    /// The request counts as in flight until its answer is written.
    in_flight: Option<Arc<InFlight>>,
}

enum Content {
    Full(Bytes),
    Stream(mpsc::Receiver<io::Result<Bytes>>),
    Other(Pin<Box<dyn http_body::Body<Data = Bytes, Error = io::Error> + Send>>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Content::Full(_) => "Full",
            Content::Stream(_) => "Stream",
            Content::Other(_) => "Other",
        })
    }
}

impl Body {
    /// Bytes that are there.
    pub(crate) fn full(bytes: Bytes) -> Body {
        Body { content: Content::Full(bytes), trailers: None, in_flight: None }
    }

    /// Bytes that are there, and trailers behind them.
    pub(crate) fn with_trailers(bytes: Bytes, trailers: HeaderMap) -> Body {
        Body { trailers: Some(trailers), ..Body::full(bytes) }
    }

    /// Bytes that come; an error breaks the answer off, which the client sees.
    pub(crate) fn stream(stream: mpsc::Receiver<io::Result<Bytes>>) -> Body {
        Body { content: Content::Stream(stream), trailers: None, in_flight: None }
    }

    /// The same, and trailers behind them, unless it breaks off.
    pub(crate) fn stream_with_trailers(
        stream: mpsc::Receiver<io::Result<Bytes>>,
        trailers: HeaderMap,
    ) -> Body {
        Body { trailers: Some(trailers), ..Body::stream(stream) }
    }

    /// The frames of a protocol that has a body of its own.
    pub(crate) fn other(
        body: impl http_body::Body<Data = Bytes, Error = io::Error> + Send + 'static,
    ) -> Body {
        Body { content: Content::Other(Box::pin(body)), trailers: None, in_flight: None }
    }

    /// Keeps `in_flight` until the body is written or dropped, with the memory that it takes.
    pub(crate) fn keep(&mut self, in_flight: Arc<InFlight>) {
        if let Content::Full(bytes) = &self.content {
            in_flight.share.charge(bytes.len());
        }
        self.in_flight = Some(in_flight);
    }

    /// The bytes that are there; none of a stream.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.content {
            Content::Full(bytes) => bytes,
            Content::Stream(_) | Content::Other(_) => Bytes::new(),
        }
    }

    /// Drops the content, for the answer to a HEAD; tells how long it was, if known.
    pub(crate) fn clear(&mut self) -> Option<u64> {
        let length = self.size_hint().exact();
        self.content = Content::Full(Bytes::new());
        length
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waker: &mut Waker<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Body { content, trailers, in_flight } = &mut *self;
        let bytes = match content {
            Content::Full(bytes) if bytes.is_empty() => {
                return Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            Content::Full(bytes) => std::mem::take(bytes),
            Content::Stream(stream) => match ready!(stream.poll_recv(waker)) {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
            },
            Content::Other(body) => match ready!(body.as_mut().poll_frame(waker)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => bytes,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            },
        };
        let bytes = match in_flight {
            // Few bytes are copied by the connection, and are not worth watching.
            Some(in_flight) if bytes.len() > COPIED_BYTES => {
                Bytes::from_owner(Piece { bytes, _in_flight: Arc::clone(in_flight) })
            }
            _ => bytes,
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_none() && matches!(&self.content, Content::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) | Content::Other(_) => SizeHint::default(),
        }
    }
}

/// A piece of an answer, on its way to the client.
struct Piece {
    bytes: Bytes,
    /// Until the connection has written the piece.
    _in_flight: Arc<InFlight>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    fn rules(bytes_max: usize) -> BodyRules {
        BodyRules { bytes_max, timeout: Duration::from_millis(50) }
    }

    #[tokio::test]
    async fn bodies_in_pieces_come_together_and_give_their_budget_back() {
        let budget = BodyBudget::new(10);
        let (send, receive) = mpsc::channel(4);
        for piece in ["abc", "", "def"] {
            send.send(Ok(Bytes::from(piece))).await.unwrap();
        }
        drop(send);
        let upload = read(Body::stream(receive), &HeaderMap::new(), rules(6), &budget).await.unwrap();
        assert_eq!(upload.bytes(), b"abcdef");
        assert_eq!(budget.used(), 6);
        drop(upload);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn bodies_too_large_are_refused_announced_or_not() {
        let budget = BodyBudget::new(100);
        let mut headers = HeaderMap::new();
        let error = read(Full::new(Bytes::from("abc")), &headers, rules(2), &budget).await.unwrap_err();
        assert_eq!(error.code(), "body_too_large");
        headers.insert(CONTENT_LENGTH, 3.into());
        let error = read(Full::new(Bytes::from("abc")), &headers, rules(2), &budget).await.unwrap_err();
        assert_eq!(error.code(), "body_too_large");
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn more_bodies_than_memory_allows_are_pushed_back() {
        let budget = BodyBudget::new(4);
        let kept = read(Full::new(Bytes::from("abc")), &HeaderMap::new(), rules(9), &budget).await.unwrap();
        let error =
            read(Full::new(Bytes::from("abc")), &HeaderMap::new(), rules(9), &budget).await.unwrap_err();
        assert_eq!(error.code(), "overloaded");
        drop(kept);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_cut_by_its_deadline() {
        let budget = BodyBudget::new(100);
        let (send, receive) = mpsc::channel(4);
        send.send(Ok(Bytes::from("abc"))).await.unwrap();
        let error = read(Body::stream(receive), &HeaderMap::new(), rules(9), &budget).await.unwrap_err();
        assert_eq!(error.code(), "request_timeout");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_says_so() {
        let budget = BodyBudget::new(100);
        let (send, receive) = mpsc::channel(4);
        send.send(Ok(Bytes::from("a"))).await.unwrap();
        send.send(Err(io::Error::other("gone"))).await.unwrap();
        let body = Body::stream(receive);
        let error = read(body, &HeaderMap::new(), rules(9), &budget).await.unwrap_err();
        assert_eq!(error.code(), "incomplete_body");
        assert_eq!(budget.used(), 0);
    }
}
