//! Entries of batches. An entry without a batch is in the journal a batch of one record, over which the
//! owner's state machine passes. What it holds tells the kinds apart: nothing is the beginning of a leader's
//! term, anything else a change of the members.

use bytes::Bytes;
use sluice_journal::{Batch, Records, SealedBatch};

use crate::config::StartError;
use crate::entry::{Change, Content, Descriptor, Entry, Position};
use crate::wire;

/// Records by which members agree on their own affairs, as the owner's state machine knows them.
#[derive(Clone, Copy, Debug)]
pub struct OwnRecords {
    /// Adds the record that holds these bytes to a batch.
    pub write: fn(&mut Batch, &[u8]),
    /// Bytes that the record with this body holds; `None`: it is a record of another kind.
    pub held: for<'a> fn(&'a [u8]) -> Option<&'a [u8]>,
}

impl OwnRecords {
    /// The encoded record of an entry with which a leader begins its term.
    pub fn begin(&self) -> Bytes {
        self.encode(&[])
    }

    /// The encoded record of a change of the members.
    pub(super) fn change(&self, change: Change) -> Bytes {
        self.encode(&wire::encode_change(change))
    }

    fn encode(&self, held: &[u8]) -> Bytes {
        let mut batch = Batch::new();
        (self.write)(&mut batch, held);
        batch.take().0
    }

    /// Entry of a batch.
    ///
    /// # Errors
    ///
    /// It is a record of ours that holds what no member writes.
    pub(super) fn entry(&self, batch: &sluice_journal::Entry) -> Result<Entry, StartError> {
        let position = Position { term: batch.term, index: batch.number };
        let held = Records::new(&batch.bytes).next().and_then(|record| (self.held)(record.body));
        let content = match held {
            None => Content::Batch(Descriptor {
                first_record: batch.first_index,
                records: batch.records,
                time_us: batch.time_us,
                bytes: batch.bytes.len() as u32,
                checksum: batch.checksum,
            }),
            Some([]) => Content::Begin,
            Some(change) => {
                Content::Members(wire::decode_change(change).map_err(|_| StartError::Content(position))?)
            }
        };
        Ok(Entry { position, content })
    }
}

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
