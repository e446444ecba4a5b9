//! Background work of a journal, in bounded steps.

mod compact;
mod install;
mod notice;
mod prepare;
mod repair;
mod rest;
mod scrub;
mod snapshots;

pub use notice::Notice;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::disk::File;
use crate::disk::shortage::{is_full, is_out_of_handles, is_passing};
use crate::file_kind::Kind;
use crate::lock::lock;
use crate::log::sealed_file::{NeededLog, SealedFile};
use crate::log::shared::{Note, Shared};
use crate::log::table::Table;
use crate::log::writer::Writer;
use crate::options::Durability;

/// Interval of measuring free space while bytes are written or space is short, in microseconds.
const SPACE_EVERY_US: u64 = 100_000;

/// Interval of measuring free space otherwise, since others may fill the disk, in microseconds.
const SPACE_IDLE_US: u64 = 10_000_000;

/// Shortest time between two searches for files that can be removed or compacted, in microseconds.
const LOOK_EVERY_US: u64 = 50_000;

/// Idle time of the log before an idle marker is written, in microseconds.
const IDLE_US: u64 = 20_000;

/// Idle time of the log before the manifest notes the synced position, in microseconds.
const NOTE_IDLE_US: u64 = 1_000_000;

/// Pause of a job that found no disk space or no file handle, in microseconds.
const RETRY_US: u64 = 100_000;

/// Background work: snapshots, sealing, compaction, preparing segments, syncs by interval, idle markers,
/// scrub, measuring free space, rest.
#[derive(Debug)]
pub struct Maintenance {
    shared: Arc<Shared>,
    writer: Writer,
    entries: Vec<SealedFile>,
    /// File that compaction wrote last, until the shard has taken it over.
    moving: Option<compact::Moving>,
    snapshots: snapshots::SnapshotWriting,
    compaction: Option<compact::Compaction>,
    gathering: repair::Gathering,
    preparing: Option<prepare::Preparing>,
    rest: rest::Rest,
    scrub: scrub::Scrub,
    /// Time before which each job is not tried again.
    retry_at_us: [u64; JOBS.len()],
    space_at_us: u64,
    /// True when blobs may have died since the last search.
    look_wanted: bool,
    look_at_us: u64,
    sync_at_us: u64,
    compact_at_us: u64,
    sealed_at_us: Option<u64>,
    /// Bytes of the log, and since when there are no more.
    idle_since: (u64, u64),
    /// When it may be tried again to write into the manifest how far the log is durable.
    note_at_us: u64,
    notices: notice::Notices,
}

/// A job, beside those that follow the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    Install,
    Look,
    Snapshot,
    Compact,
    Seal,
    Rest,
    Prepare,
}

/// In this order: the writer waits for an installation, and what frees room comes before what takes some.
const JOBS: [Job; 7] =
    [Job::Install, Job::Look, Job::Snapshot, Job::Compact, Job::Seal, Job::Rest, Job::Prepare];

impl Maintenance {
    pub(crate) fn new(shared: Arc<Shared>, writer: Writer, entries: Vec<SealedFile>) -> Maintenance {
        Maintenance {
            shared,
            writer,
            entries,
            moving: None,
            snapshots: snapshots::SnapshotWriting::default(),
            compaction: None,
            gathering: repair::Gathering::default(),
            preparing: None,
            rest: rest::Rest::default(),
            scrub: scrub::Scrub::default(),
            retry_at_us: [0; JOBS.len()],
            space_at_us: 0,
            look_wanted: true,
            look_at_us: 0,
            sync_at_us: 0,
            compact_at_us: 0,
            sealed_at_us: None,
            idle_since: (0, 0),
            note_at_us: 0,
            notices: notice::Notices::default(),
        }
    }

    /// Does up to about 1 MiB of work, at the monotonic time `now_us`. True when more is waiting; otherwise
    /// [`Maintenance::wait`] for [`Maintenance::idle_us`].
    pub fn step(&mut self, now_us: u64) -> bool {
        if self.shared.failure().is_some() {
            return false;
        }
        self.work(now_us).unwrap_or_else(|error| {
            self.shared.poison(format!("maintenance of {}: {error}", self.shared.options.dir.display()));
            false
        })
    }

