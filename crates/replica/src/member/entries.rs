//! Entries of batches.

use bytes::Bytes;
use sluice_journal::{Committed, SealedBatch};

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

/// Entry of a batch of the tail; `begin` is the encoded record of an entry without a batch.
pub(super) fn of_tail(batch: &sluice_journal::Entry, begin: &Bytes) -> Entry {
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

/// Entry of a committed batch; `begin` is the encoded record of an entry without a batch.
pub(super) fn of_committed(batch: &Committed, begin: &Bytes) -> Entry {
    let descriptor = Descriptor {
        first_record: batch.first_index,
        records: batch.records().count() as u32,
        time_us: batch.time_us,
        bytes: batch.bytes.len() as u32,
        checksum: crc32fast::hash(&batch.bytes),
    };
    let position = Position { term: batch.term, index: batch.number };
    Entry { position, batch: (batch.bytes != *begin).then_some(descriptor) }
}
