//! Frames into the bytes of one direction of a connection.

use std::io::{self, IoSlice};
use std::ops::Range;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::frame::Frame;

/// Length up to which a batch is copied behind its message, in bytes: that costs less than a slice of its
/// own.
const COPIED_MAX: usize = 1 << 10;

/// Slices of one write.
const SLICES: usize = 64;

/// Capacity that the buffer of heads and messages keeps, in bytes.
const KEPT: usize = 256 << 10;

/// Writer of frames. All that are put in are written together.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Number of the next frame.
    number: u32,
    encoded: Vec<u8>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// Range of `encoded`.
    Encoded(Range<usize>),
    Batch(Bytes),
}

impl Writer {
    /// Puts in a frame.
    pub(crate) fn put(&mut self, frame: &Frame) {
        let mut start = self.encoded.len();
        frame.encode(self.number, &mut self.encoded);
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

    /// Writes all that was put in.
    ///
    /// # Errors
    ///
    /// The error of the connection, which is of no more use.
    pub(crate) async fn write(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        for pieces in self.pieces.chunks(SLICES) {
            let mut slices = [IoSlice::new(&[]); SLICES];
            for (slice, piece) in slices.iter_mut().zip(pieces) {
                *slice = IoSlice::new(match piece {
                    Piece::Encoded(range) => &self.encoded[range.clone()],
                    Piece::Batch(batch) => batch,
                });
            }
            let mut rest = &mut slices[..pieces.len()];
            while !rest.is_empty() {
                match to.write_vectored(rest).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => IoSlice::advance_slices(&mut rest, written),
                }
            }
        }
        to.flush().await?;
        self.pieces.clear();
        self.encoded.clear();
        self.encoded.shrink_to(KEPT);
        Ok(())
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
