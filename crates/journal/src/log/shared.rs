//! State shared by the shard's part of a journal, the writer and maintenance.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use crate::disk::shortage::is_out_of_handles;
use crate::disk::whole::aside;
use crate::disk::{DirLock, Disk};
use crate::file_kind::Kind;
use crate::lock::lock;
use crate::log::blob_holder::BlobHolder;
use crate::log::files::{Files, Handle};
use crate::log::header::Position;
use crate::log::manifest::{Link, MANIFEST, Manifest, Sealed};
use crate::log::received::Received;
use crate::log::sealing::write_table;
use crate::log::signal::Signal;
use crate::log::state_reader::PlacedSnapshot;
use crate::options::{Commit, Options};
use crate::plant::{self, Plant};
use crate::seam::blob::BlobKey;
use crate::seam::event::{Class, Committed, DiskRoom, Refused};
use crate::space::Space;

/// Tries, and pause between two, of syncing the directory without file handles: 30 s in all.
const HANDLE_TRIES: u32 = 3_000;
const HANDLE_PAUSE: Duration = Duration::from_millis(10);

/// Divisor of the margin: dead log that a full disk may keep.
const DEAD_PART: u64 = 4;

/// A proposed batch on its way to the disk.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) first_index: u64,
    pub(crate) records: u32,
    pub(crate) number: u64,
    pub(crate) term: u64,
    pub(crate) time_us: u64,
    pub(crate) bytes: Bytes,
}

impl Proposal {
    /// The batch, committed.
    pub(crate) fn committed(self) -> Committed {
        let Proposal { first_index, number, term, time_us, bytes, .. } = self;
        Committed { first_index, number, term, time_us, bytes }
    }
}

/// Where a batch is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchPlace {
    /// Offset of its records in the segment.
    pub(crate) offset: u64,
    /// Checksum of its head, which the next batch continues.
    pub(crate) checksum: u32,
}

/// Order to the writer; orders are carried out one after the other.
#[derive(Debug)]
pub(crate) enum Order {
    /// Write this batch.
    Write(Proposal),
    /// Cut the uncommitted tail from this record on, durably. A batch of the tail begins with it.
    Cut(u64),
    /// Keep the owner's hard state, durably, before anything later is written. If it tells of the log,
    /// everything before it is synced first.
    HardState { state: Vec<u8>, tells_of_log: bool },
    /// Put a state in place of the former one and of its log, durably.
    Install(Box<Installation>),
}

/// State that is to be put in place.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) received: Received,
    /// Index of the record from which on no blob of the state is missing.
    pub(crate) whole_from: u64,
    /// State of the chain behind it.
    pub(crate) link: Link,
    /// The part of the segment that grew which was given; `None`: nothing was.
    pub(crate) complete: Option<Complete>,
}

/// Message from writer or maintenance to the shard's part, in order.
#[derive(Debug)]
pub(crate) enum Note {
    /// A batch is written, at this place of the segment that began last. Under [`Commit::Own`] it is durable
    /// too, and so committed.
    Batch { written: Proposal, place: BatchPlace },
    /// The records up to this index are durable ([`Commit::Told`] only).
    Durable { last_index: u64 },
    /// The tail is cut durably where the batch at this position began; `handle` grows from there.
    Cut { at: Position, handle: Handle, start: Link },
    /// A state is in place; `handle` grows behind it.
    Installed { handle: Handle, start: Link, placed: PlacedSnapshot },
    /// The previous segment is complete, and this one grows.
    Segment(Begun),
    /// `target` holds the live blobs of `sources` from now on.
    Moved { sources: Vec<u64>, target: Arc<BlobHolder> },
    /// The file with this number had no live blob and is removed.
    Dropped { number: u64 },
    /// A snapshot is in place.
    SnapshotDone { placed: PlacedSnapshot },
    /// A snapshot could not be written for lack of room.
    SnapshotFailed,
    /// The scrub found a damaged blob.
    Damaged(BlobKey),
}

