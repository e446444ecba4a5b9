//! Messages for followers that are behind: their batches are read back from the log, on another thread.

use std::collections::{BTreeMap, BTreeSet};

use sluice_journal::{BlobError, DiskJournal, LogGone, LogReader};

use super::envelope::Envelope;
use crate::GROUP_BYTES;
use crate::entry::NodeId;
use crate::message::{Body, Message};

/// Message whose batches have to be read from the disk.
#[derive(Debug)]
pub struct Fetch {
    message: Message,
    reader: LogReader,
}

/// Message whose batches were read.
#[derive(Debug)]
pub struct Fetched {
    to: NodeId,
    reader: LogReader,
    envelope: Result<Option<Envelope>, BlobError>,
}

impl Fetch {
    /// Reads the batches, or the first of them: then the message has fewer entries. Blocks: not for the
    /// shard's thread.
    pub fn read(self) -> Fetched {
        let Fetch { message, mut reader } = self;
        let to = message.to;
        let read = reader.read(GROUP_BYTES as usize);
        let envelope = read.map(|read| attach(message, &read));
        Fetched { to, reader, envelope }
    }
}

impl Fetched {
    /// Reason for which nothing was read, if there is one.
    pub fn error(&self) -> Option<&BlobError> {
        self.envelope.as_ref().err()
    }

    /// Number of the batch that is damaged on the disk, if nothing was read for that.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.error().is_some_and(BlobError::is_lasting).then(|| self.reader.next_number())
    }
}

/// The message with those of its entries that were read; `None`: there is none.
fn attach(mut message: Message, read: &[sluice_journal::Entry]) -> Option<Envelope> {
    let Body::Append { entries, .. } = &mut message.body else { return None };
    let is_same = |(entry, read): &(&crate::Entry, &sluice_journal::Entry)| {
        (entry.position.index, entry.position.term) == (read.number, read.term)
    };
    let same = entries.iter().zip(read).take_while(is_same).count();
    let pairs = entries.iter().zip(read).take(same).filter(|(entry, _)| entry.batch().is_some());
    let batches = pairs.map(|(_, read)| read.bytes.clone()).collect();
    entries.truncate(same);
    (same > 0).then(|| Envelope::new(message, batches))
}

/// Readers of the log, one for each follower that is behind, and what is to be read.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    readers: BTreeMap<NodeId, LogReader>,
    pub(super) asked: Vec<Fetch>,
    /// Followers for whom a message is being read.
    reading: BTreeSet<NodeId>,
}

impl Fetches {
    /// Asks for the batches of a message, the first of which has this number. A message that comes while an
    /// earlier one to the same follower is being read is dropped, and the follower will ask again.
    pub(super) fn ask(
        &mut self,
        message: Message,
        number: u64,
        journal: &DiskJournal,
    ) -> Result<(), LogGone> {
        let to = message.to;
        if self.reading.contains(&to) {
            return Ok(());
        }
        let reader = self.readers.remove(&to).filter(|reader| reader.next_number() == number);
        let mut reader = reader.unwrap_or_else(|| LogReader::new(number));
        journal.read_on(&mut reader)?;
        self.asked.push(Fetch { message, reader });
        self.reading.insert(to);
        Ok(())
    }

    /// Takes back a reader, which knows its place; returns the envelope that can be sent.
    ///
    /// # Errors
    /// A batch is damaged, or the operating system failed.
    pub(super) fn done(&mut self, fetched: Fetched) -> Result<Option<Envelope>, BlobError> {
        let Fetched { to, reader, envelope } = fetched;
        self.reading.remove(&to);
        self.readers.insert(to, reader);
        envelope
    }
}
