//! Bytes of a [`Message`].
//!
//! Layout, little endian: version of the [protocol](crate::protocol) `u8`, kind `u8`, sender, receiver and
//! term `u64` each, the fields of the kind in the order of [`Body`], and the CRC-32 of all that. A position
//! is index and term, `u64` each; a choice and an option are one byte, 0 or 1, the option's value behind it.
//! Entries are their number `u32` and for each its term, the kind of its content `u8`, and the descriptor or
//! the change; indexes follow from the position before them. A change is its kind `u8` and one or two nodes.
//! Members are the numbers of voters and of learners, `u8` each, these nodes, and the highest number given,
//! `u64` each. There is one encoding of each message in a version, and nothing behind it.

use std::fmt;

use crate::entry::{Change, Content, Descriptor, Entry, NodeId, Position, ReadId};
use crate::members::{Members, Snapshot};
use crate::message::{Body, Campaign, Message};
use crate::{INDEX_MAX, MEMBERS_MAX, MESSAGE_ENTRIES_MAX};

/// Length of the longest message, in bytes.
pub const MESSAGE_LEN_MAX: usize = 80 + MESSAGE_ENTRIES_MAX * ENTRY_LEN_MAX;

/// Length of an entry with a batch, in bytes.
const ENTRY_LEN_MAX: usize = 9 + Descriptor::LEN;

/// Reason for which bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// The message is shorter or longer than it says, or than [`MESSAGE_LEN_MAX`].
    Length,
    /// The checksum is that of other bytes.
    Checksum,
    /// The message has the first version of the protocol, and its connection the second.
    Version(u8, u8),
    /// The value is none of those that a field can have.
    Value(u64),
    /// The members contradict each other.
    Members,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Length => f.write_str("the message has a wrong length"),
            WireError::Checksum => f.write_str("the message has a wrong checksum"),
            WireError::Version(version, agreed) => {
                write!(f, "the message has version {version} of the protocol between nodes, not {agreed}")
            }
            WireError::Value(value) => write!(f, "the message has a field with the value {value}"),
            WireError::Members => f.write_str("the message has members that contradict each other"),
        }
    }
}

impl std::error::Error for WireError {}

/// Appends the bytes of a message in this version of the protocol. Entries have to follow their position
/// without holes.
pub fn encode(message: &Message, protocol: u8, to: &mut Vec<u8>) {
    frame(protocol, to, |writer| {
        writer.u8(kind(&message.body));
        writer.u64(message.from.get());
        writer.u64(message.to.get());
        writer.u64(message.term);
        writer.body(&message.body);
    });
}

/// Decodes the bytes of one message in this version of the protocol.
///
/// # Errors
///
/// Bytes that [`encode`] does not write in this version.
pub fn decode(bytes: &[u8], protocol: u8) -> Result<Message, WireError> {
    let mut reader = framed(bytes, protocol, MESSAGE_LEN_MAX)?;
    let kind = reader.u8()?;
    let (from, to, term) = (reader.node()?, reader.node()?, reader.u64()?);
    let body = reader.body(kind)?;
    reader.end()?;
    Ok(Message { from, to, term, body })
}

/// Appends a version of the protocol, fields, and the checksum of both.
pub(crate) fn frame(protocol: u8, to: &mut Vec<u8>, fields: impl FnOnce(&mut Writer<'_>)) {
    let start = to.len();
    let mut writer = Writer(to);
    writer.u8(protocol);
    fields(&mut writer);
    let checksum = crc32fast::hash(&to[start..]);
    to.extend_from_slice(&checksum.to_le_bytes());
}

/// The fields that [`frame`] has put between this version and the checksum, in at most `len_max` bytes.
pub(crate) fn framed(bytes: &[u8], protocol: u8, len_max: usize) -> Result<Reader<'_>, WireError> {
    if bytes.len() > len_max {
        return Err(WireError::Length);
    }
    let (content, checksum) = bytes.split_last_chunk::<4>().ok_or(WireError::Length)?;
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return Err(WireError::Checksum);
    }
    let mut reader = Reader(content);
    match reader.u8()? {
        found if found == protocol => Ok(reader),
        found => Err(WireError::Version(found, protocol)),
    }
}