    /// Waits for work, at most `most` (`None`: without limit). `false` after [`Writer::stop`].
    pub fn wait(&self, most: Option<Duration>) -> bool {
        self.shared.maintenance_signal.wait(most)
    }

    /// Time until work becomes due by itself, in microseconds, after a step that left nothing to do; `None`:
    /// never.
    pub fn idle_us(&self, now_us: u64) -> Option<u64> {
        if self.shared.failure().is_some() {
            return None;
        }
        let live_known = self.shared.live_known.load(Relaxed);
        let look = (live_known && self.wants_look()).then_some(self.look_at_us);
        let retry = self.retry_at_us.iter().copied().filter(|at| *at > now_us).min();
        let due = [
            Some(self.space_due_us()),
            self.sync_due_us(),
            self.writer.mark_due().then_some(self.idle_since.1 + IDLE_US),
            self.writer.note_due().then_some(self.note_due_us()),
            look,
            retry,
            self.snapshots.due_us(),
            self.compaction_due_us(now_us),
            self.rest_due_us(),
            self.repair_due_us(now_us),
            self.scrub_due_us(),
        ];
        due.into_iter().flatten().min().map(|at| at.saturating_sub(now_us))
    }

    fn work(&mut self, now_us: u64) -> io::Result<bool> {
        // Freed here, since it takes time.
        drop(std::mem::take(&mut *lock(&self.shared.retired)));
        self.shared.files.remove_gone();
        if self.shared.files.repairs().has_sought() {
            self.shared.wake_shard();
        }
        self.watch_space(now_us)?;
        if self.sync_interval(now_us).is_err() || self.mark_idle(now_us).is_err() {
            return Ok(false);
        }
        self.note_idle(now_us)?;
        self.watch_rest(now_us);
        if self.end_dead_segment().is_err() {
            return Ok(false);
        }
        let mut more = false;
        for job in JOBS {
            if now_us < self.retry_at_us[job as usize] {
                continue;
            }
            match self.run(job, now_us) {
                Ok(worked) => more |= worked,
                // What a job has half done is given up, and the others go on: they may make room.
                Err(error) if is_passing(&error) => self.give_up(job, now_us, &error),
                Err(error) => return Err(error),
            }
        }
        self.scrub(now_us);
        Ok(more)
    }

    fn run(&mut self, job: Job, now_us: u64) -> io::Result<bool> {
        match job {
            Job::Install => self.install(),
            Job::Look => self.look_through(now_us),
            Job::Snapshot => self.write_snapshot(now_us),
            Job::Compact => self.compact(now_us),
            Job::Seal => self.seal(now_us),
            Job::Rest => self.rest(),
            Job::Prepare => self.prepare_segment(now_us),
        }
    }

    fn give_up(&mut self, job: Job, now_us: u64, error: &io::Error) {
        if is_full(error) {
            self.shared.space.release_reserve();
            self.space_at_us = now_us;
        } else {
            self.shared.files.close_all();
            self.notices.out_of_handles(now_us, error);
        }
        match job {
            // The shard still hands on what belongs to it, which is to be dropped.
            Job::Snapshot => return self.give_up_snapshot(),
            Job::Compact => self.give_up_compaction(now_us),
            Job::Prepare => self.give_up_preparing(),
            Job::Look => self.look_wanted = true,
            Job::Install | Job::Seal | Job::Rest => {}
        }
        self.retry_at_us[job as usize] = now_us + RETRY_US;
    }

    fn watch_space(&mut self, now_us: u64) -> io::Result<()> {
        if now_us < self.space_due_us() && !self.shared.space.is_outdated() {
            return Ok(());
        }
        self.space_at_us = now_us + SPACE_EVERY_US;
        match self.shared.space.look() {
            Err(error) if is_out_of_handles(&error) => self.notices.out_of_handles(now_us, &error),
            // The reserve is taken again when there is room for it.
            Err(error) if is_full(&error) => {}
            looked => looked?,
        }
        self.notices.space(self.shared.space.free.load(Relaxed), self.shared.options.low_water_bytes);
        if self.shared.stalled.load(Relaxed) {
            self.writer.step();
        }
        Ok(())
    }

