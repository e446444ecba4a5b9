//! Room on the disk: what may still be proposed, and the reserve.
//!
//! The reserve is a file that takes `reserve_bytes` of room (from
//! [`Options::reserve_bytes`](crate::Options)). Growing batches are judged as though it were whole, so that
//! they can never use it; when room runs out it is cut to nothing, and what then is free serves draining
//! batches, a snapshot and a compaction. It is taken again as soon as there is room for it.
//!
//! The journals of a node share one room ([`Options::space`](crate::Options)): what one proposes counts for
//! all, and who finds the disk full gives up the one reserve for all.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::disk::shortage::is_full;
use crate::disk::{Disk, File, OpenMode};
use crate::lock::lock;
use crate::seam::event::{Class, DiskRoom, Refused};

/// File name of the reserve.
const RESERVE: &str = "reserve";

/// Divisor of the margin: space that even draining batches leave.
const DRAINING_MARGIN_PART: u64 = 16;

/// Divisor of the reserve: part of it that copies of other nodes' batches leave.
const COPIES_RESERVE_PART: u64 = 2;

/// Divisor of the margin: room that is kept for copies that are on their way when none is left.
const SLACK_PART: u64 = 4;

/// Divisor of the margin: further free space needed before growing batches are taken again.
const AGAIN_PART: u64 = 4;

/// Free space at the last measurement, what was used since, and the reserve.
#[derive(Debug)]
pub struct Space {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Size that the reserve is to have, in bytes.
    reserve_wanted: u64,
    /// The free space that growing batches leave, in bytes.
    margin_bytes: u64,
    pub(crate) free: AtomicU64,
    /// Bytes proposed since the measurement.
    pub(crate) taken: AtomicU64,
    /// Present size of the reserve, in bytes.
    pub(crate) reserve: AtomicU64,
    /// True while growing batches are refused.
    pub(crate) full: AtomicBool,
    /// True when the file system cannot preallocate.
    no_reserve: AtomicBool,
    file: Mutex<Option<Arc<dyn File>>>,
    /// Held while free space is measured, so that a measurement never replaces a later one.
    looking: Mutex<()>,
}

impl Space {
    /// Room on the disk of a directory, with a reserve and a margin of these sizes in bytes, as
    /// [`Options::reserve_bytes`](crate::Options) and [`Options::full_margin_bytes`](crate::Options) tell
    /// them. Nothing is read or written before a journal opens.
    pub fn new(disk: Arc<dyn Disk>, dir: &Path, reserve_bytes: u64, margin_bytes: u64) -> Arc<Space> {
        Arc::new(Space {
            disk,
            dir: dir.to_owned(),
            reserve_wanted: reserve_bytes,
            margin_bytes,
            free: AtomicU64::default(),
            taken: AtomicU64::default(),
            reserve: AtomicU64::default(),
            full: AtomicBool::default(),
            no_reserve: AtomicBool::default(),
            file: Mutex::default(),
            looking: Mutex::default(),
        })
    }

    /// Estimate of free space, in bytes: the last measurement less what was used since.
    fn free_now(&self) -> u64 {
        self.free.load(Relaxed).saturating_sub(self.taken.load(Relaxed))
    }

    /// Checks that a batch of this size and class fits.
    ///
    /// # Errors
    /// The disk is full for it.
    pub(crate) fn room_for(&self, class: Class, bytes: u64) -> Result<(), Refused> {
        let refused = match class {
            Class::Growing => {
                let full = self.full.load(Relaxed) || self.room(class) <= bytes;
                self.full.store(full, Relaxed);
                full
            }
            Class::Draining => self.room(class) <= bytes,
        };
        if refused { Err(self.refusal(class, bytes)) } else { Ok(()) }
    }

    /// Batches that would be taken now. Room that others are told of is a slack less: what they send before
    /// they hear that there is none has its place.
    pub(crate) fn disk_room(&self) -> DiskRoom {
        let slack = self.margin_bytes / SLACK_PART;
        if self.room_for(Class::Growing, 0).is_ok() {
            DiskRoom::Growing
        } else if self.room_for(Class::Draining, slack).is_err() {
            DiskRoom::None
        } else if self.room_for_copy(slack).is_err() {
            DiskRoom::Draining
        } else {
            DiskRoom::Copies
        }
    }

    /// Checks that the copy of another node's batch fits, whatever its class: it leaves half of the reserve.
    ///
    /// # Errors
    /// The disk is full for it.
    pub(crate) fn room_for_copy(&self, bytes: u64) -> Result<(), Refused> {
        self.room_for(Class::Draining, bytes + self.reserve_wanted / COPIES_RESERVE_PART)
    }

    /// Free space that a batch of this size and class needs, in bytes.
    fn needed(&self, class: Class, bytes: u64) -> u64 {
        match class {
            Class::Growing => {
                let reserve = self.reserve_wanted.saturating_sub(self.reserve.load(Relaxed));
                bytes.max(self.margin_bytes / AGAIN_PART) + self.margin_bytes + reserve
            }
            Class::Draining => {
                (bytes + self.margin_bytes / DRAINING_MARGIN_PART).saturating_sub(self.reserve.load(Relaxed))
            }
        }
    }

