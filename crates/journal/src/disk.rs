//! The floor under the journal: what it asks of a disk, so that the simulator can stand in for one.
//!
//! Contract, which recovery relies on and which [`FsDisk`] gets from a POSIX file system:
//! - bytes written are readable at once, by everybody, but survive a power loss only after
//!   [`File::sync_data`] of that file has returned; of unsynced bytes any sectors may survive, in any order;
//! - a new, renamed or removed name survives a power loss only after [`Disk::sync_dir`];
//! - a rename replaces its target as a whole;
//! - an open file stays readable and writable after its name is removed;
//! - after a failed sync nothing is known about the unsynced bytes, and a repeated sync proves nothing.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use fs::FsDisk;
pub use overlay::Overlay;

mod fs;
mod overlay;
pub(crate) mod shortage;
pub(crate) mod whole;

/// Mode of opening a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// An existing file, only to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A new file, to read and write, only for the owner (0600); an error when the name exists.
    CreateNew,
}

/// A file system.
pub trait Disk: Send + Sync + Debug + 'static {
    /// Makes a directory, and those above it, only for the owner (0700); no error when it exists.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Gives a file another name, in the same directory, replacing what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a name.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names of the files in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes names durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Bytes that can still be written.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;
    /// Takes the directory for this process until the returned guard is dropped (or the process ends).
    fn lock(&self, dir: &Path) -> Result<Box<dyn DirLock>, LockError>;
    /// True when another process holds the directory; leaves no trace.
    fn is_locked(&self, dir: &Path) -> io::Result<bool>;
}

/// An open file; may be used from several threads at once.
pub trait File: Send + Sync + Debug {
    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`, growing the file when needed. After an error any part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts or grows (with zeros that take no room) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Takes room on the disk for the first `len` bytes and grows the file to that length.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes contents and length durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// True when the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Holds a directory; dropping it lets go.
pub trait DirLock: Send + Sync + Debug {}

/// Why a directory could not be taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it.
    Held {
        /// Process id of the holder, when it could be read.
        pid: Option<u32>,
    },
    /// The lock file could not be made or locked.
    Io(io::Error),
}

/// Reads exactly `buffer.len()` bytes.
pub(crate) fn read_exact_at(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let read = file.read_at(buffer, offset)?;
    if read < buffer.len() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short"));
    }
    Ok(())
}
