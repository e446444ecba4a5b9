//! Messages by which a follower gets a state that its leader has offered it ([`crate::Body::Snapshot`]), and
//! any member whole copies of blobs that are damaged on its disk.
//!
//! The follower asks and the leader answers, each message by itself: what is lost is asked for again. First
//! comes the content of the snapshot, as one row of bytes. When the follower has made a state of it, it knows
//! which blobs that state needs, and asks for those that it does not have.
//!
//! Map: [`wire`] the bytes of a message.

pub mod wire;

use bytes::Bytes;
use sluice_journal::{BlobKey, StateHead};

use crate::RECORD_BYTES_MAX;
use crate::entry::{NodeId, Position};

/// Length of a part of a state's content, in bytes. Blobs that are sent together are as long, but for the
/// last of them.
pub const PART_BYTES: usize = 256 << 10;

/// Number of parts that are on their way to one follower: what comes in 80 ms at 100 MB/s.
pub(crate) const PARTS_IN_FLIGHT: usize = 32;

/// Number of blobs that are asked for together.
pub const BLOBS_MAX: usize = 1024;

/// Length of the largest blob, in bytes: one fills a record.
pub const BLOB_BYTES_MAX: usize = RECORD_BYTES_MAX as usize;

/// Message about a state on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateMessage {
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// Position of the state; for copies, that up to which the sender has applied the log, and for a question
    /// about them 0.
    pub state: Position,
    /// Content.
    pub body: StateBody,
}

/// Content of a message about a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateBody {
    /// The follower is busy with what has come.
    Busy,
    /// The follower has all of the snapshot's content that lies before an offset.
    AskContent {
        /// The offset, in bytes.
        offset: u64,
        /// True: parts from there on were lost.
        is_again: bool,
    },
    /// The follower needs blobs.
    AskBlobs {
        /// Their keys, at most [`BLOBS_MAX`].
        keys: Vec<BlobKey>,
    },
    /// Part of the snapshot's content.
    Content {
        /// Head of the state; its number and term are those of [`StateMessage::state`].
        head: StateHead,
        /// Offset of the part, in bytes.
        offset: u64,
        /// The part, at most [`PART_BYTES`] long.
        bytes: Bytes,
        /// CRC-32 of the whole content, when this is its last part.
        end: Option<u32>,
    },
    /// The first of the blobs that were asked for, at least one.
    Blobs {
        /// Index of a record from which on the leader's state refers to none of those that are gone; greater
        /// than any record's when it always will.
        whole_from: u64,
        /// Each with its key.
        blobs: Vec<(BlobKey, SentBlob)>,
    },
    /// The sender has damaged blobs.
    AskCopies {
        /// Their keys, at most [`BLOBS_MAX`].
        keys: Vec<BlobKey>,
    },
    /// Blobs that were asked for, as far as the sender has applied their records and one message has room.
    Copies {
        /// Each with its key.
        blobs: Vec<(BlobKey, SentBlob)>,
    },
}

/// Blob as a leader answers for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SentBlob {
    /// Its bytes.
    Whole(Bytes),
    /// Nothing: it was released meanwhile, or the sender itself has never got it.
    Gone,
    /// Nothing: it cannot be read.
    Damaged,
}

impl StateMessage {
    /// Length of the keys, the part or the blobs in it, in bytes.
    pub fn content_bytes(&self) -> usize {
        match &self.body {
            StateBody::Busy | StateBody::AskContent { .. } => 0,
            StateBody::AskBlobs { keys } | StateBody::AskCopies { keys } => size_of_val(keys.as_slice()),
            StateBody::Content { bytes, .. } => bytes.len(),
            StateBody::Blobs { blobs, .. } | StateBody::Copies { blobs } => {
                size_of_val(blobs.as_slice()) + blobs.iter().map(|(_, blob)| blob.bytes()).sum::<usize>()
            }
        }
    }
}

impl SentBlob {
    /// Length of what is sent of it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            SentBlob::Whole(bytes) => bytes.len(),
            SentBlob::Gone | SentBlob::Damaged => 0,
        }
    }
}
