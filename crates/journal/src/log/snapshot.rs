//! Snapshots: the state in pieces, written beside the log and put in place as a whole.
//!
//! A file is: magic, `u64` applied index, `u64` time, `u32` behaviour version; per piece `u32` length (not
//! 0), `u32` checksum and the bytes; then a `u32` 0, `u32` checksum of all pieces' checksums and the head,
//! `u64` number of pieces. The manifest tells its length.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::codec::{Put, Reader};
use crate::lock::lock;
use crate::log::files::Handle;
use crate::log::header::checksum;
use crate::log::manifest::SnapshotFile;
use crate::open_error::OpenError;

const MAGIC: [u8; 8] = *b"SLUICES2";
const HEAD: usize = 28;
const PIECE_HEAD: usize = 8;
const TAIL: usize = 16;

/// Bytes of pieces that wait to be written; beyond, [`Pipe::push`] gives back.
const PIPE_BYTES: usize = 8 << 20;

/// Largest piece (1 GiB).
const PIECE_MAX: usize = 1 << 30;

/// Hands a snapshot from the shard to maintenance.
#[derive(Debug, Default)]
pub(crate) struct Pipe(Mutex<PipeState>);

#[derive(Debug, Default)]
struct PipeState {
    work: VecDeque<Work>,
    bytes: usize,
}

/// Head of a state: its place in the log, and what its owner keeps with it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StateHead {
    /// Index of the last record that is applied.
    pub applied_index: u64,
    /// Number of the batch that ends with this record; 0: none does.
    pub number: u64,
    /// Term of that batch.
    pub term: u64,
    /// Logged time, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// Version of the owner's behaviour.
    pub behaviour: u32,
    /// Bytes of the owner ([`crate::DiskJournal::label_snapshots`]).
    pub label: Vec<u8>,
}

/// Head of a snapshot's file.
#[derive(Clone, Copy, Debug)]
struct Head {
    applied_index: u64,
    time_us: u64,
    behaviour: u32,
}

impl Head {
    fn of(state: &StateHead) -> Head {
        let StateHead { applied_index, time_us, behaviour, .. } = *state;
        Head { applied_index, time_us, behaviour }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.put_u64(self.applied_index);
        out.put_u64(self.time_us);
        out.put_u32(self.behaviour);
    }

    /// The head that a file begins with, and its bytes; `None` when it begins otherwise.
    fn read(handle: &Handle) -> Result<Option<(Head, Vec<u8>)>, OpenError> {
        let mut bytes = vec![0; HEAD];
        handle.read_held_exact(&mut bytes, 0)?;
        Ok(Head::decode(&bytes).map(|head| (head, bytes)))
    }

    fn decode(bytes: &[u8]) -> Option<Head> {
        let mut fields = Reader(bytes.strip_prefix(&MAGIC)?);
        Some(Head { applied_index: fields.u64()?, time_us: fields.u64()?, behaviour: fields.u32()? })
    }
}

/// Steps of writing a snapshot, in order.
#[derive(Debug)]
pub(crate) enum Work {
    Begin(StateHead),
    Piece(Vec<u8>),
    Finish,
    Abort,
}

impl Pipe {
    /// Queues a piece, or gives it back while too much waits.
    pub(crate) fn push_piece(&self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut state = lock(&self.0);
        if state.bytes > 0 && state.bytes + piece.len() > PIPE_BYTES {
            return Err(piece);
        }
        state.bytes += piece.len();
        state.work.push_back(Work::Piece(piece));
        Ok(())
    }

    pub(crate) fn push(&self, work: Work) {
        lock(&self.0).work.push_back(work);
    }

    pub(crate) fn pop(&self) -> Option<Work> {
        let mut state = lock(&self.0);
        let work = state.work.pop_front();
        if let Some(Work::Piece(piece)) = &work {
            state.bytes -= piece.len();
        }
        work
    }
}

/// Builds the bytes of a snapshot.
#[derive(Debug)]
pub(crate) struct Encoder {
    identity: u64,
    sums: crc32fast::Hasher,
    pieces: u64,
}

impl Encoder {
    pub(crate) fn begin(identity: u64, state: &StateHead, out: &mut Vec<u8>) -> Encoder {
        let start = out.len();
        Head::of(state).encode(out);
        let mut sums = crc32fast::Hasher::new();
        sums.update(&out[start..]);
        Encoder { identity, sums, pieces: 0 }
    }

