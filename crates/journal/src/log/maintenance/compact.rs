//! Copies the few live blobs out of mostly dead files.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Maintenance;
use crate::file_kind::Kind;
use crate::keys::chunks::Appender;
use crate::log::blob::BlobLocation;
use crate::log::blob_file::end_blob_file;
use crate::log::blob_holder::BlobHolder;
use crate::log::files::Handle;
use crate::log::read_ahead::ReadAhead;
use crate::log::repairs::Repairs;
use crate::log::sealed_file::{NeededLog, SealedFile};
use crate::log::shared::Note;
use crate::log::table::{BlobPlace, BlobTable, Table};
use crate::plant::{self, Plant};
use crate::seam::batch::{BLOB_HEAD, blob_checksum};
use crate::seam::blob::{BlobError, BlobKey};

/// Bytes read and written in one step.
const STEP_BYTES: usize = 1 << 20;

/// Most blobs copied into one file, unless one source alone has more.
const BLOBS_MAX: u64 = 1 << 18;

/// A file that is still being drained is left alone this long: soon it may be wholly dead.
const SETTLED_US: u64 = 1_000_000;

/// Time between a failure for lack of space and the next compaction, in microseconds.
const RETRY_US: u64 = 2_000_000;

/// Files below this part of a segment are put together.
const SMALL_PART: u64 = 8;

/// The file that compaction wrote last.
#[derive(Debug)]
pub(super) struct Moving {
    file: SealedFile,
    /// Blobs of which it holds whole copies in the place of damaged ones.
    repaired: HashSet<BlobKey>,
}

/// A compaction under way.
#[derive(Debug)]
pub(super) struct Compaction {
    sources: Vec<SealedFile>,
    /// Blobs to copy, in the order of their keys: source and number within it.
    work: Vec<(BlobKey, u32, u32)>,
    next: usize,
    /// Bytes read ahead from the sources.
    ahead: ReadAhead,
    handle: Handle,
    table: BlobTable,
    file: Appender,
    /// True: the sources are damaged, and are replaced though they are kept as log.
    is_repair: bool,
    /// Damaged blobs in whose place whole copies were put.
    repaired: HashSet<BlobKey>,
}

impl Compaction {
    pub(super) fn source_numbers(&self) -> impl Iterator<Item = u64> {
        self.sources.iter().map(|source| source.holder.number())
    }

    /// True while no source is needed as log.
    fn is_free(&self, needed: NeededLog) -> bool {
        let keep_from = if self.is_repair { u64::MAX } else { needed.keep_from };
        self.sources.iter().all(|source| source.is_free(NeededLog { keep_from, ..needed }))
    }
}

impl Maintenance {
    /// Does a step of the compaction under way, or begins one when it is worth it.
    pub(super) fn compact(&mut self, now_us: u64) -> io::Result<bool> {
        let known = self.shared.live_known.load(Relaxed);
        let needed = self.needed_log();
        if self.compaction.as_ref().is_some_and(|under_way| !under_way.is_free(needed)) {
            self.give_up_compaction(now_us);
        }
        if let Some(compaction) = &mut self.compaction {
            if compaction.next < compaction.work.len() {
                let copied = compaction.copy_some(self.shared.files.repairs())?;
                self.shared.counters.compacted_bytes.fetch_add(copied, Relaxed);
            } else if self.shared.is_installing() {
                self.give_up_compaction(now_us);
            } else if let Some(compaction) = self.compaction.take() {
                self.finish_compaction(compaction)?;
            }
            return Ok(true);
        }
        if !known || self.moving.is_some() || now_us < self.compact_at_us {
            return Ok(false);
        }
        let damaged = self.damaged_file(now_us).map_err(io::Error::other)?;
        let is_repair = damaged.is_some();
        let sources = damaged.map_or_else(|| self.pick_sources(now_us), |file| vec![file]);
        if sources.is_empty() {
            return Ok(false);
        }
        self.compaction = Some(self.begin_compaction(sources, is_repair)?);
        Ok(true)
    }

