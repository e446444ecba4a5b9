//! Heads of requests of HTTP/1.1, looked at before hyper reads them.
//!
//! hyper answers what it cannot read by itself, without saying why, and of a request with both
//! `Transfer-Encoding` and `Content-Length` it shows the former alone. So each head is held until it is
//! whole. One that is refused never comes to hyper: in its place it gets a request that says [`METHOD`] and
//! is the last, and the service answers that with the error, behind the answers to what came before.
//!
//! hyper also stops reading while a further request lies behind the one that it answers, and so does not see
//! that the client of a call that waits has gone. So a head passes when what came before it is answered, and
//! up to [`AHEAD_BYTES_MAX`] are read ahead of it.

use std::future::Future as _;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use httparse::{Header, Request, Status};
use sluice_calls::CallError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::framing::Framing;
use crate::json::{Fault, clip};
use crate::net::activity::Activity;
use crate::net::head::well_formed::given_twice;
use crate::net::options::{HEAD_BYTES_MAX, HEAD_FIELDS_MAX};

/// Method of the request that stands for one whose head was refused.
const METHOD: &str = "REFUSED";
/// That request.
const REFUSED: &[u8] = b"REFUSED * HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n";
/// Most bytes that are read ahead of an answer. The end of a connection behind more of them is not seen.
const AHEAD_BYTES_MAX: usize = HEAD_BYTES_MAX;
/// Bytes read and dropped after a refusal, so that its client gets to read it: at most so many ...
const DRAIN_BYTES_MAX: usize = 1 << 20;
/// ... for at most so long.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);

/// The fault of the last head of a connection, if it has one.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    error: OnceLock<CallError>,
    is_late: AtomicBool,
}

impl Refusal {
    /// Has the head that is on its way refused as too slow; false: that was asked for already.
    pub(super) fn head_is_late(&self) -> bool {
        !self.is_late.swap(true, Ordering::Relaxed)
    }

    /// The error of a request that stands for one whose head was refused.
    pub(super) fn of<B>(&self, request: &http::Request<B>) -> Option<CallError> {
        self.error.get().filter(|_| request.method() == METHOD).cloned()
    }
}

/// The next thing on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Head,
    Body(Framing),
    /// Nothing that would be read.
    Nothing,
}

/// A connection's bytes, of which only heads pass that are in order.
#[derive(Debug)]
pub(super) struct Heads<T> {
    inner: T,
    refusal: Arc<Refusal>,
    activity: Arc<Activity>,
    next: Next,
    /// Number of heads that have passed.
    asked: usize,
    /// The beginning of a head that is not whole, or what was read ahead.
    held: Vec<u8>,
    /// True if what is held was not looked at, since it has to wait.
    is_ahead: bool,
    /// Bytes to be read before anything else ...
    passed: Vec<u8>,
    /// ... from here on.
    read_to: usize,
    drain: Option<Drain>,
}

/// The rest of time and bytes for which a closed connection is read.
#[derive(Debug)]
struct Drain {
    bytes_left: usize,
    time_left: Pin<Box<Sleep>>,
}

impl<T> Heads<T> {
    pub(super) fn new(inner: T, refusal: Arc<Refusal>, activity: Arc<Activity>) -> Heads<T> {
        Heads {
            inner,
            refusal,
            activity,
            next: Next::Head,
            asked: 0,
            held: Vec::new(),
            is_ahead: false,
            passed: Vec::new(),
            read_to: 0,
            drain: None,
        }
    }

    /// Moves what has passed into `buf`; tells whether there was something.
    fn give(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let left = &self.passed[self.read_to..];
        let bytes = left.len().min(buf.remaining());
        buf.put_slice(&left[..bytes]);
        self.read_to += bytes;
        if self.read_to == self.passed.len() {
            self.passed.clear();
            self.read_to = 0;
        }
        bytes > 0
    }

    /// True if the next head has to wait for the answer to what came before.
    fn has_to_wait(&self) -> bool {
        self.next == Next::Head && !self.activity.turns.are_answered(self.asked)
    }

