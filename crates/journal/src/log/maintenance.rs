//! Work in the background, in bounded steps.

mod compact;
mod prepare;
mod scrub;
mod snapshots;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::disk::OpenMode;
use crate::log::entry::Entry;
use crate::log::manifest::{Kind, Sealed, write_whole};
use crate::log::shared::{Note, Shared, is_full, lock};
use crate::log::table::Table;
use crate::log::writer::Writer;
use crate::options::Durability;

/// How often free space is looked at.
const SPACE_EVERY_US: u64 = 100_000;

/// How often files are looked through for what can go.
const LOOK_EVERY_US: u64 = 50_000;

/// How long nothing must have been written before an idle marker is.
const IDLE_US: u64 = 20_000;

/// Everything in the background: snapshots, sealing, compaction, preallocation, interval syncs, idle markers, scrub,
/// free space.
#[derive(Debug)]
pub struct Maintenance {
    shared: Arc<Shared>,
    writer: Writer,
    entries: Vec<Entry>,
    /// What compaction has written last, until the shard has taken it over.
    moving: Option<Entry>,
    snapshots: snapshots::Snapshots,
    compaction: Option<compact::Compaction>,
    preparing: Option<prepare::Preparing>,
    scrub: scrub::Scrub,
    space_at_us: u64,
    look_at_us: u64,
    sync_at_us: u64,
    compact_at_us: u64,
    idle_since: (u64, u64),
}

impl Maintenance {
    pub(crate) fn new(shared: Arc<Shared>, writer: Writer, entries: Vec<Entry>) -> Maintenance {
        Maintenance {
            shared,
            writer,
            entries,
            moving: None,
            snapshots: snapshots::Snapshots::default(),
            compaction: None,
            preparing: None,
            scrub: scrub::Scrub::default(),
            space_at_us: 0,
            look_at_us: 0,
            sync_at_us: 0,
            compact_at_us: 0,
            idle_since: (0, 0),
        }
    }

    /// Does some work, at most about a megabyte of it, at the monotonic time `now_us`. Whether more is waiting; if not,
    /// [`Maintenance::wait`] for at most some 20 ms, since some of the work follows the clock.
    pub fn step(&mut self, now_us: u64) -> bool {
        if self.shared.failure().is_some() {
            return false;
        }
        match self.work(now_us) {
            Ok(more) => more,
            Err(error) if is_full(&error) => {
                // What a job has half done is given up; it begins anew when there is room.
                self.give_up(now_us);
                false
            }
            Err(error) => {
                self.shared.poison(format!("maintenance of {}: {error}", self.shared.options.dir.display()));
                false
            }
        }
    }

    /// Waits for work, at most this long; `false` after [`Writer::stop`].
    pub fn wait(&self, most: Duration) -> bool {
        self.shared.maintenance_signal.wait(Some(most))
    }

    fn work(&mut self, now_us: u64) -> io::Result<bool> {
        self.watch_space(now_us)?;
        if self.sync_interval(now_us).is_err() || self.mark_idle(now_us).is_err() {
            return Ok(false);
        }
        let sealed = self.seal()?;
        let snapshot = self.write_snapshot(now_us)?;
        let prepared = self.prepare_segment()?;
        self.look_through(now_us)?;
        let compacted = self.compact(now_us)?;
        let scrubbed = self.scrub(now_us);
        Ok(sealed || snapshot || prepared || compacted || scrubbed)
    }

    fn watch_space(&mut self, now_us: u64) -> io::Result<()> {
        let space = &self.shared.space;
        let stalled = space.stalled.load(Relaxed);
        let much = space.taken.load(Relaxed) > self.shared.options.full_margin_bytes / 4;
        if now_us >= self.space_at_us || much {
            self.space_at_us = now_us + SPACE_EVERY_US;
            self.shared.look_at_space()?;
            if stalled {
                self.writer.step();
            }
        }
        Ok(())
    }

    fn sync_interval(&mut self, now_us: u64) -> Result<(), String> {
        let Durability::Interval(interval) = self.shared.options.durability else { return Ok(()) };
        if now_us < self.sync_at_us || !self.writer.has_unsynced() {
            return Ok(());
        }
        self.sync_at_us = now_us + interval.as_micros() as u64;
        self.writer.sync()
    }

    fn mark_idle(&mut self, now_us: u64) -> Result<(), String> {
        let written = self.shared.counters.log_bytes.load(Relaxed);
        if self.idle_since.0 != written {
            self.idle_since = (written, now_us);
        } else if now_us >= self.idle_since.1 + IDLE_US {
            self.writer.mark()?;
        }
        Ok(())
    }

