//! A whole disk: files under names, faults on demand, crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::faults::{Call, CallFailure, Faults};
use super::file::{File, SECTOR, Writeback};
use super::names::{Inode, Names};
use super::nonces::Nonces;
use crate::rng::Rng;

/// End of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// The process was killed; the system runs on, with everything that was written.
    Kill,
    /// Power was lost: what was not synced is lost, torn or reordered.
    Power,
}

/// Kind of damage to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// A bit is flipped.
    Flip,
    /// The last bytes that are not zero become zero.
    Zero,
    /// The end is cut off.
    Cut,
}

/// Damaged bytes, so that the damage can be undone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// Name of the file at that time.
    pub path: PathBuf,
    inode: Inode,
    /// Kind of damage.
    pub harm: Harm,
    /// Range of the bytes.
    pub bytes: Range<usize>,
}

/// Lost files, so that they can be put back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Their names, each with the file's number.
    pub files: Vec<(PathBuf, u64)>,
    /// The directory, if it was lost with everything in it.
    pub directory: Option<PathBuf>,
}

/// Counts of the disk's calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Syncs of files.
    pub syncs: u64,
    /// Bytes written.
    pub written: u64,
}

/// Bugs planted in the disk, in place of the same bugs in the journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flaws {
    /// Syncs succeed without effect.
    pub skips_syncs: bool,
    /// The last record in the newest segment does not survive the end of a process.
    pub cuts_tail: bool,
    /// At the end of a process an older manifest may come back, with the older snapshot that it names.
    pub goes_back: bool,
}

/// The names before a file was replaced.
#[derive(Debug)]
struct Past {
    replaced: PathBuf,
    files: BTreeMap<PathBuf, Inode>,
}

/// The disk. It outlives the processes that use it.
#[derive(Debug)]
pub(super) struct Store {
    names: Names,
    files: BTreeMap<Inode, File>,
    next_inode: Inode,
    rng: Rng,
    capacity: usize,
    faults: Faults,
    flaws: Flaws,
    /// The tree as it was before each replacement of a file, for [`Flaws::goes_back`].
    past: Vec<Past>,
    /// Files that [`Store::lose`] has removed, kept to be put back.
    lost: BTreeSet<Inode>,
    /// Directories locked by a process.
    locked: BTreeSet<PathBuf>,
    nonces: Nonces,
    /// Number of crashes; handles of an earlier process fail.
    pub(super) generation: u64,
    pub(super) tally: Tally,
}

impl Store {
    pub(super) fn new(root: &Path, capacity: usize, rng: Rng) -> Store {
        Store {
            names: Names::with_root(root),
            files: BTreeMap::new(),
            next_inode: 1,
            rng,
            capacity,
            faults: Faults::default(),
            flaws: Flaws::default(),
            past: Vec::new(),
            lost: BTreeSet::new(),
            locked: BTreeSet::new(),
            nonces: Nonces::default(),
            generation: 0,
            tally: Tally::default(),
        }
    }

    pub(super) fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    pub(super) fn is_halted(&self) -> bool {
        self.faults.is_halted()
    }

    pub(super) fn set_capacity(&mut self, bytes: usize) {
        self.capacity = bytes;
    }

    pub(super) fn set_flaws(&mut self, flaws: Flaws) {
        self.flaws = flaws;
    }

    /// Ends the process. Planned failures are dropped; the disk's size stays.
    pub(super) fn crash(&mut self, crash: Crash) {
        self.generation += 1;
        self.faults.process_ended();
        self.locked.clear();
        match crash {
            Crash::Kill => self.forget_some_lost_pages(),
            Crash::Power => self.lose_power(),
        }
        self.show_flaws();
        let mut reachable = self.names.reachable();
        reachable.extend(self.past.iter().flat_map(|past| past.files.values().copied()));
        reachable.extend(&self.lost);
        self.files.retain(|inode, _| reachable.contains(inode));
    }

    pub(super) fn may_lose(&self) -> bool {
        self.files.values().any(File::may_lose)
    }

    fn show_flaws(&mut self) {
        if self.flaws.cuts_tail {
            self.cut_tail();
        }
        if self.flaws.goes_back && self.rng.chance(1, 2) {
            self.go_back();
        }
    }

    /// Clears the last bytes written to the newest segment.
    fn cut_tail(&mut self) {
        let newest = self.names.files().filter(|(path, _)| is_segment(path)).last();
        if let Some(file) = newest.map(|(_, inode)| inode).and_then(|inode| self.files.get_mut(&inode))
            && let Some(last) = file.cache.iter().rposition(|&byte| byte != 0)
        {
            file.damage(last, 0);
        }
    }

