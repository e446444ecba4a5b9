//! The head of a batch on disk.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | magic `SLB1` |
//! | 4..8 | checksum of bytes 8..112, begun with the journal's identity |
//! | 8..24 | own position: segment number, offset of the head |
//! | 24..32 | index of the first record |
//! | 32..40 | number of the batch in the log; the first has 1 |
//! | 40..48 | term |
//! | 48..56 | time, microseconds since the Unix epoch |
//! | 56..72 | `synced_to`: segment number and offset known durable when this was written |
//! | 72..80 | index of the last record before this batch known committed when this was written |
//! | 80..84 | length of the records |
//! | 84..88 | number of records; 0: an idle marker |
//! | 88..92 | checksum of the records |
//! | 92..96 | the predecessor's checksum (bytes 4..8 of its head) |
//! | 96..98 | cipher: 0 none, 1 AES-256-GCM |
//! | 98..100 | key id: 0, the key of the segment |
//! | 100..112 | nonce of the first chunk; 0 without cipher |
//!
//! An idle marker is not counted: it has index and number of the batch to come, and the term of the one
//! before.
//!
//! The records follow. When they are encrypted, the tags of their [chunks](crate::keys::cipher) come before
//! them, the checksum at 88 is that of the tags, which the plain records never have one of, and with each
//! chunk the head is authenticated, as it is with 0 for both checksums.
//!
//! The head names its own position, so that an old batch in recycled bytes, or one inside a payload, is not
//! taken for a batch of the log.

use crate::codec::Reader;
use crate::keys::cipher::{nonce, tag_bytes};

/// Writes after a sync begin at a multiple of this, so that a write torn by a power loss never touches a
/// sector with bytes that were already synced.
pub(crate) const SECTOR: u64 = 512;

/// Rounds up to a sector's beginning.
pub(crate) fn next_sector(offset: u64) -> u64 {
    offset.next_multiple_of(SECTOR)
}

/// Bytes of a head.
pub(crate) const HEADER: usize = 112;

/// Where the checksum of what follows stands.
const CONTENT_SUM: std::ops::Range<usize> = 88..92;

/// The cipher of encrypted records.
const AES_256_GCM: u16 = 1;

/// First bytes of a head.
pub(crate) const MAGIC: [u8; 4] = *b"SLB1";

/// A place in the log. Numbers of segments grow in the order of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// Head of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) checksum: u32,
    pub(crate) at: Position,
    pub(crate) first_index: u64,
    /// Number of the batch in the log; of an idle marker, that of the next batch.
    pub(crate) number: u64,
    pub(crate) term: u64,
    pub(crate) time_us: u64,
    pub(crate) synced_to: Position,
    /// Index of the last record before this batch known committed when it was written; 0: none.
    pub(crate) committed: u64,
    pub(crate) len: u32,
    pub(crate) records: u32,
    /// Checksum of the records, or of their tags when they are encrypted.
    pub(crate) content_checksum: u32,
    pub(crate) previous: u32,
    /// Nonce of the first chunk; `None`: the records are not encrypted.
    pub(crate) nonce: Option<u64>,
}

/// Bytes before the records of a batch of this length.
pub(crate) fn front(len: usize, sealed: bool) -> usize {
    if sealed { HEADER + tag_bytes(len) } else { HEADER }
}

impl Header {
    /// The bytes of the head, with the checksum that they have; the field `checksum` is not looked at.
    pub(crate) fn encode(&self, identity: u64) -> ([u8; HEADER], u32) {
        let mut out = self.fields();
        let sum = checksum(identity, &out[8..]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        (out, sum)
    }

    /// Bytes of the head that are authenticated with encrypted records.
    pub(crate) fn authenticated(&self) -> [u8; HEADER] {
        let mut out = self.fields();
        out[CONTENT_SUM].fill(0);
        out
    }

    /// All but the head's checksum.
    fn fields(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&[0; 4]);
        let Position { segment, offset } = self.at;
        let synced = self.synced_to;
        for value in [segment, offset, self.first_index, self.number, self.term, self.time_us] {
            put(&value.to_le_bytes());
        }
        for value in [synced.segment, synced.offset, self.committed] {
            put(&value.to_le_bytes());
        }
        for value in [self.len, self.records, self.content_checksum, self.previous] {
            put(&value.to_le_bytes());
        }
        if let Some(first) = self.nonce {
            put(&AES_256_GCM.to_le_bytes());
            put(&[0; 2]);
            put(&nonce(first));
        }
        out
    }

    /// Reads a head that was found at `at`; `None` when the bytes are not one.
    pub(crate) fn decode(identity: u64, at: Position, bytes: &[u8]) -> Option<Header> {
        let header = Header::parse(at, bytes)?;
        (header.checksum == checksum(identity, &bytes[8..HEADER])).then_some(header)
    }

    /// As [`Header::decode`], without a look at the checksum.
    pub(crate) fn parse(at: Position, bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let mut reader = Reader(bytes);
        if reader.take(4)? != MAGIC {
            return None;
        }
        let header = Header {
            checksum: reader.u32()?,
            at: Position { segment: reader.u64()?, offset: reader.u64()? },
            first_index: reader.u64()?,
            number: reader.u64()?,
            term: reader.u64()?,
            time_us: reader.u64()?,
            synced_to: Position { segment: reader.u64()?, offset: reader.u64()? },
            committed: reader.u64()?,
            len: reader.u32()?,
            records: reader.u32()?,
            content_checksum: reader.u32()?,
            previous: reader.u32()?,
            nonce: match reader.u16()? {
                0 => None,
                AES_256_GCM => {
                    reader.take(6)?;
                    Some(reader.u64()?)
                }
                _ => return None,
            },
        };
        (header.at == at).then_some(header)
    }

    /// Bytes before the records.
    pub(crate) fn front(&self) -> usize {
        front(self.len as usize, self.nonce.is_some())
    }

    /// Where the records begin.
    pub(crate) fn records_at(&self) -> u64 {
        self.at.offset + self.front() as u64
    }

    /// Where the batch ends.
    pub(crate) fn end(&self) -> u64 {
        self.records_at() + u64::from(self.len)
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
            number: 4,
            term: 2,
            time_us: 99,
            synced_to: Position { segment: 3, offset: 100 },
            committed: 6,
            len: 10,
            records: 1,
            content_checksum: 5,
            previous: 6,
            nonce: None,
        };
        for (nonce, end) in [(None, 512 + 112 + 10), (Some(u64::MAX - 3), 512 + 112 + 16 + 10)] {
            header.nonce = nonce;
            let (mut bytes, sum) = header.encode(1);
            header.checksum = sum;
            assert_eq!((header.end(), bytes.len()), (end, HEADER));
            assert_eq!(Header::decode(1, at, &bytes), Some(header));
            assert_eq!(Header::decode(2, at, &bytes), None, "another journal's");
            assert_eq!(Header::decode(1, Position { segment: 4, offset: 512 }, &bytes), None, "elsewhere");
            for bit in 0..HEADER * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::decode(1, at, &bytes), None, "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let other = Header { content_checksum: 99, checksum: 98, ..header };
            assert_eq!(header.authenticated(), other.authenticated());
            assert_ne!(header.authenticated(), Header { time_us: 1, ..header }.authenticated());
        }
    }
}
