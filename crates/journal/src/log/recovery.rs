//! Opening of a data directory.
//!
//! Everything is verified before anything is written. The open segments are followed batch by batch to the
//! first place that does not continue the log. If a head found there or behind it, or the manifest, shows
//! that more had been synced, the journal is damaged, and opening ends with an error; so it does when a file
//! is shorter than the length with which the manifest says it was made. Otherwise the rest is cut. What is
//! known to be durable is sealed in place; the good batches after that (which may be readable without being
//! durable) are copied into a new segment and synced, and only then the manifest names the outcome. Recovery
//! never appends to an old file.
//!
//! Under [`crate::Commit::Told`] only what is known to be committed is sealed and replayed. The rest is
//! copied with its terms, and is the tail.
//!
//! What cannot be known: damage at the end of the log looks like a write torn by a power loss, and is cut,
//! where nothing shows that more was synced (no later batch, no idle marker, no manifest). The manifest is
//! outside of the damaged file: it records how far the log was synced when the journal was closed in order,
//! when a segment was sealed, and when nothing had been written for a second. So only what was written after
//! the latest of these can be lost without a trace: by a flipped bit, the last write (without `always`: what
//! was written after the last but one sync); by zeros over the end of the file, or by cutting it off below
//! the length with which it was made, any part of it.

mod tail;

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, File, LockError, OpenMode};
use crate::file_kind::Kind;
use crate::keys::keyring::KEYRING;
use crate::log::blob_holder::BlobHolder;
use crate::log::file_keys::Keys;
use crate::log::files::{Files, Handle};
use crate::log::header::{HEADER, Position};
use crate::log::index::{Current, Index};
use crate::log::journal::{DiskJournal, Ends, SnapshotTrigger};
use crate::log::maintenance::Maintenance;
use crate::log::manifest::{BlobFile, Link, MANIFEST, Manifest, RESTORING, Sealed};
use crate::log::read_back::LogSegments;
use crate::log::replay::{Replay, Stretch};
use crate::log::sealed_file::SealedFile;
use crate::log::sealing::{load_table, write_table};
use crate::log::shared::Shared;
use crate::log::snapshot::SnapshotReader;
use crate::log::spans::{Spans, budget_of};
use crate::log::state_reader::PlacedSnapshot;
use crate::log::table::{LogTable, Table};
use crate::log::uncommitted::Uncommitted;
use crate::log::writer::{Writer, WriterState};
use crate::open_error::OpenError;
use crate::options::Options;
use crate::plant::{self, Plant};
use crate::seam::batch::Records;
use crate::space::Space;
use crate::status::RecoveryReport;

pub(crate) use tail::{Tail, follow};

const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 30;

/// The parts of an opened journal, and the records to replay.
pub(crate) struct Recovered {
    pub(crate) shared: Arc<Shared>,
    pub(crate) journal: DiskJournal,
    pub(crate) writer: Writer,
    pub(crate) maintenance: Maintenance,
    pub(crate) snapshot: Option<SnapshotReader>,
    pub(crate) replay: Replay,
    /// State of the chain after the last committed batch.
    pub(crate) committed: Link,
    pub(crate) hard_state: Vec<u8>,
    pub(crate) report: RecoveryReport,
}

/// Opens the journal in a directory; makes the directory if it is missing.
pub(crate) fn recover(disk: Arc<dyn Disk>, options: Options) -> Result<Recovered, OpenError> {
    if !SEGMENT_BYTES.contains(&options.segment_bytes) {
        let (least, most) = SEGMENT_BYTES.into_inner();
        let found = options.segment_bytes;
        return Err(OpenError::Setting(format!("segment_bytes is {found}; it must be {least} to {most}")));
    }
    Opening::begin(disk, options)?.finish()
}

/// The opening of a directory.
struct Opening {
    disk: Arc<dyn Disk>,
    options: Options,
    space: Arc<Space>,
    files: Arc<Files>,
    lock: Box<dyn crate::disk::DirLock>,
    manifest: Manifest,
    report: RecoveryReport,
}

