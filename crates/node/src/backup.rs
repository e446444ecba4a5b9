//! Backups of a whole node: one stream that holds the streams of all shards, one after the other.
//!
//! Layout: magic, `u32` number of shards; then frames of `u32` shard, `u32` length, bytes; at the end a frame
//! of shard [`END`] and length 0, so that a stream that was cut is told from a whole one. Integers are little
//! endian. What the frames of a shard hold together is the journal's business, with its own checksums.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use sluice_engine::Error;
use sluice_journal::{Backup, Backups, FsDisk, Incoming, RestoreError, RootKeys};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::api::StartError;
use crate::directory::{Directory, Restoring, SHARDS_MAX, shard_dir};
use crate::handle::Node;

const MAGIC: &[u8; 8] = b"SLUICEB1";
/// Shard number that marks the last frame.
const END: u32 = u32::MAX;
/// Upper limit of a frame's length, in bytes; longer ones are damage.
const FRAME_BYTES_MAX: u32 = 64 << 20;
/// Longest time for which a backup waits for a state that is being installed, and pause between two looks.
const INSTALL_TIME: Duration = Duration::from_secs(30);
const INSTALL_PAUSE: Duration = Duration::from_millis(10);
/// Most holds of all shards for one backup, and pause behind one that did not last.
const HOLDS_MAX: u32 = 3;
const HOLD_PAUSE: Duration = Duration::from_millis(500);
/// Number of chunks that wait for a slow reader.
const CHUNKS_AHEAD: usize = 4;

impl Node {
    /// A consistent copy of all shards as one stream of bytes, taken while serving. A node of a cluster waits
    /// first until it has all that was acknowledged before the call.
    ///
    /// # Errors
    /// `invalid_argument` when the data is in memory only; `internal` when the files could not be pinned; in
    /// a cluster `no_leader` when a shard has none, or leaders change all the time.
    pub async fn backup(&self) -> Result<mpsc::Receiver<io::Result<Bytes>>, Error> {
        let backups = self.inner.backups.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let backups: Arc<[Backups]> = backups.into();
        if backups.is_empty() {
            let reason = "this server keeps its data in memory: there is nothing to back up".to_owned();
            return Err(Error::InvalidArgument { field: "backup".to_owned(), reason });
        }
        let pinned = self.fix_ends(&backups).await?;
        let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = copy(pinned, &sender) {
                let _ = sender.blocking_send(Err(error));
            }
        });
        Ok(receiver)
    }

    /// Fixes the ends of all shards, so that each transaction over several namespaces is decided before all
    /// of them, or behind.
    async fn fix_ends(&self, backups: &Arc<[Backups]>) -> Result<Vec<Backup>, Error> {
        for _ in 0..HOLDS_MAX {
            // What takes long is done before the others are held.
            self.catch_up_all(backups).await?;
            await_installed(backups).await?;
            let ticket = self.hold_all().await?;
            let pinned = self.pin_all(backups).await;
            let has_lasted = self.release_all(ticket).await;
            match pinned? {
                Some(pinned) if has_lasted => return Ok(pinned),
                _ => sleep(HOLD_PAUSE).await,
            }
        }
        Err(Error::EndsNotFixed {})
    }

    /// Pins all shards with all that was acknowledged before; `None`: a state is being installed again.
    async fn pin_all(&self, backups: &Arc<[Backups]>) -> Result<Option<Vec<Backup>>, Error> {
        self.catch_up_all(backups).await?;
        if backups.iter().any(Backups::is_installing) {
            return Ok(None);
        }
        let backups = Arc::clone(backups);
        let pinned = tokio::task::spawn_blocking(move || backups.iter().map(Backups::begin).collect());
        pinned.await.map(Some).map_err(|error| Error::Internal { reason: error.to_string() })
    }

    async fn catch_up_all(&self, backups: &[Backups]) -> Result<(), Error> {
        for shard in 0..backups.len() {
            self.catch_up(shard as u32).await?;
        }
        Ok(())
    }
}

/// Waits until the states that were taken over from other nodes are in place on the disk, of which a backup
/// is made: they are served before.
async fn await_installed(backups: &[Backups]) -> Result<(), Error> {
    let until = Instant::now() + INSTALL_TIME;
    while backups.iter().any(Backups::is_installing) {
        if Instant::now() >= until {
            let reason = "a state of another node is still being put in place: try again".to_owned();
            return Err(Error::Internal { reason });
        }
        sleep(INSTALL_PAUSE).await;
    }
    Ok(())
}

fn copy(backups: Vec<Backup>, sender: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the reader has gone");
    let give = |bytes: Bytes| sender.blocking_send(Ok(bytes)).map_err(gone);
    let mut head = BytesMut::from(&MAGIC[..]);
    head.put_u32_le(backups.len() as u32);
    give(head.freeze())?;
    for (shard, mut backup) in backups.into_iter().enumerate() {
        while let Some(chunk) = backup.next_chunk()? {
            give(frame_head(shard as u32, chunk.len() as u32))?;
            give(chunk)?;
        }
    }
    give(frame_head(END, 0))
}

fn frame_head(shard: u32, len: u32) -> Bytes {
    let mut head = BytesMut::with_capacity(8);
    head.put_u32_le(shard);
    head.put_u32_le(len);
    head.freeze()
}

