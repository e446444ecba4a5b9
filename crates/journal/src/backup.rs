//! Backups while serving, and restoring them.
//!
//! A backup is one stream: magic `SLUICEBK`, `u32` format version; then the files, the manifest last; then the end. A
//! file is `u8` 1, `u16` length of its name, the name, chunks, and an empty chunk; a chunk is `u32` length, `u32` checksum and the
//! bytes. The end is `u8` 2, `u32` number of files, `u32` checksum of all names and chunks' checksums. Streams may follow one
//! another: reading stops right after the end.
//!
//! What it holds is the journal as committed at one moment: the files stay readable while the backup lasts, also
//! when compaction removes them, and the segment that grows is copied up to its last committed batch.

mod restore;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::OpenMode;
use crate::log::codec::Put;
use crate::log::file::Handle;
use crate::log::header::Position;
use crate::log::manifest::{FORMAT_VERSION, Kind, MANIFEST, Manifest};
use crate::log::shared::{Shared, lock};

pub use restore::{RestoreError, restore, restore_on};

const MAGIC: [u8; 8] = *b"SLUICEBK";
const TAG_FILE: u8 = 1;
const TAG_END: u8 = 2;

/// Bytes of a file in one chunk.
const CHUNK: usize = 256 << 10;

/// Begins backups, from any thread.
#[derive(Clone, Debug)]
pub struct Backups {
    shared: Arc<Shared>,
}

impl Backups {
    pub(crate) fn new(shared: Arc<Shared>) -> Backups {
        Backups { shared }
    }

    /// Pins what is committed now. Blocks for as long as opening the files takes. A fresh snapshot
    /// ([`crate::DiskJournal::request_snapshot`]) before makes the stream shorter, and restoring faster.
    pub fn begin(&self) -> io::Result<Backup> {
        let held = lock(&self.shared.manifest);
        let committed = *lock(&self.shared.committed);
        let mut manifest = held.clone();
        manifest.open.retain(|number| *number <= committed.segment);
        manifest.synced_to = committed;
        let files = self.pin(&manifest, committed)?;
        drop(held);
        let mut sums = crc32fast::Hasher::new();
        sums.update(&FORMAT_VERSION.to_le_bytes());
        Ok(Backup {
            files,
            manifest: Some(manifest.encode()),
            current: None,
            begun: false,
            done: false,
            count: 0,
            sums,
        })
    }

    fn pin(&self, manifest: &Manifest, committed: Position) -> io::Result<VecDeque<Pinned>> {
        let mut files = VecDeque::new();
        let mut add = |kind, number, len: Option<u64>| {
            let path = self.shared.path(kind, number);
            let file = self.shared.disk.open(&path, OpenMode::Read)?;
            let len = len.map_or_else(|| file.len(), Ok)?;
            files.push_back(Pinned {
                name: kind.name(number),
                handle: Handle { number, file, path: path.into() },
                len,
            });
            io::Result::Ok(())
        };
        if let Some(snapshot) = &manifest.snapshot {
            add(Kind::Snapshot, snapshot.number, Some(snapshot.len))?;
        }
        for file in &manifest.blob_files {
            add(Kind::Blobs, file.number, Some(file.data_len + file.table_len))?;
        }
        for sealed in &manifest.sealed {
            if sealed.table_len > 0 {
                add(Kind::Table, sealed.number, Some(sealed.table_len))?;
            }
            add(Kind::Log, sealed.number, Some(sealed.len))?;
        }
        for number in &manifest.open {
            add(Kind::Log, *number, (*number == committed.segment).then_some(committed.offset))?;
        }
        Ok(files)
    }
}

#[derive(Debug)]
struct Pinned {
    name: String,
    handle: Handle,
    len: u64,
}

/// A backup being read.
#[derive(Debug)]
pub struct Backup {
    files: VecDeque<Pinned>,
    manifest: Option<Vec<u8>>,
    current: Option<(Pinned, u64)>,
    begun: bool,
    done: bool,
    count: u32,
    sums: crc32fast::Hasher,
}

impl Backup {
    /// The next bytes of the stream, some 256 KiB at most; `None` at its end. Blocks for one read. A stream that ends
    /// with an error is not a backup, and [`restore`] refuses it.
    pub fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.done {
            return Ok(None);
        }
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(&MAGIC);
            out.put_u32(FORMAT_VERSION);
        }
        if let Some((file, offset)) = self.current.take() {
            self.copy(file, offset, &mut out)?;
        } else if let Some(file) = self.files.pop_front() {
            self.begin_file(&file.name, &mut out);
            self.copy(file, 0, &mut out)?;
        } else if let Some(manifest) = self.manifest.take() {
            self.begin_file(MANIFEST, &mut out);
            self.chunk(&manifest, &mut out);
            self.chunk(&[], &mut out);
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

    fn copy(&mut self, file: Pinned, offset: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let mut bytes = vec![0; (file.len - offset).min(CHUNK as u64) as usize];
        crate::disk::read_exact_at(&*file.handle.file, &mut bytes, offset).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.handle.path.display()))
        })?;
        self.chunk(&bytes, out);
        let next = offset + bytes.len() as u64;
        if bytes.is_empty() {
            // That was the empty chunk that ends the file.
        } else if next < file.len {
            self.current = Some((file, next));
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
