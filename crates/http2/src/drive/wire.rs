//! Transports, and the one without encryption.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;

/// What carries the bytes of a connection.
pub trait Wire {
    /// Reads into `bytes`, and says how many: 0 once the peer has closed.
    fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes what the connection plans, until it plans nothing more and all is written, or until a producer
    /// [has room](Connection::has_roomy): what that sends may be more urgent than what is left. Ready with
    /// something left otherwise: nothing can be written before more has come in, as in the middle of a
    /// handshake.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>>;

    /// Closes for writing.
    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Bytes that the transport has taken so far.
    fn written(&self) -> u64;
}

/// Slices that are written at once.
pub(super) const SLICES: usize = 128;

/// A transport in clear text.
#[derive(Debug)]
pub struct Plain<T> {
    io: T,
    written: u64,
}

impl<T> Plain<T> {
    /// Over `io`.
    pub fn new(io: T) -> Self {
        Self { io, written: 0 }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for Plain<T> {
    fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        poll_read(&mut self.io, context, bytes)
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>> {
        loop {
            let plan = connection.plan(now_us, usize::MAX);
            if plan.is_empty() {
                return Pin::new(&mut self.io).poll_flush(context);
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = plan.slices(&mut slices, usize::MAX);
            let bytes = ready!(Pin::new(&mut self.io).poll_write_vectored(context, &slices[..filled]))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            connection.wrote(bytes);
            self.written += bytes as u64;
            if connection.plan_is_written() && connection.has_roomy() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn written(&self) -> u64 {
        self.written
    }
}

/// Reads once.
pub(super) fn poll_read<T: AsyncRead + Unpin>(
    io: &mut T,
    context: &mut Context<'_>,
    bytes: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buf = ReadBuf::new(bytes);
    ready!(Pin::new(io).poll_read(context, &mut buf))?;
    Poll::Ready(Ok(buf.filled().len()))
}
