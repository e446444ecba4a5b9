//! Frames: the units of which each direction of a connection is a sequence.
//!
//! A frame is a head, its content, and the batches that belong to it. The head is, little endian: length of
//! the content and of the batches `u32` each, kind `u8`, zero `u8`, shard `u16`, number of the frame in its
//! direction `u32` (from 0, wrapping), CRC-32 of what stands before it in the head and of the content.
//! Batches have their checksums in the message to which they belong. Heads, greetings, refusals and removals
//! are the same in every version of the protocol; anything else is of the version on which the two sides of
//! the connection agree by their greetings. Contents by kind:
//!
//! | kind | content |
//! |---|---|
//! | 1 greeting | [`Hello`]; the first frame of each direction, and no other |
//! | 2 refusal | reason as text, with which the connection ends |
//! | 3 alive | nothing |
//! | 4 envelope | report and message (`sluice_replica::{report, wire}`); the batches follow in order |
//! | 5 request | number `u64`, time for its answer in milliseconds `u32`, bytes |
//! | 6 answer | number of the request `u64`, bytes |
//! | 7 state | message about a state (`sluice_replica::transfer::wire`) |
//! | 8 removal | nothing: the receiver was removed from the cluster; ends the connection |
//!
//! The shard is 0 but for envelopes and states.

use std::fmt;

use bytes::Bytes;
use sluice_replica::transfer::wire::{self as state_wire, STATE_LEN_MAX};
use sluice_replica::wire::WireError;
use sluice_replica::{Envelope, MESSAGE_BYTES_MAX, Message, StateMessage};

use crate::CONTENT_BYTES_MAX;
use crate::hello::{Hello, NoHello};

/// Length of a head, in bytes.
pub const HEAD_LEN: usize = 20;

/// Length of the longest text of a refusal, in bytes.
pub const REASON_LEN_MAX: usize = 512;

/// Length of the fields before the bytes of a request.
const REQUEST_HEAD: usize = 12;

/// Length of the field before the bytes of an answer.
const ANSWER_HEAD: usize = 8;

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Greeting.
    Hello(Hello),
    /// Reason for which the sender ends the connection.
    Refused(String),
    /// Sign of life.
    Alive,
    /// Message between the replicas of a shard, with its batches.
    Envelope {
        /// The shard.
        shard: u16,
        /// The message.
        envelope: Envelope,
    },
    /// End of the connection, since the receiver was removed from the cluster.
    Removed,
    /// Request of the sender.
    Request {
        /// Number, unique among the sender's requests on this connection.
        number: u64,
        /// Time after which the sender does not wait for the answer any more, in milliseconds.
        within_ms: u32,
        /// Question.
        content: Bytes,
    },
    /// Answer to a request of the receiver.
    Answer {
        /// Number of the request.
        number: u64,
        /// Answer.
        content: Bytes,
    },
    /// Message between the replicas of a shard about a state on its way.
    State {
        /// The shard.
        shard: u16,
        /// The message.
        message: StateMessage,
    },
}

