//! The real file system.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::{DirLock, Disk, File, LockError, OpenMode};

const LOCK_NAME: &str = "lock";

/// Files of the operating system.
#[derive(Clone, Copy, Default, Debug)]
pub struct FsDisk;

impl FsDisk {
    /// Bytes that the disk of a directory has in all.
    pub fn size_bytes(dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }
}

impl Disk for FsDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(0o600);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => _ = options.write(true),
            OpenMode::CreateNew => _ = options.write(true).create_new(true),
        }
        Ok(Arc::new(FsFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn lock(&self, dir: &Path) -> Result<Box<dyn DirLock>, LockError> {
        let path = dir.join(LOCK_NAME);
        let held = || {
            // Only to name the holder: a lock file that cannot be read is as locked.
            let text = fs::read_to_string(&path).unwrap_or_default();
            LockError::Held { pid: text.trim().parse().ok() }
        };
        // The directory itself first: its lock is there though somebody removes the file.
        let directory = fs::File::open(dir).map_err(LockError::Io)?;
        if is_taken(directory.try_lock()).map_err(LockError::Io)? {
            return Err(held());
        }
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(held()),
            Err(fs::TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        file.set_len(0).map_err(LockError::Io)?;
        // On a full disk the holder stays nameless, and the lock holds all the same.
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Box::new(FsLock(file, directory)))
    }

    fn is_locked(&self, dir: &Path) -> io::Result<bool> {
        match fs::File::open(dir) {
            Ok(directory) if is_taken(directory.try_lock_shared())? => return Ok(true),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = match fs::File::open(dir.join(LOCK_NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// True when somebody else has the lock of a directory. Network file systems may be unable to lock one; the
/// lock file stands alone there.
fn is_taken(tried: Result<(), fs::TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(false),
        Err(fs::TryLockError::WouldBlock) => Ok(true),
        Err(fs::TryLockError::Error(error)) => {
            let errno = rustix::io::Errno::from_io_error(&error);
            let unable = error.kind() == io::ErrorKind::Unsupported
                || matches!(errno, Some(rustix::io::Errno::BADF | rustix::io::Errno::NOLCK));
            if unable { Ok(false) } else { Err(error) }
        }
    }
}

#[derive(Debug)]
struct FsFile(fs::File);

impl File for FsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// The locks of the lock file and of the directory go with the open files, also when the process is killed.
#[derive(Debug)]
#[expect(dead_code, reason = "held for their locks")]
struct FsLock(fs::File, fs::File);

impl DirLock for FsLock {}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_holder_per_directory() {
        let dir = tempfile::tempdir().unwrap();
        let held = FsDisk.lock(dir.path()).unwrap();
        assert!(FsDisk.is_locked(dir.path()).unwrap());
        match FsDisk.lock(dir.path()) {
            Err(LockError::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("locked twice: {other:?}"),
        }
        drop(held);
        assert!(!FsDisk.is_locked(dir.path()).unwrap());
        FsDisk.lock(dir.path()).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_removed_lets_nobody_else_in() {
        let dir = tempfile::tempdir().unwrap();
        let held = FsDisk.lock(dir.path()).unwrap();
        fs::remove_file(dir.path().join(LOCK_NAME)).unwrap();
        assert!(FsDisk.is_locked(dir.path()).unwrap());
        assert!(matches!(FsDisk.lock(dir.path()), Err(LockError::Held { pid: None })));
        assert!(!dir.path().join(LOCK_NAME).exists(), "nothing was left behind");
        drop(held);
        FsDisk.lock(dir.path()).unwrap();
    }

    #[test]
    fn files_are_for_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        FsDisk.create_dir(&inner).unwrap();
        let path = inner.join("file");
        FsDisk.open(&path, OpenMode::CreateNew).unwrap();
        assert!(FsDisk.open(&path, OpenMode::CreateNew).is_err());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
    }
}