/// True when a stream that begins with `start` may be a backup: tells a wrong file from a damaged backup.
pub fn is_backup(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// Error of restoring a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RestoreFailure {
    /// The stream is no whole backup; a sentence that says where.
    Damaged(String),
    /// The directory cannot be made: a root key is missing, another version made the backup, the disk is
    /// full.
    Directory(StartError),
}

impl fmt::Display for RestoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreFailure::Damaged(what) => f.write_str(what),
            RestoreFailure::Directory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreFailure {}

impl From<StartError> for RestoreFailure {
    fn from(error: StartError) -> RestoreFailure {
        RestoreFailure::Directory(error)
    }
}

impl From<RestoreError> for RestoreFailure {
    fn from(error: RestoreError) -> RestoreFailure {
        let told = error.to_string();
        match error {
            RestoreError::Damaged(_) | RestoreError::Stream(_) => RestoreFailure::Damaged(told),
            RestoreError::Format { .. } | RestoreError::Key { .. } | RestoreError::NotEmpty(_) => {
                RestoreFailure::Directory(StartError::Refused(told))
            }
            RestoreError::Directory(error) => RestoreFailure::Directory(error.into()),
        }
    }
}

/// Makes a data directory from a backup, and returns the number of its shards. `dir` must not exist or be
/// empty. `roots`: the root keys that the server had.
///
/// # Errors
/// What is wrong with the stream or the directory. The directory is then not usable; when a root key is
/// missing, it was not made.
pub fn restore(stream: &mut dyn Read, dir: &Path, roots: &RootKeys) -> Result<u32, RestoreFailure> {
    let mut frames = Frames::open(stream)?;
    if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(RestoreError::NotEmpty(dir.to_owned()).into());
    }
    if frames.shards == 0 || frames.shards > SHARDS_MAX {
        return Err(RestoreFailure::Damaged(format!(
            "the backup is damaged: it tells of {} shards",
            frames.shards
        )));
    }
    let shards = frames.shards;
    let mut directory = None;
    for shard in 0..shards {
        let mut part = Part { frames: &mut frames, shard };
        let incoming = Incoming::begin(&mut part, roots)?;
        let restoring = match &directory {
            Some(begun) => begun,
            None => directory.insert(Directory::begin_restore(dir, shards)?),
        };
        incoming.write_to(Arc::new(FsDisk), &shard_dir(dir, shard), Some(restoring.owner(shard)))?;
        if io::copy(&mut part, &mut io::sink()).map_err(damaged)? > 0 {
            return Err(RestoreFailure::Damaged(format!(
                "the backup is damaged: more data of shard {shard} than there should be"
            )));
        }
    }
    frames.expect_end()?;
    directory.map_or(Ok(()), Restoring::complete)?;
    Ok(shards)
}

/// The frames of a stream, read as they come.
struct Frames<'a> {
    stream: &'a mut dyn Read,
    shards: u32,
    /// Shard of the frame that is being read, and bytes of it that are left.
    current: (u32, u32),
}

impl<'a> Frames<'a> {
    fn open(stream: &'a mut dyn Read) -> Result<Frames<'a>, RestoreFailure> {
        let mut head = [0; 12];
        let read = stream.read_exact(&mut head);
        if read.is_err() || &head[..8] != MAGIC {
            return Err(RestoreFailure::Damaged("this is not a backup made by `sluice backup`".to_owned()));
        }
        let shards = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let mut frames = Frames { stream, shards, current: (0, 0) };
        frames.next_frame().map_err(damaged)?;
        Ok(frames)
    }

    fn next_frame(&mut self) -> io::Result<()> {
        let mut head = [0; 8];
        self.stream.read_exact(&mut head)?;
        let shard = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if len > FRAME_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {len} bytes")));
        }
        self.current = (shard, len);
        Ok(())
    }

    fn expect_end(&mut self) -> Result<(), RestoreFailure> {
        match self.current {
            (END, 0)
                if io::copy(&mut (&mut *self.stream).take(1), &mut io::sink()).map_err(damaged)? == 0 =>
            {
                Ok(())
            }
            (END, _) => Err(RestoreFailure::Damaged(
                "the backup is damaged: there is more behind its end; use another copy of it".to_owned(),
            )),
            (shard, _) => Err(RestoreFailure::Damaged(format!(
                "the backup is damaged: unexpected data of shard {shard}"
            ))),
        }
    }
}

fn damaged(error: io::Error) -> RestoreFailure {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends in the middle".to_owned(),
        _ => error.to_string(),
    };
    RestoreFailure::Damaged(format!("the backup is damaged or was cut: {what}"))
}

/// The bytes of one shard.
struct Part<'a, 'b> {
    frames: &'a mut Frames<'b>,
    shard: u32,
}

impl Read for Part<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frames.current == (self.shard, 0) {
            self.frames.next_frame()?;
        }
        let (shard, left) = self.frames.current;
        if shard != self.shard {
            return Ok(0);
        }
        let most = buffer.len().min(left as usize);
        let read = self.frames.stream.read(&mut buffer[..most])?;
        if read == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ends in the middle"));
        }
        self.frames.current.1 -= read as u32;
        Ok(read)
    }
}
