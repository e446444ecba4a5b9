//! TLS, by driving rustls' connection directly: a plan goes in as slices, and its records go out in one
//! write.

use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite};

use super::input::Input;
use super::wire::{SLICES, Wire, poll_read};
use crate::connection::Connection;
use crate::limits::Limits;

/// Bytes in a full record: a little less than TLS allows, so that rustls' buffer for it takes no more than 16
/// KiB. Beyond that, mimalloc takes blocks in turn from storage as large as a core's cache, and each record
/// is copied, encrypted and written from memory that is not in it.
const RECORD_BYTES: usize = (16 << 10) - RECORD_OVERHEAD;

/// Largest overhead of a record in bytes.
const RECORD_OVERHEAD: usize = 64;

/// A transport over TLS.
#[derive(Debug)]
pub struct Tls<T> {
    io: T,
    tls: ServerConnection,
    /// Ciphertext that was read, and what of it rustls has not taken.
    incoming: Input,
    /// About how many bytes of ciphertext wait to be written.
    ahead: usize,
    written: u64,
    flight: Flight,
    /// True when close_notify was sent.
    notified: bool,
}

/// The sizes of records: short at the beginning of a flight, full after that.
#[derive(Debug)]
struct Flight {
    /// Bytes that still go in short records.
    short_left: usize,
    last_us: u64,
}

impl Flight {
    /// Size of the next record in bytes.
    fn record_bytes(&mut self, limits: &Limits, now_us: u64) -> usize {
        if now_us.saturating_sub(self.last_us) >= limits.short_idle_us {
            self.short_left = limits.short_flight_bytes as usize;
        }
        if self.short_left > 0 { limits.short_record_bytes as usize } else { RECORD_BYTES }
    }

    fn wrote(&mut self, bytes: usize, now_us: u64) {
        self.last_us = now_us;
        self.short_left = self.short_left.saturating_sub(bytes);
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Tls<T> {
    /// A transport over `io` with a TLS connection whose handshake may be done, under way, or still to come.
    pub fn new(io: T, mut tls: ServerConnection, limits: &Limits) -> Self {
        // What may wait is bounded here, in whole records.
        tls.set_buffer_limit(None);
        Self {
            io,
            tls,
            incoming: Input::default(),
            ahead: 0,
            written: 0,
            flight: Flight { short_left: limits.short_flight_bytes as usize, last_us: 0 },
            notified: false,
        }
    }

    /// Lets rustls take what was read. The peer hears of what it did wrong, as far as the transport takes it
    /// now.
    fn decrypt(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut unread = self.incoming.unread();
        self.tls.read_tls(&mut unread)?;
        let left = unread.len();
        self.incoming.keep_last(left);
        match self.tls.process_new_packets() {
            Ok(_) => Ok(()),
            Err(error) => {
                let _ = self.poll_ciphertext(context);
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Encrypts the plan, in records as full as they may be.
    fn encrypt(&mut self, connection: &mut Connection, now_us: u64, bytes_max: usize) -> io::Result<()> {
        loop {
            let record_bytes = self.flight.record_bytes(connection.limits(), now_us);
            let plan = connection.plan(now_us, bytes_max);
            if plan.is_empty() {
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = plan.slices(&mut slices, record_bytes);
            let bytes = self.tls.writer().write_vectored(&slices[..filled])?;
            self.flight.wrote(bytes, now_us);
            self.ahead += bytes + bytes.div_ceil(RECORD_BYTES) * RECORD_OVERHEAD;
            connection.wrote(bytes);
            if connection.plan_is_written() {
                return Ok(());
            }
        }
    }

    /// Writes ciphertext until none is left.
    fn poll_ciphertext(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Blocking { io: &mut self.io, context }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(bytes) => {
                    self.written += bytes as u64;
                    self.ahead = self.ahead.saturating_sub(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.ahead = 0;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for Tls<T> {
    fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(bytes) {
                Ok(read) => return Poll::Ready(Ok(read)),
                // Closed without a word: frames have lengths, so nothing can be cut off unseen.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            if self.incoming.unread().is_empty() {
                let Poll::Ready(read) = poll_read(&mut self.io, context, self.incoming.spare()) else {
                    self.incoming.rest();
                    return Poll::Pending;
                };
                self.incoming.filled(read?);
            }
            self.decrypt(context)?;
        }
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>> {
        loop {
            if !self.tls.is_handshaking() {
                let limit = connection.limits().encrypt_ahead_bytes as usize;
                // In whole records: a remainder would be a record of its own.
                let room = limit.saturating_sub(self.ahead) / RECORD_BYTES * RECORD_BYTES;
                if room > 0 {
                    self.encrypt(connection, now_us, room)?;
                }
            }
            if !self.tls.wants_write() {
                return Pin::new(&mut self.io).poll_flush(context);
            }
            if self.poll_ciphertext(context)?.is_pending() {
                return Poll::Pending;
            }
            if connection.plan_is_written() && connection.has_roomy() {
                return Pin::new(&mut self.io).poll_flush(context);
            }
        }
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.notified {
            self.notified = true;
            self.tls.send_close_notify();
        }
        if self.poll_ciphertext(context)?.is_pending() {
            return Poll::Pending;
        }
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn written(&self) -> u64 {
        self.written
    }
}

/// A transport as rustls writes to it.
struct Blocking<'a, 'c, T> {
    io: &'a mut T,
    context: &'a mut Context<'c>,
}

impl<T: AsyncWrite + Unpin> Write for Blocking<'_, '_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut *self.io).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut *self.io).poll_write_vectored(self.context, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        or_would_block(Pin::new(&mut *self.io).poll_flush(self.context))
    }
}

fn or_would_block<V>(polled: Poll<io::Result<V>>) -> io::Result<V> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