impl Opening {
    fn begin(disk: Arc<dyn Disk>, options: Options) -> Result<Opening, OpenError> {
        let dir = options.dir.clone();
        disk.create_dir(&dir).map_err(OpenError::io(&dir, "make"))?;
        let lock = take_lock(&*disk, &dir)?;
        let names = disk.list(&dir).map_err(OpenError::io(&dir, "list"))?;
        if names.iter().any(|name| name == RESTORING) {
            let what =
                "restoring a backup into this directory was begun and not finished; remove the directory";
            return Err(OpenError::damaged(&dir.join(RESTORING), 0, None, what));
        }
        let found = Manifest::load(&*disk, &dir)?;
        let report = RecoveryReport { fresh: found.is_none(), ..RecoveryReport::default() };
        let identity = found.as_ref().map_or_else(|| pick_identity(options.identity), |found| found.identity);
        let keys = Keys::load(&disk, &dir, found.as_ref(), identity, &options.encryption)?;
        let manifest = match found {
            Some(manifest) => manifest,
            None => {
                refuse_orphans(&*disk, &dir, &names)?;
                sync_names_above(&*disk, &dir)?;
                Manifest::fresh(identity)
            }
        };
        let spans = Spans::new(budget_of(options.cache_bytes));
        let files = Files::with_spans(disk.clone(), &dir, options.open_files, keys, spans);
        let space = options.space.clone().unwrap_or_else(|| own_space(&disk, &options));
        Ok(Opening { disk, options, space, files, lock, manifest, report })
    }

    fn finish(mut self) -> Result<Recovered, OpenError> {
        let dir = self.options.dir.clone();
        let snapshot = self.open_snapshot()?;
        let (mut stretches, mut entries) = self.open_complete()?;
        let tail = follow(&self.files, &dir, &self.manifest)?;
        tail.refuse_damage()?;
        // Under `Commit::Told` the manifest does not know the newest terms.
        self.manifest.term = self.manifest.term.max(tail.link.term);
        self.report.term = self.manifest.next_term(&self.options);
        self.report.cut = tail.cut()?;
        self.report.end_known = self.report.fresh || tail.is_end_known(&self.manifest);
        self.note_if_short(&tail)?;
        for part in &tail.parts {
            self.verify_known(part)?;
        }

        self.begin_writing()?;
        let moved = tail.rewrite(&*self.disk, &self.files, &self.options, &mut self.manifest)?;
        for (sealed, stretch, table) in moved.sealed {
            let holder = Arc::new(BlobHolder::new(stretch.handle.clone(), Table::Log(table), sealed.len));
            entries.push(SealedFile::sealed(&sealed, holder));
            stretches.push(stretch);
        }
        self.remove_orphans()?;
        let mut link = moved.end;
        if plant::is(Plant::RestartNumbers) {
            link.next_number = 1;
        }
        self.report.next_index = link.next_index;
        self.report.last_time_us = link.time_us.max(snapshot.as_ref().map_or(0, |s| s.time_us));
        let log_bytes = self.log_bytes(&stretches) + moved.stretch.len;
        let segments = LogSegments::found(self.manifest.identity, &stretches, &moved.stretch);
        let Stretch { start, end: given, len, .. } = moved.stretch;
        stretches.push(moved.stretch);
        let replay =
            Replay::new(self.manifest.identity, self.manifest.term, self.manifest.applied_index(), stretches);
        let snapshots = SnapshotTrigger::found(log_bytes, self.newest(snapshot.as_ref()));
        let committed = Position { segment: moved.handle.number, offset: len };
        let hard_state = self.manifest.hard_state.clone();
        let shared = Arc::new(Shared::new(
            self.options,
            self.space,
            self.files,
            self.manifest,
            committed,
            link.next_index - 1,
            self.lock,
        ));
        shared.space.begin().map_err(OpenError::io(&dir, "preallocate in"))?;
        let ranges = entries.iter().flat_map(SealedFile::index_ranges).collect();
        let index = Index::new(ranges, Current::new(moved.handle.clone(), start, moved.table));
        let state = WriterState::new(moved.handle, moved.offset, moved.prefilled, link, moved.begins);
        let writer = Writer::new(shared.clone(), state);
        let tail = shared.is_told().then(|| Uncommitted::found(&given, moved.held));
        let ends = Ends { log: link, committed: given, time_us: self.report.last_time_us };
        Ok(Recovered {
            journal: DiskJournal::new(shared.clone(), ends, index, segments, tail, snapshots),
            maintenance: Maintenance::new(shared.clone(), writer.clone(), entries),
            shared,
            writer,
            snapshot,
            replay,
            committed: given,
            hard_state,
            report: self.report,
        })
    }

