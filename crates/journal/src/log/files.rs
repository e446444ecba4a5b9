//! Open files of a data directory, and removal of their names.
//!
//! A data directory may hold thousands of segments, and a process only so many file handles. So a file that
//! is only read is opened on demand, and those read longest ago are closed. A closed file could not be opened
//! again once its name is removed, so a name stays while a [`Pin`] says that somebody may still read it;
//! maintenance removes it afterwards.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError, Weak};

use crate::disk::shortage::is_out_of_handles;
use crate::disk::whole::write_whole;
use crate::disk::{Disk, File, OpenMode, read_exact_at};
use crate::file_kind::Kind;
use crate::key_id::KeyId;
use crate::keys::chunks::{self, ChunkCipher, HEAD};
use crate::keys::cipher::{BatchCipher, FileKey};
use crate::lock::lock;
use crate::log::file_keys::Keys;
use crate::log::repairs::Repairs;
use crate::log::signal::Signal;
use crate::log::spans::Spans;
use crate::open_error::OpenError;
use crate::seam::blob::{BlobError, BlobKey};

/// The numbered files of a data directory.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    keys: Arc<Keys>,
    spans: Spans,
    repairs: Repairs,
    /// Upper limit of files kept open for reading alone.
    open_max: usize,
    /// Files open for reading alone, in the order of opening.
    open: Mutex<VecDeque<Weak<LogFile>>>,
    names: Mutex<Names>,
    /// Raised when a name can be removed, or a copy of a blob is sought.
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Names {
    pins: HashMap<(Kind, u64), u32>,
    /// Names to remove once no pin holds them.
    doomed: HashSet<(Kind, u64)>,
    /// Names to remove now.
    gone: Vec<(Kind, u64)>,
}

impl Files {
    /// Without read-ahead.
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: &Path, open_max: usize, keys: Arc<Keys>) -> Arc<Files> {
        Files::with_spans(disk, dir, open_max, keys, Spans::default())
    }

    pub(crate) fn with_spans(
        disk: Arc<dyn Disk>,
        dir: &Path,
        open_max: usize,
        keys: Arc<Keys>,
        spans: Spans,
    ) -> Arc<Files> {
        let (open, names, signal, repairs) = Default::default();
        Arc::new(Files { disk, dir: dir.to_owned(), keys, spans, repairs, open_max, open, names, signal })
    }

    /// The file system that the files lie in.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Spans read ahead.
    pub(crate) fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Copies of damaged blobs.
    pub(crate) fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// The keys of the files.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Raised when a name can go.
    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    pub(crate) fn path(&self, kind: Kind, number: u64) -> PathBuf {
        self.dir.join(kind.name(number))
    }

    /// Opens a file that the manifest names, for reading.
    pub(crate) fn named(self: &Arc<Files>, kind: Kind, number: u64) -> Result<Handle, OpenError> {
        let mut handle = self.handle(kind, number, None);
        match handle.file.get() {
            Ok(_) => {
                handle.seal = self.seal_of(kind, &handle)?;
                Ok(handle)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let what = "the file is missing, and the manifest names it";
                Err(OpenError::damaged(&handle.path, 0, None, what))
            }
            Err(error) => Err(OpenError::io(&handle.path, "open")(error)),
        }
    }

    /// The segments after this one, in order, whether or not a manifest names them.
    pub(crate) fn segments_behind(&self, number: u64) -> io::Result<Vec<u64>> {
        let names = self.disk.list(&self.dir)?;
        let mut found: Vec<u64> = names
            .iter()
            .filter_map(|name| Kind::parse(name))
            .filter_map(|(kind, found)| (kind == Kind::Log && found > number).then_some(found))
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Makes an empty file, whose name is durable once the directory is synced. It stays open until
    /// [`LogFile::only_read`].
    pub(crate) fn create(self: &Arc<Files>, kind: Kind, number: u64) -> io::Result<Handle> {
        let seal = match self.keys.take(number)? {
            None => Seal::Plain,
            Some(key) if kind == Kind::Log => Seal::batches(&key),
            Some(key) => Seal::Chunks(Arc::new(ChunkCipher::create(&key, kind, self.keys.random())?)),
        };
        let opened = self.disk.open(&self.path(kind, number), OpenMode::CreateNew);
        let file = opened.inspect_err(|_| self.keys.forget(number))?;
        Ok(Handle { seal, ..self.handle(kind, number, Some(file)) })
    }

    /// True when the file was made under the root key of new files.
    pub(crate) fn is_current(&self, handle: &Handle) -> bool {
        match &handle.seal {
            Seal::Batches(_, root) => self.keys.current() == Some(*root),
            Seal::Plain | Seal::Chunks(_) => true,
        }
    }

    /// Encryption of an existing file.
    fn seal_of(&self, kind: Kind, handle: &Handle) -> Result<Seal, OpenError> {
        let Some(key) = self.keys.get(handle.number) else { return Ok(Seal::Plain) };
        if kind == Kind::Log {
            return Ok(Seal::batches(&key));
        }
        let path = &*handle.path;
        let mut head = [0; HEAD];
        if handle.file.len().map_err(OpenError::io(path, "read"))? >= HEAD as u64 {
            read_exact_at(&*handle.file, &mut head, 0).map_err(OpenError::io(path, "read"))?;
        }
        let cipher = ChunkCipher::of_file(&key, kind, &head).ok_or_else(|| {
            OpenError::damaged(path, 0, None, "it does not begin as an encrypted file does")
        })?;
        Ok(Seal::Chunks(Arc::new(cipher)))
    }

    fn handle(self: &Arc<Files>, kind: Kind, number: u64, file: Option<Arc<dyn File>>) -> Handle {
        let path = Arc::new(self.path(kind, number));
        let file = Arc::new_cyclic(|me| LogFile {
            me: me.clone(),
            files: self.clone(),
            path: path.clone(),
            held: Mutex::new(file),
            used: AtomicBool::new(false),
            pin: self.pin(kind, number),
        });
        Handle { number, file, path, seal: Seal::Plain }
    }

    /// Pins a name.
    pub(crate) fn pin(self: &Arc<Files>, kind: Kind, number: u64) -> Pin {
        *lock(&self.names).pins.entry((kind, number)).or_default() += 1;
        Pin { files: self.clone(), kind, number }
    }

    /// Removes a name, now or when the last pin is dropped. One that stays is removed at the next start.
    pub(crate) fn remove(&self, kind: Kind, number: u64) {
        let mut names = lock(&self.names);
        if names.pins.contains_key(&(kind, number)) {
            names.doomed.insert((kind, number));
        } else {
            names.gone.push((kind, number));
        }
    }

    /// Removes the names that no pin holds any more.
    pub(crate) fn remove_gone(&self) {
        let gone = std::mem::take(&mut lock(&self.names).gone);
        for (kind, number) in gone {
            let _ = self.disk.remove(&self.path(kind, number));
        }
    }

    /// Puts a file in place as a whole; the directory is yet to be synced.
    pub(crate) fn write_whole(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_whole(&*self.disk, &self.dir, name, bytes)
    }

    /// Opens a file for reading. Without free handles it closes other files first.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.disk.open(path, OpenMode::Read) {
            Err(error) if is_out_of_handles(&error) && self.close_all() => {
                self.disk.open(path, OpenMode::Read)
            }
            opened => opened,
        }
    }

    /// Closes all files open for reading alone. True when there were any.
    pub(crate) fn close_all(&self) -> bool {
        let mut open = lock(&self.open);
        let before = open.len();
        open.retain(|file| file.upgrade().is_some_and(|file| !file.close()));
        open.len() < before
    }

    /// Files that are open only to be read.
    #[cfg(test)]
    pub(crate) fn open_count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Registers an opened file, and closes others beyond the limit.
    fn opened(&self, file: Weak<LogFile>) {
        let mut open = lock(&self.open);
        open.push_back(file);
        if open.len() <= self.open_max {
            return;
        }
        open.retain(|file| file.strong_count() > 0);
        // The first round spares those that were read since the last; nothing is spared twice.
        for _ in 0..2 * open.len() {
            if open.len() <= self.open_max {
                return;
            }
            let Some(oldest) = open.pop_front() else { return };
            let Some(file) = oldest.upgrade() else { continue };
            if file.used.swap(false, Relaxed) || !file.close() {
                open.push_back(oldest);
            }
        }
    }
}

