//! Messages for followers that are behind: their batches are read back from the log, on another thread.

use std::collections::{BTreeMap, VecDeque};

use sluice_journal::{BlobError, DiskJournal, LogGone, LogReader};

use super::envelope::Envelope;
use crate::entry::{Entry, NodeId};
use crate::message::{Body, Message};

/// Number of messages to one follower that wait until others are read. Those beyond are lost: the follower
/// refuses what comes behind the gap.
const WAITING_MAX: usize = 8;

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
    read: Result<Attached, BlobError>,
}

/// Parts of a message: the one that can be sent, and the one whose batches were not read yet.
#[derive(Debug, Default)]
struct Attached {
    envelope: Option<Envelope>,
    rest: Option<Message>,
}

impl Fetch {
    /// Reads the batches, or the first of them, and none behind them: the reader goes on there. Blocks: not
    /// for the shard's thread.
    pub fn read(self) -> Fetched {
        let Fetch { message, mut reader } = self;
        let (to, bytes) = (message.to, message.body.entries().iter().map(Entry::bytes).sum::<u64>());
        let read = reader.read(bytes as usize).map(|read| attach(message, &read));
        Fetched { to, reader, read }
    }
}

impl Fetched {
    /// The follower.
    pub(super) fn to(&self) -> NodeId {
        self.to
    }

    /// Reason for which nothing was read, if there is one.
    pub fn error(&self) -> Option<&BlobError> {
        self.read.as_ref().err()
    }

    /// Number of the batch that is damaged on the disk, if nothing was read for that.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.error().is_some_and(BlobError::is_lasting).then(|| self.reader.next_number())
    }
}

/// The message with those of its entries that were read, and one with the others. A message that is not of
/// the log as it is now is dropped.
fn attach(mut message: Message, read: &[sluice_journal::Entry]) -> Attached {
    let Body::Append { commit, entries, .. } = &mut message.body else { return Attached::default() };
    let is_same = |(entry, read): &(&Entry, &sluice_journal::Entry)| {
        (entry.position.index, entry.position.term) == (read.number, read.term)
    };
    let same = entries.iter().zip(read).take_while(is_same).count();
    let pairs = entries.iter().zip(read).take(same).filter(|(entry, _)| entry.batch().is_some());
    let batches = pairs.map(|(_, read)| read.bytes.clone()).collect();
    let (others, commit) = (entries.split_off(same), *commit);
    let Some(last) = entries.last() else { return Attached::default() };
    let is_left = !others.is_empty() && same == read.len();
    let rest = Body::Append { previous: last.position, commit, entries: others };
    let rest = is_left.then_some(Message { body: rest, ..message });
    Attached { envelope: Some(Envelope::new(message, batches)), rest }
}

/// Readers of the log, one for each follower that is behind, and what is to be read.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    followers: BTreeMap<NodeId, Reading>,
    pub(super) asked: Vec<Fetch>,
}

/// Messages that are read for one follower. They are sent in their order, since it refuses one behind a gap,
/// and the replica would send all from there on once more.
#[derive(Debug, Default)]
struct Reading {
    /// `None`: it is in use, or there was none yet.
    reader: Option<LogReader>,
    is_in_use: bool,
    waiting: VecDeque<Message>,
}

impl Reading {
    /// Puts in a message. One that begins before the end of those that wait takes their place: the replica
    /// has begun anew. One that begins behind it is lost, as those before it were.
    fn put(&mut self, message: Message) {
        let start = entries_of(&message).start;
        let end = self.waiting.back().map_or(start, |last| entries_of(last).end);
        if start < end {
            self.waiting.clear();
        }
        if start <= end && self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(message);
        }
    }

    /// Puts back what is left of a message, unless what waits does not follow it.
    fn put_back(&mut self, rest: Message) {
        let next = self.waiting.front().map(|next| entries_of(next).start);
        if next.is_none_or(|next| next == entries_of(&rest).end) {
            self.waiting.push_front(rest);
        }
    }
}

/// Indexes of a message's entries.
fn entries_of(message: &Message) -> std::ops::Range<u64> {
    let entries = message.body.entries();
    let first = entries.first().map_or(0, |first| first.position.index);
    first..first + entries.len() as u64
}

impl Fetches {
    /// True while messages to this follower are read. Those that come meanwhile have to wait for them.
    pub(super) fn is_reading(&self, to: NodeId) -> bool {
        self.followers.get(&to).is_some_and(|reading| reading.is_in_use)
    }

