//! Makes a data directory from a backup.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{CHUNK, MAGIC, TAG_END, TAG_FILE};
use crate::check::check;
use crate::disk::whole::write_whole;
use crate::disk::{Disk, FsDisk, OpenMode};
use crate::file_kind::Kind;
use crate::key_id::KeyId;
use crate::keys::RootKeys;
use crate::keys::keyring::{KEYRING, Ring};
use crate::log::manifest::{FORMAT_VERSION, MANIFEST, Manifest, RESTORING};
use crate::log::recovery::take_lock;
use crate::open_error::{OpenError, not_among, writer};
use crate::options::Owner;

/// Largest chunk that is taken; larger ones are damage.
const CHUNK_MAX: usize = 64 << 20;

/// Why a backup was not restored. What had been written stays, and does not open.
#[derive(Debug)]
pub enum RestoreError {
    /// The stream is not whole.
    Damaged(String),
    /// Another version of Sluice made it.
    Format {
        /// Format version of the backup.
        found: u32,
        /// The one that this program reads.
        known: u32,
    },
    /// The backup is encrypted, and a root key that it needs is not given. Nothing was written.
    Key {
        /// The key.
        needed: KeyId,
        /// Root keys that were given.
        given: Vec<KeyId>,
    },
    /// The directory is not empty.
    NotEmpty(PathBuf),
    /// The stream could not be read.
    Stream(io::Error),
    /// The directory could not be written, or is not right afterwards.
    Directory(OpenError),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Damaged(what) => {
                write!(f, "the backup is damaged or cut: {what}; use another copy of it, or an older backup")
            }
            RestoreError::Format { found, known } => write!(
                f,
                "the backup has format version {found}, and this program reads only version {known}: \
                 it was written by {} sluice; restore it with that version",
                writer(*found, *known)
            ),
            RestoreError::Key { needed, given } => write!(
                f,
                "the backup is encrypted, and it takes the root key {needed} to restore it, which {}; nothing was written: \
                 give the root keys that the server had when the backup was taken",
                not_among(given)
            ),
            RestoreError::NotEmpty(dir) => {
                write!(f, "{} is not empty; restore into a new directory", dir.display())
            }
            RestoreError::Stream(error) => write!(f, "the backup cannot be read: {error}"),
            RestoreError::Directory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {}

/// Reads one backup and makes `dir`, which must be empty or missing, a data directory that opens. Verifies
/// while writing, and the whole afterwards. Reads no further than the backup's end.
///
/// `roots` are the root keys that were in use when it was taken. Is one missing, nothing was written.
pub fn restore(stream: &mut dyn Read, dir: &Path, roots: &RootKeys) -> Result<(), RestoreError> {
    restore_on(Arc::new(FsDisk), stream, dir, roots)
}

/// As [`restore`], on any disk.
pub fn restore_on(
    shared: Arc<dyn Disk>,
    stream: &mut dyn Read,
    dir: &Path,
    roots: &RootKeys,
) -> Result<(), RestoreError> {
    Incoming::begin(stream, roots)?.write_to(shared, dir, None)
}

/// A backup of which the beginning was read: the root keys that it needs are there.
pub struct Incoming<'a> {
    input: Input<'a>,
    roots: &'a RootKeys,
    /// The name of the first file, and what the keyring holds, if it is that.
    first: Option<(String, Option<Vec<u8>>)>,
}

impl<'a> Incoming<'a> {
    /// Reads the beginning of a backup.
    pub fn begin(stream: &'a mut dyn Read, roots: &'a RootKeys) -> Result<Incoming<'a>, RestoreError> {
        let mut input = Input { stream, sums: crc32fast::Hasher::new() };
        input.begin()?;
        let mut first = None;
        if input.byte()? == TAG_FILE {
            let name = input.name()?;
            let keyring = if name == KEYRING { Some(input.keyring(roots)?) } else { None };
            first = Some((name, keyring));
        }
        Ok(Incoming { input, roots, first })
    }

    /// Writes all of it, as [`restore_on`]. `owner`: where the journal belongs from then on; `None`: where it
    /// did when the backup was taken.
    pub fn write_to(
        self,
        shared: Arc<dyn Disk>,
        dir: &Path,
        owner: Option<Owner>,
    ) -> Result<(), RestoreError> {
        write(self, shared, dir, owner)
    }
}

fn write(
    incoming: Incoming<'_>,
    shared: Arc<dyn Disk>,
    dir: &Path,
    owner: Option<Owner>,
) -> Result<(), RestoreError> {
    let Incoming { mut input, roots, first } = incoming;
    let disk = &*shared;
    let directory = |action| move |error| RestoreError::Directory(OpenError::io(dir, action)(error));
    disk.create_dir(dir).map_err(directory("make"))?;
    if !disk.list(dir).map_err(directory("list"))?.is_empty() {
        return Err(RestoreError::NotEmpty(dir.to_owned()));
    }
    let lock = take_lock(disk, dir).map_err(RestoreError::Directory)?;
    let unfinished = dir.join(RESTORING);
    disk.open(&unfinished, OpenMode::CreateNew).map_err(directory("write to"))?;
    disk.sync_dir(dir).map_err(directory("sync"))?;
    let mut manifest = None;
    let mut count = 0;
    let mut next = first;
    while let Some((name, keyring)) = next {
        count += 1;
        if let Some(keyring) = keyring {
            write_whole(disk, dir, KEYRING, &keyring).map_err(directory("write to"))?;
        } else if name == MANIFEST {
            manifest = Some(input.contents()?);
        } else {
            input.copy_file(disk, &dir.join(name)).map_err(|error| error.at(dir))?;
        }
        next = if input.byte()? == TAG_FILE { Some((input.name()?, None)) } else { None };
    }
    input.end(count)?;
    let manifest = manifest.ok_or_else(|| RestoreError::Damaged("it has no manifest".into()))?;
    let mut manifest = Manifest::decode(Path::new(MANIFEST), &manifest).map_err(RestoreError::Directory)?;
    manifest.owner = owner.unwrap_or(manifest.owner);
    disk.sync_dir(dir).map_err(directory("sync"))?;
    write_whole(disk, dir, MANIFEST, &manifest.encode()).map_err(directory("write to"))?;
    disk.sync_dir(dir).map_err(directory("sync"))?;
    drop(lock);
    let report = check(shared.clone(), dir, roots).map_err(RestoreError::Directory)?;
    match report.problems.first() {
        None => {
            disk.remove(&unfinished).map_err(directory("write to"))?;
            disk.sync_dir(dir).map_err(directory("sync"))
        }
        Some(problem) => Err(RestoreError::Directory(OpenError::Damaged(problem.clone()))),
    }
}

