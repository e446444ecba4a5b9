//! Messages on their way, with the batches of their entries.

use std::fmt;

use bytes::Bytes;
use sluice_journal::SealedBatch;

use crate::entry::{Descriptor, Position};
use crate::message::{Body, Message};
use crate::plant::{self, Plant};

/// Message with the encoded records of its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The message.
    pub message: Message,
    /// Encoded records of each entry that has a batch, in order.
    pub batches: Vec<Bytes>,
}

/// Reason for which batches are not those of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unattached {
    /// There are more of them, or fewer.
    Count {
        /// Number of entries with a batch.
        entries: usize,
        /// Number of batches.
        batches: usize,
    },
    /// The batch of this entry has another length or checksum.
    Content(Position),
}

impl fmt::Display for Unattached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unattached::Count { entries, batches } => {
                write!(f, "the message has {entries} entries with a batch, and {batches} batches")
            }
            Unattached::Content(at) => {
                write!(f, "the batch of the entry at index {}, term {} is another", at.index, at.term)
            }
        }
    }
}

impl Envelope {
    /// The batches, each with the position of its entry.
    pub(super) fn attach(&self) -> Result<Vec<(Position, SealedBatch)>, Unattached> {
        let described = self.described();
        let (entries, batches) = (described.clone().count(), self.batches.len());
        if entries != batches {
            return Err(Unattached::Count { entries, batches });
        }
        let attached = described.zip(&self.batches).map(|((at, batch), bytes)| attach(at, batch, bytes));
        attached.collect()
    }

    fn described(&self) -> impl Iterator<Item = (Position, Descriptor)> + Clone + '_ {
        let entries = match &self.message.body {
            Body::Append { entries, .. } => entries.as_slice(),
            Body::Appended { .. }
            | Body::AppendRefused { .. }
            | Body::Heartbeat { .. }
            | Body::HeartbeatSeen { .. }
            | Body::AskVote { .. }
            | Body::Vote { .. }
            | Body::TimeoutNow
            | Body::Snapshot(_) => &[],
        };
        entries.iter().filter_map(|entry| Some((entry.position, entry.batch()?)))
    }
}

fn attach(at: Position, batch: Descriptor, bytes: &Bytes) -> Result<(Position, SealedBatch), Unattached> {
    let Descriptor { first_record, records, time_us, bytes: len, checksum } = batch;
    let sealed = SealedBatch::received(first_record, records, time_us, bytes.clone());
    let is_same = |sealed: &SealedBatch| sealed.checksum() == checksum && bytes.len() == len as usize;
    let sealed = sealed.filter(|sealed| is_same(sealed) || plant::is(Plant::AttachAnything));
    sealed.map(|sealed| (at, sealed)).ok_or(Unattached::Content(at))
}
