//! Backups while serving, and restoring them.
//!
//! A backup is one stream: magic `SLUICEBK`, `u32` format version; then the files, the keyring first, when
//! there is one, and the manifest last; then the end. A file is `u8` 1, `u16` length of its name, the name,
//! chunks, and an empty chunk; a chunk is `u32` length, `u32` checksum and the bytes. The end is `u8` 2,
//! `u32` number of files, `u32` checksum of all names and chunks' checksums. Streams may follow one another:
//! reading stops right after the end.
//!
//! What is encrypted stays so: the stream holds files as they are on the disk, and their data keys, wrapped
//! by the root keys. So it takes these to restore a backup, and without them nothing in it can be read.
//!
//! What it holds is the journal as committed at one moment: the names of its files stay while the backup
//! lasts, also when compaction has done with them, and the segment that grows is copied up to its last
//! committed batch.

mod restore;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::codec::Put;
use crate::disk::File;
use crate::disk::shortage::is_out_of_handles;
use crate::file_kind::Kind;
use crate::keys::chunks;
use crate::keys::keyring::KEYRING;
use crate::lock::lock;
use crate::log::files::Pin;
use crate::log::header::Position;
use crate::log::manifest::{FORMAT_VERSION, MANIFEST, Manifest, NUMBER_MAX};
use crate::log::shared::Shared;

pub use restore::{Incoming, RestoreError, restore, restore_on};

const MAGIC: [u8; 8] = *b"SLUICEBK";
const TAG_FILE: u8 = 1;
const TAG_END: u8 = 2;

/// Tries, and pause between two, of opening a file without file handles: 30 s in all.
const HANDLE_TRIES: u32 = 1_500;
const HANDLE_PAUSE: Duration = Duration::from_millis(20);

/// Size of a chunk of a file, in bytes.
const CHUNK: usize = 256 << 10;

/// Handle that begins backups, from any thread.
#[derive(Clone, Debug)]
pub struct Backups {
    shared: Arc<Shared>,
}

impl Backups {
    pub(crate) fn new(shared: Arc<Shared>) -> Backups {
        Backups { shared }
    }

    /// True while a state of another node is being installed: a backup would hold the former one.
    pub fn is_installing(&self) -> bool {
        self.shared.is_installing()
    }

    /// Pins the committed state of this moment, which is quick: files are opened one at a time as they are
    /// copied. A fresh snapshot ([`crate::DiskJournal::request_snapshot`]) before makes the backup shorter,
    /// and restoring faster.
    pub fn begin(&self) -> Backup {
        // Held, so that nothing which is named goes before it is pinned.
        let held = lock(&self.shared.manifest);
        let mut manifest = held.clone();
        let committed = start_of_rest(&manifest, *lock(&self.shared.committed));
        manifest.open.retain(|open| open.number <= committed.segment);
        for open in &mut manifest.open {
            // The zeros at their ends are not copied, or may be cut off meanwhile.
            open.len = if open.number == committed.segment { committed.offset } else { open.end };
        }
        manifest.synced_to = committed;
        manifest.committed = self.shared.committed_index();
        if manifest.committed < manifest.whole_from {
            // A copy goes its own way: what releases the blobs that are missing here never comes there.
            manifest.whole_from = NUMBER_MAX;
        }
        // A copy has not voted.
        manifest.hard_state.clear();
        manifest.closed = true;
        let files = self.pin(&manifest, committed);
        let keyring = self.shared.files.keys().select(&manifest);
        drop(held);
        manifest.keyring = keyring.as_ref().map_or(0, |(_, generation)| *generation);
        let mut sums = crc32fast::Hasher::new();
        sums.update(&FORMAT_VERSION.to_le_bytes());
        Backup {
            keyring: keyring.map(|(bytes, _)| bytes),
            files,
            manifest: Some(manifest.encode()),
            current: None,
            begun: false,
            done: false,
            count: 0,
            sums,
        }
    }

    fn pin(&self, manifest: &Manifest, committed: Position) -> VecDeque<Pinned> {
        let mut files = VecDeque::new();
        let mut add = |kind, number, len| {
            files.push_back(Pinned { pin: self.shared.files.pin(kind, number), len });
        };
        if let Some(snapshot) = &manifest.snapshot {
            add(Kind::Snapshot, snapshot.number, Some(self.file_len(snapshot.number, snapshot.len)));
        }
        for file in &manifest.blob_files {
            let len = self.file_len(file.number, file.data_len + file.table_len);
            add(Kind::Blobs, file.number, Some(len));
        }
        for sealed in &manifest.sealed {
            if sealed.table_len > 0 {
                add(Kind::Table, sealed.number, Some(sealed.table_len));
            }
            add(Kind::Log, sealed.number, Some(sealed.len));
        }
        for open in &manifest.open {
            let known = open.number == committed.segment || open.end > 0;
            add(Kind::Log, open.number, known.then_some(open.len));
        }
        files
    }