fn kind(body: &Body) -> u8 {
    match body {
        Body::Append { .. } => 1,
        Body::Appended { .. } => 2,
        Body::AppendRefused { .. } => 3,
        Body::Heartbeat { .. } => 4,
        Body::HeartbeatSeen { .. } => 5,
        Body::AskVote { .. } => 6,
        Body::Vote { .. } => 7,
        Body::TimeoutNow => 8,
        Body::Snapshot(_) => 9,
    }
}

/// The bytes of a change.
pub(crate) fn encode_change(change: Change) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer(&mut bytes).change(change);
    bytes
}

/// The change of these bytes, and nothing behind it.
pub(crate) fn decode_change(bytes: &[u8]) -> Result<Change, WireError> {
    let mut reader = Reader(bytes);
    let change = reader.change()?;
    reader.end()?;
    Ok(change)
}

/// The bytes of members.
pub(crate) fn encode_members(members: &Members) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer(&mut bytes).members(members);
    bytes
}

/// The members of these bytes, and nothing behind them.
pub(crate) fn decode_members(bytes: &[u8]) -> Result<Members, WireError> {
    let mut reader = Reader(bytes);
    let members = reader.members()?;
    reader.end()?;
    Ok(members)
}

/// Writer of the fields of messages.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn position(&mut self, at: Position) {
        self.u64(at.index);
        self.u64(at.term);
    }

    fn read(&mut self, read: Option<ReadId>) {
        self.u8(u8::from(read.is_some()));
        if let Some(ReadId(number)) = read {
            self.u64(number);
        }
    }

    fn entries(&mut self, entries: &[Entry]) {
        self.u32(entries.len() as u32);
        for entry in entries {
            self.u64(entry.position.term);
            match entry.content {
                Content::Begin => self.u8(0),
                Content::Batch(batch) => {
                    self.u8(1);
                    self.0.extend_from_slice(&batch.encode());
                }
                Content::Members(change) => {
                    self.u8(2);
                    self.change(change);
                }
            }
        }
    }

    fn change(&mut self, change: Change) {
        let (kind, node, new) = match change {
            Change::Add(node) => (0, node, None),
            Change::Promote(node) => (1, node, None),
            Change::Demote(node) => (2, node, None),
            Change::Remove(node) => (3, node, None),
            Change::Replace { old, new } => (4, old, Some(new)),
        };
        self.u8(kind);
        self.u64(node.get());
        new.into_iter().for_each(|new| self.u64(new.get()));
    }

    fn members(&mut self, members: &Members) {
        self.u8(members.voters().len() as u8);
        self.u8(members.learners().len() as u8);
        members.iter().for_each(|node| self.u64(node.get()));
        self.u64(members.highest());
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::Append { previous, commit, entries } => {
                self.position(*previous);
                self.u64(*commit);
                self.entries(entries);
            }
            Body::Appended { index, commit } => {
                self.u64(*index);
                self.u64(*commit);
            }
            Body::AppendRefused { previous, hint, commit } => {
                self.u64(*previous);
                self.position(*hint);
                self.u64(*commit);
            }
            Body::Heartbeat { commit, read } | Body::HeartbeatSeen { commit, read } => {
                self.u64(*commit);
                self.read(*read);
            }
            Body::AskVote { campaign, last, commit } => {
                self.u8(match campaign {
                    Campaign::Try => 0,
                    Campaign::Election => 1,
                    Campaign::Transfer => 2,
                });
                self.position(*last);
                self.position(*commit);
            }
            Body::Vote { is_try, is_granted, commit } => {
                self.u8(u8::from(*is_try));
                self.u8(u8::from(*is_granted));
                self.position(*commit);
            }
            Body::TimeoutNow => {}
            Body::Snapshot(snapshot) => {
                self.position(snapshot.position);
                self.members(&snapshot.members);
            }
        }
    }
}

