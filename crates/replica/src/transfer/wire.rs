//! Bytes of a [`StateMessage`].
//!
//! Layout, little endian: version of the [protocol](crate::protocol) `u8`, kind `u8`, sender and receiver
//! `u64` each, position of the state, the fields of the kind in the order of [`StateBody`], and the CRC-32 of
//! all that. A number of things is a `u32` before them, and so is a length in bytes. A key is record `u64`
//! and item `u32`; of a head only what the position does not tell is written; of an end its sum stands behind
//! the byte that says whether there is one; a blob is its kind `u8`, and its bytes if it has any. There is
//! one encoding of each message, and nothing behind it.

use bytes::Bytes;
use sluice_journal::{BlobKey, StateHead};

use super::{BLOB_BYTES_MAX, BLOBS_MAX, PART_BYTES, SentBlob, StateBody, StateMessage};
use crate::entry::Position;
use crate::wire::{self, Reader, WireError, Writer};

/// Length of the longest message, in bytes.
pub const STATE_LEN_MAX: usize = PART_BYTES + BLOB_BYTES_MAX + BLOBS_MAX * BLOB_HEAD + FIELDS;

/// Length of a blob's fields before its bytes.
const BLOB_HEAD: usize = 17;

/// Length of the longest label of a state, in bytes.
const LABEL_LEN_MAX: usize = 256;

/// Length of all other fields of a message, at most.
const FIELDS: usize = 128 + LABEL_LEN_MAX;

/// Appends the bytes of a message in this version of the protocol.
pub fn encode(message: &StateMessage, protocol: u8, to: &mut Vec<u8>) {
    wire::frame(protocol, to, |writer| {
        writer.u8(kind(&message.body));
        writer.u64(message.from.get());
        writer.u64(message.to.get());
        writer.position(message.state);
        body(writer, &message.body);
    });
}

/// Decodes the bytes of one message in this version of the protocol. Its parts and blobs share their memory.
///
/// # Errors
///
/// Bytes that [`encode`] does not write in this version.
pub fn decode(bytes: &Bytes, protocol: u8) -> Result<StateMessage, WireError> {
    let mut reader = wire::framed(bytes, protocol, STATE_LEN_MAX)?;
    let kind = reader.u8()?;
    let (from, to, state) = (reader.node()?, reader.node()?, reader.position()?);
    let body = Bodies { reader: &mut reader, all: bytes }.read(kind, state)?;
    reader.end()?;
    Ok(StateMessage { from, to, state, body })
}

fn kind(body: &StateBody) -> u8 {
    match body {
        StateBody::Busy => 1,
        StateBody::AskContent { .. } => 2,
        StateBody::AskBlobs { .. } => 3,
        StateBody::Content { .. } => 4,
        StateBody::Blobs { .. } => 5,
        StateBody::AskCopies { .. } => 6,
        StateBody::Copies { .. } => 7,
    }
}

fn body(writer: &mut Writer<'_>, body: &StateBody) {
    match body {
        StateBody::Busy => {}
        StateBody::AskContent { offset, is_again } => {
            writer.u64(*offset);
            writer.u8(u8::from(*is_again));
        }
        StateBody::AskBlobs { keys } | StateBody::AskCopies { keys } => {
            writer.u32(keys.len() as u32);
            keys.iter().for_each(|it| key(writer, *it));
        }
        StateBody::Content { head, offset, bytes, end } => {
            writer.u64(head.applied_index);
            writer.u64(head.time_us);
            writer.u32(head.behaviour);
            slice(writer, &head.label);
            writer.u64(*offset);
            slice(writer, bytes);
            writer.u8(u8::from(end.is_some()));
            end.iter().for_each(|sum| writer.u32(*sum));
        }
        StateBody::Blobs { whole_from, blobs } => {
            writer.u64(*whole_from);
            sent(writer, blobs);
        }
        StateBody::Copies { blobs } => sent(writer, blobs),
    }
}

fn sent(writer: &mut Writer<'_>, blobs: &[(BlobKey, SentBlob)]) {
    writer.u32(blobs.len() as u32);
    for (at, blob) in blobs {
        key(writer, *at);
        match blob {
            SentBlob::Gone => writer.u8(0),
            SentBlob::Whole(bytes) => {
                writer.u8(1);
                slice(writer, bytes);
            }
            SentBlob::Damaged => writer.u8(2),
        }
    }
}

fn key(writer: &mut Writer<'_>, key: BlobKey) {
    writer.u64(key.index);
    writer.u32(key.item);
}

fn slice(writer: &mut Writer<'_>, bytes: &[u8]) {
    writer.u32(bytes.len() as u32);
    writer.0.extend_from_slice(bytes);
}

/// Reader of bodies, with all bytes of the message.
struct Bodies<'r, 'a> {
    reader: &'r mut Reader<'a>,
    all: &'r Bytes,
}

impl Bodies<'_, '_> {
    fn count(&mut self, max: usize) -> Result<usize, WireError> {
        let count = self.reader.u32()? as usize;
        if count > max { Err(WireError::Length) } else { Ok(count) }
    }

    fn key(&mut self) -> Result<BlobKey, WireError> {
        Ok(BlobKey { index: self.reader.u64()?, item: self.reader.u32()? })
    }

    fn slice(&mut self, max: usize) -> Result<Bytes, WireError> {
        let len = self.count(max)?;
        let (taken, rest) = self.reader.0.split_at_checked(len).ok_or(WireError::Length)?;
        self.reader.0 = rest;
        Ok(self.all.slice_ref(taken))
    }

    fn end(&mut self) -> Result<Option<u32>, WireError> {
        if self.reader.is()? { self.reader.u32().map(Some) } else { Ok(None) }
    }

    fn blob(&mut self) -> Result<(BlobKey, SentBlob), WireError> {
        let key = self.key()?;
        let blob = match self.reader.u8()? {
            0 => SentBlob::Gone,
            1 => SentBlob::Whole(self.slice(BLOB_BYTES_MAX)?),
            2 => SentBlob::Damaged,
            other => return Err(WireError::Value(other.into())),
        };
        Ok((key, blob))
    }

    fn keys(&mut self) -> Result<Vec<BlobKey>, WireError> {
        let count = self.count(BLOBS_MAX)?;
        (0..count).map(|_| self.key()).collect()
    }

    fn blobs(&mut self) -> Result<Vec<(BlobKey, SentBlob)>, WireError> {
        let count = self.count(BLOBS_MAX)?;
        (0..count).map(|_| self.blob()).collect()
    }

    fn read(&mut self, kind: u8, state: Position) -> Result<StateBody, WireError> {
        Ok(match kind {
            1 => StateBody::Busy,
            2 => StateBody::AskContent { offset: self.reader.u64()?, is_again: self.reader.is()? },
            3 => StateBody::AskBlobs { keys: self.keys()? },
            4 => {
                let head = StateHead {
                    applied_index: self.reader.u64()?,
                    number: state.index,
                    term: state.term,
                    time_us: self.reader.u64()?,
                    behaviour: self.reader.u32()?,
                    label: self.slice(LABEL_LEN_MAX)?.to_vec(),
                };
                let (offset, bytes) = (self.reader.u64()?, self.slice(PART_BYTES)?);
                StateBody::Content { head, offset, bytes, end: self.end()? }
            }
            5 => {
                let whole_from = self.reader.u64()?;
                StateBody::Blobs { whole_from, blobs: self.blobs()? }
            }
            6 => StateBody::AskCopies { keys: self.keys()? },
            7 => StateBody::Copies { blobs: self.blobs()? },
            other => return Err(WireError::Value(other.into())),
        })
    }
}