    /// Files worth copying: mostly dead or small, and not about to die by themselves, unless much space is at
    /// stake.
    fn pick_sources(&self, now_us: u64) -> Vec<SealedFile> {
        let needed = self.needed_log();
        let segment = self.shared.options.segment_bytes;
        let (mut dead, mut live) = (0, 0);
        for entry in self.entries.iter().filter(|entry| entry.is_free(needed)) {
            dead += entry.dead_bytes();
            live += entry.holder.live_bytes();
        }
        let pressing = dead > (2 * segment).max(live);
        let settled = |entry: &&SealedFile| pressing || now_us >= entry.seen.1 + SETTLED_US;
        let mut picked: Vec<&SealedFile> = self.candidates(needed).filter(settled).collect();
        let worth = picked.len() > 1 || picked.iter().any(|e| e.is_mostly_dead());
        if !worth {
            return Vec::new();
        }
        picked.sort_by_key(|entry| entry.holder.live_bytes());
        let (mut bytes, mut blobs, mut sources) = (0, 0, Vec::new());
        for entry in picked {
            bytes += entry.holder.live_bytes();
            blobs += entry.holder.live_blobs();
            if !sources.is_empty() && (bytes > segment || blobs > BLOBS_MAX) {
                break;
            }
            sources.push(entry.clone());
        }
        sources
    }

    /// Files that may be worth copying.
    fn candidates(&self, needed: NeededLog) -> impl Iterator<Item = &SealedFile> {
        let small = self.shared.options.segment_bytes / SMALL_PART;
        self.entries
            .iter()
            .filter(move |e| e.is_free(needed) && e.holder.live_blobs() > 0)
            .filter(move |e| e.is_mostly_dead() || e.holder.len < small)
    }

    /// When there may be something to copy that is not now.
    pub(super) fn compaction_due_us(&self, now_us: u64) -> Option<u64> {
        if now_us < self.compact_at_us {
            return Some(self.compact_at_us);
        }
        let needed = self.needed_log();
        self.candidates(needed).map(|entry| entry.seen.1 + SETTLED_US).filter(|at| *at > now_us).min()
    }

    fn begin_compaction(&self, sources: Vec<SealedFile>, is_repair: bool) -> io::Result<Compaction> {
        let mut work = Vec::new();
        for (source, entry) in (0..).zip(&sources) {
            let holder = &entry.holder;
            let live = (0..holder.table.len()).filter(|ordinal| holder.is_live(*ordinal));
            work.extend(live.map(|ordinal| (holder.table.key(ordinal), source, ordinal)));
        }
        work.sort_unstable();
        let handle = self.shared.create(Kind::Blobs)?;
        let file = Appender::new(handle.file.clone(), handle.seal.chunks().cloned());
        let (ahead, table) = (ReadAhead::new(), BlobTable::default());
        let repaired = HashSet::new();
        Ok(Compaction { sources, work, next: 0, ahead, handle, table, file, is_repair, repaired })
    }

    fn finish_compaction(&mut self, mut compaction: Compaction) -> io::Result<()> {
        let result = self.place_compaction(&mut compaction);
        if result.is_err() {
            self.shared.discard(&compaction.handle);
        }
        let entry = result?;
        let sources: Vec<u64> = compaction.source_numbers().collect();
        self.entries.retain(|entry| !sources.contains(&entry.holder.number()));
        for source in &compaction.sources {
            self.remove_files(source);
        }
        self.shared.moving.store(true, Relaxed);
        self.shared.tell(Note::Moved { sources, target: entry.holder.clone() });
        self.moving = Some(Moving { file: entry, repaired: compaction.repaired });
        Ok(())
    }

    /// Takes up the file that compaction wrote last, once the shard has taken it over.
    pub(super) fn end_move(&mut self) {
        if self.shared.moving.load(Relaxed) {
            return;
        }
        let Some(Moving { file, repaired }) = self.moving.take() else { return };
        if !repaired.is_empty() {
            self.shared.files.repairs().retain(|key| !repaired.contains(&key));
            self.shared.counters.repaired_blobs.fetch_add(repaired.len() as u64, Relaxed);
        }
        self.entries.push(file);
        self.look_wanted = true;
    }