    /// Asks for the batches of a message, behind those that wait.
    ///
    /// # Errors
    ///
    /// The log begins behind the first of the batches.
    pub(super) fn ask(&mut self, message: Message, journal: &DiskJournal) -> Result<(), LogGone> {
        let to = message.to;
        self.followers.entry(to).or_default().put(message);
        self.read_on(to, journal)
    }

    /// Takes back a reader, which knows its place, and lets it read on; returns the envelope that can be
    /// sent.
    ///
    /// # Errors
    ///
    /// A batch is damaged, or the operating system failed.
    pub(super) fn done(&mut self, fetched: Fetched) -> Result<Option<Envelope>, BlobError> {
        let Fetched { to, reader, read } = fetched;
        let reading = self.followers.entry(to).or_default();
        (reading.reader, reading.is_in_use) = (Some(reader), false);
        let Attached { envelope, rest } = read.inspect_err(|_| reading.waiting.clear())?;
        rest.into_iter().for_each(|rest| reading.put_back(rest));
        Ok(envelope)
    }

    /// Reads the next message to a follower, unless one is being read.
    ///
    /// # Errors
    ///
    /// The log begins behind the first of its batches.
    pub(super) fn read_on(&mut self, to: NodeId, journal: &DiskJournal) -> Result<(), LogGone> {
        let Some(reading) = self.followers.get_mut(&to).filter(|reading| !reading.is_in_use) else {
            return Ok(());
        };
        let Some(message) = reading.waiting.pop_front() else { return Ok(()) };
        let first = entries_of(&message).start;
        let reader = reading.reader.take().filter(|reader| reader.next_number() == first);
        let mut reader = reader.unwrap_or_else(|| LogReader::new(first));
        journal.read_on(&mut reader).inspect_err(|_| reading.waiting.clear())?;
        reading.is_in_use = true;
        self.asked.push(Fetch { message, reader });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Content, Descriptor, Position};

    fn message(entries: std::ops::Range<u64>) -> Message {
        let [from, to] = [1, 2].map(|id| NodeId::new(id).unwrap());
        let at = |index| Position { term: 3, index };
        let batch = Descriptor { first_record: 1, records: 1, time_us: 1, bytes: 1, checksum: 0 };
        let (previous, commit) = (at(entries.start - 1), 4);
        let entries = entries.map(|index| Entry { position: at(index), content: Content::Batch(batch) });
        Message { from, to, term: 3, body: Body::Append { previous, commit, entries: entries.collect() } }
    }

    fn read(number: u64, term: u64) -> sluice_journal::Entry {
        let bytes = bytes::Bytes::from_static(b"x");
        sluice_journal::Entry { number, term, first_index: 1, records: 1, time_us: 1, checksum: 0, bytes }
    }

    fn waiting(reading: &Reading) -> Vec<std::ops::Range<u64>> {
        reading.waiting.iter().map(entries_of).collect()
    }

    #[test]
    fn what_was_not_read_is_left() {
        let Attached { envelope, rest } = attach(message(5..9), &[read(5, 3), read(6, 3)]);
        assert_eq!(envelope, Some(Envelope::new(message(5..7), vec![bytes::Bytes::from_static(b"x"); 2])));
        assert_eq!(rest, Some(message(7..9)));
        let Attached { envelope, rest } = attach(message(5..7), &[read(5, 3), read(6, 3), read(7, 3)]);
        assert_eq!((envelope.map(|envelope| entries_of(&envelope.message)), rest), (Some(5..7), None));
    }

    #[test]
    fn what_is_not_of_the_log_any_more_is_dropped() {
        let Attached { envelope, rest } = attach(message(5..9), &[read(5, 3), read(6, 4)]);
        assert_eq!((envelope.map(|envelope| entries_of(&envelope.message)), rest), (Some(5..6), None));
        let Attached { envelope, rest } = attach(message(5..9), &[]);
        assert_eq!((envelope, rest), (None, None));
    }

    #[test]
    fn messages_wait_in_their_order_and_a_new_beginning_drops_them() {
        let mut reading = Reading::default();
        reading.put(message(7..9));
        reading.put(message(9..10));
        reading.put_back(message(6..7));
        assert_eq!(waiting(&reading), [6..7, 7..9, 9..10]);
        reading.put_back(message(3..5));
        reading.put(message(11..12));
        assert_eq!(waiting(&reading), [6..7, 7..9, 9..10]);
        reading.put(message(6..8));
        assert_eq!(reading.waiting, [message(6..8)]);
        (8..40).for_each(|index| reading.put(message(index..index + 1)));
        assert_eq!(reading.waiting.len(), WAITING_MAX);
        assert_eq!(reading.waiting.back(), Some(&message(14..15)));
    }
}
