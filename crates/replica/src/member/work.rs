//! Work on states that may block: it is for another thread than the shard's.

use std::io::{self, ErrorKind};

use bytes::Bytes;
use sluice_journal::{
    BlobKey, BlobRead, Received, Receiving, SnapshotReader, StateHead, StatePart, StateReader, read_together,
};

use crate::entry::{NodeId, Position};
use crate::transfer::{PART_BYTES, SentBlob};

/// Work on a state. A member has few of them at a time.
#[derive(Debug)]
pub struct Work(pub(super) Task);

/// Work that is done.
#[derive(Debug)]
pub struct Worked(pub(super) Done);

/// Attempt to get a state, by which work is told from that of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attempt {
    /// Number of what is received, in the life of a member.
    pub(super) receiving: u64,
    /// Number of the attempt for this.
    pub(super) round: u64,
}

#[derive(Debug)]
pub(super) enum Task {
    /// Read the part of a state that begins with this offset.
    Read { to: NodeId, reader: Box<StateReader>, offset: u64 },
    /// Read blobs: see [`crate::StateBody::Blobs`].
    ReadBlobs { to: NodeId, state: Position, whole_from: u64, blobs: Vec<(BlobKey, BlobRead)> },
    /// Read blobs that are damaged on the disk of another member.
    ReadCopies { to: NodeId, blobs: Vec<(BlobKey, BlobRead)> },
    /// Write what has come.
    Take { attempt: Attempt, receiving: Box<Receiving>, arrived: Arrived },
    /// Sync what has come.
    Finish { attempt: Attempt, receiving: Box<Receiving> },
}

/// Parts of a state that have come, in order.
#[derive(Debug)]
pub(super) enum Arrived {
    /// Content. A head begins the snapshot anew, and a sum ends it; `given` is the last record that is
    /// here without the state.
    Content { begin: Option<StateHead>, parts: Vec<Bytes>, checksum: Option<u32>, given: u64 },
    /// Blobs; `None`: one that its sender cannot read.
    Blobs(Vec<(BlobKey, u32, Option<Bytes>)>),
}

#[derive(Debug)]
pub(super) enum Done {
    Read { to: NodeId, reader: Box<StateReader>, offset: u64, part: Option<StatePart> },
    ReadBlobs { to: NodeId, state: Position, whole_from: u64, blobs: Vec<(BlobKey, SentBlob)> },
    ReadCopies { to: NodeId, blobs: Vec<(BlobKey, SentBlob)> },
    Taken { attempt: Attempt, taken: Taken },
    Finished { attempt: Attempt, received: Option<Box<Received>> },
}

/// Outcome of [`Task::Take`].
#[derive(Debug)]
pub(super) struct Taken {
    /// None: the disk has failed.
    pub(super) receiving: Option<Box<Receiving>>,
    /// True: there was no room for all of it.
    pub(super) is_full: bool,
    /// First blob that was not taken.
    pub(super) rest: Option<BlobKey>,
    pub(super) end: End,
}

/// Stage of a snapshot's content.
#[derive(Debug)]
pub(super) enum End {
    /// More is to come.
    Open,
    /// All of it is here, and the owner has not read it yet.
    Whole { snapshot: Box<SnapshotReader>, given: u64 },
    /// The owner has made a state of it, which needs these blobs of records that are not here. Each is with
    /// its length in bytes, in the order of the keys.
    Restored(Vec<(BlobKey, u32)>),
    /// Damage, or bytes of which nothing can be made.
    Wrong,
}

impl Work {
    /// Does the work. Blocks.
    pub fn run(self) -> Worked {
        Worked(match self.0 {
            Task::Read { to, mut reader, offset } => {
                let part = reader.read(offset, PART_BYTES).ok();
                Done::Read { to, reader, offset, part }
            }
            Task::ReadBlobs { to, state, whole_from, blobs } => {
                Done::ReadBlobs { to, state, whole_from, blobs: read_blobs(blobs) }
            }
            Task::ReadCopies { to, blobs } => Done::ReadCopies { to, blobs: read_blobs(blobs) },
            Task::Take { attempt, receiving, arrived } => {
                Done::Taken { attempt, taken: take(receiving, arrived) }
            }
            Task::Finish { attempt, receiving } => {
                Done::Finished { attempt, received: receiving.finish().ok().map(Box::new) }
            }
        })
    }
}

