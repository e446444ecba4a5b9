//! Bodies: reading those of requests (`inbound`) within bounds of size, time and memory, as a whole or in
//! `pieces`; those of answers (`outbound`).

mod inbound;
mod outbound;
mod pieces;

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

pub(crate) use inbound::Inbound;
pub(crate) use outbound::{Body, kept};
pub(crate) use pieces::Pieces;
use sluice_calls::CallError;

use super::memory::bodies::{BodyBudget, no_room};

/// Slowest rate at which a body may come in the long run, in bytes a second.
const BODY_RATE_MIN: u64 = 128 << 10;
/// Memory that is set aside at once for an announced body, in bytes; the rest follows as it comes.
const BODY_RESERVE_BYTES: usize = 1 << 20;
/// Most bytes of a refused body that are read and dropped, so that the client gets to read the answer.
const DRAIN_BYTES_MAX: usize = 32 << 20;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
/// Most bytes of an unused body that are read and dropped, so that its connection can go on.
const LEFT_BYTES_MAX: usize = 64 << 10;
const LEFT_TIME_MAX: Duration = Duration::from_millis(100);

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

    /// The bytes of the body, shared: slices of them may be kept.
    pub(crate) fn shared(&self) -> Bytes {
        self.bytes.clone()
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), CallError> {
        self.reserved += bytes;
        if !self.budget.take(bytes) {
            return Err(no_room().into());
        }
        Ok(())
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.reserved);
    }
}

/// The bounds for reading a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRules {
    /// Largest body, in bytes.
    pub(crate) bytes_max: usize,
    /// The timeout [`HttpOptions::body_timeout`](crate::net::options::HttpOptions::body_timeout).
    pub(crate) timeout: Duration,
}

/// Reads a body of a request with these `headers`.
pub(crate) async fn read<'b, B>(
    mut incoming: B,
    headers: &HeaderMap,
    rules: BodyRules,
    budget: &'b BodyBudget,
) -> Result<Upload<'b>, CallError>
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
        Some(length) if length > rules.bytes_max => Err(CallError::body_too_large(rules.bytes_max)),
        _ => fill(&mut upload, &mut incoming, announced, rules).await,
    };
    match result {
        Ok(()) => Ok(upload),
        Err(error) => {
            let unread =
                matches!(error.code(), "body_too_large" | "overloaded" | "unsupported_content_encoding");
            if unread {
                drop_refused(&mut incoming, headers).await;
            }
            Err(error)
        }
    }
}

/// Reads and drops what a client still sends of a body that was refused, unless it waits to be told to go on:
/// a connection closed on unread bytes would be reset, and the answer lost.
pub(crate) async fn drop_refused<B>(incoming: &mut B, headers: &HeaderMap)
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    if !headers.contains_key(EXPECT) {
        drain(incoming, DRAIN_BYTES_MAX, DRAIN_TIME_MAX).await;
    }
}

/// Reads what is left of a body to its end, if that is near. Tells whether the connection can go on.
pub(crate) async fn read_rest(body: &mut Inbound, headers: &HeaderMap) -> bool {
    body.take_back(LEFT_TIME_MAX).await;
    // Whoever waits to be told to go on is not told so for nothing.
    if !headers.contains_key(EXPECT) && body.size_hint().lower() <= LEFT_BYTES_MAX as u64 {
        drain(body, LEFT_BYTES_MAX, LEFT_TIME_MAX).await;
    }
    body.is_over()
}

/// True if a body has no coding but `identity`.
fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

#[cold]
fn encoded(headers: &HeaderMap) -> CallError {
    let codings: Vec<_> = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes).collect();
    let codings = String::from_utf8_lossy(&codings.join(&b", "[..])).chars().take(64).collect::<String>();
    let message = format!(
        "Content-Encoding is {codings:?}: send the body as it is. A payload may be compressed by whoever sends it, and \
         say so in a header of the message (Sluice-Header-Content-Encoding on the raw routes)"
    );
    CallError::new("unsupported_content_encoding", message).with(|o| o.text("content_encoding", &codings))
}

/// Time that a body gets beyond its timeout, by the bytes received.
pub(crate) fn allowance(bytes: usize) -> Duration {
    Duration::from_millis(bytes as u64 * 1_000 / BODY_RATE_MIN)
}

async fn fill<B>(
    upload: &mut Upload<'_>,
    incoming: &mut B,
    announced: Option<usize>,
    rules: BodyRules,
) -> Result<(), CallError>
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
                return Err(broken_off(&error));
            }
            Err(_) => return Err(too_slow(received, started)),
        };
        let Ok(data) = frame.into_data() else { continue };
        received += data.len();
        if received > rules.bytes_max {
            return Err(CallError::body_too_large(rules.bytes_max));
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

/// The next bytes of a body that is read piece by piece, of which so many came since it `started`; `None`: it
/// is over.
///
/// # Errors
/// `incomplete_body`, `request_timeout`.
pub(crate) async fn next_data(
    body: &mut Inbound,
    (started, received): (Instant, usize),
    timeout: Duration,
) -> Result<Option<Bytes>, CallError> {
    while !body.is_end_stream() {
        match timeout_at(started + timeout + allowance(received), body.frame()).await {
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(broken_off(&error)),
            Err(_) => return Err(too_slow(received, started)),
        }
    }
    Ok(None)
}

#[cold]
fn broken_off(error: &impl std::fmt::Display) -> CallError {
    CallError::new("incomplete_body", format!("the body broke off: {error}"))
}

#[cold]
fn too_slow(received: usize, started: Instant) -> CallError {
    let message = format!("the body came too slowly: {received} bytes in {:?}", started.elapsed());
    CallError::new("request_timeout", message)
}

/// Reads and drops so many bytes at most.
async fn drain<B>(incoming: &mut B, bytes_max: usize, time_max: Duration)
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let deadline = Instant::now() + time_max;
    let mut dropped = 0;
    while dropped < bytes_max && !incoming.is_end_stream() {
        match timeout_at(deadline, incoming.frame()).await {
            Ok(Some(Ok(frame))) => dropped += frame.data_ref().map_or(0, Bytes::len),
            _ => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use http_body_util::Full;
    use tokio::sync::mpsc;

    use super::*;

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