struct Input<'a> {
    stream: &'a mut dyn Read,
    sums: crc32fast::Hasher,
}

enum CopyError {
    Restore(RestoreError),
    Io(io::Error),
}

impl CopyError {
    fn at(self, dir: &Path) -> RestoreError {
        match self {
            CopyError::Restore(error) => error,
            CopyError::Io(error) => RestoreError::Directory(OpenError::io(dir, "write to")(error)),
        }
    }
}

impl Input<'_> {
    fn begin(&mut self) -> Result<(), RestoreError> {
        if self.take::<8>()? != MAGIC {
            return Err(RestoreError::Damaged("it does not begin as a backup does".into()));
        }
        let found = self.u32()?;
        if found != FORMAT_VERSION {
            return Err(RestoreError::Format { found, known: FORMAT_VERSION });
        }
        self.sums.update(&found.to_le_bytes());
        Ok(())
    }

    fn name(&mut self) -> Result<String, RestoreError> {
        let len = u16::from_le_bytes(self.take()?);
        let mut bytes = vec![0; usize::from(len)];
        self.read(&mut bytes)?;
        self.sums.update(&bytes);
        let name = String::from_utf8_lossy(&bytes).into_owned();
        // Nothing else may be written, least of all outside of the directory.
        if name == MANIFEST || name == KEYRING || Kind::parse(&name).is_some() {
            return Ok(name);
        }
        Err(RestoreError::Damaged(format!("it holds a file {name:?}, which no journal has")))
    }

    /// The next chunk of a file; empty at its end.
    fn chunk(&mut self) -> Result<Vec<u8>, RestoreError> {
        let (len, sum) = (self.u32()? as usize, self.u32()?);
        if len > CHUNK_MAX {
            return Err(RestoreError::Damaged(format!("a chunk of {len} bytes")));
        }
        let mut bytes = Vec::with_capacity(len.min(CHUNK));
        let read = (&mut *self.stream).take(len as u64).read_to_end(&mut bytes);
        read.map_err(RestoreError::Stream)?;
        if bytes.len() < len || crc32fast::hash(&bytes) != sum {
            return Err(RestoreError::Damaged("a chunk does not match its checksum".into()));
        }
        self.sums.update(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// The keyring, after a look whether it can be opened.
    fn keyring(&mut self, roots: &RootKeys) -> Result<Vec<u8>, RestoreError> {
        let bytes = self.contents()?;
        let ring = Ring::decode(Path::new(KEYRING), &bytes).map_err(RestoreError::Directory)?;
        match ring.keys.values().find(|key| roots.get(key.root).is_none()) {
            Some(key) => Err(RestoreError::Key { needed: key.root, given: roots.ids() }),
            None => Ok(bytes),
        }
    }

    fn contents(&mut self) -> Result<Vec<u8>, RestoreError> {
        let mut contents = Vec::new();
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(contents);
            }
            if contents.len() + chunk.len() > CHUNK_MAX {
                return Err(RestoreError::Damaged("its manifest or its keyring is too long".into()));
            }
            contents.extend_from_slice(&chunk);
        }
    }

    fn copy_file(&mut self, disk: &dyn Disk, path: &Path) -> Result<(), CopyError> {
        let file = disk.open(path, OpenMode::CreateNew).map_err(CopyError::Io)?;
        let mut offset = 0;
        loop {
            let chunk = self.chunk().map_err(CopyError::Restore)?;
            if chunk.is_empty() {
                return file.sync_data().map_err(CopyError::Io);
            }
            file.write_at(&chunk, offset).map_err(CopyError::Io)?;
            offset += chunk.len() as u64;
        }
    }

    fn end(&mut self, count: u32) -> Result<(), RestoreError> {
        let sum = self.sums.clone().finalize();
        if (self.u32()?, self.u32()?) == (count, sum) {
            return Ok(());
        }
        Err(RestoreError::Damaged("its end does not match what came before".into()))
    }

    fn byte(&mut self) -> Result<u8, RestoreError> {
        match self.take::<1>()? {
            [tag @ (TAG_FILE | TAG_END)] => Ok(tag),
            [tag] => Err(RestoreError::Damaged(format!("an unknown part {tag}"))),
        }
    }

    fn u32(&mut self) -> Result<u32, RestoreError> {
        self.take().map(u32::from_le_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], RestoreError> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), RestoreError> {
        self.stream.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => RestoreError::Damaged("it ends early".into()),
            _ => RestoreError::Stream(error),
        })
    }
}
