//! Encoding of records, and batches of them.
//!
//! An encoded record is: `u32` length of the body in bytes, `u32` number of blobs; for each blob a `u32` with
//! its end, counted from the beginning of the blobs' bytes; the body; the blobs, each behind 4 bytes for its
//! checksum. Little endian throughout.

use bytes::{Bytes, BytesMut};

use super::blob::BlobKey;

/// Length of the head of an encoded record, in bytes.
pub(crate) const RECORD_HEAD: usize = 8;

/// Length of the space for a checksum before each blob, in bytes. The disk journal fills it when it writes,
/// so that each blob can be verified alone and the thread that encodes need not compute it.
pub(crate) const BLOB_HEAD: usize = 4;

/// Capacity of a new buffer, in bytes; it is filled by one batch after the other.
const CHUNK: usize = 64 << 10;

/// CRC-32 of a blob, seeded with its key, so that a blob in another's place does not verify.
pub(crate) fn blob_checksum(key: BlobKey, blob: &[u8]) -> u32 {
    let seed = (key.index as u32) ^ ((key.index >> 32) as u32).rotate_left(16) ^ key.item.rotate_left(8);
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(blob);
    hasher.finalize()
}

/// Encoded records that are proposed together. The memory is reused from batch to batch.
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

    /// Number of records.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Length of the encoded records, in bytes.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// True when there is no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Begins a record with `blobs` blobs. It is complete when the writer is dropped.
    #[inline]
    pub fn record(&mut self, blobs: u32) -> RecordWriter<'_> {
        if self.buffer.capacity() == 0 {
            self.buffer = BytesMut::with_capacity(CHUNK);
        }
        let start = self.buffer.len();
        // The lengths are filled in when they are known. Most records have one blob or none.
        let [a, b, c, d] = blobs.to_le_bytes();
        let head: [u8; RECORD_HEAD] = [0, 0, 0, 0, a, b, c, d];
        self.buffer.extend_from_slice(&head);
        let body = start + RECORD_HEAD + blobs as usize * 4;
        match blobs {
            0 => {}
            1 => self.buffer.extend_from_slice(&[0; 4]),
            _ => self.buffer.resize(body, 0),
        }
        self.records += 1;
        RecordWriter { buffer: &mut self.buffer, start, body, blobs, written: 0, blobs_at: body }
    }

    /// Appends the records of another batch.
    pub fn append(&mut self, other: &Batch) {
        self.buffer.extend_from_slice(&other.buffer);
        self.records += other.records;
    }

    /// Takes in the records of another batch: many bytes without a copy, if there are none before.
    pub fn take_in(&mut self, other: Batch) {
        if self.is_empty() && other.bytes() >= CHUNK {
            *self = other;
        } else {
            self.append(&other);
        }
    }

    /// An empty batch with capacity for `bytes` encoded bytes.
    pub fn with_capacity(bytes: usize) -> Batch {
        Batch { buffer: BytesMut::with_capacity(bytes.max(1)), records: 0 }
    }

    /// Reserves capacity for `bytes` more encoded bytes, so that a large record is not copied while it grows.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        if self.buffer.capacity() == 0 {
            self.buffer = BytesMut::with_capacity(bytes.max(CHUNK));
        } else {
            self.buffer.reserve(bytes);
        }
    }

    /// Removes each record for which `keep` is false; it gets the record's number, from 0.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let (bytes, _) = self.take();
        let mut records = Records::new(&bytes);
        let (mut number, mut rest) = (0, records.rest().len());
        while records.next().is_some() {
            let (start, end) = (bytes.len() - rest, bytes.len() - records.rest().len());
            if keep(number) {
                self.buffer.extend_from_slice(&bytes[start..end]);
                self.records += 1;
            }
            number += 1;
            rest = records.rest().len();
        }
    }

    /// Replaces each record for which `body` gives a body by a record of that body without blobs. `body` gets
    /// the record's number, from 0, and its present body.
    pub fn replace(&mut self, mut body: impl FnMut(u32, &[u8]) -> Option<Vec<u8>>) {
        let (bytes, _) = self.take();
        let mut records = Records::new(&bytes);
        let (mut number, mut rest) = (0, bytes.len());
        while let Some(record) = records.next() {
            let (start, end) = (bytes.len() - rest, bytes.len() - records.rest().len());
            match body(number, record.body) {
                Some(body) => self.record(0).body(&body),
                None => {
                    self.buffer.extend_from_slice(&bytes[start..end]);
                    self.records += 1;
                }
            }
            number += 1;
            rest = records.rest().len();
        }
    }

    /// Computes the checksum of each blob; `first_index` is the index of the first record.
    pub(crate) fn seal_blobs(&mut self, first_index: u64) {
        seal_blobs(&mut self.buffer, first_index);
    }

    /// Removes all records, and keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.records = 0;
    }

    /// Takes the encoded bytes and the number of records; leaves the batch empty.
    #[inline]
    pub fn take(&mut self) -> (Bytes, u32) {
        (self.buffer.split().freeze(), std::mem::take(&mut self.records))
    }
}