impl Note {
    /// True for what concerns the log and its snapshots, and not files with blobs.
    pub(crate) fn is_of_log(&self) -> bool {
        match self {
            Note::Batch { .. }
            | Note::Durable { .. }
            | Note::Cut { .. }
            | Note::Segment(_)
            | Note::SnapshotDone { .. }
            | Note::SnapshotFailed => true,
            Note::Installed { .. } | Note::Moved { .. } | Note::Dropped { .. } | Note::Damaged(_) => false,
        }
    }
}

/// A segment to which the log goes on.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) handle: Handle,
    pub(crate) start: Link,
    /// Length of the segment before it, in bytes.
    pub(crate) finished_len: u64,
}

/// A complete segment, all of whose batches are committed; to be sealed.
#[derive(Clone, Debug)]
pub(crate) struct Complete {
    pub(crate) start: Link,
    pub(crate) end: Link,
    pub(crate) holder: Arc<BlobHolder>,
}

impl Complete {
    /// Writes its table; the directory is yet to be synced. Returns what the manifest is to say of it.
    pub(crate) fn write_table(&self, shared: &Shared) -> io::Result<Sealed> {
        let holder = &self.holder;
        let sealed = Sealed {
            number: holder.number(),
            start: self.start,
            end: self.end,
            len: holder.len,
            table_len: 0,
            table_checksum: 0,
        };
        let sealed = write_table(&shared.files, &sealed, &holder.table)?;
        shared.count_syncs(u64::from(sealed.table_len > 0));
        Ok(sealed)
    }
}