/// Guard that keeps the name of a file.
#[derive(Debug)]
pub(crate) struct Pin {
    files: Arc<Files>,
    kind: Kind,
    number: u64,
}

impl Pin {
    pub(crate) fn path(&self) -> PathBuf {
        self.files.path(self.kind, self.number)
    }

    pub(crate) fn name(&self) -> String {
        self.kind.name(self.number)
    }

    pub(crate) fn open(&self) -> io::Result<Arc<dyn File>> {
        self.files.open(&self.path())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let key = (self.kind, self.number);
        let mut names = lock(&self.files.names);
        let Some(pins) = names.pins.get_mut(&key) else { return };
        *pins -= 1;
        if *pins > 0 {
            return;
        }
        names.pins.remove(&key);
        if names.doomed.remove(&key) {
            names.gone.push(key);
            drop(names);
            self.files.signal.notify();
        }
    }
}

/// A numbered file of the data directory.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) number: u64,
    pub(crate) file: Arc<LogFile>,
    pub(crate) path: Arc<PathBuf>,
    pub(crate) seal: Seal,
}

/// Encryption of a file.
#[derive(Clone, Debug)]
pub(crate) enum Seal {
    /// None.
    Plain,
    /// Per batch (segments); with the root key that wraps the file's key.
    Batches(Arc<BatchCipher>, KeyId),
    /// In chunks (all other files).
    Chunks(Arc<ChunkCipher>),
}

impl Seal {
    fn batches(key: &FileKey) -> Seal {
        Seal::Batches(Arc::new(BatchCipher::new(key)), key.root)
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Seal::Plain)
    }

    /// The cipher of the chunks; `None`: not encrypted.
    pub(crate) fn chunks(&self) -> Option<&Arc<ChunkCipher>> {
        match self {
            Seal::Chunks(cipher) => Some(cipher),
            Seal::Plain | Seal::Batches(..) => None,
        }
    }
}

