//! Frames out of the bytes of one direction of a connection.

use bytes::BytesMut;

use crate::frame::{Frame, FrameError, HEAD_LEN, Head};

/// Capacity of a new buffer, in bytes; frames that fit are slices of it.
const CHUNK: usize = 64 << 10;

/// Room for the next bytes, at least, in bytes.
const ROOM: usize = 4 << 10;

/// Decoder of frames. It holds no more than one frame of the greatest length, and one chunk.
#[derive(Debug)]
pub struct Decoder {
    read: BytesMut,
    /// Number of the next frame.
    number: u32,
    /// Head of the next frame, when it is there.
    head: Option<Head>,
    /// Version of the protocol; 0: none is agreed upon.
    protocol: u8,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { read: BytesMut::with_capacity(CHUNK), number: 0, head: None, protocol: 0 }
    }
}

impl Decoder {
    /// Sets the version of the protocol of the next frames. Before that only those are of use that are the
    /// same in every version.
    pub fn agree(&mut self, protocol: u8) {
        self.protocol = protocol;
    }

    /// Buffer behind whose end the next bytes are to be put. It has room for some, and for all of a frame
    /// whose head is there, so that no batch is copied when its last bytes come.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let missing = self.frame_len().saturating_sub(self.read.len());
        self.read.reserve(missing.max(ROOM));
        &mut self.read
    }

    /// Takes the next frame; `None`: not all of it is there.
    ///
    /// # Errors
    ///
    /// Bytes that are no frame, or not the next; the connection is of no more use.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.head.is_none() {
            let Some(bytes) = self.read.first_chunk::<HEAD_LEN>() else { return Ok(None) };
            self.head = Some(Head::decode(bytes, self.number)?);
        }
        let len = self.frame_len();
        let Some(head) = self.head.take_if(|_| self.read.len() >= len) else { return Ok(None) };
        let mut bytes = self.read.split_to(len).freeze();
        let batches = bytes.split_off(HEAD_LEN + head.content);
        head.check(&bytes)?;
        self.number = self.number.wrapping_add(1);
        Frame::decode(&head, &bytes.slice(HEAD_LEN..), &batches, self.protocol).map(Some)
    }

    /// Length of the next frame, as far as it is known, in bytes.
    fn frame_len(&self) -> usize {
        HEAD_LEN + self.head.map_or(0, |head| head.content + head.batches)
    }
}
