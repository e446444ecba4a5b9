//! Transports, and the transport in clear text.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;

/// The transport of a connection.
pub trait Wire {
    /// Reads into `bytes` and returns the number of bytes; 0: the peer has closed.
    fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes the plans of the connection until nothing is left, or until a stream [has
    /// room](Connection::has_roomy), since its next piece may be more urgent than the rest. It is ready with
    /// bytes left when nothing can be written before more has come in, as during a handshake.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>>;

    /// Closes the transport for writing.
    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Number of bytes that the transport has accepted.
    fn written(&self) -> u64;
}

/// Largest number of slices in one write.
pub(super) const SLICES: usize = 128;

/// A transport in clear text.
#[derive(Debug)]
pub struct Plain<T> {
    io: T,
    written: u64,
}

impl<T> Plain<T> {
    /// A transport over `io`.
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
