//! A disk that loses, tears and reorders writes, and fails, under the journal's [`Disk`] trait.
//!
//! Contents are kept twice: as processes read them, and as a power loss would leave them; names likewise. The
//! crate's documentation has the fault model.

mod faults;
mod file;
mod names;
mod nonces;
mod store;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_journal::disk::{DirLock, Disk, File, LockError, OpenMode};

pub use faults::{Call, CallFailure};
pub use store::{Crash, Damaged, Flaws, Harm, Lost, Tally};

use crate::rng::Rng;
use names::Inode;
use store::Store;

/// The disk. Clones are the same disk, which outlives the processes that use it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    store: Arc<Mutex<Store>>,
    /// Number of crashes before this process: the handles of earlier processes fail.
    generation: u64,
}

impl SimDisk {
    /// An empty disk with this directory.
    pub fn new(root: &Path, capacity: usize, rng: Rng) -> SimDisk {
        SimDisk { store: Arc::new(Mutex::new(Store::new(root, capacity, rng))), generation: 0 }
    }

    /// The disk as the next process sees it.
    pub fn for_next_process(&self) -> SimDisk {
        SimDisk { store: Arc::clone(&self.store), generation: self.store().generation }
    }

    /// Ends the running process. Nothing that it still holds reaches the disk any more.
    pub fn crash(&self, crash: Crash) {
        self.store().crash(crash);
    }

    /// Another disk with the same files, all durable.
    pub fn copy(&self, rng: Rng) -> io::Result<SimDisk> {
        let copy = SimDisk::new(Path::new("/"), usize::MAX, rng);
        for (path, bytes) in self.dump() {
            let dir = path.parent().unwrap_or(Path::new("/"));
            copy.create_dir(dir)?;
            let file = copy.open(&path, OpenMode::CreateNew)?;
            file.write_at(&bytes, 0)?;
            file.sync_data()?;
            copy.sync_dir(dir)?;
        }
        copy.sync_dir(Path::new("/"))?;
        Ok(copy)
    }

    /// Makes one call of this kind fail, after `nth` others.
    pub fn fail_call(&self, call: Call, nth: u64, how: CallFailure) {
        self.store().faults().plan(call, nth, how);
    }

    /// Cancels a planned halt, unless the process has died already.
    pub fn forget_halt(&self) {
        let mut store = self.store();
        if !store.is_halted() {
            store.faults().forget_halt();
        }
    }

    /// Cancels a planned failure.
    pub fn forget_failures(&self) {
        self.store().faults().forget_plan();
    }

    /// True when a call of this process has failed as planned.
    pub fn has_failed(&self) -> bool {
        self.store().faults().has_failed()
    }

    /// True when a call of this process has failed, or will.
    pub fn may_fail(&self) -> bool {
        let mut store = self.store();
        let faults = store.faults();
        faults.has_failed() || faults.is_planned()
    }

    /// Makes the process die after so many more calls: later ones fail without effect. [`SimDisk::crash`]
    /// must follow.
    pub fn halt_after(&self, calls: u64) {
        self.store().faults().halt_after(calls + 1);
    }

    /// True when the process has died by [`SimDisk::halt_after`].
    pub fn is_halted(&self) -> bool {
        self.store().is_halted()
    }

    /// True when a sync of some file has failed, and what it did not write is still read from the cache: it
    /// may be lost without a loss of power.
    pub fn may_lose(&self) -> bool {
        self.store().may_lose()
    }

    /// Sets the size of the disk in bytes.
    pub fn set_capacity(&self, bytes: usize) {
        self.store().set_capacity(bytes);
    }

    /// Number of bytes that files take.
    pub fn used(&self) -> usize {
        self.store().used()
    }

    /// Plants bugs.
    pub fn set_flaws(&self, flaws: Flaws) {
        self.store().set_flaws(flaws);
    }

    /// Damages one of the files.
    pub fn damage_somewhere(&self, harm: Harm) -> Option<Damaged> {
        self.store().damage_somewhere(harm)
    }

    /// Flips a bit of the byte at this offset of a file; `None`: there is none.
    pub fn flip(&self, path: &Path, at: usize) -> Option<Damaged> {
        self.store().flip(path, at)
    }

    /// Undoes damage where it is still there.
    pub fn mend(&self, damaged: &Damaged) {
        self.store().mend(damaged);
    }

    /// Loses a file that `accept` takes; with `directory`, all such files and that directory.
    pub fn lose(&self, accept: impl Fn(&Path) -> bool, directory: Option<&Path>) -> Option<Lost> {
        self.store().lose(accept, directory)
    }

    /// Puts lost files back.
    pub fn put_back(&self, lost: &Lost) {
        self.store().put_back(lost);
    }

    /// True when this file exists.
    pub fn has_file(&self, path: &Path) -> bool {
        self.store().has_file(path)
    }

    /// Counts since the disk was made.
    pub fn tally(&self) -> Tally {
        self.store().tally
    }

    /// Every file with its contents.
    pub fn dump(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.store().dump()
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, for a process that has not ended.
    fn alive(&self) -> io::Result<MutexGuard<'_, Store>> {
        let store = self.store();
        if store.generation == self.generation && !store.is_halted() {
            Ok(store)
        } else {
            Err(io::Error::other("simulated: this process has ended"))
        }
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.alive()?.make_directory(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut store = self.alive()?;
        let inode = match mode {
            OpenMode::CreateNew => store.create(path)?,
            OpenMode::Read | OpenMode::Write => store.open(path)?,
        };
        Ok(Arc::new(SimFile { disk: self.clone(), inode, writable: mode != OpenMode::Read }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.alive()?.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.alive()?.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.alive()?.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.alive()?.sync_directory(dir)
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(self.alive()?.free() as u64)
    }

    fn lock(&self, dir: &Path) -> Result<Box<dyn DirLock>, LockError> {
        if self.alive().map_err(LockError::Io)?.lock(dir) {
            Ok(Box::new(SimLock { disk: self.clone(), dir: dir.to_path_buf() }))
        } else {
            Err(LockError::Held { pid: None })
        }
    }

    fn is_locked(&self, dir: &Path) -> io::Result<bool> {
        Ok(self.alive()?.is_locked(dir))
    }
}

/// An open file of one process.
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: Inode,
    writable: bool,
}

impl SimFile {
    fn for_writing(&self) -> io::Result<MutexGuard<'_, Store>> {
        if !self.writable {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "simulated: opened only to read"));
        }
        self.disk.alive()
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.alive()?.read(self.inode, offset as usize, buffer)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.for_writing()?.write(self.inode, offset as usize, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.for_writing()?.set_len(self.inode, len as usize)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.for_writing()?.allocate(self.inode, len as usize)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.for_writing()?.sync(self.inode)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.alive()?.len(self.inode) as u64)
    }
}

/// A directory that a process has locked.
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    dir: PathBuf,
}

impl DirLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.store().unlock(&self.dir, self.disk.generation);
    }
}
