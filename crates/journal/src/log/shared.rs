//! What the shard's side, the writer and maintenance share.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::disk::{DirLock, Disk, OpenMode};
use crate::log::file::{BlobHolder, Handle};
use crate::log::header::Position;
use crate::log::manifest::{Kind, Link, Manifest};
use crate::log::space::Space;
use crate::options::Options;
use crate::seam::{BlobKey, Committed};

/// Locks; a panic elsewhere does not make the data wrong, since each holder leaves it whole at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A batch on its way to the disk.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) first_index: u64,
    pub(crate) records: u32,
    pub(crate) time_us: u64,
    pub(crate) bytes: Bytes,
}

/// What the shard's side learns from the others, in order.
#[derive(Debug)]
pub(crate) enum Note {
    /// Committed; the records lie at `offset` of the segment that began last.
    Batch { committed: Committed, records: u32, offset: u64 },
    /// The segment before is complete, as told, and this one goes on.
    Segment { handle: Handle, start: Link, finished_len: u64 },
    /// This file holds the blobs of those now.
    Moved { sources: Vec<u64>, target: Arc<BlobHolder> },
    /// This file had nothing live and is gone.
    Dropped { number: u64 },
    /// A snapshot is in place.
    SnapshotDone { len: u64 },
    /// A snapshot could not be written for lack of room.
    SnapshotFailed,
    /// The scrub found a damaged blob.
    Damaged(BlobKey),
}

/// A segment that is complete, with all its batches committed; to be sealed.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) start: Link,
    pub(crate) end: Link,
    pub(crate) holder: Arc<BlobHolder>,
}

/// A segment that has nothing in it yet.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) handle: Handle,
    /// Bytes that were filled with zeros and synced.
    pub(crate) prefilled: u64,
}

/// Counts since the journal was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) log_bytes: AtomicU64,
    pub(crate) fsyncs: AtomicU64,
    pub(crate) last_fdatasync_us: AtomicU64,
    pub(crate) snapshots: AtomicU64,
    pub(crate) compacted_bytes: AtomicU64,
    pub(crate) damaged_blobs: AtomicU64,
    pub(crate) disk_bytes: AtomicU64,
    pub(crate) files: AtomicU64,
}

/// What all sides see.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) identity: u64,
    pub(crate) term: u64,
    pub(crate) queue: Mutex<VecDeque<Proposal>>,
    pub(crate) notes: Mutex<VecDeque<Note>>,
    pub(crate) complete: Mutex<VecDeque<Complete>>,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) fresh: Mutex<Option<Fresh>>,
    /// Where the committed log ends, for backups.
    pub(crate) committed: Mutex<Position>,
    pub(crate) counters: Counters,
    pub(crate) space: Space,
    pub(crate) snapshot: crate::log::snapshot::Pipe,
    /// Whether the shard has told what is live.
    pub(crate) live_known: AtomicBool,
    /// Whether the shard is taking over what compaction has moved.
    pub(crate) moving: AtomicBool,
    /// Dead bytes in files that no snapshot covers yet.
    pub(crate) dead_uncovered: AtomicU64,
    pub(crate) writer_signal: Signal,
    pub(crate) maintenance_signal: Signal,
    pub(crate) waker: OnceLock<Arc<dyn Fn() + Send + Sync>>,
    failed: OnceLock<String>,
    pub(crate) _lock: Box<dyn DirLock>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("dir", &self.options.dir)
            .field("term", &self.term)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        manifest: Manifest,
        committed: Position,
        lock: Box<dyn DirLock>,
    ) -> Shared {
        Shared {
            disk,
            options,
            identity: manifest.identity,
            term: manifest.term,
            queue: Mutex::default(),
            notes: Mutex::default(),
            complete: Mutex::default(),
            manifest: Mutex::new(manifest),
            fresh: Mutex::default(),
            committed: Mutex::new(committed),
            counters: Counters::default(),
            space: Space::default(),
            snapshot: crate::log::snapshot::Pipe::default(),
            live_known: AtomicBool::new(false),
            moving: AtomicBool::new(false),
            dead_uncovered: AtomicU64::new(0),
            writer_signal: Signal::default(),
            maintenance_signal: Signal::default(),
            waker: OnceLock::new(),
            failed: OnceLock::new(),
            _lock: lock,
        }
    }

    /// Ends the journal's life: nothing is committed after this.
    pub(crate) fn poison(&self, what: String) {
        // The first failure is the one to tell.
        let _ = self.failed.set(what);
        self.wake_shard();
        self.maintenance_signal.notify();
    }

    /// The failure that ended the journal's life.
    pub(crate) fn failure(&self) -> Option<&String> {
        self.failed.get()
    }

    pub(crate) fn tell(&self, note: Note) {
        lock(&self.notes).push_back(note);
        self.wake_shard();
    }

    pub(crate) fn wake_shard(&self) {
        if let Some(wake) = self.waker.get() {
            wake();
        }
    }

    pub(crate) fn path(&self, kind: Kind, number: u64) -> PathBuf {
        self.options.dir.join(kind.name(number))
    }

    /// Changes the manifest, on disk first.
    pub(crate) fn change_manifest<T>(&self, change: impl FnOnce(&mut Manifest) -> T) -> io::Result<T> {
        let mut held = lock(&self.manifest);
        let mut next = held.clone();
        let result = change(&mut next);
        self.count_syncs(2);
        next.write_aside(&*self.disk, &self.options.dir)?;
        if let Err(error) = Manifest::put_in_place(&*self.disk, &self.options.dir) {
            // Either manifest may be the one that the next start finds.
            self.poison(format!("the manifest could not be replaced: {error}"));
            return Err(error);
        }
        *held = next;
        Ok(result)
    }

    /// Removes a file that no manifest names: the next start would do so, this saves the room until then. After a
    /// failure it stays, since the manifest on the disk may be one that names it.
    pub(crate) fn discard(&self, path: &Path) {
        if self.failure().is_none() {
            let _ = self.disk.remove(path);
        }
    }

    /// Makes an empty file, whose name is durable once the directory is synced.
    pub(crate) fn create(&self, kind: Kind) -> io::Result<Handle> {
        let number = lock(&self.manifest).take_number();
        self.create_numbered(kind, number)
    }

    pub(crate) fn create_numbered(&self, kind: Kind, number: u64) -> io::Result<Handle> {
        let path = self.path(kind, number);
        let file = self.disk.open(&path, OpenMode::CreateNew)?;
        Ok(Handle { number, file, path: Arc::new(path) })
    }

    /// Makes the names in the directory durable.
    pub(crate) fn sync_dir(&self) -> io::Result<()> {
        self.count_syncs(1);
        self.disk.sync_dir(&self.options.dir)
    }

    pub(crate) fn count_syncs(&self, count: u64) {
        self.counters.fsyncs.fetch_add(count, Ordering::Relaxed);
    }
}

/// Whether this means that the disk has no room, which passes, unlike other failures.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Wakes a thread that waits for work.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    raised: bool,
    stopped: bool,
}

impl Signal {
    pub(crate) fn notify(&self) {
        let mut state = lock(&self.state);
        if !state.raised {
            state.raised = true;
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// Waits until notified, at most this long; `false` when stopped.
    pub(crate) fn wait(&self, most: Option<Duration>) -> bool {
        let mut state = lock(&self.state);
        if let Some(most) = most {
            let waited = self.changed.wait_timeout_while(state, most, |s| !s.raised && !s.stopped);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            let waited = self.changed.wait_while(state, |s| !s.raised && !s.stopped);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.raised = false;
        !state.stopped
    }
}