/// A prepared, empty segment.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) handle: Handle,
    /// Length that was filled with zeros and synced, in bytes.
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
    pub(crate) repaired_blobs: AtomicU64,
    pub(crate) disk_bytes: AtomicU64,
    pub(crate) files: AtomicU64,
    /// Number of segments that the writer had to make itself.
    pub(crate) late_segments: AtomicU64,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) identity: u64,
    pub(crate) term: u64,
    pub(crate) queue: Mutex<VecDeque<Order>>,
    pub(crate) notes: Mutex<VecDeque<Note>>,
    pub(crate) complete: Mutex<VecDeque<Complete>>,
    /// Held while the manifest is written, which takes long: the shard's thread takes it only when no segment
    /// is prepared.
    pub(crate) manifest: Mutex<Manifest>,
    /// Number of the next file.
    next_file: AtomicU64,
    /// Prepared segments that the manifest names, by number. Filled while the manifest is held.
    pub(crate) fresh: Mutex<VecDeque<Fresh>>,
    pub(crate) files: Arc<Files>,
    /// Files that the shard needs no more, to be freed by maintenance.
    pub(crate) retired: Mutex<Vec<Arc<BlobHolder>>>,
    /// Index of the last durable record.
    durable_index: AtomicU64,
    /// Number of the last durable order.
    durable_orders: AtomicU64,
    /// Number of the batch from which on the log is kept.
    pub(crate) keep_from: AtomicU64,
    /// Index of the last record that is committed and not part of a tail whose cut is still on its way, so
    /// that it may be noted on the disk.
    committed_index: AtomicU64,
    /// Position of the end of the committed batches that the shard was given; backups copy up to it.
    pub(crate) committed: Mutex<Position>,
    pub(crate) counters: Counters,
    pub(crate) space: Arc<Space>,
    /// True while the writer waits for disk space.
    pub(crate) stalled: AtomicBool,
    pub(crate) snapshot: crate::log::snapshot::Pipe,
    /// True once the shard has told which blobs are live.
    pub(crate) live_known: AtomicBool,
    /// True when blobs were released since maintenance last looked.
    pub(crate) released: AtomicBool,
    /// True when the growing segment is to end with its last batch.
    pub(crate) roll: AtomicBool,
    /// True while the shard takes over the blobs of a compaction.
    pub(crate) moving: AtomicBool,
    /// True while the journal rests.
    pub(crate) rests: AtomicBool,
    /// True while a state is being installed, by which blobs are dead that the former state refers to.
    installing: AtomicBool,
    /// Dead bytes in files that no snapshot covers.
    pub(crate) dead_uncovered: AtomicU64,
    pub(crate) writer_signal: Signal,
    pub(crate) maintenance_signal: Arc<Signal>,
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
        options: Options,
        space: Arc<Space>,
        files: Arc<Files>,
        manifest: Manifest,
        committed: Position,
        durable_index: u64,
        lock: Box<dyn DirLock>,
    ) -> Shared {
        let committed_index = AtomicU64::new(manifest.committed);
        Shared {
            space,
            stalled: AtomicBool::new(false),
            disk: files.disk().clone(),
            options,
            identity: manifest.identity,
            term: manifest.term,
            queue: Mutex::default(),
            notes: Mutex::default(),
            complete: Mutex::default(),
            next_file: AtomicU64::new(manifest.next_file),
            manifest: Mutex::new(manifest),
            fresh: Mutex::default(),
            retired: Mutex::default(),
            durable_index: AtomicU64::new(durable_index),
            durable_orders: AtomicU64::new(0),
            keep_from: AtomicU64::new(u64::MAX),
            committed_index,
            committed: Mutex::new(committed),
            counters: Counters::default(),
            snapshot: crate::log::snapshot::Pipe::default(),
            live_known: AtomicBool::new(false),
            released: AtomicBool::new(false),
            roll: AtomicBool::new(false),
            moving: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            installing: AtomicBool::new(false),
            dead_uncovered: AtomicU64::new(0),
            writer_signal: Signal::default(),
            maintenance_signal: files.signal().clone(),
            files,
            waker: OnceLock::new(),
            failed: OnceLock::new(),
            _lock: lock,
        }
    }

    /// True when the owner tells what is committed.
    pub(crate) fn is_told(&self) -> bool {
        self.options.commit == Commit::Told
    }

    /// Notes that the records up to `last_index`, which end at `end`, are durable. Under [`Commit::Own`]
    /// durable is committed: this is the only place that says so.
    pub(crate) fn set_durable(&self, last_index: u64, end: Position) {
        self.durable_index.store(last_index, Ordering::Relaxed);
        self.committed_index.store(last_index, Ordering::Relaxed);
        self.set_given(end);
    }

    /// Notes that the shard was given the committed batches before `end`.
    pub(crate) fn set_given(&self, end: Position) {
        *lock(&self.committed) = end;
    }

    /// Notes the last committed record that is not part of a tail about to be cut.
    pub(crate) fn set_committed(&self, last_index: u64) {
        self.committed_index.store(last_index, Ordering::Relaxed);
    }

    /// Notes that the orders up to this one are durable.
    pub(crate) fn set_durable_orders(&self, orders: u64) {
        self.durable_orders.store(orders, Ordering::Relaxed);
    }

    pub(crate) fn durable_orders(&self) -> u64 {
        self.durable_orders.load(Ordering::Relaxed)
    }

    pub(crate) fn durable_index(&self) -> u64 {
        self.durable_index.load(Ordering::Relaxed)
    }

    pub(crate) fn committed_index(&self) -> u64 {
        self.committed_index.load(Ordering::Relaxed)
    }

    /// Notes whether a state is being installed: before it lets blobs die, and when it is in place.
    pub(crate) fn set_installing(&self, is_installing: bool) {
        self.installing.store(is_installing, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// True when blobs that were seen dead may be so by a state that is not in place yet.
    pub(crate) fn is_installing(&self) -> bool {
        fence(Ordering::Acquire);
        self.installing.load(Ordering::Relaxed) && !plant::is(Plant::FreeBeforeInstalled)
    }

    /// Fails the journal for good: nothing is committed afterwards.
    pub(crate) fn poison(&self, what: String) {
        // The first failure is the one to tell.
        let _ = self.failed.set(what);
        self.wake_shard();
        self.maintenance_signal.notify();
    }

    /// The failure, if there was one.
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

    /// Changes the manifest, on disk and then in memory.
    pub(crate) fn change_manifest<T>(&self, change: impl FnOnce(&mut Manifest) -> T) -> io::Result<T> {
        self.alter_manifest(&mut lock(&self.manifest), change)
    }

    /// As [`Shared::change_manifest`], for a caller that holds the manifest.
    pub(crate) fn alter_manifest<T>(
        &self,
        held: &mut Manifest,
        change: impl FnOnce(&mut Manifest) -> T,
    ) -> io::Result<T> {
        let mut next = held.clone();
        let result = change(&mut next);
        next.next_file = self.next_number();
        // With each change: what a record has released may go only when its commit is known for good.
        next.committed = next.committed.max(self.committed_index());
        next.keyring = self.files.keys().generation();
        self.count_syncs(2);
        next.write_aside(&*self.disk, &self.options.dir)?;
        self.disk
            .rename(&aside(&self.options.dir, MANIFEST), &self.options.dir.join(MANIFEST))
            .and_then(|()| self.sync_renamed())
            .inspect_err(|error| {
                // Either manifest may be the one that the next start finds.
                self.poison(format!("the manifest could not be replaced: {error}"));
            })?;
        *held = next;
        Ok(result)
    }

    /// Syncs the directory after a rename. Waits for file handles when there are none, since the rename
    /// cannot be undone.
    fn sync_renamed(&self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            match self.disk.sync_dir(&self.options.dir) {
                Err(error) if is_out_of_handles(&error) && tries < HANDLE_TRIES => {
                    tries += 1;
                    self.files.close_all();
                    std::thread::sleep(HANDLE_PAUSE);
                }
                result => return result,
            }
        }
    }

    /// Counts room for bytes of this class as taken.
    ///
    /// # Errors
    /// There is too little.
    pub(crate) fn take_room(&self, class: Class, bytes: u64) -> Result<(), Refused> {
        if class == Class::Growing && self.stalled.load(Ordering::Relaxed) {
            return Err(self.space.refusal(class, bytes));
        }
        self.space.room_for(class, bytes)?;
        if self.space.taken.fetch_add(bytes, Ordering::Relaxed) == 0 {
            // The first since free space was looked at.
            self.maintenance_signal.notify();
        }
        Ok(())
    }

    /// Batches that would be taken now.
    pub(crate) fn disk_room(&self) -> DiskRoom {
        if self.stalled.load(Ordering::Relaxed) { DiskRoom::None } else { self.space.disk_room() }
    }

    /// True while growing batches are refused for lack of disk space.
    pub(crate) fn is_full(&self) -> bool {
        self.stalled.load(Ordering::Relaxed) || self.space.full.load(Ordering::Relaxed)
    }

    /// Bytes of dead log that a full disk may keep while growing batches are refused; beyond that, segments
    /// are ended or covered by a snapshot, so that they can be removed. `None`: batches are not refused.
    pub(crate) fn dead_kept(&self) -> Option<u64> {
        self.is_full().then_some(self.options.full_margin_bytes / DEAD_PART)
    }

    /// Removes a file that no manifest names, as [`Handle::discard`]. After a failure it stays, since the
    /// manifest on the disk may be one that names it.
    pub(crate) fn discard(&self, handle: &Handle) {
        if self.failure().is_none() {
            handle.discard();
        }
    }

    /// Gives up the segments that were made ahead, to which nothing was written. The manifest is held, so
    /// that the writer, when it finds none ready, waits with making one.
    ///
    /// # Errors
    /// They stay ready.
    pub(crate) fn give_up_ready(&self, held: &mut Manifest) -> io::Result<()> {
        let ready = std::mem::take(&mut *lock(&self.fresh));
        if plant::is(Plant::DropReadyNamed) {
            ready.iter().for_each(|fresh| self.discard(&fresh.handle));
        }
        let given_up = |number: u64| ready.iter().any(|fresh| fresh.handle.number == number);
        let change = self.alter_manifest(held, |manifest| {
            manifest.open.retain(|open| !given_up(open.number));
        });
        if let Err(error) = change {
            lock(&self.fresh).extend(ready);
            return Err(error);
        }
        ready.iter().for_each(|fresh| self.discard(&fresh.handle));
        Ok(())
    }

    /// Number of the next file.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    /// Makes an empty file, whose name is durable once the directory is synced.
    pub(crate) fn create(&self, kind: Kind) -> io::Result<Handle> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        self.files.create(kind, number)
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
