//! Entries of batches.

use bytes::Bytes;
use sluice_journal::SealedBatch;

use crate::entry::{Descriptor, Entry, Position};

/// Description of a batch.
pub(super) fn descriptor(batch: &SealedBatch) -> Descriptor {
    Descriptor {
        first_record: batch.first_index(),
        records: batch.records(),
        time_us: batch.time_us(),
        bytes: batch.bytes().len() as u32,
        checksum: batch.checksum(),
    }
}

/// Entry of a batch; `begin` is the encoded record of an entry without a batch.
pub(super) fn of_batch(batch: &sluice_journal::Entry, begin: &Bytes) -> Entry {
    let descriptor = Descriptor {
        first_record: batch.first_index,
        records: batch.records,
        time_us: batch.time_us,
        bytes: batch.bytes.len() as u32,
        checksum: batch.checksum,
    };
    let position = Position { term: batch.term, index: batch.number };
    Entry { position, batch: (batch.bytes != *begin).then_some(descriptor) }
}