    /// Seals the oldest complete segment.
    fn seal(&mut self) -> io::Result<bool> {
        let Some(complete) = lock(&self.shared.complete).pop_front() else { return Ok(false) };
        let result = self.seal_segment(&complete);
        match result {
            Ok(entry) => self.entries.push(entry),
            Err(error) => {
                lock(&self.shared.complete).push_front(complete);
                return Err(error);
            }
        }
        self.look_at_us = 0;
        Ok(true)
    }

    fn seal_segment(&self, complete: &crate::log::shared::Complete) -> io::Result<Entry> {
        self.sync_log()?;
        let holder = &complete.holder;
        let table = holder.table.encode();
        if !table.is_empty() {
            let name = Kind::Table.name(holder.number());
            write_whole(&*self.shared.disk, &self.shared.options.dir, &name, &table)?;
            self.shared.count_syncs(1);
            self.shared.sync_dir()?;
        }
        let sealed = Sealed {
            number: holder.number(),
            start: complete.start,
            end: complete.end,
            len: holder.len,
            table_len: table.len() as u64,
            table_checksum: crc32fast::hash(&table),
        };
        let synced_to = self.writer.synced_to();
        self.shared.change_manifest(|manifest| {
            manifest.open.retain(|number| *number != sealed.number);
            manifest.open_start = sealed.end;
            manifest.sealed.push(sealed);
            manifest.synced_to = manifest.synced_to.max(synced_to);
        })?;
        // What was prefilled and not used goes back to the disk.
        holder.handle.file.set_len(holder.len)?;
        Ok(Entry::sealed(&sealed, holder.clone()))
    }

    /// Makes the whole log durable, so that nothing which it settles is needed after a power loss.
    fn sync_log(&self) -> io::Result<()> {
        self.writer.sync().map_err(io::Error::other)
    }

    /// Looks through the files: what is dead, what can go.
    fn look_through(&mut self, now_us: u64) -> io::Result<()> {
        if !self.shared.moving.load(Relaxed)
            && let Some(moved) = self.moving.take()
        {
            self.entries.push(moved);
        }
        if now_us < self.look_at_us || !self.shared.live_known.load(Relaxed) {
            return Ok(());
        }
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
        self.shared.dead_uncovered.store(uncovered, Relaxed);
        self.drop_dead(applied)?;
        self.count_bytes()
    }

    /// Removes files that a snapshot covers and in which nothing is live.
    fn drop_dead(&mut self, applied: u64) -> io::Result<()> {
        let busy: Vec<u64> = self.compaction.iter().flat_map(|c| c.source_numbers()).collect();
        let dead: Vec<u64> = self
            .entries
            .iter()
            .filter(|entry| entry.is_covered(applied) && entry.holder.live_blobs() == 0)
            .map(|entry| entry.holder.number())
            .filter(|number| !busy.contains(number))
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        self.sync_log()?;
        self.shared.change_manifest(|manifest| manifest.forget(&dead))?;
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
    fn remove_files(&self, entry: &Entry) {
        let number = entry.holder.number();
        let kinds = match entry.holder.table {
            Table::Log(_) => &[Kind::Log, Kind::Table][..],
            Table::Blobs(_) => &[Kind::Blobs],
        };
        for kind in kinds {
            // A file that stays is removed at the next start.
            let _ = self.shared.disk.remove(&self.shared.path(*kind, number));
        }
    }

    fn count_bytes(&self) -> io::Result<()> {
        let manifest = lock(&self.shared.manifest).clone();
        let mut bytes = self.shared.space.reserve.load(Relaxed);
        bytes += manifest.sealed.iter().map(|s| s.len + s.table_len).sum::<u64>();
        bytes += manifest.blob_files.iter().map(|b| b.data_len + b.table_len).sum::<u64>();
        bytes += manifest.snapshot.map_or(0, |s| s.len);
        for number in &manifest.open {
            bytes += self.shared.disk.open(&self.shared.path(Kind::Log, *number), OpenMode::Read)?.len()?;
        }
        let files = manifest.sealed.len() + manifest.blob_files.len() + manifest.open.len();
        self.shared.counters.disk_bytes.store(bytes, Relaxed);
        self.shared.counters.files.store(files as u64, Relaxed);
        Ok(())
    }

    fn give_up(&mut self, now_us: u64) {
        self.shared.release_reserve();
        self.give_up_snapshot();
        self.give_up_compaction(now_us);
        self.give_up_preparing();
        self.space_at_us = 0;
    }
}