    /// Looks at `bytes` that came; tells how many of them pass.
    fn look_at(&mut self, bytes: &[u8]) -> (usize, Option<CallError>) {
        let mut at = 0;
        self.is_ahead = false;
        while at < bytes.len() {
            if self.has_to_wait() {
                self.is_ahead = true;
                break;
            }
            match &mut self.next {
                Next::Head => match read_head(&bytes[at..]) {
                    Ok(Some((length, framing))) => {
                        at += length;
                        self.asked += 1;
                        self.next = Next::Body(framing);
                    }
                    Ok(None) => break,
                    Err(error) => return (at, Some(error)),
                },
                Next::Body(framing) => at += framing.pass(&bytes[at..]),
                Next::Nothing => break,
            }
            if self.next == Next::Body(Framing::Length(0)) {
                self.next = Next::Head;
            }
        }
        (at, None)
    }

    /// `buf` has bytes from `from` on that were just read: keeps those in it that pass.
    fn sift(&mut self, buf: &mut ReadBuf<'_>, from: usize) {
        let read = &buf.filled()[from..];
        if self.held.is_empty() {
            let (passed, error) = self.look_at(read);
            self.held.extend_from_slice(&read[passed..]);
            buf.set_filled(from + passed);
            return error.into_iter().for_each(|error| self.refuse(error));
        }
        let seen = self.held.len();
        self.held.extend_from_slice(read);
        buf.set_filled(from);
        if !has_blank_line(&self.held[seen.saturating_sub(3)..]) && self.held.len() <= HEAD_BYTES_MAX {
            return;
        }
        self.look_at_held();
    }

    fn look_at_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        let (passed, error) = self.look_at(&held);
        self.held = held.split_off(passed);
        self.passed = held;
        error.into_iter().for_each(|error| self.refuse(error));
    }

    #[cold]
    fn refuse(&mut self, error: CallError) {
        self.passed.extend_from_slice(REFUSED);
        self.held = Vec::new();
        self.next = Next::Nothing;
        // Only the first is refused; nothing is read behind it.
        let _ = self.refusal.error.set(error);
    }

    fn is_too_late(&self) -> bool {
        self.next == Next::Head && self.refusal.is_late.load(Ordering::Relaxed)
    }
}

/// The length of the head at the beginning of `bytes`, and what body follows; `None`: it is not whole.
fn read_head(bytes: &[u8]) -> Result<Option<(usize, Framing)>, CallError> {
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; HEAD_FIELDS_MAX];
    let mut head = Request::new(&mut []);
    match head.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(length)) if length <= HEAD_BYTES_MAX => {
            Ok(Some((length, framing_of(head.version, head.headers)?)))
        }
        Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Err(too_large()),
        Err(error) => {
            let message = format!("the head of the request is not one of HTTP/1.1: {error}");
            Err(CallError::new("invalid_argument", message))
        }
    }
}

/// The framing of the body behind a head with these fields (RFC 9112 §6.3).
fn framing_of(version: Option<u8>, fields: &[Header<'_>]) -> Result<Framing, CallError> {
    let of = |name: &'static str| {
        let named = move |field: &&Header<'_>| field.name.eq_ignore_ascii_case(name);
        fields.iter().filter(named).map(|field| field.value)
    };
    let mut lengths = of("content-length");
    let length = lengths.next().map(length_of).transpose()?;
    for another in lengths {
        if Some(length_of(another)?) != length {
            return Err(given_twice("Content-Length").into());
        }
    }
    let mut codings = of("transfer-encoding");
    match (codings.next(), codings.next(), length) {
        (None, _, length) => Ok(Framing::length(length.unwrap_or(0))),
        (Some(_), _, Some(_)) => Err(Fault::conflict("Content-Length", "Transfer-Encoding").into()),
        (Some(_), _, None) if version != Some(1) => {
            Err(Fault::invalid("a request of HTTP/1.0 has none").inside("Transfer-Encoding").into())
        }
        (Some(coding), None, None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::chunked()),
        _ => Err(unsupported(&of("transfer-encoding").collect::<Vec<_>>().join(&b", "[..]))),
    }
}

/// The length in a field `Content-Length`.
fn length_of(value: &[u8]) -> Result<u64, CallError> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).filter(|length| *length <= i64::MAX as u64).ok_or_else(
        || {
            let value = clip(&String::from_utf8_lossy(value));
            Fault::invalid(format!("expected a number of bytes, got {value:?}"))
                .inside("Content-Length")
                .into()
        },
    )
}

/// RFC 9112 §6.1: a coding that is not understood is no mistake of the request.
#[cold]
fn unsupported(codings: &[u8]) -> CallError {
    let codings = clip(&String::from_utf8_lossy(codings));
    let message = format!("Transfer-Encoding is {codings:?}: only chunked is known here, and only once");
    CallError::new("unsupported_transfer_encoding", message).with(|o| o.text("transfer_encoding", &codings))
}

