//! Records under construction.

use bytes::{Bytes, BytesMut};

use crate::seam::BlobKey;

/// Bytes of the head of an encoded record: body length and number of blobs, both u32 little endian; then one u32
/// length per blob, the body, and the blobs, each behind its checksum.
pub(crate) const RECORD_HEAD: usize = 8;

/// Bytes before each blob: room for its checksum, which the disk journal fills when it writes, so that each blob can
/// be verified alone and the thread that encodes need not compute it.
pub(crate) const BLOB_HEAD: usize = 4;

/// Memory is taken in chunks of this many bytes and filled from batch to batch.
const CHUNK: usize = 64 << 10;

/// Checksum of a blob. It covers the key, so that a blob in another's place does not verify.
pub(crate) fn blob_checksum(key: BlobKey, blob: &[u8]) -> u32 {
    let seed = (key.index as u32) ^ ((key.index >> 32) as u32).rotate_left(16) ^ key.item.rotate_left(8);
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(blob);
    hasher.finalize()
}

/// Records on their way into the log. Its memory is reused from batch to batch.
#[derive(Debug, Default)]
pub struct Batch {
    buffer: BytesMut,
    records: u32,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Records so far.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Encoded bytes so far.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Begins a record with this number of blobs. It is complete when the writer is dropped.
    pub fn record(&mut self, blobs: u32) -> RecordWriter<'_> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&blobs.to_le_bytes());
        self.buffer.resize(start + RECORD_HEAD + blobs as usize * 4, 0);
        let body = self.buffer.len();
        self.records += 1;
        RecordWriter { buffer: &mut self.buffer, start, body, blobs, written: 0 }
    }

    /// Appends the records of another batch, which was encoded elsewhere.
    pub fn append(&mut self, other: &Batch) {
        self.buffer.extend_from_slice(&other.buffer);
        self.records += other.records;
    }

    /// Takes the encoded bytes and leaves the batch empty.
    pub fn take(&mut self) -> (Bytes, u32) {
        (self.buffer.split().freeze(), std::mem::take(&mut self.records))
    }
}

/// Writes one record: body first, then the blobs.
#[derive(Debug)]
pub struct RecordWriter<'a> {
    buffer: &'a mut BytesMut,
    start: usize,
    body: usize,
    blobs: u32,
    written: u32,
}

impl RecordWriter<'_> {
    /// Appends to the body.
    pub fn body(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.written, 0, "the body comes before the blobs");
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends one blob, given in pieces.
    pub fn blob(&mut self, pieces: &[&[u8]]) {
        self.end_body();
        assert!(self.written < self.blobs, "more blobs than announced");
        let mut len = 0;
        for piece in pieces {
            len += piece.len();
            self.buffer.extend_from_slice(piece);
        }
        let at = self.start + RECORD_HEAD + self.written as usize * 4;
        self.buffer[at..at + 4].copy_from_slice(&(len as u32).to_le_bytes());
        self.written += 1;
    }

    fn end_body(&mut self) {
        if self.written == 0 {
            let len = (self.buffer.len() - self.body) as u32;
            self.buffer[self.start..self.start + 4].copy_from_slice(&len.to_le_bytes());
        }
    }
}

impl Drop for RecordWriter<'_> {
    fn drop(&mut self) {
        self.end_body();
        debug_assert_eq!(self.written, self.blobs, "fewer blobs than announced");
    }
}

/// One record as read back.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What replay needs.
    pub body: &'a [u8],
    lengths: &'a [u8],
    blobs: &'a [u8],
}

impl<'a> Record<'a> {
    /// How many blobs it has.
    pub fn blob_count(&self) -> u32 {
        (self.lengths.len() / 4) as u32
    }

    /// The blob with this number.
    pub fn blob(&self, item: u32) -> Option<&'a [u8]> {
        let mut start = 0usize;
        for (i, len) in self.lengths.chunks_exact(4).enumerate() {
            let len = read_u32(len, 0)? as usize;
            if i == item as usize {
                return self.blobs.get(start..start + len);
            }
            start += len;
        }
        None
    }
}

/// Iterates over encoded records; ends early at bytes that are not a whole record.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records that these bytes hold.
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records { rest: bytes }
    }

    /// Bytes not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let body_len = read_u32(self.rest, 0)? as usize;
        let blobs = read_u32(self.rest, 4)? as usize;
        let lengths = self.rest.get(RECORD_HEAD..RECORD_HEAD.checked_add(blobs.checked_mul(4)?)?)?;
        let blob_bytes: usize =
            lengths.chunks_exact(4).filter_map(|l| read_u32(l, 0)).map(|l| l as usize).sum();
        let body_at = RECORD_HEAD + lengths.len();
        let body = self.rest.get(body_at..body_at.checked_add(body_len)?)?;
        let blobs_at = body_at + body_len;
        let blobs = self.rest.get(blobs_at..blobs_at.checked_add(blob_bytes)?)?;
        self.rest = &self.rest[blobs_at + blob_bytes..];
        Some(Record { body, lengths, blobs })
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_written() {
        let mut batch = Batch::new();
        let mut writer = batch.record(2);
        writer.body(b"bo");
        writer.body(b"dy");
        writer.blob(&[b"one"]);
        writer.blob(&[b"tw", b"o"]);
        drop(writer);
        batch.record(0).body(b"bare");
        assert_eq!(batch.records(), 2);
        let (bytes, count) = batch.take();
        assert_eq!(count, 2);
        assert!(batch.is_empty());
        let records: Vec<_> = Records::new(&bytes).collect();
        assert_eq!(records[0].body, b"body");
        assert_eq!(records[0].blob(0), Some(&b"one"[..]));
        assert_eq!(records[0].blob(1), Some(&b"two"[..]));
        assert_eq!(records[0].blob(2), None);
        assert_eq!(records[1].body, b"bare");
        assert_eq!(records[1].blob_count(), 0);
        assert_eq!(records.len(), 2);
        for cut in 0..bytes.len() {
            assert!(Records::new(&bytes[..cut]).count() < 2, "a cut record is never given out");
        }
    }
}
