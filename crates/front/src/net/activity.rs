//! Activity of a connection. Of an HTTP/1.1 connection it is seen from the bytes: enough to end idle and slow
//! ones.
//!
//! hyper's header deadline also applies to idle connections, and it has none for a client that takes nothing.
//! So the deadlines are kept here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context as Waker, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::memory::budget::Budget;
use super::options::HttpOptions;
use super::turns::Turns;

/// Never: no such moment is marked.
const NEVER: u64 = u64::MAX;

/// The times of a connection's last events.
#[derive(Debug)]
pub(crate) struct Activity {
    opened: Instant,
    in_flight: AtomicUsize,
    /// Time from which no request is in flight, in ms after `opened`.
    idle_since_ms: AtomicU64,
    /// Time of the first byte after the last request, in ms after `opened`.
    head_since_ms: AtomicU64,
    /// Time from which the client takes no bytes of ours, in ms after `opened`.
    write_since_ms: AtomicU64,
    /// Turns of its requests, of HTTP/1.1 alone.
    pub(crate) turns: Turns,
    /// Memory that its answers take.
    pub(crate) answers: Arc<Budget>,
}

/// The decision on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Look again after this time.
    Keep(Duration),
    /// Close it gracefully: it is idle.
    Close,
    /// The client is too slow: drop it.
    Cut(&'static str),
}

/// Reason for cutting a connection whose head comes too slowly.
pub(super) const SLOW_HEAD: &str = "the head of its request came too slowly";

impl Activity {
    /// The activity of a new connection; `answers_bytes_max`: most memory of its answers, in bytes.
    pub(crate) fn new(answers_bytes_max: usize) -> Activity {
        Activity {
            opened: Instant::now(),
            in_flight: AtomicUsize::new(0),
            idle_since_ms: AtomicU64::new(0),
            head_since_ms: AtomicU64::new(NEVER),
            write_since_ms: AtomicU64::new(NEVER),
            turns: Turns::default(),
            answers: Arc::new(Budget::new(answers_bytes_max)),
        }
    }

    /// A request's head is complete.
    pub(crate) fn request_began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.head_since_ms.store(NEVER, Ordering::Relaxed);
    }

    /// A request's answer is written, or was given up.
    pub(crate) fn request_ended(&self) {
        self.idle_since_ms.store(self.elapsed_ms(), Ordering::Relaxed);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.turns.answered();
    }

    /// Judges the connection as of now.
    pub(crate) fn verdict(&self, options: &HttpOptions) -> Verdict {
        let now_ms = self.elapsed_ms();
        let left = |since_ms: u64, timeout: Duration| {
            timeout.saturating_sub(Duration::from_millis(now_ms.saturating_sub(since_ms)))
        };
        let mut keep = left(self.write_since_ms.load(Ordering::Relaxed), options.write_timeout);
        if keep.is_zero() {
            return Verdict::Cut("it does not read what we write");
        }
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            return Verdict::Keep(keep.min(options.head_timeout));
        }
        let head_since_ms = self.head_since_ms.load(Ordering::Relaxed);
        if head_since_ms != NEVER {
            let head = left(head_since_ms, options.head_timeout);
            if head.is_zero() {
                return Verdict::Cut(SLOW_HEAD);
            }
            keep = keep.min(head);
        }
        let idle = left(self.idle_since_ms.load(Ordering::Relaxed), options.idle_timeout);
        if idle.is_zero() {
            return Verdict::Close;
        }
        // A head may begin at any moment; then it has to be looked at within its own time.
        Verdict::Keep(keep.min(idle).min(options.head_timeout))
    }

    fn bytes_read(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.in_flight.load(Ordering::Relaxed) == 0 && self.head_since_ms.load(Ordering::Relaxed) == NEVER
        {
            self.head_since_ms.store(self.elapsed_ms(), Ordering::Relaxed);
        }
    }

    fn wrote<T>(&self, result: &Poll<io::Result<T>>) {
        if result.is_ready() {
            self.write_since_ms.store(NEVER, Ordering::Relaxed);
        } else if self.write_since_ms.load(Ordering::Relaxed) == NEVER {
            self.write_since_ms.store(self.elapsed_ms(), Ordering::Relaxed);
        }
    }

    fn elapsed_ms(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }
}

/// A connection's bytes, watched.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    inner: T,
    activity: Arc<Activity>,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, activity: Arc<Activity>) -> Watched<T> {
        Watched { inner, activity }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        waker: &mut Waker<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(waker, buf);
        self.activity.bytes_read(&buf.filled()[before..]);
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, waker: &mut Waker<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(waker, bytes);
        self.activity.wrote(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        waker: &mut Waker<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(waker, slices);
        self.activity.wrote(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, waker: &mut Waker<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(waker)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, waker: &mut Waker<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> HttpOptions {
        let ms = Duration::from_millis;
        HttpOptions {
            head_timeout: ms(20),
            write_timeout: ms(40),
            idle_timeout: ms(60),
            ..HttpOptions::default()
        }
    }

    async fn pass(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed() {
        let activity = Activity::new(0);
        assert!(matches!(activity.verdict(&options()), Verdict::Keep(_)));
        pass(70).await;
        assert_eq!(activity.verdict(&options()), Verdict::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_drips_is_cut() {
        let activity = Activity::new(0);
        activity.bytes_read(b"GET");
        pass(25).await;
        activity.bytes_read(b" ");
        assert!(matches!(activity.verdict(&options()), Verdict::Cut(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_flight_keeps_the_connection_unless_its_answer_is_not_read() {
        let activity = Activity::new(0);
        activity.bytes_read(b"GET");
        activity.request_began();
        pass(70).await;
        assert!(matches!(activity.verdict(&options()), Verdict::Keep(_)));
        activity.wrote::<usize>(&Poll::Pending);
        pass(25).await;
        activity.wrote::<usize>(&Poll::Pending);
        pass(25).await;
        assert!(matches!(activity.verdict(&options()), Verdict::Cut(_)));
        activity.wrote(&Poll::Ready(Ok(1)));
        assert!(matches!(activity.verdict(&options()), Verdict::Keep(_)));
    }
}
