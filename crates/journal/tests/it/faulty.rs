//! The real file system without its syncs, which take most of the time, and with faults to switch on.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_journal::disk::{DirLock, Disk, File, FsDisk, LockError, OpenMode};

#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) fail_sync: AtomicBool,
    pub(crate) fail_write: AtomicBool,
    pub(crate) read_only: AtomicBool,
    /// Bytes that can still be written; `u64::MAX / 2` and more: no limit.
    pub(crate) free: AtomicU64,
    /// Files that are open, the most that ever were, and the most that may be; 0: no limit.
    pub(crate) open: AtomicU64,
    pub(crate) open_peak: AtomicU64,
    pub(crate) open_max: AtomicU64,
    /// How often was read.
    pub(crate) reads: AtomicU64,
    /// Where segments of the log have a sector that cannot be read, and how often that was tried; 0: none.
    pub(crate) bad_sector: AtomicU64,
    pub(crate) failed_reads: AtomicU64,
    /// Who holds this keeps everybody waiting who syncs a directory.
    pub(crate) gate: Mutex<()>,
    pub(crate) at_gate: AtomicBool,
    /// Writes to a segment of the log that began in the middle of a sector with synced bytes.
    pub(crate) shared_sectors: AtomicU64,
    /// What was ever sealed: segment and nonce, with the bytes that came of it.
    sealed: Mutex<HashMap<(u64, u64), u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyDisk(pub(crate) Arc<Faults>);

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn File>,
    faults: Arc<Faults>,
    /// Segments of the log are watched.
    sectors: Option<Mutex<Sectors>>,
}

/// Which sectors were written, and which of those were synced since.
#[derive(Debug, Default)]
struct Sectors {
    written: BTreeSet<u64>,
    synced: BTreeSet<u64>,
}

impl Faults {
    pub(crate) fn new() -> (Arc<Faults>, Arc<dyn Disk>) {
        let faults = Arc::new(Faults::default());
        faults.free.store(1 << 40, Relaxed);
        (faults.clone(), Arc::new(FaultyDisk(faults)))
    }

    fn writable(&self) -> io::Result<()> {
        if self.read_only.load(Relaxed) { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// A handle of the system's, or `EMFILE`.
    fn handle(&self) -> io::Result<()> {
        let (open, max) = (self.open.load(Relaxed), self.open_max.load(Relaxed));
        if max > 0 && open >= max {
            return Err(io::Error::from_raw_os_error(24));
        }
        self.open_peak.fetch_max(open + 1, Relaxed);
        Ok(())
    }

    pub(crate) fn close_gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the encrypted batches of a write: whatever fails and is repeated, a nonce has one meaning.
    fn watch_nonces(&self, mut bytes: &[u8]) {
        let number = |at: usize, len: usize, from: &[u8]| {
            from[at..at + len].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        while bytes.starts_with(b"SLB1") && number(96, 2, bytes) == 1 {
            let (len, segment, nonce) = (number(80, 4, bytes), number(8, 8, bytes), number(104, 8, bytes));
            let chunks = len.div_ceil(8 << 10).max(1);
            let end = (112 + chunks * 16 + len) as usize;
            let mut hasher = DefaultHasher::new();
            bytes[..end].hash(&mut hasher);
            let mut sealed = self.sealed.lock().unwrap();
            for nonce in nonce..nonce + chunks {
                let before = *sealed.entry((segment, nonce)).or_insert(hasher.finish());
                assert_eq!(before, hasher.finish(), "nonce {nonce} of segment {segment} is used twice");
            }
            bytes = &bytes[end..];
        }
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let free = self.free.load(Relaxed);
        if free < bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.free.store(free - bytes, Relaxed);
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        FsDisk.create_dir(dir)
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode != OpenMode::Read {
            self.0.writable()?;
        }
        self.0.handle()?;
        let file = FsDisk.open(path, mode)?;
        self.0.open.fetch_add(1, Relaxed);
        let sectors = path.extension().is_some_and(|ending| ending == "log").then(Mutex::default);
        Ok(Arc::new(FaultyFile { file, faults: self.0.clone(), sectors }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.writable()?;
        FsDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.writable()?;
        let len = std::fs::metadata(path).map_or(0, |meta| meta.len());
        FsDisk.remove(path)?;
        self.0.free.fetch_add(len, Relaxed);
        Ok(())
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        FsDisk.list(dir)
    }
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        self.0.handle()?;
        self.0.at_gate.store(true, Relaxed);
        drop(self.0.close_gate());
        self.0.at_gate.store(false, Relaxed);
        Ok(())
    }
    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(self.0.free.load(Relaxed))
    }
    fn lock(&self, dir: &Path) -> Result<Box<dyn DirLock>, LockError> {
        self.0.writable().map_err(LockError::Io)?;
        FsDisk.lock(dir)
    }
    fn is_locked(&self, dir: &Path) -> io::Result<bool> {
        FsDisk.is_locked(dir)
    }
}

impl Drop for FaultyFile {
    fn drop(&mut self) {
        self.faults.open.fetch_sub(1, Relaxed);
    }
}

impl Sectors {
    fn write(&mut self, bytes: &[u8], offset: u64, faults: &Faults) {
        if bytes.iter().all(|byte| *byte == 0) {
            return;
        }
        let (first, last) = (offset / 512, (offset + bytes.len() as u64 - 1) / 512);
        if !offset.is_multiple_of(512) && self.synced.contains(&first) {
            faults.shared_sectors.fetch_add(1, Relaxed);
        }
        self.written.extend(first..=last);
    }
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.faults.reads.fetch_add(1, Relaxed);
        let bad = self.faults.bad_sector.load(Relaxed);
        let is_hit = offset < bad + 512 && bad < offset + buffer.len() as u64;
        if bad > 0 && is_hit && self.sectors.is_some() {
            self.faults.failed_reads.fetch_add(1, Relaxed);
            return Err(io::Error::from_raw_os_error(5));
        }
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.faults.fail_write.load(Relaxed) {
            return Err(io::Error::other("planted"));
        }
        let end = offset + bytes.len() as u64;
        if let Some(sectors) = &self.sectors {
            sectors.lock().unwrap().write(bytes, offset, &self.faults);
            self.faults.watch_nonces(bytes);
        }
        let len = self.file.len()?;
        if let Err(error) = self.faults.take(end.saturating_sub(len)) {
            // A write that fails may have written a part.
            let fits = (len + self.faults.free.load(Relaxed)).saturating_sub(offset) as usize;
            let part = &bytes[..fits.min(bytes.len())];
            self.faults.take((offset + part.len() as u64).saturating_sub(len))?;
            self.file.write_at(part, offset)?;
            return Err(error);
        }
        self.file.write_at(bytes, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.free.fetch_add(self.file.len()?.saturating_sub(len), Relaxed);
        self.file.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.faults.take(len.saturating_sub(self.file.len()?))?;
        self.file.allocate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        if self.faults.fail_sync.load(Relaxed) {
            return Err(io::Error::other("planted"));
        }
        if let Some(sectors) = &self.sectors {
            let mut sectors = sectors.lock().unwrap();
            let written = std::mem::take(&mut sectors.written);
            sectors.synced.extend(written);
        }
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