    pub(crate) fn piece(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        // A piece of length 0 would look like the end, and brings nothing.
        for part in piece.chunks(PIECE_MAX) {
            let sum = checksum(self.identity, part);
            out.put_u32(part.len() as u32);
            out.put_u32(sum);
            out.extend_from_slice(part);
            self.sums.update(&sum.to_le_bytes());
            self.pieces += 1;
        }
    }

    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        out.put_u32(0);
        out.put_u32(self.sums.clone().finalize());
        out.put_u64(self.pieces);
    }
}

/// The latest snapshot, in the pieces that were given.
#[derive(Debug)]
pub struct SnapshotReader {
    /// Index of the last record that it holds.
    pub applied_index: u64,
    /// The time given with it, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// The behaviour version given with it.
    pub behaviour: u32,
    identity: u64,
    head: Vec<u8>,
    handle: Handle,
    offset: u64,
    len: u64,
    sums: crc32fast::Hasher,
    pieces: u64,
}

impl SnapshotReader {
    pub(crate) fn new(
        identity: u64,
        handle: Handle,
        named: &SnapshotFile,
    ) -> Result<SnapshotReader, OpenError> {
        let path = &*handle.path;
        let found = handle.held_len().map_err(OpenError::io(path, "read"))?;
        if found < named.len || named.len < (HEAD + TAIL) as u64 {
            let what = format!("the snapshot has {found} bytes, and the manifest says {}", named.len);
            return Err(OpenError::damaged(path, found, Some(named.applied_index), what));
        }
        let read = Head::read(&handle)?;
        let same = |head: &Head| (head.applied_index, head.time_us) == (named.applied_index, named.time_us);
        let Some((Head { behaviour, .. }, head)) = read.filter(|(head, _)| same(head)) else {
            let what = "the snapshot is not the one that the manifest names";
            return Err(OpenError::damaged(path, 0, Some(named.applied_index), what));
        };
        let mut reader = SnapshotReader {
            applied_index: named.applied_index,
            time_us: named.time_us,
            behaviour,
            identity,
            head,
            handle,
            offset: 0,
            len: named.len,
            sums: crc32fast::Hasher::new(),
            pieces: 0,
        };
        reader.rewind();
        Ok(reader)
    }

    /// The next piece, verified; `None` at the end.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, OpenError> {
        if self.offset + TAIL as u64 > self.len {
            return if self.offset == self.len { Ok(None) } else { Err(self.damage("it ends early")) };
        }
        let mut head = [0; TAIL];
        self.read(&mut head, self.offset)?;
        let mut fields = Reader(&head);
        let (len, sum) = (fields.u32().unwrap_or(0) as u64, fields.u32().unwrap_or(0));
        if len == 0 {
            return self.finish(sum, fields.u64().unwrap_or(0));
        }
        if self.offset + PIECE_HEAD as u64 + len + TAIL as u64 > self.len {
            return Err(self.damage("a piece is longer than the snapshot"));
        }
        let mut piece = vec![0; len as usize];
        self.read(&mut piece, self.offset + PIECE_HEAD as u64)?;
        if checksum(self.identity, &piece) != sum {
            return Err(self.damage("a piece does not match its checksum"));
        }
        self.sums.update(&sum.to_le_bytes());
        self.offset += PIECE_HEAD as u64 + len;
        self.pieces += 1;
        Ok(Some(piece))
    }

    /// Reads everything, and stands at the beginning again.
    pub(crate) fn verify(&mut self) -> Result<(), OpenError> {
        while self.next_piece()?.is_some() {}
        self.rewind();
        Ok(())
    }

    fn rewind(&mut self) {
        self.sums = crc32fast::Hasher::new();
        self.sums.update(&self.head);
        (self.offset, self.pieces) = (self.head.len() as u64, 0);
    }

    fn finish(&mut self, sum: u32, pieces: u64) -> Result<Option<Vec<u8>>, OpenError> {
        let whole = self.sums.clone().finalize() == sum && self.pieces == pieces;
        if !whole || self.offset + TAIL as u64 != self.len {
            return Err(self.damage("pieces are missing"));
        }
        self.offset = self.len;
        Ok(None)
    }

    /// Handle of the file.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), OpenError> {
        self.handle.read_held_exact(buffer, offset)
    }

    fn damage(&self, what: &str) -> OpenError {
        OpenError::damaged(
            &self.handle.path,
            self.offset,
            Some(self.applied_index),
            format!("snapshot: {what}"),
        )
    }
}