impl Handle {
    /// Reads the content of a file in chunks; fewer bytes only at its end.
    pub(crate) fn read_held(&self, buffer: &mut [u8], offset: u64) -> Result<usize, BlobError> {
        match self.seal.chunks() {
            Some(cipher) => cipher.read_at(&*self.file, buffer, offset),
            None => self.file.read_at(buffer, offset).map_err(BlobError::Io),
        }
    }

    /// As [`Handle::read_held`]; an error when fewer bytes are there.
    pub(crate) fn read_held_exact(&self, buffer: &mut [u8], offset: u64) -> Result<(), OpenError> {
        match self.read_held(buffer, offset) {
            Ok(read) if read == buffer.len() => Ok(()),
            Ok(_) => Err(OpenError::damaged(&self.path, offset, None, "the file is too short")),
            Err(BlobError::Damaged(what)) => Err(OpenError::damaged(&self.path, offset, None, what)),
            Err(BlobError::Io(error)) => Err(OpenError::io(&self.path, "read")(error)),
        }
    }

    /// Removes a file that no manifest names: the next start would do so, this saves the room until then.
    pub(crate) fn discard(&self) {
        let files = &self.file.files;
        let _ = files.disk.remove(&self.path);
        files.keys.forget(self.number);
    }

    /// Length of the content, in bytes.
    pub(crate) fn held_len(&self) -> io::Result<u64> {
        let len = self.file.len()?;
        Ok(if self.seal.is_plain() { len } else { chunks::held_len(len) })
    }
}

/// A file that is opened on demand, and always open while it is written.
#[derive(Debug)]
pub(crate) struct LogFile {
    me: Weak<LogFile>,
    files: Arc<Files>,
    path: Arc<PathBuf>,
    held: Mutex<Option<Arc<dyn File>>>,
    /// Used since the last time that closing it was considered.
    used: AtomicBool,
    pin: Pin,
}

impl LogFile {
    /// Ends writing: from now on the file may be closed and opened again.
    pub(crate) fn only_read(&self) {
        self.files.opened(self.me.clone());
    }

    /// Number of the file, unique in the directory for ever.
    pub(crate) fn number(&self) -> u64 {
        self.pin.number
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Spans read ahead, of all files.
    pub(crate) fn spans(&self) -> &Spans {
        &self.files.spans
    }

    /// Copies of damaged blobs, of all files.
    pub(crate) fn repairs(&self) -> &Repairs {
        &self.files.repairs
    }

    /// Seeks a copy of a damaged blob. False: there is nobody to ask, or all were asked in vain.
    pub(crate) fn seek_copy(&self, key: BlobKey) -> bool {
        let is_sought = self.files.repairs.seek(key);
        if is_sought {
            // Maintenance wakes the shard.
            self.files.signal.notify();
        }
        is_sought
    }

    fn get(&self) -> io::Result<Arc<dyn File>> {
        self.used.store(true, Relaxed);
        let mut held = lock(&self.held);
        if let Some(file) = &*held {
            return Ok(file.clone());
        }
        let file = self.files.open(&self.path)?;
        *held = Some(file.clone());
        drop(held);
        self.files.opened(self.me.clone());
        Ok(file)
    }

    /// Closes the file; `false` when somebody is opening it.
    fn close(&self) -> bool {
        let mut held = match self.held.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        *held = None;
        true
    }
}

impl File for LogFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.get()?.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.get()?.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.get()?.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.get()?.allocate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.get()?.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.get()?.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::FsDisk;

    use super::*;

    fn file_with_a_byte(files: &Arc<Files>, number: u64) -> Handle {
        let handle = files.create(Kind::Log, number).unwrap();
        handle.file.write_at(&[number as u8], 0).unwrap();
        handle
    }

    #[test]
    fn few_stay_open_and_all_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(Arc::new(FsDisk), dir.path(), 4, Keys::none());
        let handles: Vec<_> = (0..50).map(|number| file_with_a_byte(&files, number)).collect();
        handles.iter().for_each(|handle| handle.file.only_read());
        for round in 0..3 {
            for handle in &handles {
                let mut byte = [0];
                assert_eq!(handle.file.read_at(&mut byte, 0).unwrap(), 1, "round {round}");
                assert_eq!(u64::from(byte[0]), handle.number);
                assert!(files.open_count() <= 4);
            }
        }
        let held = |handle: &&Handle| lock(&handle.file.held).is_some();
        assert_eq!(handles.iter().filter(held).count(), 4);
        assert!(files.close_all());
        assert_eq!(handles.iter().filter(held).count(), 0);
    }

    #[test]
    fn a_name_stays_while_somebody_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(Arc::new(FsDisk), dir.path(), 1, Keys::none());
        let handle = file_with_a_byte(&files, 7);
        let backup = files.pin(Kind::Log, 7);
        files.remove(Kind::Log, 7);
        drop(handle);
        files.remove_gone();
        assert_eq!(backup.open().unwrap().len().unwrap(), 1);
        drop(backup);
        files.remove_gone();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