/// Writer of one record: the body first, then exactly the announced number of blobs.
#[derive(Debug)]
pub struct RecordWriter<'a> {
    buffer: &'a mut BytesMut,
    start: usize,
    body: usize,
    blobs: u32,
    written: u32,
    blobs_at: usize,
}

impl RecordWriter<'_> {
    /// Appends to the body.
    #[inline]
    pub fn body(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.written, 0, "the body comes before the blobs");
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends one blob, the concatenation of `pieces`.
    ///
    /// # Panics
    /// When all announced blobs are written.
    #[inline]
    pub fn blob(&mut self, pieces: &[&[u8]]) {
        assert!(self.written < self.blobs, "more blobs than announced");
        if self.written == 0 {
            self.end_body();
        }
        self.buffer.extend_from_slice(&[0; BLOB_HEAD]);
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
        }
        let end = (self.buffer.len() - self.blobs_at) as u32;
        let at = self.start + RECORD_HEAD + self.written as usize * 4;
        self.buffer[at..at + 4].copy_from_slice(&end.to_le_bytes());
        self.written += 1;
    }

    #[inline]
    fn end_body(&mut self) {
        self.blobs_at = self.buffer.len();
        let len = (self.blobs_at - self.body) as u32;
        self.buffer[self.start..self.start + 4].copy_from_slice(&len.to_le_bytes());
    }
}

impl Drop for RecordWriter<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.written == 0 {
            self.end_body();
        }
        debug_assert!(self.written == self.blobs || std::thread::panicking(), "fewer blobs than announced");
    }
}

/// A decoded record, borrowed from its encoding.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The bytes that replay needs.
    pub body: &'a [u8],
    ends: &'a [u8],
    blobs: &'a [u8],
}

impl<'a> Record<'a> {
    /// Number of blobs.
    pub fn blob_count(&self) -> u32 {
        (self.ends.len() / 4) as u32
    }

    /// The blob with this number, from 0; `None`: there is none.
    pub fn blob(&self, item: u32) -> Option<&'a [u8]> {
        let (start, end) = self.blob_range(item)?;
        self.blobs.get(start..end)
    }

    /// Length of the encoding, in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        RECORD_HEAD + self.ends.len() + self.body.len() + self.blobs.len()
    }

    /// Start and end of a blob, counted from the beginning of the encoded record.
    pub(crate) fn encoded_blob_range(&self, item: u32) -> Option<(usize, usize)> {
        let base = RECORD_HEAD + self.ends.len() + self.body.len();
        let (start, end) = self.blob_range(item)?;
        (end <= self.blobs.len()).then_some((base + start, base + end))
    }

    fn blob_range(&self, item: u32) -> Option<(usize, usize)> {
        let at = item as usize * 4;
        let end = read_u32(self.ends, at)? as usize;
        let start = if item == 0 { 0 } else { read_u32(self.ends, at - 4)? as usize };
        let start = start.checked_add(BLOB_HEAD)?;
        (start <= end).then_some((start, end))
    }
}

/// Iterator over encoded records. It ends at the first bytes that are not a whole record.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// An iterator over the records in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records { rest: bytes }
    }

    /// The bytes that were not decoded yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let body_len = read_u32(self.rest, 0)? as usize;
        let count = read_u32(self.rest, 4)? as usize;
        let body_at = RECORD_HEAD.checked_add(count.checked_mul(4)?)?;
        let ends = self.rest.get(RECORD_HEAD..body_at)?;
        let blob_bytes = if count == 0 { 0 } else { read_u32(ends, ends.len() - 4)? as usize };
        let blobs_at = body_at.checked_add(body_len)?;
        let body = self.rest.get(body_at..blobs_at)?;
        let blobs = self.rest.get(blobs_at..blobs_at.checked_add(blob_bytes)?)?;
        self.rest = &self.rest[blobs_at + blob_bytes..];
        Some(Record { body, ends, blobs })
    }
}

