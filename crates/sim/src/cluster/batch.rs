//! Operations as batches of records.

use bytes::Bytes;
use sluice_journal::{Batch, Records};

use crate::rng::Rng;

/// Body of the record of an entry that has no batch.
const BEGIN: &[u8] = b"begin";

/// Encoded record of an entry that has no batch.
pub(super) fn begin() -> Bytes {
    let mut batch = Batch::new();
    batch.record(0).body(BEGIN);
    batch.take().0
}

/// A batch whose first record names the operation.
pub(super) fn of_operation(operation: u64, rng: &mut Rng) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..rng.weighted(&[(6, 1), (2, 2), (1, 7)]) {
        let blobs = rng.weighted(&[(2, 0), (4, 1), (1, 3)]);
        let len = rng.weighted(&[(60, 60), (30, 700), (10, 5_000), (1, 100_000)]);
        let mut record = batch.record(blobs);
        record.body(&operation.to_le_bytes());
        for _ in 0..blobs {
            let zeros = vec![0; rng.below(len) as usize];
            record.blob(&[&operation.to_le_bytes(), &zeros]);
        }
    }
    batch
}

/// The operation of a batch; `None`: the entry has none.
pub(super) fn operation_of(bytes: &[u8]) -> Option<u64> {
    let record = Records::new(bytes).next()?;
    record.body.try_into().ok().map(u64::from_le_bytes)
}