/// Reader of the fields of messages.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], WireError> {
        let (taken, rest) = self.0.split_first_chunk::<LEN>().ok_or(WireError::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), WireError> {
        if self.0.is_empty() { Ok(()) } else { Err(WireError::Length) }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.take::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn is(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(WireError::Value(other.into())),
        }
    }

    pub(crate) fn node(&mut self) -> Result<NodeId, WireError> {
        NodeId::new(self.u64()?).ok_or(WireError::Value(0))
    }

    pub(crate) fn position(&mut self) -> Result<Position, WireError> {
        Ok(Position { index: self.u64()?, term: self.u64()? })
    }

    fn read(&mut self) -> Result<Option<ReadId>, WireError> {
        if self.is()? { self.u64().map(|number| Some(ReadId(number))) } else { Ok(None) }
    }

    fn entries(&mut self, previous: Position) -> Result<Vec<Entry>, WireError> {
        let count = self.u32()?;
        if count as usize > MESSAGE_ENTRIES_MAX {
            return Err(WireError::Length);
        }
        if previous.index > INDEX_MAX {
            return Err(WireError::Value(previous.index));
        }
        (1..=u64::from(count))
            .map(|step| {
                let position = Position { term: self.u64()?, index: previous.index + step };
                let content = match self.u8()? {
                    0 => Content::Begin,
                    1 => Content::Batch(Descriptor::decode(&self.take()?)),
                    2 => Content::Members(self.change()?),
                    other => return Err(WireError::Value(other.into())),
                };
                Ok(Entry { position, content })
            })
            .collect()
    }

    fn change(&mut self) -> Result<Change, WireError> {
        let (kind, node) = (self.u8()?, self.node()?);
        Ok(match kind {
            0 => Change::Add(node),
            1 => Change::Promote(node),
            2 => Change::Demote(node),
            3 => Change::Remove(node),
            4 => Change::Replace { old: node, new: self.node()? },
            other => return Err(WireError::Value(other.into())),
        })
    }

    fn nodes(&mut self, count: u8) -> Result<Vec<NodeId>, WireError> {
        if usize::from(count) > MEMBERS_MAX {
            return Err(WireError::Members);
        }
        (0..count).map(|_| self.node()).collect()
    }

    fn members(&mut self) -> Result<Members, WireError> {
        let (voters, learners) = (self.u8()?, self.u8()?);
        let (voters, learners) = (self.nodes(voters)?, self.nodes(learners)?);
        Members::new(voters, learners, self.u64()?).ok_or(WireError::Members)
    }

    fn body(&mut self, kind: u8) -> Result<Body, WireError> {
        Ok(match kind {
            1 => {
                let previous = self.position()?;
                Body::Append { previous, commit: self.u64()?, entries: self.entries(previous)? }
            }
            2 => Body::Appended { index: self.u64()?, commit: self.u64()? },
            3 => Body::AppendRefused { previous: self.u64()?, hint: self.position()?, commit: self.u64()? },
            4 => Body::Heartbeat { commit: self.u64()?, read: self.read()? },
            5 => Body::HeartbeatSeen { commit: self.u64()?, read: self.read()? },
            6 => {
                let campaign = match self.u8()? {
                    0 => Campaign::Try,
                    1 => Campaign::Election,
                    2 => Campaign::Transfer,
                    other => return Err(WireError::Value(other.into())),
                };
                Body::AskVote { campaign, last: self.position()?, commit: self.position()? }
            }
            7 => Body::Vote { is_try: self.is()?, is_granted: self.is()?, commit: self.position()? },
            8 => Body::TimeoutNow,
            9 => Body::Snapshot(Snapshot { position: self.position()?, members: self.members()? }),
            other => return Err(WireError::Value(other.into())),
        })
    }
}
