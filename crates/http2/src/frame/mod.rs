//! Frames (RFC 9113 §4 and §6, RFC 9218 §7): their headers, [reading](Frame::parse) and
//! [writing](mod@write).
//!
//! Reading copies nothing: what varies in size stays where it came in. Every check of a frame by itself is
//! made here, in constant time; what depends on the state of its stream is not.

mod parse;
mod settings;
pub mod write;

pub use parse::Frame;
pub use settings::{Setting, SettingsPayload};

/// The connection preface, which a client sends before its first frame (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Largest payload of a frame in bytes, sent or accepted: the initial SETTINGS_MAX_FRAME_SIZE (RFC 9113
/// §4.2).
pub const PAYLOAD_BYTES_MAX: u32 = 16_384;

/// The largest stream id, and the largest size of a flow-control window (RFC 9113 §5.1.1, §6.9.1).
pub const MAX_31_BITS: u32 = (1 << 31) - 1;

/// The kinds of frames, as they stand in the header.
pub mod kind {
    /// A piece of a body.
    pub const DATA: u8 = 0x0;
    /// Begins a header block.
    pub const HEADERS: u8 = 0x1;
    /// Priorities of RFC 7540, which nobody uses any more: read and passed over.
    pub const PRIORITY: u8 = 0x2;
    /// Ends a stream at once.
    pub const RST_STREAM: u8 = 0x3;
    /// Settings, or their acknowledgement.
    pub const SETTINGS: u8 = 0x4;
    /// Announces a pushed response. Never right from a client, never sent.
    pub const PUSH_PROMISE: u8 = 0x5;
    /// Asks for an echo, or is one.
    pub const PING: u8 = 0x6;
    /// No streams after the one named will be served.
    pub const GOAWAY: u8 = 0x7;
    /// Opens a flow-control window further.
    pub const WINDOW_UPDATE: u8 = 0x8;
    /// Goes on with a header block.
    pub const CONTINUATION: u8 = 0x9;
    /// Changes the priority of a stream (RFC 9218 §7.1).
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// The flags of frames, as they stand in the header.
pub mod flag {
    /// DATA and HEADERS: nothing follows on this stream.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS and PING: an answer.
    pub const ACK: u8 = 0x1;
    /// HEADERS and CONTINUATION: the header block ends here.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA and HEADERS: padded.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: carries a priority of RFC 7540.
    pub const PRIORITY: u8 = 0x20;
}

/// The nine bytes before each payload (RFC 9113 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// Bytes of payload that follow.
    pub length: u32,
    /// One of [`kind`], or unknown.
    pub kind: u8,
    /// Some of [`flag`].
    pub flags: u8,
    /// The stream, or 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Size of a header in bytes.
    pub const BYTES: usize = 9;

    /// Reads the header at the beginning of `bytes`; `None`: it is not complete.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[l0, l1, l2, kind, flags, s0, s1, s2, s3] = bytes.first_chunk::<{ Self::BYTES }>()?;
        Some(Self {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind,
            flags,
            // The highest bit is reserved and has no meaning.
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & MAX_31_BITS,
        })
    }

    /// The header as it is sent.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    /// True when any bit of `flag` is set.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9113_4_1_header_goes_there_and_back() {
        let header = FrameHeader { length: 0x01_0203, kind: kind::HEADERS, flags: 0x25, stream: 0x7fff_fffe };
        assert_eq!(header.to_bytes(), [1, 2, 3, 1, 0x25, 0x7f, 0xff, 0xff, 0xfe]);
        assert_eq!(FrameHeader::parse(&header.to_bytes()), Some(header));
        assert_eq!(FrameHeader::parse(&header.to_bytes()[..8]), None);
    }

    #[test]
    fn rfc9113_4_1_reserved_bit_is_ignored() {
        let header = FrameHeader::parse(&[0, 0, 0, 0, 0, 0x80, 0, 0, 5]).expect("nine bytes");
        assert_eq!(header.stream, 5);
    }
}
