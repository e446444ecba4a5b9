//! Frames into the bytes of one direction of a connection.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use crate::frame::Frame;

/// Length up to which a batch is copied behind its message, in bytes: that costs less than a slice of its
/// own.
const COPIED_MAX: usize = 1 << 10;

/// Slices of one write.
const SLICES: usize = 64;

/// Capacity that the buffer of heads and messages keeps, in bytes.
const KEPT: usize = 256 << 10;

/// Writer of frames. All that are put in are written together, before others are put in.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Number of the next frame.
    number: u32,
    /// Version of the protocol; 0: none is agreed upon.
    protocol: u8,
    encoded: Vec<u8>,
    pieces: Vec<Piece>,
    /// Number of pieces that are written, and of bytes of the next.
    written: (usize, usize),
}

#[derive(Debug)]
enum Piece {
    /// Range of `encoded`.
    Encoded(Range<usize>),
    Batch(Bytes),
}

impl Piece {
    fn bytes<'p>(&'p self, encoded: &'p [u8]) -> &'p [u8] {
        match self {
            Piece::Encoded(range) => &encoded[range.clone()],
            Piece::Batch(batch) => batch,
        }
    }
}

impl Writer {
    /// Sets the version of the protocol of the next frames. Before that only those can be put in that are the
    /// same in every version.
    pub(crate) fn agree(&mut self, protocol: u8) {
        self.protocol = protocol;
    }

    /// Puts in a frame.
    pub(crate) fn put(&mut self, frame: &Frame) {
        let mut start = self.encoded.len();
        frame.encode(self.number, self.protocol, &mut self.encoded);
        self.number = self.number.wrapping_add(1);
        for batch in frame.batches() {
            if batch.len() <= COPIED_MAX {
                self.encoded.extend_from_slice(batch);
            } else {
                self.end_piece(start);
                start = self.encoded.len();
                self.pieces.push(Piece::Batch(batch.clone()));
            }
        }
        self.end_piece(start);
    }

    /// True when all that was put in is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes what was put in, as far as the connection takes it; ready when that is all.
    ///
    /// # Errors
    ///
    /// The error of the connection, which is of no more use.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        mut to: Pin<&mut (impl AsyncWrite + ?Sized)>,
    ) -> Poll<io::Result<()>> {
        if self.pieces.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.written.0 < self.pieces.len() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let pieces = &self.pieces[self.written.0..];
            for (slice, piece) in slices.iter_mut().zip(pieces) {
                *slice = IoSlice::new(piece.bytes(&self.encoded));
            }
            let mut rest = &mut slices[..pieces.len().min(SLICES)];
            IoSlice::advance_slices(&mut rest, self.written.1);
            match ready!(to.as_mut().poll_write_vectored(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
        ready!(to.as_mut().poll_flush(cx))?;
        self.written = (0, 0);
        self.pieces.clear();
        self.encoded.clear();
        self.encoded.shrink_to(KEPT);
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, written: usize) {
        self.written.1 += written;
        while let Some(piece) = self.pieces.get(self.written.0)
            && let Some(rest) = self.written.1.checked_sub(piece.bytes(&self.encoded).len())
        {
            self.written = (self.written.0 + 1, rest);
        }
    }

    /// Makes a piece of what was encoded from `start` on, or a longer one of the last.
    fn end_piece(&mut self, start: usize) {
        let end = self.encoded.len();
        match self.pieces.last_mut() {
            Some(Piece::Encoded(range)) => range.end = end,
            Some(Piece::Batch(_)) | None if start < end => self.pieces.push(Piece::Encoded(start..end)),
            Some(Piece::Batch(_)) | None => {}
        }
    }
}
