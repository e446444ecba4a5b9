//! gRPC's framing: each message has a prefix of five bytes, whether it is compressed, and its length.

use std::fmt;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

/// Bytes before each message.
pub const PREFIX_BYTES: usize = 5;

/// Why bytes are no frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FramingError {
    /// The message is compressed; neither side of this contract announces any compression.
    Compressed,
    /// The message is larger than it may be.
    TooLarge {
        /// Its length in bytes, as its prefix says.
        bytes: u64,
        /// The longest that is taken.
        limit: usize,
    },
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramingError::Compressed => {
                f.write_str("the message is compressed: no compression was announced, send it as it is")
            }
            FramingError::TooLarge { bytes, limit } => {
                write!(f, "the message has {bytes} bytes: at most {limit} are taken")
            }
        }
    }
}

impl std::error::Error for FramingError {}

/// Cuts bytes that come in pieces into messages. Nothing is copied while a message lies within one piece.
#[derive(Debug)]
pub struct Deframer {
    limit: usize,
    /// What came and is not cut yet.
    piece: Bytes,
    /// The beginning of a message that did not lie within one piece.
    gathered: BytesMut,
}

impl Deframer {
    /// Takes messages of up to `limit` bytes.
    pub fn new(limit: usize) -> Deframer {
        Deframer { limit, piece: Bytes::new(), gathered: BytesMut::new() }
    }

    /// Adds a piece; [`Deframer::next`] must have returned `None` since the last one.
    pub fn push(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "the piece before was not cut to its end");
        self.piece = piece;
    }

    /// Bytes of a message that has begun and is not whole.
    pub fn pending(&self) -> usize {
        self.gathered.len() + self.piece.len()
    }

    /// The next whole message, without its prefix; `None` until more has come.
    ///
    /// # Errors
    /// Then nothing that follows can be read.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Bytes>, FramingError> {
        if self.gathered.is_empty() {
            let Some(length) = self.length_of(&self.piece)? else {
                self.gather(PREFIX_BYTES);
                return Ok(None);
            };
            if self.piece.len() >= PREFIX_BYTES + length {
                self.piece.advance(PREFIX_BYTES);
                return Ok(Some(self.piece.split_to(length)));
            }
            self.gather(PREFIX_BYTES + length);
            return Ok(None);
        }
        if self.gathered.len() < PREFIX_BYTES {
            self.gather(PREFIX_BYTES);
        }
        let Some(length) = self.length_of(&self.gathered)? else { return Ok(None) };
        self.gather(PREFIX_BYTES + length);
        if self.gathered.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        let mut whole = std::mem::take(&mut self.gathered).freeze();
        whole.advance(PREFIX_BYTES);
        Ok(Some(whole))
    }

    /// Takes from the piece until so many bytes are gathered. Memory grows with what has come, not with what was said.
    fn gather(&mut self, bytes: usize) {
        let wanted = bytes.saturating_sub(self.gathered.len()).min(self.piece.len());
        self.gathered.extend_from_slice(&self.piece.split_to(wanted));
    }

    /// The length of the message that begins here, if its prefix is whole.
    fn length_of(&self, bytes: &[u8]) -> Result<Option<usize>, FramingError> {
        let Some((prefix, _)) = bytes.split_first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let [compressed, length @ ..] = *prefix;
        if compressed != 0 {
            return Err(FramingError::Compressed);
        }
        let length = u32::from_be_bytes(length);
        match usize::try_from(length) {
            Ok(length) if length <= self.limit => Ok(Some(length)),
            _ => Err(FramingError::TooLarge { bytes: u64::from(length), limit: self.limit }),
        }
    }
}

/// Appends a message with its prefix.
pub fn frame(message: &impl Message, out: &mut BytesMut) {
    frame_with(out, |out| {
        // Fails only without room, and a `BytesMut` makes room.
        let _ = message.encode(out);
    });
}

/// Appends a message that `encode` writes, with its prefix.
pub fn frame_with(out: &mut BytesMut, encode: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_bytes(0, PREFIX_BYTES);
    encode(out);
    let length = u32::try_from(out.len() - start - PREFIX_BYTES)
        .expect("no message comes near 4 GiB: limits are far below");
    out[start + 1..start + PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        let mut out = BytesMut::new();
        for message in messages {
            frame_with(&mut out, |out| out.extend_from_slice(message));
        }
        out.to_vec()
    }

    #[test]
    fn messages_come_out_whatever_the_pieces_are() {
        let messages: [&[u8]; 4] = [b"one", b"", b"three and more", b"4"];
        let bytes = framed(&messages);
        for size in 1..=bytes.len() {
            let mut deframer = Deframer::new(100);
            let mut got = Vec::new();
            for piece in bytes.chunks(size) {
                deframer.push(Bytes::copy_from_slice(piece));
                while let Some(message) = deframer.next().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, messages, "pieces of {size}");
            assert_eq!(deframer.pending(), 0);
        }
    }

    #[test]
    fn what_is_too_large_or_compressed_is_refused_by_its_prefix() {
        let mut deframer = Deframer::new(3);
        deframer.push(Bytes::from_static(&[0, 0, 0, 0, 4]));
        assert_eq!(deframer.next(), Err(FramingError::TooLarge { bytes: 4, limit: 3 }));
        let mut deframer = Deframer::new(3);
        deframer.push(Bytes::from_static(&[1, 0, 0, 0, 0]));
        assert_eq!(deframer.next(), Err(FramingError::Compressed));
    }
}
