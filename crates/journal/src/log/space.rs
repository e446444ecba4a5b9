//! Room on the disk: what may still be proposed, and the reserve.
//!
//! The reserve is a file that takes `reserve_bytes` of room (from [`Options::reserve_bytes`](crate::Options)). Growing batches are judged as though
//! it were whole, so that they can never use it; when room runs out it is cut to nothing, and what then is free serves
//! draining batches, a snapshot and a compaction. It is taken again as soon as there is room for it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::disk::{File, OpenMode};
use crate::lock::lock;
use crate::log::shared::{Shared, is_full};
use crate::seam::event::{Class, Refused};

/// Name of the reserve.
pub(crate) const RESERVE: &str = "reserve";

/// Room that even draining batches leave, as a part of the margin.
const DRAINING_MARGIN_PART: u64 = 16;

/// Once growing batches are refused, this part of the margin has to be free beyond it for them to be taken
/// again.
const AGAIN_PART: u64 = 4;

/// Room on the disk, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Space {
    pub(crate) free: AtomicU64,
    /// Bytes proposed since `free` was seen.
    pub(crate) taken: AtomicU64,
    /// Bytes that the reserve takes now.
    pub(crate) reserve: AtomicU64,
    /// The writer waits for room.
    pub(crate) stalled: AtomicBool,
    /// Growing batches have been refused, and it takes a little more room than that to take them again.
    pub(crate) full: AtomicBool,
    /// The file system cannot reserve room.
    no_reserve: AtomicBool,
    file: Mutex<Option<Arc<dyn File>>>,
}

impl Space {
    /// Bytes that are free on the disk, as far as is known: less what was taken since that was looked at.
    fn free_now(&self) -> u64 {
        self.free.load(Relaxed).saturating_sub(self.taken.load(Relaxed))
    }
}

impl Shared {
    /// Whether a batch of this size may be proposed.
    pub(crate) fn room_for(&self, class: Class, bytes: u64) -> Result<(), Refused> {
        let refused = match class {
            Class::Growing => {
                let full = self.space.full.load(Relaxed) || self.room(class) <= bytes;
                self.space.full.store(full, Relaxed);
                full
            }
            Class::Draining => self.room(class) <= bytes,
        };
        if refused {
            let free_bytes = self.space.free_now();
            return Err(Refused::Full { free_bytes, needed_bytes: self.needed(class, bytes) });
        }
        Ok(())
    }

    /// Bytes that must be free for a batch of this size.
    fn needed(&self, class: Class, bytes: u64) -> u64 {
        let space = &self.space;
        let margin = self.options.full_margin_bytes;
        match class {
            Class::Growing => {
                let reserve = self.options.reserve_bytes.saturating_sub(space.reserve.load(Relaxed));
                bytes.max(margin / AGAIN_PART) + margin + reserve
            }
            Class::Draining => {
                (bytes + margin / DRAINING_MARGIN_PART).saturating_sub(space.reserve.load(Relaxed))
            }
        }
    }

    /// Whether growing batches are refused, and how much log a full disk leaves to what is dead: more is
    /// ended, or covered by a snapshot, so that it can go.
    pub(crate) fn dead_kept(&self) -> Option<u64> {
        self.space.full.load(Relaxed).then_some(self.options.full_margin_bytes / AGAIN_PART)
    }

    /// Bytes that batches of this class may still take.
    fn room(&self, class: Class) -> u64 {
        let space = &self.space;
        let left = space.free_now() + space.reserve.load(Relaxed);
        let margin = self.options.full_margin_bytes;
        match class {
            Class::Growing if space.stalled.load(Relaxed) => 0,
            Class::Growing => left.saturating_sub(self.options.reserve_bytes + margin),
            Class::Draining => left.saturating_sub(margin / DRAINING_MARGIN_PART),
        }
    }

    /// Whether room is short: more may have come back at any time.
    pub(crate) fn is_short(&self) -> bool {
        let little = self.room(Class::Growing) <= self.options.full_margin_bytes / AGAIN_PART;
        little || self.space.full.load(Relaxed) || self.reserve_missing()
    }

    /// Looks how much is free, gives up the reserve when it is needed, and takes it again when it is not.
    pub(crate) fn look_at_space(&self) -> io::Result<()> {
        let space = &self.space;
        // Before looking: what is proposed meanwhile is counted twice rather than not at all.
        space.taken.store(0, Relaxed);
        let free = self.disk.free_bytes(&self.options.dir)?;
        space.free.store(free, Relaxed);
        let margin = self.options.full_margin_bytes;
        let full = space.full.load(Relaxed);
        space.full.store(full && self.room(Class::Growing) <= margin / AGAIN_PART, Relaxed);
        let missing = self.options.reserve_bytes.saturating_sub(space.reserve.load(Relaxed));
        if free < margin / 2 {
            self.release_reserve();
        } else if missing > 0 && self.reserve_missing() && free > missing + 2 * margin {
            self.take_reserve()?;
        }
        Ok(())
    }

    /// Whether the reserve is to be taken again.
    fn reserve_missing(&self) -> bool {
        let space = &self.space;
        space.reserve.load(Relaxed) < self.options.reserve_bytes && !space.no_reserve.load(Relaxed)
    }

    /// Gives the reserve's room back to the disk. Whether there was any.
    pub(crate) fn release_reserve(&self) -> bool {
        let file = lock(&self.space.file);
        let Some(file) = &*file else { return false };
        if self.space.reserve.load(Relaxed) == 0 || file.set_len(0).is_err() {
            return false;
        }
        let freed = self.space.reserve.swap(0, Relaxed);
        self.space.free.fetch_add(freed, Relaxed);
        true
    }

    /// Takes the reserve's room; that there is too little is no error.
    pub(crate) fn take_reserve(&self) -> io::Result<()> {
        let bytes = self.options.reserve_bytes;
        if bytes == 0 {
            return Ok(());
        }
        let mut file = lock(&self.space.file);
        if file.is_none() {
            *file = Some(self.open_reserve()?);
        }
        let Some(file) = &*file else { return Ok(()) };
        let space = &self.space;
        match file.allocate(bytes) {
            Ok(()) => space.reserve.store(bytes, Relaxed),
            // A file system without preallocation has no reserve; growing batches leave its room free all the same.
            Err(error) if is_full(&error) || error.kind() == io::ErrorKind::Unsupported => {
                space.no_reserve.store(!is_full(&error), Relaxed);
                file.set_len(0)?;
                space.reserve.store(0, Relaxed);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Learns what an earlier run has left of the reserve.
    pub(crate) fn find_reserve(&self) -> io::Result<()> {
        let path = self.options.dir.join(RESERVE);
        match self.disk.open(&path, OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
            Ok(file) => {
                let len = file.len()?.min(self.options.reserve_bytes);
                file.set_len(len)?;
                self.space.reserve.store(len, Relaxed);
                *lock(&self.space.file) = Some(file);
            }
        }
        Ok(())
    }

    fn open_reserve(&self) -> io::Result<Arc<dyn File>> {
        let path = self.options.dir.join(RESERVE);
        match self.disk.open(&path, OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.open(&path, OpenMode::CreateNew)
            }
            opened => opened,
        }
    }
}