/// Reason for which bytes are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// No kind has this number.
    Kind(u8),
    /// The content or the batches are longer or shorter than those of the kind can be.
    Length,
    /// The checksum is that of other bytes.
    Checksum,
    /// The frame has another number than the next.
    Number {
        /// Number of the frame.
        got: u32,
        /// Number of the next frame.
        expected: u32,
    },
    /// A field that has to be 0 is not, or a text is none.
    Field,
    /// The greeting is none.
    Hello(NoHello),
    /// The message is none.
    Message(WireError),
    /// The batches are longer or shorter than the message says.
    Batches,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Kind(kind) => write!(f, "a frame has the kind {kind}, which none has"),
            FrameError::Length => f.write_str("a frame has a length that its kind does not allow"),
            FrameError::Checksum => f.write_str("a frame has a wrong checksum"),
            FrameError::Number { got, expected } => {
                write!(f, "a frame has the number {got}, and the next is {expected}")
            }
            FrameError::Field => f.write_str("a frame has a field with a value that none has"),
            FrameError::Hello(error) => error.fmt(f),
            FrameError::Message(error) => error.fmt(f),
            FrameError::Batches => f.write_str("the batches of a frame are not as long as its message says"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// Length of the content, in bytes.
    pub(crate) content: usize,
    /// Length of the batches, in bytes.
    pub(crate) batches: usize,
    kind: u8,
    shard: u16,
    number: u32,
    checksum: u32,
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Frame::Hello(_) => 1,
            Frame::Refused(_) => 2,
            Frame::Alive => 3,
            Frame::Envelope { .. } => 4,
            Frame::Request { .. } => 5,
            Frame::Answer { .. } => 6,
            Frame::State { .. } => 7,
            Frame::Removed => 8,
        }
    }

    /// Length of the content of a request or an answer, in bytes; 0 for all others.
    pub fn content_bytes(&self) -> usize {
        match self {
            Frame::Request { content, .. } | Frame::Answer { content, .. } => content.len(),
            Frame::Hello(_)
            | Frame::Refused(_)
            | Frame::Alive
            | Frame::Removed
            | Frame::Envelope { .. }
            | Frame::State { .. } => 0,
        }
    }

    /// Batches that follow the content.
    pub fn batches(&self) -> &[Bytes] {
        match self {
            Frame::Envelope { envelope, .. } => &envelope.batches,
            Frame::Hello(_)
            | Frame::Refused(_)
            | Frame::Alive
            | Frame::Removed
            | Frame::Request { .. }
            | Frame::Answer { .. }
            | Frame::State { .. } => &[],
        }
    }

    /// Appends the head and the content of the frame, which is the one with this number in its direction, in
    /// this version of the protocol. Its batches are to follow.
    pub fn encode(&self, number: u32, protocol: u8, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(&[0; HEAD_LEN]);
        match self {
            Frame::Hello(hello) => to.extend_from_slice(&hello.encode()),
            Frame::Refused(reason) => to.extend_from_slice(cut(reason).as_bytes()),
            Frame::Alive | Frame::Removed => {}
            Frame::Envelope { envelope, .. } => envelope.encode_head(protocol, to),
            Frame::Request { number, within_ms, content } => {
                to.extend_from_slice(&number.to_le_bytes());
                to.extend_from_slice(&within_ms.to_le_bytes());
                to.extend_from_slice(content);
            }
            Frame::Answer { number, content } => {
                to.extend_from_slice(&number.to_le_bytes());
                to.extend_from_slice(content);
            }
            Frame::State { message, .. } => state_wire::encode(message, protocol, to),
        }
        let shard =
            if let Frame::Envelope { shard, .. } | Frame::State { shard, .. } = self { *shard } else { 0 };
        let batches: usize = self.batches().iter().map(Bytes::len).sum();
        let content = to.len() - start - HEAD_LEN;
        let head = Head { content, batches, kind: self.kind(), shard, number, checksum: 0 }.encode();
        to[start..start + HEAD_LEN].copy_from_slice(&head);
        seal(&mut to[start..]);
    }

    /// The frame with this head, content, and batches, in this version of the protocol.
    pub(crate) fn decode(
        head: &Head,
        content: &Bytes,
        batches: &Bytes,
        protocol: u8,
    ) -> Result<Frame, FrameError> {
        Ok(match head.kind {
            1 => Frame::Hello(Hello::decode(content).map_err(FrameError::Hello)?),
            2 => {
                let reason = std::str::from_utf8(content).ok();
                let reason = reason.filter(|text| !text.contains(char::is_control));
                Frame::Refused(reason.ok_or(FrameError::Field)?.to_owned())
            }
            3 => Frame::Alive,
            4 => {
                let decoded = Envelope::decode_head(content, protocol);
                let (report, message) = decoded.map_err(FrameError::Message)?;
                let batches = sliced(&message, batches).ok_or(FrameError::Batches)?;
                Frame::Envelope { shard: head.shard, envelope: Envelope { message, report, batches } }
            }
            5 => {
                let (number, rest) = content.split_first_chunk().ok_or(FrameError::Length)?;
                let within_ms = rest.first_chunk().ok_or(FrameError::Length)?;
                Frame::Request {
                    number: u64::from_le_bytes(*number),
                    within_ms: u32::from_le_bytes(*within_ms),
                    content: content.slice(REQUEST_HEAD..),
                }
            }
            6 => {
                let number = content.first_chunk().ok_or(FrameError::Length)?;
                Frame::Answer { number: u64::from_le_bytes(*number), content: content.slice(ANSWER_HEAD..) }
            }
            7 => {
                let message = state_wire::decode(content, protocol).map_err(FrameError::Message)?;
                Frame::State { shard: head.shard, message }
            }
            8 => Frame::Removed,
            kind => return Err(FrameError::Kind(kind)),
        })
    }
}