    /// Prepares the directory, which is written to from here on.
    fn begin_writing(&self) -> Result<(), OpenError> {
        let dir = &self.options.dir;
        // A start that was killed may have left a manifest that a loss of power would take back, and with it
        // the meaning of what is written under it now.
        self.disk.sync_dir(dir).map_err(OpenError::io(dir, "sync"))?;
        self.space.make_room().map_err(OpenError::io(dir, "make room in"))?;
        self.files.keys().begin(&self.manifest).map_err(OpenError::io(&dir.join(KEYRING), "replace"))
    }

    /// The snapshot that was opened.
    fn newest(&self, opened: Option<&SnapshotReader>) -> Option<PlacedSnapshot> {
        let (reader, named) = opened.zip(self.manifest.snapshot.clone())?;
        Some(PlacedSnapshot { handle: reader.handle().clone(), named, behaviour: reader.behaviour })
    }

    /// Opens the files that get no more blobs.
    fn open_complete(&mut self) -> Result<(Vec<Stretch>, Vec<SealedFile>), OpenError> {
        let mut stretches = Vec::new();
        let mut entries = Vec::new();
        for sealed in self.manifest.sealed.clone() {
            let (stretch, holder) = self.open_sealed(&sealed)?;
            entries.push(SealedFile::sealed(&sealed, holder));
            stretches.push(stretch);
        }
        for file in self.manifest.blob_files.clone() {
            entries.push(SealedFile::new(Arc::new(self.open_blob_file(&file)?), file.ranges));
        }
        Ok((stretches, entries))
    }

    fn open_snapshot(&self) -> Result<Option<SnapshotReader>, OpenError> {
        let Some(named) = &self.manifest.snapshot else { return Ok(None) };
        let handle = self.files.named(Kind::Snapshot, named.number)?;
        let path = handle.path.to_path_buf();
        let mut reader = SnapshotReader::new(self.manifest.identity, handle, named)?;
        reader.verify()?;
        match (self.options.knows.behaviour)(reader.behaviour) {
            Ok(()) => Ok(Some(reader)),
            Err(what) => Err(OpenError::Unknown { file: path, record: named.applied_index, what }),
        }
    }

    /// Verifies the records to be replayed, and that the engine knows each of them.
    fn verify_known(&self, stretch: &Stretch) -> Result<(), OpenError> {
        let mut unknown = None;
        stretch.verify(self.manifest.identity, self.manifest.newest_term(), |found| {
            for (record, index) in Records::new(&found.records).zip(found.header.first_index..) {
                if let (None, Err(what)) = (&unknown, (self.options.knows.record)(record.body)) {
                    unknown = Some(OpenError::Unknown {
                        file: stretch.handle.path.to_path_buf(),
                        record: index,
                        what,
                    });
                }
            }
        })?;
        unknown.map_or(Ok(()), Err)
    }