#[cold]
fn too_large() -> CallError {
    let message =
        format!("the head of a request may have {HEAD_FIELDS_MAX} fields and {HEAD_BYTES_MAX} bytes");
    CallError::new("head_too_large", message).with(|o| {
        o.number("fields", HEAD_FIELDS_MAX as u64);
        o.number("limit", HEAD_BYTES_MAX as u64);
    })
}

/// True if a line ends in `bytes` and the next one is empty.
fn has_blank_line(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| {
        let next = &bytes[at + 1..];
        next.starts_with(b"\n") || next.starts_with(b"\r\n")
    })
}

impl<T: AsyncRead + Unpin> Heads<T> {
    /// Reads ahead while the next head has to wait. Returns false at the end of the connection; pending while
    /// there is nothing to read, or no room for it.
    fn poll_ahead(&mut self, waker: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while !self.activity.turns.wait_for(self.asked, waker.waker()) {
            let mut room = [0; 4 << 10];
            let mut room = ReadBuf::new(&mut room);
            let mut buf = room.take(AHEAD_BYTES_MAX.saturating_sub(self.held.len()));
            if buf.remaining() == 0 {
                return Poll::Pending;
            }
            ready!(Pin::new(&mut self.inner).poll_read(waker, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            self.is_ahead = true;
            self.held.extend_from_slice(buf.filled());
        }
        Poll::Ready(Ok(true))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Heads<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.give(buf) {
                return Poll::Ready(Ok(()));
            }
            if this.is_too_late() {
                let message = format!("the head came too slowly: {} bytes are here", this.held.len());
                this.refuse(CallError::new("request_timeout", message));
                continue;
            }
            if this.has_to_wait() && !ready!(this.poll_ahead(waker))? {
                return Poll::Ready(Ok(()));
            }
            if this.is_ahead {
                this.look_at_held();
                continue;
            }
            if this.next == Next::Nothing {
                // The request that stands for the refused one is answered without more of it.
                return Poll::Pending;
            }
            let from = buf.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(waker, buf))?;
            if buf.filled().len() == from {
                return Poll::Ready(Ok(()));
            }
            this.sift(buf, from);
            if buf.filled().len() > from {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncRead + Unpin> Heads<T> {
    /// Reads and drops what its client still sends: a connection closed on unread bytes would be reset, and
    /// the refusal lost.
    fn poll_drain(&mut self, waker: &mut Context<'_>) -> Poll<()> {
        let drain = self.drain.get_or_insert_with(|| Drain {
            bytes_left: DRAIN_BYTES_MAX,
            time_left: Box::pin(sleep(DRAIN_TIME_MAX)),
        });
        let mut dropped = [0; 4 << 10];
        while drain.bytes_left > 0 && drain.time_left.as_mut().poll(waker).is_pending() {
            let mut buf = ReadBuf::new(&mut dropped);
            match ready!(Pin::new(&mut self.inner).poll_read(waker, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    drain.bytes_left = drain.bytes_left.saturating_sub(buf.filled().len());
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Heads<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(waker, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(waker, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(waker)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.drain.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(waker))?;
        }
        if this.next == Next::Nothing {
            ready!(this.poll_drain(waker));
        }
        Poll::Ready(Ok(()))
    }
}

/// Takes `input` in pieces of these sizes, as a connection does, and asserts that the same bytes pass and the
/// same refusal follows as when it comes at once. An end without a blank line would leave a head that is
/// never judged, so one is added.
///
/// # Panics
/// When they differ.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_pieces(input: &[u8], sizes: impl Iterator<Item = usize>) {
    // Beyond the limit of a head it depends on the pieces whether its size or its first wrong byte is seen
    // first.
    let input = [&input[..input.len().min(HEAD_BYTES_MAX / 2)], b"\r\n\r\n"].concat();
    let at_once = pass_all(&input, std::iter::empty());
    assert_eq!(pass_all(&input, sizes), at_once, "{:?}", String::from_utf8_lossy(&input));
}

/// The bytes of `input` that pass, and the refusal if any. The pieces have these sizes, the rest is the last.
#[cfg(any(test, feature = "fuzzing"))]
fn pass_all(input: &[u8], sizes: impl Iterator<Item = usize>) -> (Vec<u8>, Option<String>) {
    struct Pieces<'a, S>(&'a [u8], S);
    impl<S: Iterator<Item = usize> + Unpin> AsyncRead for Pieces<'_, S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let size = self.1.next().map_or(usize::MAX, |size| size.max(1)).min(buf.remaining());
            let (piece, rest) = self.0.split_at(size.min(self.0.len()));
            buf.put_slice(piece);
            self.0 = rest;
            Poll::Ready(Ok(()))
        }
    }
    // Iterators of sizes need not be `Unpin`.
    let activity = Arc::new(Activity::new(0));
    let mut heads = Heads::new(Pieces(input, Box::new(sizes)), Arc::default(), Arc::clone(&activity));
    let (mut passed, mut room) = (Vec::new(), vec![0; HEAD_BYTES_MAX]);
    loop {
        let mut buf = ReadBuf::new(&mut room);
        while !activity.turns.are_answered(heads.asked) {
            activity.turns.answered();
        }
        let polled =
            Pin::new(&mut heads).poll_read(&mut Context::from_waker(std::task::Waker::noop()), &mut buf);
        passed.extend_from_slice(buf.filled());
        // The end of what came, or a refusal, behind which nothing is read.
        if polled.is_pending() || buf.filled().is_empty() {
            return (passed, heads.refusal.error.get().map(|error| format!("{error:?}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of [`PARTS`], those that pass, bodies included; the head of each other is refused.
    const GOOD: usize = 8;
    const PARTS: [&str; 20] = [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "\r\nGET /lenient HTTP/1.1\nhost: a\n\n",
        "POST /v1/queues/jobs/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 16\r\n\r\n{\"payload\":\"hi\"}",
        "POST / HTTP/1.0\r\ncontent-length: 0\r\n\r\n",
        "PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nab",
        "PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n\r\n2;x=1\r\nab\r\n0\r\nt: 1\r\n\r\n",
        "PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nA\n0123456789\n0\n\n",
        "PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n\r\n",
        "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n",
        "PUT / HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n",
        "PUT / HTTP/1.1\r\ncontent-length: +2\r\n\r\n",
        "PUT / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "PUT / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        "PUT / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
        "GET / HTTP/3.0\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        "G\u{0}T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nbare: a\rb\r\n\r\n",
    ];

    /// Numbers that look random and are the same each time (the constants are Knuth's).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % end as u64) as usize
        }
    }

    fn random_input(numbers: &mut Numbers) -> Vec<u8> {
        let parts = (0..=numbers.below(4)).map(|_| PARTS[numbers.below(PARTS.len())]);
        let mut input = parts.collect::<String>().into_bytes();
        for _ in 0..numbers.below(3) {
            let at = numbers.below(input.len());
            match numbers.below(3) {
                0 => input[at] = b"\r\n: 0\x00\xff"[numbers.below(7)],
                1 => drop(input.remove(at)),
                _ => input.insert(at, b"\r\n: 0\x00\xff"[numbers.below(7)]),
            }
        }
        input
    }

    #[test]
    fn pieces_do_not_matter() {
        for (at, part) in PARTS.into_iter().enumerate() {
            assert_eq!(pass_all(part.as_bytes(), std::iter::empty()).1.is_some(), at >= GOOD, "{part}");
            for size in 1..part.len() {
                check_pieces(part.as_bytes(), std::iter::repeat(size));
                check_pieces(part.as_bytes(), std::iter::once(size));
            }
        }
    }

    #[test]
    fn pieces_do_not_matter_whatever_comes() {
        let mut numbers = Numbers(1);
        for _ in 0..20_000 {
            let input = random_input(&mut numbers);
            let most = [2, 8, 64, 512][numbers.below(4)];
            let sizes: Vec<usize> = input.iter().map(|_| 1 + numbers.below(most)).collect();
            check_pieces(&input, sizes.into_iter());
        }
    }

    #[test]
    fn a_head_that_is_too_large_is_refused_in_any_pieces() {
        let mut input = b"GET / HTTP/1.1\r\nlong: ".to_vec();
        input.resize(HEAD_BYTES_MAX + 1, b'x');
        let at_once = pass_all(&input, std::iter::empty());
        assert!(at_once.1.as_ref().is_some_and(|error| error.contains("head_too_large")));
        for size in [1_000, HEAD_BYTES_MAX] {
            assert_eq!(pass_all(&input, std::iter::repeat(size)), at_once);
        }
    }
}