impl Worked {
    /// Lets the owner make a state of the snapshot, when all of it is here. `make` gives `None` for one that
    /// is none, or of another version; `each_live` tells all blobs to which the state refers, with their
    /// lengths in bytes. Blocks.
    pub fn restore<S>(
        &mut self,
        make: impl FnOnce(SnapshotReader) -> Option<S>,
        each_live: impl FnOnce(&S, &mut dyn FnMut(BlobKey, u32)),
    ) -> Option<S> {
        let Done::Taken { taken, .. } = &mut self.0 else { return None };
        if !matches!(taken.end, End::Whole { .. }) {
            return None;
        }
        let End::Whole { snapshot, given } = std::mem::replace(&mut taken.end, End::Wrong) else {
            return None;
        };
        let state = make(*snapshot)?;
        let receiving = taken.receiving.as_ref()?;
        let mut needed = Vec::new();
        each_live(&state, &mut |key, len| {
            if key.index > given && !receiving.has(key) {
                needed.push((key, len));
            }
        });
        needed.sort_unstable();
        taken.end = End::Restored(needed);
        Some(state)
    }
}

/// Reads blobs, up to the first that cannot be read now.
fn read_blobs(mut blobs: Vec<(BlobKey, BlobRead)>) -> Vec<(BlobKey, SentBlob)> {
    let (keys, mut reads): (Vec<_>, Vec<_>) = blobs.drain(..).unzip();
    read_together(&mut reads);
    let read = |read| match read {
        BlobRead::Cached(bytes) => Some(SentBlob::Whole(bytes)),
        BlobRead::Missing => Some(SentBlob::Gone),
        BlobRead::OnDisk(location) => match location.read() {
            Ok(bytes) => Some(SentBlob::Whole(bytes)),
            Err(error) if error.is_lasting() => Some(SentBlob::Damaged),
            Err(_) => None,
        },
    };
    keys.into_iter().zip(reads.into_iter().map_while(read)).collect()
}

fn take(mut receiving: Box<Receiving>, arrived: Arrived) -> Taken {
    let (mut rest, mut end) = (None, End::Open);
    let written = match arrived {
        Arrived::Content { begin, parts, checksum, given } => {
            let written = take_content(&mut receiving, begin, &parts);
            if let (Ok(()), Some(checksum)) = (&written, checksum) {
                end = end_content(&mut receiving, checksum, given);
            }
            written
        }
        Arrived::Blobs(blobs) => blobs.into_iter().try_for_each(|(key, len, bytes)| {
            rest = Some(key);
            match bytes {
                Some(bytes) => receiving.add_blob(key, &bytes)?,
                None => receiving.add_unreadable(key, len)?,
            };
            rest = None;
            Ok(())
        }),
    };
    let is_full = written.as_ref().is_err_and(|error: &io::Error| error.kind() == ErrorKind::StorageFull);
    let receiving = (written.is_ok() || is_full).then_some(receiving);
    Taken { receiving, is_full, rest, end }
}

fn take_content(receiving: &mut Receiving, begin: Option<StateHead>, parts: &[Bytes]) -> io::Result<()> {
    begin.map_or(Ok(()), |head| receiving.begin(head))?;
    parts.iter().try_for_each(|part| receiving.add(part))
}

fn end_content(receiving: &mut Receiving, checksum: u32, given: u64) -> End {
    match receiving.end(checksum) {
        Ok(Some(snapshot)) => End::Whole { snapshot: Box::new(snapshot), given },
        Ok(None) | Err(_) => End::Wrong,
    }
}
