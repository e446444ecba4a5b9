//! Batches that do not change any more.

use bytes::Bytes;

use super::batch::{Batch, Records, damaged_blobs};

/// Batch at its place in the log, with the checksums of its blobs: the same bytes on every node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedBatch {
    /// Index of the first record.
    pub(crate) first_index: u64,
    /// Number of records.
    pub(crate) records: u32,
    /// Time of the batch, in microseconds since the Unix epoch.
    pub(crate) time_us: u64,
    /// CRC-32 of `bytes`.
    pub(crate) checksum: u32,
    /// The encoded records, with the checksums of their blobs.
    pub(crate) bytes: Bytes,
}

impl SealedBatch {
    /// Seals a batch, and leaves it empty.
    pub(crate) fn seal(batch: &mut Batch, first_index: u64, time_us: u64) -> SealedBatch {
        batch.seal_blobs(first_index);
        let (bytes, records) = batch.take();
        SealedBatch { first_index, records, time_us, checksum: crc32fast::hash(&bytes), bytes }
    }

    /// A batch as another node has sealed it; `None`: the bytes are not `records` whole records, or one of
    /// their blobs is damaged.
    pub fn received(first_index: u64, records: u32, time_us: u64, bytes: Bytes) -> Option<SealedBatch> {
        let mut read = Records::new(&bytes);
        let is_whole = read.by_ref().count() == records as usize && read.rest().is_empty() && records > 0;
        if !is_whole || !damaged_blobs(&bytes, first_index).is_empty() {
            return None;
        }
        let checksum = crc32fast::hash(&bytes);
        Some(SealedBatch { first_index, records, time_us, checksum, bytes })
    }

    /// Index of the first record.
    pub fn first_index(&self) -> u64 {
        self.first_index
    }

    /// Number of records, at least 1.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Time of the batch, in microseconds since the Unix epoch.
    pub fn time_us(&self) -> u64 {
        self.time_us
    }

    /// CRC-32 of the encoded records.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The encoded records, with the checksums of their blobs.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Index of the last record.
    pub fn last_index(&self) -> u64 {
        self.first_index + u64::from(self.records) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> SealedBatch {
        let mut batch = Batch::new();
        for body in [b"one".as_slice(), b"two"] {
            let mut record = batch.record(1);
            record.body(body);
            record.blob(&[b"blob of ", body]);
        }
        SealedBatch::seal(&mut batch, 7, 99)
    }

    #[test]
    fn another_node_receives_what_was_sealed() {
        let batch = sealed();
        assert_eq!((batch.last_index(), batch.records()), (8, 2));
        assert_eq!(SealedBatch::received(7, 2, 99, batch.bytes().clone()), Some(batch));
    }

    #[test]
    fn bytes_that_are_no_such_records_are_not_received() {
        let bytes = sealed().bytes().clone();
        let received = |first_index, records, bytes| SealedBatch::received(first_index, records, 99, bytes);
        assert_eq!(received(7, 1, bytes.clone()), None, "more records");
        assert_eq!(received(7, 3, bytes.clone()), None, "fewer records");
        assert_eq!(received(8, 2, bytes.clone()), None, "at another place");
        assert_eq!(received(7, 2, bytes.slice(..bytes.len() - 1)), None, "cut off");
        assert_eq!(received(7, 0, Bytes::new()), None, "empty");
        let mut damaged = bytes.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(received(7, 2, damaged.into()), None, "a damaged blob");
    }
}
