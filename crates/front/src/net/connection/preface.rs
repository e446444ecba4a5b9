//! The version of HTTP of a connection in clear text, by its first bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use sluice_http2::frame::PREFACE;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};

/// A version of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// A stream whose first bytes were looked at; it gives them again.
#[derive(Debug)]
pub(super) struct Replayed<T> {
    stream: T,
    first: [u8; PREFACE.len()],
    /// Bounds in `first` of the bytes that are not read again yet.
    start: usize,
    end: usize,
}

/// Reads until it is clear whether `stream` begins with the preface of HTTP/2. Its first byte may take
/// `idle_timeout`, the rest `head_timeout`.
///
/// # Errors
/// It took too long, or ended before.
pub(super) async fn version_of<T: AsyncRead + Unpin>(
    stream: T,
    idle_timeout: Duration,
    head_timeout: Duration,
) -> io::Result<(Version, Replayed<T>)> {
    let mut replayed = Replayed { stream, first: [0; PREFACE.len()], start: 0, end: 0 };
    let mut deadline = Instant::now() + idle_timeout;
    loop {
        let read = timeout_at(deadline, replayed.stream.read(&mut replayed.first[replayed.end..])).await??;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if replayed.end == 0 {
            deadline = Instant::now() + head_timeout;
        }
        replayed.end += read;
        if !PREFACE.starts_with(&replayed.first[..replayed.end]) {
            return Ok((Version::Http1, replayed));
        }
        if replayed.end == PREFACE.len() {
            return Ok((Version::Http2, replayed));
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Replayed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.start == this.end {
            return Pin::new(&mut this.stream).poll_read(waker, buf);
        }
        let bytes = buf.remaining().min(this.end - this.start);
        buf.put_slice(&this.first[this.start..this.start + bytes]);
        this.start += bytes;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Replayed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(waker, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(waker, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(waker)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    const WITHIN: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_first_bytes_tell_the_version_and_are_given_again() {
        let http2 = [&PREFACE[..], b"and more"].concat();
        for (bytes, version) in [
            (&b"POST / HTTP/1.1"[..], Version::Http1),
            (b"PRI * HTTP/1.1", Version::Http1),
            (&http2, Version::Http2),
        ] {
            for at_once in [1, 5, bytes.len()] {
                let (mut near, far) = duplex(at_once);
                let sent = bytes.to_vec();
                tokio::spawn(async move { near.write_all(&sent).await });
                let (seen, mut replayed) = version_of(far, WITHIN, WITHIN).await.unwrap();
                let mut read = Vec::new();
                replayed.read_to_end(&mut read).await.unwrap();
                assert_eq!((seen, &read[..]), (version, bytes), "{at_once} at once");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_too_little_is_not_waited_for() {
        for (bytes, kind) in [(&b""[..], io::ErrorKind::TimedOut), (b"PRI", io::ErrorKind::TimedOut)] {
            let (mut near, far) = duplex(100);
            near.write_all(bytes).await.unwrap();
            let replayed = Instant::now();
            assert_eq!(version_of(far, WITHIN, WITHIN).await.unwrap_err().kind(), kind);
            assert_eq!(replayed.elapsed().as_secs(), 1);
        }
        let (near, far) = duplex(100);
        drop(near);
        assert_eq!(version_of(far, WITHIN, WITHIN).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