/// Computes the checksum of each blob of encoded records; `first_index` is the index of the first.
pub(crate) fn seal_blobs(records: &mut [u8], first_index: u64) {
    let mut at = 0;
    let mut index = first_index;
    while let Some(record) = Records::new(&records[at..]).next() {
        let (count, len) = (record.blob_count(), record.encoded_len());
        for item in 0..count {
            let range = Records::new(&records[at..]).next().and_then(|r| r.encoded_blob_range(item));
            let Some((start, end)) = range else { continue };
            let sum = blob_checksum(BlobKey { index, item }, &records[at + start..at + end]);
            records[at + start - BLOB_HEAD..at + start].copy_from_slice(&sum.to_le_bytes());
        }
        at += len;
        index += 1;
    }
}

/// Keys of the blobs that do not match their checksums; `first_index` is the index of the first record.
pub(crate) fn damaged_blobs(records: &[u8], first_index: u64) -> Vec<BlobKey> {
    let mut damaged = Vec::new();
    let mut at = 0;
    for (index, record) in (first_index..).zip(Records::new(records)) {
        for item in 0..record.blob_count() {
            let key = BlobKey { index, item };
            let whole = record.encoded_blob_range(item).is_some_and(|(start, end)| {
                let sum = blob_checksum(key, &records[at + start..at + end]).to_le_bytes();
                records[at + start - BLOB_HEAD..at + start] == sum
            });
            if !whole {
                damaged.push(key);
            }
        }
        at += record.encoded_len();
    }
    damaged
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_taken_in_in_order() {
        let of = |length: usize| {
            let mut batch = Batch::new();
            batch.record(0).body(&vec![length as u8; length]);
            batch
        };
        let mut batch = Batch::new();
        for length in [CHUNK, 3, 2 * CHUNK] {
            batch.take_in(of(length));
        }
        assert_eq!(batch.records(), 3);
        let (bytes, _) = batch.take();
        let lengths: Vec<_> = Records::new(&bytes).map(|record| record.body.len()).collect();
        assert_eq!(lengths, [CHUNK, 3, 2 * CHUNK]);
    }

    #[test]
    fn retain_keeps_whole_records() {
        let mut batch = Batch::new();
        for body in [&b"a"[..], b"bb", b"ccc"] {
            let mut writer = batch.record(1);
            writer.body(body);
            writer.blob(&[body, body]);
        }
        batch.retain(|number| number != 1);
        assert_eq!(batch.records(), 2);
        let (bytes, _) = batch.take();
        let kept: Vec<_> = Records::new(&bytes).map(|record| (record.body, record.blob(0))).collect();
        assert_eq!(kept, [(&b"a"[..], Some(&b"aa"[..])), (&b"ccc"[..], Some(&b"cccccc"[..]))]);
    }

    fn two_records() -> Batch {
        let mut batch = Batch::new();
        let mut writer = batch.record(3);
        writer.body(b"bo");
        writer.body(b"dy");
        writer.blob(&[b"one"]);
        writer.blob(&[]);
        writer.blob(&[b"tw", b"o"]);
        drop(writer);
        batch.record(0).body(b"bare");
        batch
    }

    #[test]
    fn records_come_back_as_written() {
        let mut batch = two_records();
        assert_eq!(batch.records(), 2);
        let (bytes, count) = batch.take();
        assert_eq!(count, 2);
        assert!(batch.is_empty());
        let records: Vec<_> = Records::new(&bytes).collect();
        assert_eq!(records[0].body, b"body");
        assert_eq!(records[0].blob(0), Some(&b"one"[..]));
        assert_eq!(records[0].blob(1), Some(&b""[..]));
        assert_eq!(records[0].blob(2), Some(&b"two"[..]));
        assert_eq!(records[0].blob(3), None);
        assert_eq!(records[1].body, b"bare");
        assert_eq!(records[1].blob_count(), 0);
        assert_eq!(records.len(), 2);
        for cut in 0..bytes.len() {
            assert!(Records::new(&bytes[..cut]).count() < 2, "a cut record is never given out");
        }
    }

    #[test]
    fn garbage_is_not_a_record() {
        for byte in [0x7f, 0x80, 0xff] {
            assert_eq!(Records::new(&[byte; 64]).count(), 0);
        }
    }

    #[test]
    fn each_blob_is_verified_alone() {
        let (bytes, _) = two_records().take();
        let mut bytes = bytes.to_vec();
        assert_eq!(damaged_blobs(&bytes, 7).len(), 3);
        seal_blobs(&mut bytes, 7);
        assert_eq!(damaged_blobs(&bytes, 7), []);
        assert!(!damaged_blobs(&bytes, 8).is_empty(), "a blob of another record does not verify");
        let at = bytes.windows(3).position(|w| w == b"two").unwrap();
        bytes[at] ^= 1;
        assert_eq!(damaged_blobs(&bytes, 7), [BlobKey { index: 7, item: 2 }]);
    }
}