    /// Brings back the latest tree with another snapshot, as far as it was replaced or removed since.
    fn go_back(&mut self) {
        let is_snapshot = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "snapshot");
        let other = |past: &Past| {
            past.files.keys().filter(|path| is_snapshot(path)).any(|path| self.names.file(path).is_none())
        };
        if let Some(at) = self.past.iter().rposition(other) {
            let past = self.past.swap_remove(at);
            for (path, inode) in past.files {
                if path == past.replaced || self.names.file(&path).is_none() {
                    self.names.insert(&path, inode);
                }
            }
        }
    }

    fn forget_some_lost_pages(&mut self) {
        for file in self.files.values_mut() {
            if self.rng.chance(1, 2) {
                file.evict_lost();
            }
        }
    }

    fn lose_power(&mut self) {
        let modes = [(1, Writeback::Nothing), (1, Writeback::Everything), (3, Writeback::Mixed)];
        let writeback = self.rng.weighted(&modes);
        for file in self.files.values_mut() {
            file.lose_power(writeback, &mut self.rng);
        }
        self.names.lose_power(&mut self.rng);
    }

    /// Damages a random file; `None` when there is no byte to damage.
    pub(super) fn damage_somewhere(&mut self, harm: Harm) -> Option<Damaged> {
        let candidates: Vec<(PathBuf, Inode)> = self
            .names
            .files()
            .filter(|(path, inode)| {
                (harm != Harm::Cut || is_segment(path))
                    && self.files.get(inode).is_some_and(|f| !f.cache.is_empty())
            })
            .map(|(path, inode)| (path.clone(), inode))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let (path, inode) = self.rng.pick(&candidates).clone();
        let file = self.files.get(&inode)?;
        // Most of a preallocated file is zeros without meaning: damage what was written.
        let used = file.cache.iter().rposition(|&byte| byte != 0).map_or(file.cache.len(), |at| at + 1);
        let len = file.cache.len();
        let bytes = match harm {
            Harm::Flip => {
                let at = self.rng.index(used);
                at..at + 1
            }
            Harm::Zero => *self.rng.pick(&[used - 1, used.saturating_sub(SECTOR), used / 2])..used,
            Harm::Cut => *self.rng.pick(&[len - 1, len / 2])..len,
        };
        let bit = 1 << self.rng.below(8);
        let file = self.files.get_mut(&inode)?;
        match harm {
            Harm::Flip => file.damage(bytes.start, file.cache[bytes.start] ^ bit),
            Harm::Zero => bytes.clone().for_each(|at| file.damage(at, 0)),
            Harm::Cut => file.cut_off(bytes.start),
        }
        Some(Damaged { path, inode, harm, bytes })
    }

    /// Flips a bit of the byte at this offset of a file; `None`: there is none.
    pub(super) fn flip(&mut self, path: &Path, at: usize) -> Option<Damaged> {
        let (_, inode) = self.names.files().find(|(name, _)| *name == path)?;
        let file = self.files.get_mut(&inode)?;
        let byte = *file.cache.get(at)?;
        file.damage(at, byte ^ 1 << self.rng.below(8));
        Some(Damaged { path: path.to_owned(), inode, harm: Harm::Flip, bytes: at..at + 1 })
    }

    /// Undoes damage where it is still there.
    pub(super) fn mend(&mut self, damaged: &Damaged) {
        if let Some(file) = self.files.get_mut(&damaged.inode) {
            damaged.bytes.clone().for_each(|at| file.mend(at));
        }
    }

    /// Every file with its contents, for comparison and display.
    pub(super) fn dump(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let contents = |inode| self.files.get(&inode).map(|file| file.cache.clone()).unwrap_or_default();
        self.names.files().map(|(path, inode)| (path.clone(), contents(inode))).collect()
    }

    /// Removes one of the files that `accept` takes, or a whole directory of them, from the disk itself.
    pub(super) fn lose(&mut self, accept: impl Fn(&Path) -> bool, directory: Option<&Path>) -> Option<Lost> {
        let mut candidates: Vec<(PathBuf, Inode)> = self
            .names
            .files()
            .filter(|(path, _)| accept(path))
            .map(|(p, inode)| (p.clone(), inode))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        if directory.is_none() {
            candidates = vec![self.rng.pick(&candidates).clone()];
        }
        let lost = Lost { files: candidates, directory: directory.map(Path::to_path_buf) };
        self.lost.extend(lost.files.iter().map(|(_, inode)| *inode));
        self.names.lose(&lost.files, directory);
        Some(lost)
    }

    pub(super) fn has_file(&self, path: &Path) -> bool {
        self.names.file(path).is_some()
    }

    /// Puts lost files back.
    pub(super) fn put_back(&mut self, lost: &Lost) {
        self.names.put_back(&lost.files, lost.directory.as_deref());
        self.lost.clear();
    }

    fn fault(&mut self, call: Call) -> io::Result<()> {
        self.faults.meet(call)
    }

    pub(super) fn used(&self) -> usize {
        self.files.values().map(File::allocated).sum()
    }

    pub(super) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.used())
    }

    fn room(&self, inode: Inode, end: usize) -> io::Result<()> {
        let taken = self.files.get(&inode).map_or(0, File::allocated);
        if end.saturating_sub(taken) > self.free() {
            return Err(CallFailure::NoRoom.error(Call::Write));
        }
        Ok(())
    }

    /// Locks a directory. Returns false if it is locked already.
    pub(super) fn lock(&mut self, directory: &Path) -> bool {
        self.locked.insert(directory.to_path_buf())
    }

    pub(super) fn is_locked(&self, directory: &Path) -> bool {
        self.locked.contains(directory)
    }

    pub(super) fn unlock(&mut self, directory: &Path, generation: u64) {
        if generation == self.generation {
            self.locked.remove(directory);
        }
    }

    pub(super) fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        self.fault(Call::Name)?;
        for ancestor in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
            if !ancestor.as_os_str().is_empty() && !self.names.is_directory(ancestor) {
                self.names.make_directory(ancestor);
            }
        }
        Ok(())
    }

    /// Names of the files in a directory, without subdirectories.
    pub(super) fn list(&mut self, directory: &Path) -> io::Result<Vec<String>> {
        self.fault(Call::Open)?;
        if !self.names.is_directory(directory) {
            return Err(missing(directory));
        }
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(self.names.children(directory).filter_map(name).collect())
    }

    pub(super) fn open(&mut self, path: &Path) -> io::Result<Inode> {
        self.fault(Call::Open)?;
        self.names.file(path).ok_or_else(|| missing(path))
    }

    /// Creates a file; fails if it exists.
    pub(super) fn create(&mut self, path: &Path) -> io::Result<Inode> {
        self.fault(Call::Open)?;
        if self.names.file(path).is_some() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} exists", path.display())));
        }
        if !path.parent().is_some_and(|parent| self.names.is_directory(parent)) {
            return Err(missing(path));
        }
        if self.free() == 0 {
            return Err(CallFailure::NoRoom.error(Call::Open));
        }
        let inode = self.next_inode;
        self.next_inode += 1;
        self.files.insert(inode, File::default());
        self.names.insert(path, inode);
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.fault(Call::Name)?;
        let inode = self.names.file(from).ok_or_else(|| missing(from))?;
        if self.flaws.goes_back && self.names.file(to).is_some() {
            let files = self.names.files().map(|(path, inode)| (path.clone(), inode)).collect();
            self.past.push(Past { replaced: to.to_path_buf(), files });
        }
        self.names.rename(from, to, inode);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.fault(Call::Name)?;
        if self.names.file(path).is_some() {
            self.names.remove(path);
        } else {
            return Err(missing(path));
        }
        Ok(())
    }

    pub(super) fn sync_directory(&mut self, path: &Path) -> io::Result<()> {
        self.fault(Call::SyncDirectory)?;
        if !self.names.is_directory(path) {
            return Err(missing(path));
        }
        if !self.flaws.skips_syncs {
            self.names.sync(path);
        }
        Ok(())
    }

    pub(super) fn len(&self, inode: Inode) -> usize {
        self.files.get(&inode).map_or(0, |file| file.cache.len())
    }

    /// Reads up to `into.len()` bytes; fewer only at the end of the file.
    pub(super) fn read(&mut self, inode: Inode, at: usize, into: &mut [u8]) -> io::Result<usize> {
        self.fault(Call::Read)?;
        let cache = self.files.get(&inode).map(|file| &file.cache[..]).unwrap_or_default();
        let found = cache.get(at..).unwrap_or_default();
        let len = found.len().min(into.len());
        into[..len].copy_from_slice(&found[..len]);
        Ok(len)
    }

    pub(super) fn write(&mut self, inode: Inode, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.nonces.watch(inode, bytes);
        let fault = self.fault(Call::Write);
        let room = self.room(inode, at + bytes.len());
        let file = self.files.entry(inode).or_default();
        if fault.is_err() || room.is_err() {
            // A failing write may have written a part.
            let part = self.rng.index(bytes.len() + 1).min(file.cache.len().saturating_sub(at));
            file.write(at, &bytes[..part]);
            return fault.and(room);
        }
        file.write(at, bytes);
        self.tally.written += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn allocate(&mut self, inode: Inode, len: usize) -> io::Result<()> {
        self.fault(Call::Write)?;
        self.room(inode, len)?;
        self.files.entry(inode).or_default().allocate(len);
        Ok(())
    }

    pub(super) fn set_len(&mut self, inode: Inode, len: usize) -> io::Result<()> {
        self.fault(Call::Write)?;
        self.files.entry(inode).or_default().set_len(len);
        Ok(())
    }

    pub(super) fn sync(&mut self, inode: Inode) -> io::Result<()> {
        let fault = self.fault(Call::Sync);
        self.tally.syncs += 1;
        let file = self.files.entry(inode).or_default();
        match fault {
            Err(error) => {
                file.fail_sync(&mut self.rng);
                Err(error)
            }
            Ok(()) => {
                if !self.flaws.skips_syncs {
                    file.sync();
                }
                Ok(())
            }
        }
    }
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(ErrorKind::NotFound, format!("{} does not exist", path.display()))
}
