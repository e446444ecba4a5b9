//! The head of a batch on disk.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | magic `SLB1` |
//! | 4..8 | checksum of bytes 8..96, begun with the journal's identity |
//! | 8..24 | own position: segment number, offset of the head |
//! | 24..32 | index of the first record |
//! | 32..40 | term |
//! | 40..48 | time, microseconds since the Unix epoch |
//! | 48..64 | `synced_to`: segment number and offset known durable when this was written |
//! | 64..68 | length of the records |
//! | 68..72 | number of records; 0: an idle marker |
//! | 72..76 | checksum of the records |
//! | 76..80 | the predecessor's checksum (bytes 4..8 of its head) |
//! | 80..82 | flags: 0 (later: the cipher) |
//! | 82..84 | key id: 0 |
//! | 84..96 | nonce: 0 |
//!
//! The head names its own position, so that an old batch in recycled bytes, or one inside a payload, is not taken for
//! a batch of the log.

use crate::log::codec::{Put, Reader};

/// Bytes of a head.
pub(crate) const HEADER: usize = 96;

/// First bytes of a head.
pub(crate) const MAGIC: [u8; 4] = *b"SLB1";

/// A place in the log. Numbers of segments grow in the order of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// What the head of a batch says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) checksum: u32,
    pub(crate) at: Position,
    pub(crate) first_index: u64,
    pub(crate) term: u64,
    pub(crate) time_us: u64,
    pub(crate) synced_to: Position,
    pub(crate) len: u32,
    pub(crate) records: u32,
    pub(crate) records_checksum: u32,
    pub(crate) previous: u32,
}

impl Header {
    /// Appends the head to `out` and returns its checksum; the field `checksum` is not looked at.
    pub(crate) fn encode(&self, identity: u64, out: &mut Vec<u8>) -> u32 {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.put_u32(0);
        out.put_u64(self.at.segment);
        out.put_u64(self.at.offset);
        out.put_u64(self.first_index);
        out.put_u64(self.term);
        out.put_u64(self.time_us);
        out.put_u64(self.synced_to.segment);
        out.put_u64(self.synced_to.offset);
        out.put_u32(self.len);
        out.put_u32(self.records);
        out.put_u32(self.records_checksum);
        out.put_u32(self.previous);
        out.put_u16(0);
        out.put_u16(0);
        out.extend_from_slice(&[0; 12]);
        let sum = checksum(identity, &out[start + 8..]);
        out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
        sum
    }

    /// Reads a head that was found at `at`; `None` when the bytes are not one.
    pub(crate) fn decode(identity: u64, at: Position, bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let mut reader = Reader(bytes);
        if reader.take(4)? != MAGIC {
            return None;
        }
        let header = Header {
            checksum: reader.u32()?,
            at: Position { segment: reader.u64()?, offset: reader.u64()? },
            first_index: reader.u64()?,
            term: reader.u64()?,
            time_us: reader.u64()?,
            synced_to: Position { segment: reader.u64()?, offset: reader.u64()? },
            len: reader.u32()?,
            records: reader.u32()?,
            records_checksum: reader.u32()?,
            previous: reader.u32()?,
        };
        let plain = reader.u16()? == 0;
        (plain && header.at == at && header.checksum == checksum(identity, &bytes[8..])).then_some(header)
    }

    /// Where the batch ends.
    pub(crate) fn end(&self) -> u64 {
        self.at.offset + HEADER as u64 + u64::from(self.len)
    }
}

/// Checksum of bytes that belong to the journal with this identity.
pub(crate) fn checksum(identity: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(identity as u32 ^ (identity >> 32) as u32);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_any_flipped_bit_is_seen() {
        let at = Position { segment: 3, offset: 512 };
        let mut header = Header {
            checksum: 0,
            at,
            first_index: 7,
            term: 2,
            time_us: 99,
            synced_to: Position { segment: 3, offset: 100 },
            len: 10,
            records: 1,
            records_checksum: 5,
            previous: 6,
        };
        let mut bytes = Vec::new();
        header.checksum = header.encode(1, &mut bytes);
        assert_eq!(bytes.len(), HEADER);
        assert_eq!(Header::decode(1, at, &bytes), Some(header));
        assert_eq!(Header::decode(2, at, &bytes), None, "another journal's");
        assert_eq!(Header::decode(1, Position { segment: 4, offset: 512 }, &bytes), None, "elsewhere");
        for bit in 0..HEADER * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(1, at, &bytes), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