    /// The refusal of a batch of this size and class.
    pub(crate) fn refusal(&self, class: Class, bytes: u64) -> Refused {
        Refused::Full { free_bytes: self.free_now(), needed_bytes: self.needed(class, bytes) }
    }

    /// True when so much was used since the last measurement that the next is due at once.
    pub(crate) fn is_outdated(&self) -> bool {
        self.taken.load(Relaxed) > self.margin_bytes / AGAIN_PART
    }

    /// True when a segment of this size may be filled ahead of its use.
    pub(crate) fn is_ample_for(&self, bytes: u64) -> bool {
        self.free.load(Relaxed) >= bytes + 2 * self.margin_bytes
    }

    /// Space left for batches of this class, in bytes.
    fn room(&self, class: Class) -> u64 {
        let left = self.free_now() + self.reserve.load(Relaxed);
        match class {
            Class::Growing => left.saturating_sub(self.reserve_wanted + self.margin_bytes),
            Class::Draining => left.saturating_sub(self.margin_bytes / DRAINING_MARGIN_PART),
        }
    }

    /// True while space is short: more may become free at any time.
    pub(crate) fn is_short(&self) -> bool {
        let little = self.room(Class::Growing) <= self.margin_bytes / AGAIN_PART;
        little || self.full.load(Relaxed) || self.reserve_missing()
    }

    /// Measures free space; gives up the reserve when it is needed and restores it when it is not.
    pub(crate) fn look(&self) -> io::Result<()> {
        let _looking = lock(&self.looking);
        // Before looking: what is proposed meanwhile is counted twice rather than not at all.
        self.taken.store(0, Relaxed);
        let free = self.disk.free_bytes(&self.dir)?;
        self.free.store(free, Relaxed);
        let full = self.full.load(Relaxed);
        self.full.store(full && self.room(Class::Growing) <= self.margin_bytes / AGAIN_PART, Relaxed);
        let missing = self.reserve_wanted.saturating_sub(self.reserve.load(Relaxed));
        if free < self.margin_bytes / 2 {
            self.release_reserve();
        } else if missing > 0 && self.reserve_missing() && free > missing + 2 * self.margin_bytes {
            self.take_reserve()?;
            self.free.store(self.disk.free_bytes(&self.dir)?, Relaxed);
        }
        Ok(())
    }

    /// True when the reserve is to be restored.
    fn reserve_missing(&self) -> bool {
        self.reserve.load(Relaxed) < self.reserve_wanted && !self.no_reserve.load(Relaxed)
    }

    /// Gives up the reserve. True when there was any.
    pub(crate) fn release_reserve(&self) -> bool {
        let file = lock(&self.file);
        let Some(file) = &*file else { return false };
        if self.reserve.load(Relaxed) == 0 || file.set_len(0).is_err() {
            return false;
        }
        let freed = self.reserve.swap(0, Relaxed);
        self.free.fetch_add(freed, Relaxed);
        true
    }

    /// Measures free space, and takes the reserve if there is room for it.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.find_reserve()?;
        self.look()?;
        let missing = self.reserve_wanted.saturating_sub(self.reserve.load(Relaxed));
        if missing > 0 && self.free.load(Relaxed) > missing.saturating_add(self.margin_bytes) {
            self.take_reserve()?;
            self.look()?;
        }
        Ok(())
    }

    /// Gives up the reserve if the disk is full: a start needs the space, since only a running server can
    /// drain.
    pub(crate) fn make_room(&self) -> io::Result<()> {
        if self.disk.free_bytes(&self.dir)? < self.margin_bytes / 2 {
            self.find_reserve()?;
            self.release_reserve();
        }
        Ok(())
    }

    /// Allocates the reserve; too little free space is no error.
    fn take_reserve(&self) -> io::Result<()> {
        let bytes = self.reserve_wanted;
        if bytes == 0 {
            return Ok(());
        }
        let mut file = lock(&self.file);
        if file.is_none() {
            *file = Some(self.open_reserve()?);
        }
        let Some(file) = &*file else { return Ok(()) };
        match file.allocate(bytes) {
            Ok(()) => self.reserve.store(bytes, Relaxed),
            // A file system without preallocation has no reserve; growing batches leave its room free all the
            // same.
            Err(error) if is_full(&error) || error.kind() == io::ErrorKind::Unsupported => {
                self.no_reserve.store(!is_full(&error), Relaxed);
                file.set_len(0)?;
                self.reserve.store(0, Relaxed);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the size of a reserve left by an earlier run.
    fn find_reserve(&self) -> io::Result<()> {
        let mut found = lock(&self.file);
        if found.is_some() {
            return Ok(());
        }
        match self.disk.open(&self.dir.join(RESERVE), OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(file) => {
                let len = file.len()?.min(self.reserve_wanted);
                file.set_len(len)?;
                self.reserve.store(len, Relaxed);
                *found = Some(file);
                Ok(())
            }
        }
    }

    fn open_reserve(&self) -> io::Result<Arc<dyn File>> {
        let path = self.dir.join(RESERVE);
        match self.disk.open(&path, OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.open(&path, OpenMode::CreateNew)
            }
            opened => opened,
        }
    }
}