    fn space_due_us(&self) -> u64 {
        let space = &self.shared.space;
        if space.is_short() || space.taken.load(Relaxed) > 0 || self.shared.stalled.load(Relaxed) {
            return self.space_at_us;
        }
        self.space_at_us + SPACE_IDLE_US - SPACE_EVERY_US
    }

    fn sync_interval(&mut self, now_us: u64) -> Result<(), String> {
        let Durability::Interval(interval) = self.shared.options.durability else { return Ok(()) };
        if now_us < self.sync_at_us || !self.writer.has_unsynced() {
            return Ok(());
        }
        self.sync_at_us = now_us + interval.as_micros() as u64;
        self.writer.sync()
    }

    fn sync_due_us(&self) -> Option<u64> {
        let by_interval = matches!(self.shared.options.durability, Durability::Interval(_));
        (by_interval && self.writer.has_unsynced()).then_some(self.sync_at_us)
    }

    fn mark_idle(&mut self, now_us: u64) -> Result<(), String> {
        let written = self.shared.counters.log_bytes.load(Relaxed);
        if self.idle_since.0 != written {
            self.idle_since = (written, now_us);
        } else if now_us >= self.idle_since.1 + IDLE_US && self.writer.mark_due() {
            self.writer.mark()?;
        }
        Ok(())
    }

    /// On a full disk: ends the segment that grows, as nothing of it can go before, however much of it is
    /// dead.
    fn end_dead_segment(&self) -> Result<(), String> {
        match self.shared.dead_kept() {
            Some(kept) if self.writer.fill().0 > kept => self.writer.roll().map(drop),
            _ => Ok(()),
        }
    }

    /// Once the log has rested for a while, lets the manifest tell how far it is durable. That there is no
    /// room, or no file handle, passes.
    fn note_idle(&mut self, now_us: u64) -> io::Result<()> {
        if now_us < self.note_due_us() || !self.writer.note_due() {
            return Ok(());
        }
        self.note_at_us = now_us + NOTE_IDLE_US;
        match self.writer.note_synced() {
            Err(error) if is_passing(&error) => Ok(()),
            noted => noted,
        }
    }

    fn note_due_us(&self) -> u64 {
        self.note_at_us.max(self.idle_since.1 + NOTE_IDLE_US)
    }

    /// Seals the oldest complete segment.
    fn seal(&mut self, now_us: u64) -> io::Result<bool> {
        let Some(complete) = lock(&self.shared.complete).pop_front() else { return Ok(false) };
        let result = self.seal_segment(&complete);
        match result {
            Ok(entry) => self.entries.push(entry),
            Err(error) => {
                lock(&self.shared.complete).push_front(complete);
                return Err(error);
            }
        }
        self.look_soon();
        self.sealed_at_us = Some(now_us);
        Ok(true)
    }

    fn seal_segment(&self, complete: &crate::log::shared::Complete) -> io::Result<SealedFile> {
        self.sync_log()?;
        let holder = &complete.holder;
        let sealed = complete.write_table(&self.shared)?;
        if sealed.table_len > 0 {
            self.shared.sync_dir()?;
        }
        let synced_to = self.writer.synced_to();
        self.shared.change_manifest(|manifest| {
            manifest.open.retain(|open| open.number != sealed.number);
            manifest.open_start = sealed.end;
            manifest.sealed.push(sealed);
            manifest.term = manifest.term.max(sealed.end.term);
            manifest.note_synced(synced_to);
        })?;
        // What was prefilled and not used goes back to the disk. Is it not, it only takes room; the segment
        // is sealed in any case, and must not be sealed once more.
        let _ = holder.handle.file.set_len(holder.len);
        holder.handle.file.only_read();
        Ok(SealedFile::sealed(&sealed, holder.clone()))
    }

    /// Makes the whole log durable, so that nothing which it settles is needed after a power loss.
    fn sync_log(&self) -> io::Result<()> {
        self.writer.sync().map_err(io::Error::other)
    }

    fn look_soon(&mut self) {
        self.look_wanted = true;
        self.look_at_us = 0;
    }

