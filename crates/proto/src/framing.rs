//! The framing of gRPC: before each message stand a byte that tells whether it is compressed, and its length
//! in four bytes, big-endian.

use std::fmt;

use bytes::{Buf as _, Bytes, BytesMut};
use prost::Message;

/// Size of the prefix of a message in bytes.
pub const PREFIX_BYTES: usize = 5;

/// For so many pieces room is made at once, when a message does not lie within one.
const PIECES_AHEAD: usize = 4;

/// The error of decoding the framing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FramingError {
    /// The message is compressed; neither side of this contract announces any compression.
    Compressed,
    /// The message is larger than it may be.
    TooLarge {
        /// Its length in bytes, as its prefix says.
        bytes: u64,
        /// Largest accepted length in bytes.
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

/// Splits bytes that come in pieces into messages. A message that lies within one piece is not copied.
#[derive(Debug)]
pub struct Deframer {
    limit: usize,
    /// Bytes received and not yet cut into frames.
    piece: Bytes,
    /// The beginning of a message that did not lie within one piece.
    gathered: BytesMut,
}

impl Deframer {
    /// A deframer of messages of up to `limit` bytes.
    pub fn new(limit: usize) -> Deframer {
        Deframer { limit, piece: Bytes::new(), gathered: BytesMut::new() }
    }

    /// Sets the limit of the messages that follow, in bytes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
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

    /// Takes the bytes behind the last message; [`Deframer::next`] must have returned it just before.
    pub fn take_rest(&mut self) -> Bytes {
        debug_assert!(self.gathered.is_empty(), "a message has begun");
        std::mem::take(&mut self.piece)
    }

    /// Takes from the piece until so many bytes are gathered. Memory grows with what has come, not with what
    /// was said.
    fn gather(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.gathered.len());
        let wanted = missing.min(self.piece.len());
        // What follows mostly comes in pieces like this one.
        self.gathered.reserve(missing.min(wanted * PIECES_AHEAD));
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

/// Messages on their way out, which gather until somebody takes them.
#[derive(Debug, Default)]
pub struct Framer {
    /// Rest of the bytes of which a part was taken.
    front: Bytes,
    /// Bytes added since.
    waiting: Vec<u8>,
    /// Bytes that had gathered, the last time.
    last_gathered: usize,
}

impl Framer {
    /// Appends a message that `encode` writes, with its prefix.
    pub fn add(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        if self.waiting.is_empty() {
            // What comes is mostly like what was, and so has its room at once.
            self.waiting.reserve(self.last_gathered);
        }
        frame_with(&mut self.waiting, encode);
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.front.len() + self.waiting.len()
    }

    /// True when no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.front.is_empty() && self.waiting.is_empty()
    }

    /// Takes up to so many of the bytes that wait. What is taken as a whole leaves no memory behind.
    pub fn take(&mut self, bytes: usize) -> Bytes {
        if self.front.is_empty() {
            self.last_gathered = self.waiting.len();
            self.front = std::mem::take(&mut self.waiting).into();
        }
        self.front.split_to(bytes.min(self.front.len()))
    }

    /// Drops what is behind so many of the bytes that wait.
    pub fn truncate(&mut self, bytes: usize) {
        self.waiting.truncate(bytes.saturating_sub(self.front.len()));
        self.front.truncate(bytes);
    }

    /// Takes the first message, with its prefix, unless a part of it was taken already.
    pub fn take_first(&mut self) -> Bytes {
        let waiting = if self.front.is_empty() { &self.waiting[..] } else { &self.front[..] };
        let length = waiting.get(1..PREFIX_BYTES).and_then(|length| length.try_into().ok());
        let length = length.map_or(0, u32::from_be_bytes);
        self.take(PREFIX_BYTES + length as usize)
    }
}

/// Appends a message with its prefix.
pub fn frame(message: &impl Message, out: &mut Vec<u8>) {
    frame_with(out, |out| {
        // Fails only without room, and a `Vec` makes room.
        let _ = message.encode(out);
    });
}

/// Appends a message that `encode` writes, with its prefix.
pub fn frame_with(out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    frame_before(out, 0, encode);
}

/// Appends the beginning of a message, with its prefix, whose last `rest` bytes follow elsewhere.
pub fn frame_before(out: &mut Vec<u8>, rest: usize, encode: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    encode(out);
    let length = u32::try_from(out.len() - start - PREFIX_BYTES + rest)
        .expect("no message comes near 4 GiB: limits are far below");
    out[start + 1..start + PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for message in messages {
            frame_with(&mut out, |out| out.extend_from_slice(message));
        }
        out
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
    fn what_waits_is_taken_in_order() {
        let mut framer = Framer::default();
        for message in [&b"one"[..], b"", b"three"] {
            framer.add(|out| out.extend_from_slice(message));
        }
        let whole = framed(&[b"one", b"", b"three"]);
        assert_eq!((framer.len(), framer.is_empty()), (whole.len(), false));
        assert_eq!(framer.take_first(), framed(&[b"one"]));
        let mut taken = framer.take(2).to_vec();
        framer.add(|out| out.extend_from_slice(b"four"));
        while !framer.is_empty() {
            taken.extend_from_slice(&framer.take(4));
        }
        assert_eq!(taken, framed(&[b"", b"three", b"four"]));
        assert!(framer.is_empty() && framer.take(9).is_empty());
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
