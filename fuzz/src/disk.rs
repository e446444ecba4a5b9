//! A disk in memory, of 64 MiB at most.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_journal::disk::{DirLock, Disk, File, LockError, OpenMode};

/// Most bytes of one file. A length that only damage can explain must be refused before it is asked for.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Files by path. Clones are the same disk; [`MemDisk::copy`] makes another.
#[derive(Clone, Debug, Default)]
pub struct MemDisk {
    files: Arc<Mutex<BTreeMap<PathBuf, MemFile>>>,
}

#[derive(Clone, Debug, Default)]
struct MemFile(Arc<Mutex<Vec<u8>>>);

#[derive(Debug)]
struct Free;

impl DirLock for Free {}

impl MemDisk {
    /// Another disk with the same contents.
    pub fn copy(&self) -> MemDisk {
        let held = lock(&self.files);
        let files = held.iter().map(|(path, file)| {
            let bytes = lock(&file.0).clone();
            (path.clone(), MemFile(Arc::new(Mutex::new(bytes))))
        });
        MemDisk { files: Arc::new(Mutex::new(files.collect())) }
    }

    /// Paths, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        lock(&self.files).keys().cloned().collect()
    }

    /// Changes the bytes of a file, which is made when missing.
    pub fn change<T>(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let file = lock(&self.files).entry(path.to_owned()).or_default().clone();
        change(&mut lock(&file.0))
    }
}

impl Disk for MemDisk {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = lock(&self.files);
        let file = match (files.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => file.clone(),
            (None, OpenMode::CreateNew) => files.entry(path.to_owned()).or_default().clone(),
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = lock(&self.files);
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.files).remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let files = lock(&self.files);
        let names = files.keys().filter(|path| path.parent() == Some(dir)).filter_map(|path| path.file_name());
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(1 << 40)
    }

    fn lock(&self, _: &Path) -> Result<Box<dyn DirLock>, LockError> {
        Ok(Box::new(Free))
    }

    fn is_locked(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = lock(&self.0);
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(io::ErrorKind::StorageFull)? as usize;
        let mut bytes = lock(&self.0);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > FILE_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lock(&self.0).resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let longer = len > lock(&self.0).len() as u64;
        if longer { self.set_len(len) } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