    /// Opens a sealed segment; verifies one that will be replayed.
    fn open_sealed(&mut self, sealed: &Sealed) -> Result<(Stretch, Arc<BlobHolder>), OpenError> {
        let handle = self.files.named(Kind::Log, sealed.number)?;
        let path = &*handle.path;
        let found = handle.file.len().map_err(OpenError::io(path, "read"))?;
        if found < sealed.len {
            let what = format!("the segment has {found} bytes of {}", sealed.len);
            return Err(OpenError::damaged(path, found, Some(sealed.start.next_index), what));
        }
        let stretch = Stretch::of(sealed, handle);
        stretch.verify_head(self.manifest.identity)?;
        if sealed.end.next_index > self.manifest.applied_index() + 1 {
            self.verify_known(&stretch)?;
        }
        let table = match load_table(&self.files, sealed)? {
            Some(table) => table,
            None => self.rebuild_table(sealed, &stretch)?,
        };
        let holder = BlobHolder::new(stretch.handle.clone(), table, sealed.len);
        Ok((stretch, Arc::new(holder)))
    }

    /// Rebuilds a table from its segment, which holds everything that the table does.
    fn rebuild_table(&mut self, sealed: &Sealed, stretch: &Stretch) -> Result<Table, OpenError> {
        let mut table = LogTable::new(sealed.start.next_index, !stretch.handle.seal.is_plain());
        stretch.verify(self.manifest.identity, self.manifest.newest_term(), |found| {
            table.push(&found.records, found.records_offset());
        })?;
        let table = Table::Log(table);
        let path = self.files.path(Kind::Table, sealed.number);
        let written = write_table(&self.files, sealed, &table);
        let written = written.and_then(|written| self.disk.sync_dir(&self.options.dir).map(|()| written));
        let written = written.map_err(OpenError::io(&path, "write"))?;
        // An encrypted table differs each time it is written: the manifest gets its new checksum when it is
        // next replaced.
        let named = self.manifest.sealed.iter_mut().find(|named| named.number == sealed.number);
        if let Some(named) = named {
            *named = written;
        }
        self.report.notes.push(format!(
            "{} was missing or damaged and has been rebuilt from its segment, which is whole",
            path.display()
        ));
        Ok(table)
    }

    fn open_blob_file(&self, named: &BlobFile) -> Result<BlobHolder, OpenError> {
        let handle = self.files.named(Kind::Blobs, named.number)?;
        let table = load_blob_table(&handle, named)?;
        Ok(BlobHolder::new(handle, table, named.data_len + named.table_len))
    }

    /// Refuses a log that ends before the snapshot: its end is lost.
    fn note_if_short(&self, tail: &Tail) -> Result<(), OpenError> {
        let applied = self.manifest.applied_index();
        if tail.link.next_index > applied {
            return Ok(());
        }
        let what = format!("the log ends before record {applied}, which the snapshot holds");
        Err(OpenError::damaged(&self.options.dir, 0, Some(tail.link.next_index), what))
    }

    /// Removes files left by an interrupted step, which no manifest names.
    fn remove_orphans(&self) -> Result<(), OpenError> {
        let dir = &self.options.dir;
        for name in self.disk.list(dir).map_err(OpenError::io(dir, "list"))? {
            let orphan = match Kind::parse(&name) {
                Some((kind, number)) => !self.manifest.names(kind, number),
                None => name.strip_suffix(".tmp").is_some_and(is_ours),
            };
            if orphan {
                let path = dir.join(&name);
                self.disk.remove(&path).map_err(OpenError::io(&path, "remove"))?;
            }
        }
        Ok(())
    }

    fn log_bytes(&self, stretches: &[Stretch]) -> u64 {
        let applied = self.manifest.applied_index();
        stretches.iter().filter(|s| s.end.next_index > applied + 1).map(|s| s.len).sum()
    }
}

impl Stretch {
    /// The whole of a sealed segment.
    pub(crate) fn of(sealed: &Sealed, handle: Handle) -> Stretch {
        Stretch { handle, start: sealed.start, end: sealed.end, len: sealed.len }
    }
}