    fn wants_look(&self) -> bool {
        self.look_wanted || self.shared.released.load(Relaxed)
    }

    /// Looks through the files: what is dead, what can go.
    fn look_through(&mut self, now_us: u64) -> io::Result<bool> {
        self.end_move();
        let due = self.wants_look() && now_us >= self.look_at_us;
        if !due || !self.shared.live_known.load(Relaxed) {
            return Ok(false);
        }
        self.look_wanted = false;
        // Before looking: what is released meanwhile is looked at once more.
        self.shared.released.store(false, Relaxed);
        self.look_at_us = now_us + LOOK_EVERY_US;
        let applied = lock(&self.shared.manifest).applied_index();
        let mut uncovered = 0;
        for entry in &mut self.entries {
            if !entry.is_covered(applied) {
                uncovered += entry.dead_bytes();
            }
            let live = entry.holder.live_blobs();
            if entry.seen.0 != live {
                entry.seen = (live, now_us);
            }
        }
        if self.shared.dead_uncovered.swap(uncovered, Relaxed) < uncovered {
            // It may be time for a snapshot, and the shard may be idle.
            self.shared.wake_shard();
        }
        self.drop_dead()?;
        self.count_bytes()?;
        Ok(false)
    }

    /// Removes files in which nothing is live and that are not needed as log.
    fn drop_dead(&mut self) -> io::Result<()> {
        let needed = self.needed_log();
        let busy: Vec<u64> = self.compaction.iter().flat_map(|c| c.source_numbers()).collect();
        let dead: Vec<u64> = self
            .entries
            .iter()
            .filter(|entry| entry.is_free(needed) && entry.holder.live_blobs() == 0)
            .map(|entry| entry.holder.number())
            .filter(|number| !busy.contains(number))
            .collect();
        if dead.is_empty() || self.shared.is_installing() {
            return Ok(());
        }
        self.sync_log()?;
        let synced_to = self.writer.synced_to();
        self.shared.change_manifest(|manifest| {
            manifest.forget(&dead);
            // A damaged log that ended before what has released them would miss them.
            manifest.note_synced(synced_to);
        })?;
        let (gone, kept) =
            std::mem::take(&mut self.entries).into_iter().partition(|e| dead.contains(&e.holder.number()));
        self.entries = kept;
        for entry in gone {
            self.remove_files(&entry);
            self.shared.tell(Note::Dropped { number: entry.holder.number() });
        }
        Ok(())
    }

    /// Removes the files of an entry that the manifest does not name any more.
    fn remove_files(&self, entry: &SealedFile) {
        let number = entry.holder.number();
        let kinds = match entry.holder.table {
            Table::Log(_) => &[Kind::Log, Kind::Table][..],
            Table::Blobs(_) => &[Kind::Blobs],
        };
        for kind in kinds {
            self.shared.files.remove(*kind, number);
        }
        self.shared.files.keys().forget(number);
    }

    fn needed_log(&self) -> NeededLog {
        let applied_index = lock(&self.shared.manifest).applied_index();
        NeededLog { applied_index, keep_from: self.shared.keep_from.load(Relaxed) }
    }

    fn count_bytes(&self) -> io::Result<()> {
        let mut bytes = 0;
        let files = {
            let manifest = lock(&self.shared.manifest);
            bytes += manifest.sealed.iter().map(|s| s.len + s.table_len).sum::<u64>();
            bytes += manifest.blob_files.iter().map(|b| b.data_len + b.table_len).sum::<u64>();
            bytes += manifest.snapshot.as_ref().map_or(0, |s| s.len);
            manifest.sealed.len() + manifest.blob_files.len() + manifest.open.len()
        };
        bytes += lock(&self.shared.complete).iter().map(|complete| complete.holder.len).sum::<u64>();
        bytes += lock(&self.shared.fresh).iter().map(|fresh| fresh.prefilled).sum::<u64>();
        bytes += self.writer.segment_file().len()?;
        self.shared.counters.disk_bytes.store(bytes, Relaxed);
        self.shared.counters.files.store(files as u64, Relaxed);
        Ok(())
    }
}
