//! The bytes of an attachment: blocks of 1 MiB that differ in their number, so that one in the place of
//! another shows.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const BLOCK_BYTES: usize = 1 << 20;
const NUMBER_BYTES: usize = 8;

/// The block with this number.
fn block(number: u64, into: &mut Vec<u8>) {
    if into.is_empty() {
        let bytes = (0..BLOCK_BYTES as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8);
        into.extend(bytes);
    }
    into[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
}

/// A place in the bytes, with the block that it is in.
#[derive(Debug, Default)]
struct Place {
    at: u64,
    block: Vec<u8>,
}

impl Place {
    /// The bytes from here to the end of the block.
    fn rest(&mut self) -> &[u8] {
        let within = (self.at % BLOCK_BYTES as u64) as usize;
        if within == 0 {
            block(self.at / BLOCK_BYTES as u64, &mut self.block);
        }
        &self.block[within..]
    }
}

/// A reader of so many bytes.
#[derive(Debug)]
pub(super) struct Pattern {
    place: Place,
    bytes: u64,
}

impl Pattern {
    pub(super) fn new(bytes: u64) -> Pattern {
        Pattern { place: Place::default(), bytes }
    }
}

impl AsyncRead for Pattern {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = usize::try_from(self.bytes - self.place.at).unwrap_or(usize::MAX);
        let rest = self.place.rest();
        let count = rest.len().min(into.remaining()).min(left);
        into.put_slice(&rest[..count]);
        self.place.at += count as u64;
        Poll::Ready(Ok(()))
    }
}

/// A writer that takes these bytes and no others.
#[derive(Debug, Default)]
pub(super) struct Compared(Place);

impl Compared {
    /// Number of the bytes that came.
    pub(super) fn bytes(&self) -> u64 {
        self.0.at
    }
}

impl AsyncWrite for Compared {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let at = self.0.at;
        let rest = self.0.rest();
        let count = rest.len().min(bytes.len());
        if rest[..count] != bytes[..count] {
            return Poll::Ready(Err(io::Error::other(format!("other bytes came behind byte {at}"))));
        }
        self.0.at += count as u64;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_is_read_is_taken_and_nothing_else() {
        let mut bytes = Vec::new();
        let length = 2 * BLOCK_BYTES as u64 + 5;
        Pattern::new(length).read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes.len() as u64, length);
        let mut compared = Compared::default();
        compared.write_all(&bytes).await.unwrap();
        assert_eq!(compared.bytes(), length);
        bytes[BLOCK_BYTES] ^= 1;
        assert!(Compared::default().write_all(&bytes).await.is_err());
    }
}