/// Locks the directory.
pub(crate) fn take_lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn crate::disk::DirLock>, OpenError> {
    disk.lock(dir).map_err(|error| match error {
        LockError::Held { pid } => OpenError::InUse { dir: dir.to_owned(), pid },
        LockError::Io(error) => OpenError::io(dir, "lock")(error),
    })
}

/// Reads the table of a file of copied blobs.
pub(crate) fn load_blob_table(handle: &Handle, named: &BlobFile) -> Result<Table, OpenError> {
    let path = &*handle.path;
    let first = named.ranges.first().map(|range| range.0);
    let damaged = || OpenError::damaged(path, named.data_len, first, "the table of blobs is damaged");
    let found = handle.held_len().map_err(OpenError::io(path, "read"))?;
    if found < named.data_len + named.table_len {
        return Err(damaged());
    }
    let mut bytes = vec![0; named.table_len as usize];
    handle.read_held_exact(&mut bytes, named.data_len)?;
    if crc32fast::hash(&bytes) != named.table_checksum {
        return Err(damaged());
    }
    Table::decode_blobs(&bytes).ok_or_else(damaged)
}

fn is_ours(name: &str) -> bool {
    name == MANIFEST || name == KEYRING || Kind::parse(name).is_some()
}

/// Refuses a directory that has files of a journal, and no manifest: it was lost. Only an interrupted first
/// start leaves a first segment without a manifest, and nothing is written to that segment before the
/// manifest names it.
fn refuse_orphans(disk: &dyn Disk, dir: &Path, names: &[String]) -> Result<(), OpenError> {
    for name in names {
        let lost = match Kind::parse(name) {
            None => false,
            Some((Kind::Log, 1)) => !begins_with_zeros(disk, &dir.join(name))?,
            Some(_) => true,
        };
        if lost {
            let what = format!("the manifest is missing, though {name} is there; restore a backup");
            return Err(OpenError::damaged(&dir.join(MANIFEST), 0, None, what));
        }
    }
    Ok(())
}

fn begins_with_zeros(disk: &dyn Disk, path: &Path) -> Result<bool, OpenError> {
    let file = disk.open(path, OpenMode::Read).map_err(OpenError::io(path, "open"))?;
    let mut head = [0; HEADER];
    let read = file.read_at(&mut head, 0).map_err(OpenError::io(path, "read"))?;
    Ok(head[..read].iter().all(|byte| *byte == 0))
}

/// Syncs the directories above, so that the name of a new directory survives a power loss like its content.
/// Directories that this user may not open, or whose file system cannot sync them, were not made here.
fn sync_names_above(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    for above in dir.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match disk.sync_dir(above) {
            Err(error) if matches!(error.kind(), PermissionDenied | InvalidInput | Unsupported) => {}
            synced => synced.map_err(OpenError::io(above, "sync"))?,
        }
    }
    Ok(())
}

fn pick_identity(given: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    if given == 0 { RandomState::new().build_hasher().finish() } else { given }
}

/// Room of a journal that shares its disk with no other.
fn own_space(disk: &Arc<dyn Disk>, options: &Options) -> Arc<Space> {
    Space::new(disk.clone(), &options.dir, options.reserve_bytes, options.full_margin_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::FsDisk;

    #[test]
    fn lengths_are_compared_with_the_file_before_memory_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let link = Link::default();
        let sealed =
            Sealed { number: 1, start: link, end: link, len: 0, table_len: 1 << 60, table_checksum: 0 };
        for kind in [Kind::Table, Kind::Blobs] {
            std::fs::write(dir.path().join(kind.name(1)), b"short").unwrap();
        }
        let files = Files::new(Arc::new(FsDisk), dir.path(), 1, Keys::none());
        assert!(load_table(&files, &sealed).unwrap().is_none());

        let (table_len, table_checksum) = (1 << 60, 0);
        let named = BlobFile { number: 1, data_len: 1, table_len, table_checksum, ranges: Vec::new() };
        assert!(load_blob_table(&files.named(Kind::Blobs, 1).unwrap(), &named).is_err());
    }
}