impl Head {
    fn encode(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        // Neither passes the limits of `check`.
        bytes[..4].copy_from_slice(&(self.content as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.batches as u32).to_le_bytes());
        bytes[8] = self.kind;
        bytes[10..12].copy_from_slice(&self.shard.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The head of these bytes, whose lengths are within the limits of its kind, of the frame with this
    /// number.
    pub(crate) fn decode(bytes: &[u8; HEAD_LEN], expected: u32) -> Result<Head, FrameError> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let head = Head {
            content: u32_at(0) as usize,
            batches: u32_at(4) as usize,
            kind: bytes[8],
            shard: u16::from_le_bytes([bytes[10], bytes[11]]),
            number: u32_at(12),
            checksum: u32_at(16),
        };
        let (lengths, batches_max) = match head.kind {
            1 => (Hello::LEN..=Hello::LEN_MAX, 0),
            2 => (0..=REASON_LEN_MAX, 0),
            3 | 8 => (0..=0, 0),
            4 => (0..=Envelope::HEAD_LEN_MAX, MESSAGE_BYTES_MAX as usize),
            5 => (REQUEST_HEAD..=REQUEST_HEAD + CONTENT_BYTES_MAX, 0),
            6 => (ANSWER_HEAD..=ANSWER_HEAD + CONTENT_BYTES_MAX, 0),
            7 => (0..=STATE_LEN_MAX, 0),
            kind => return Err(FrameError::Kind(kind)),
        };
        if !lengths.contains(&head.content) || head.batches > batches_max {
            return Err(FrameError::Length);
        }
        if head.number != expected {
            return Err(FrameError::Number { got: head.number, expected });
        }
        if bytes[9] != 0 || (head.shard != 0 && !matches!(head.kind, 4 | 7)) {
            return Err(FrameError::Field);
        }
        Ok(head)
    }

    /// Checks head and content, which are these bytes.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), FrameError> {
        if checksum(bytes) == self.checksum { Ok(()) } else { Err(FrameError::Checksum) }
    }
}

/// Writes the checksum of a frame into its head. `frame` is head and content.
pub fn seal(frame: &mut [u8]) {
    let checksum = checksum(frame);
    frame[HEAD_LEN - 4..HEAD_LEN].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..HEAD_LEN - 4]);
    hasher.update(&frame[HEAD_LEN..]);
    hasher.finalize()
}

/// The longest beginning of a reason that is short enough.
fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_LEN_MAX)]
}

/// The batches of a message; `None`: they are not as long as it says.
fn sliced(message: &Message, batches: &Bytes) -> Option<Vec<Bytes>> {
    let entries = message.body.entries();
    let mut end = 0_usize;
    let slices = entries.iter().filter_map(|entry| entry.batch()).map(|batch| {
        let start = end;
        end = start.checked_add(batch.bytes as usize).filter(|end| *end <= batches.len())?;
        Some(batches.slice(start..end))
    });
    let slices: Option<Vec<Bytes>> = slices.collect();
    slices.filter(|_| end == batches.len())
}