    /// Length on disk of a file with this much content, in bytes.
    fn file_len(&self, number: u64, held: u64) -> u64 {
        if self.shared.files.keys().root_of(number).is_some() { chunks::file_len(held) } else { held }
    }
}

#[derive(Debug)]
struct Pinned {
    pin: Pin,
    /// Length to copy; `None`: to its end, which sealing may move forward meanwhile.
    len: Option<u64>,
}

/// A file being copied.
#[derive(Debug)]
struct Copying {
    file: Arc<dyn File>,
    path: PathBuf,
    offset: u64,
    len: Option<u64>,
}

/// A backup as a stream of bytes.
#[derive(Debug)]
pub struct Backup {
    keyring: Option<Vec<u8>>,
    files: VecDeque<Pinned>,
    manifest: Option<Vec<u8>>,
    current: Option<Copying>,
    begun: bool,
    done: bool,
    count: u32,
    sums: crc32fast::Hasher,
}

impl Backup {
    /// The next bytes of the stream, at most about 256 KiB; `None` at the end. Blocks for one read.
    ///
    /// # Errors
    /// A file could not be read. The stream is then no backup, and [`restore()`] refuses it.
    pub fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.done {
            return Ok(None);
        }
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(&MAGIC);
            out.put_u32(FORMAT_VERSION);
        }
        if let Some(keyring) = self.keyring.take() {
            self.whole_file(KEYRING, &keyring, &mut out);
        } else if let Some(copying) = self.current.take() {
            self.copy(copying, &mut out)?;
        } else if let Some(Pinned { pin, len }) = self.files.pop_front() {
            let (file, path) = (open(&pin)?, pin.path());
            self.begin_file(&pin.name(), &mut out);
            // An open file stays readable without its name.
            drop(pin);
            self.copy(Copying { file, path, offset: 0, len }, &mut out)?;
        } else if let Some(manifest) = self.manifest.take() {
            self.whole_file(MANIFEST, &manifest, &mut out);
        } else {
            self.done = true;
            out.push(TAG_END);
            out.put_u32(self.count);
            out.put_u32(self.sums.clone().finalize());
        }
        Ok(Some(out.into()))
    }

    fn begin_file(&mut self, name: &str, out: &mut Vec<u8>) {
        self.count += 1;
        self.sums.update(name.as_bytes());
        out.push(TAG_FILE);
        out.put_u16(name.len() as u16);
        out.extend_from_slice(name.as_bytes());
    }

    fn whole_file(&mut self, name: &str, bytes: &[u8], out: &mut Vec<u8>) {
        self.begin_file(name, out);
        self.chunk(bytes, out);
        self.chunk(&[], out);
    }

    fn copy(&mut self, mut copying: Copying, out: &mut Vec<u8>) -> io::Result<()> {
        let Copying { file, path, offset, len } = &copying;
        let wanted = len.map_or(CHUNK as u64, |len| (len - offset).min(CHUNK as u64));
        let mut bytes = vec![0; wanted as usize];
        let in_file = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let read = file.read_at(&mut bytes, *offset).map_err(in_file)?;
        if read < bytes.len() && len.is_some() {
            return Err(in_file(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short")));
        }
        bytes.truncate(read);
        self.chunk(&bytes, out);
        copying.offset += read as u64;
        if bytes.is_empty() {
            // That was the empty chunk that ends the file.
        } else if copying.len.is_none_or(|len| copying.offset < len) {
            self.current = Some(copying);
        } else {
            self.chunk(&[], out);
        }
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let sum = crc32fast::hash(bytes);
        self.sums.update(&sum.to_le_bytes());
        out.put_u32(bytes.len() as u32);
        out.put_u32(sum);
        out.extend_from_slice(bytes);
    }
}

/// Place of the end of the committed log in the open segments: where it ends with a segment that is sealed by
/// now, or that a cut of the tail has emptied and taken away, the beginning of the next one.
fn start_of_rest(manifest: &Manifest, committed: Position) -> Position {
    let next = manifest.open.iter().map(|open| open.number).find(|number| *number >= committed.segment);
    match next {
        Some(segment) if segment > committed.segment => Position { segment, offset: 0 },
        _ => committed,
    }
}

/// Opens a file; waits for a file handle when there is none.
fn open(pin: &Pin) -> io::Result<Arc<dyn File>> {
    for _ in 0..HANDLE_TRIES {
        match pin.open() {
            Err(error) if is_out_of_handles(&error) => std::thread::sleep(HANDLE_PAUSE),
            opened => return opened,
        }
    }
    pin.open()
}