    fn place_compaction(&self, compaction: &mut Compaction) -> io::Result<SealedFile> {
        let mut ranges: Vec<(u64, u64)> =
            compaction.sources.iter().flat_map(|source| source.ranges.iter().copied()).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, range| {
            let adjacent = range.1 == next.0;
            if adjacent {
                range.1 = next.1;
            }
            adjacent
        });
        let table = Table::Blobs(std::mem::take(&mut compaction.table));
        let Compaction { handle, file, .. } = compaction;
        let named = end_blob_file(&self.shared, handle, file, &table, ranges.clone())?;
        let len = named.data_len + named.table_len;
        // What was released, and is not copied, must not come back after a power loss.
        self.sync_log()?;
        self.shared.sync_dir()?;
        let sources: Vec<u64> = compaction.source_numbers().collect();
        let synced_to = self.writer.synced_to();
        self.shared.change_manifest(|manifest| {
            manifest.forget(&sources);
            manifest.note_synced(synced_to);
            manifest.blob_files.push(named);
        })?;
        Ok(SealedFile::new(Arc::new(BlobHolder::new(compaction.handle.clone(), table, len)), ranges))
    }

    pub(super) fn give_up_compaction(&mut self, now_us: u64) {
        self.compact_at_us = now_us + RETRY_US;
        if let Some(compaction) = self.compaction.take() {
            self.shared.discard(&compaction.handle);
        }
    }
}

impl Compaction {
    /// Copies blobs with their checksums, as they are: one that is damaged stays damaged, unless there is a
    /// whole copy.
    fn copy_some(&mut self, repairs: &Repairs) -> io::Result<u64> {
        let mut copied = 0;
        while copied < STEP_BYTES && self.next < self.work.len() {
            let (key, source, ordinal) = self.work[self.next];
            self.next += 1;
            let holder = &self.sources[source as usize].holder;
            if !holder.is_live(ordinal) {
                continue;
            }
            let location = holder.location(ordinal);
            let len = BLOB_HEAD + location.len();
            let offset = self.file.len() + BLOB_HEAD as u64;
            let start = self.file.buffer.len();
            self.file.buffer.resize(start + len, 0);
            let bytes = &mut self.file.buffer[start..];
            if let Some(blob) = repairs.get(key).filter(|blob| blob.len() == location.len()) {
                self.repaired.insert(key);
                if plant::is(Plant::CopiesLeftOut) {
                    spoil(key, bytes);
                } else {
                    put(key, &blob, bytes);
                }
            } else {
                copy(&self.ahead, &location, bytes)?;
            }
            self.table.push(key, BlobPlace { offset: offset as u32, len: location.len });
            copied += len;
        }
        self.file.write()?;
        Ok(copied as u64)
    }
}

/// Copies a blob with its checksum. What cannot be read, also at a second try, is replaced by what does not
/// verify.
fn copy(ahead: &ReadAhead, location: &BlobLocation, bytes: &mut [u8]) -> io::Result<()> {
    let read = match ahead.fetch(location, bytes) {
        Err(BlobError::Io(_)) => location.fetch(bytes),
        read => read,
    };
    // Bytes that the file does not have any more stay zero, and will not verify.
    let Err(error) = read else { return Ok(()) };
    if error.is_lasting() {
        spoil(location.key, bytes);
        return Ok(());
    }
    Err(error.into_io())
}

/// Puts a blob with its checksum into bytes of that length.
fn put(key: BlobKey, blob: &[u8], bytes: &mut [u8]) {
    let (head, rest) = bytes.split_at_mut(BLOB_HEAD);
    head.copy_from_slice(&blob_checksum(key, blob).to_le_bytes());
    rest.copy_from_slice(blob);
}

/// Makes a blob one that does not verify: what it was cannot be decrypted.
fn spoil(key: BlobKey, bytes: &mut [u8]) {
    let (head, blob) = bytes.split_at_mut(BLOB_HEAD);
    blob.fill(0);
    head.copy_from_slice(&(!blob_checksum(key, blob)).to_le_bytes());
}
