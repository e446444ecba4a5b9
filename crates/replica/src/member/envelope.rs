//! Messages on their way, with the batches of their entries.

use std::fmt;

use bytes::Bytes;
use sluice_journal::SealedBatch;

use crate::entry::{Descriptor, Position};
use crate::message::Message;
use crate::plant::{self, Plant};
use crate::report::Report;
use crate::wire::{self, MESSAGE_LEN_MAX, WireError};

/// Message with the encoded records of its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The message.
    pub message: Message,
    /// Report of the sender, as of the moment at which the envelope was given to its owner.
    pub report: Report,
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
    /// Length of the longest head, in bytes.
    pub const HEAD_LEN_MAX: usize = Report::LEN + MESSAGE_LEN_MAX;

    /// Appends the head in this version of the protocol: report and message.
    pub fn encode_head(&self, protocol: u8, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.report.encode());
        wire::encode(&self.message, protocol, to);
    }

    /// The report and the message of a head in this version of the protocol.
    ///
    /// # Errors
    ///
    /// Bytes that [`Envelope::encode_head`] does not write in this version.
    pub fn decode_head(bytes: &[u8], protocol: u8) -> Result<(Report, Message), WireError> {
        let (report, message) = bytes.split_first_chunk().ok_or(WireError::Length)?;
        Ok((Report::decode(report)?, wire::decode(message, protocol)?))
    }

    /// An envelope with these batches, whose report tells of no room and no time.
    pub fn new(message: Message, batches: Vec<Bytes>) -> Envelope {
        Envelope { message, report: Report::default(), batches }
    }

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
        let entries = self.message.body.entries();
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
