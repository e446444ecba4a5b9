//! The end of the log, which may be torn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::shortage::is_full;
use crate::disk::{Disk, File, OpenMode};
use crate::file_kind::Kind;
use crate::log::files::{Files, Handle};
use crate::log::header::next_sector;
use crate::log::header::{Header, Position};
use crate::log::manifest::{Link, MANIFEST, Manifest, OpenSegment, Sealed};
use crate::log::replay::Stretch;
use crate::log::scan::{Found, Scanner, content_end, highest_synced};
use crate::log::sealing::append_batch;
use crate::log::sealing::write_table;
use crate::log::table::{LogTable, Table};
use crate::log::uncommitted::Held;
use crate::log::writer::Begin;
use crate::open_error::OpenError;
use crate::options::{Commit, Options};
use crate::seam::batch::Records;
use crate::status::Cut;

/// Number of bytes gathered for one write.
const WRITE_BYTES: usize = 1 << 20;

/// The good part of the open segments.
#[derive(Debug)]
pub(crate) struct Tail {
    identity: u64,
    term: u64,
    dir: PathBuf,
    /// Files of the open segments, in order.
    files: Vec<Handle>,
    /// The good part of each segment that has one, in order.
    pub(crate) parts: Vec<Stretch>,
    /// Position after the good part.
    pub(crate) end: Position,
    /// State of the chain there.
    pub(crate) link: Link,
    /// Position before which the log is known to have been durable.
    pub(crate) synced_to: Position,
    /// Index of a record up to which the log is known to be committed.
    committed: u64,
}

/// Result of rewriting the end of the log.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// Segments that were sealed in place.
    pub(crate) sealed: Vec<(Sealed, Stretch, LogTable)>,
    /// The new segment, and the batches copied into it.
    pub(crate) handle: Handle,
    /// The committed batches among them.
    pub(crate) stretch: Stretch,
    pub(crate) table: LogTable,
    /// The others, and where each begins.
    pub(crate) held: Vec<Held>,
    pub(crate) begins: Vec<Begin>,
    pub(crate) end: Link,
    pub(crate) offset: u64,
    pub(crate) prefilled: u64,
}

/// Follows the open segments to the end of the good part.
pub(crate) fn follow(files: &Arc<Files>, dir: &Path, manifest: &Manifest) -> Result<Tail, OpenError> {
    let mut tail = Tail {
        identity: manifest.identity,
        term: manifest.newest_term(),
        dir: dir.to_owned(),
        files: Vec::new(),
        parts: Vec::new(),
        end: Position { segment: manifest.open.first().map_or(0, |open| open.number), offset: 0 },
        link: manifest.open_start,
        synced_to: manifest.synced_to,
        committed: manifest.committed.max(manifest.applied_index()),
    };
    for open in &manifest.open {
        tail.files.push(open_segment(files, open)?);
    }
    for (at, open) in manifest.open.iter().enumerate() {
        // A segment continues where the one before it ends; an empty segment means that the log ended before
        // it.
        if !tail.follow_segment(at, open.end)? {
            break;
        }
    }
    tail.look_behind()?;
    tail.look_at_unnamed(files)?;
    Ok(tail)
}

/// Opens a segment that the manifest names. If it is shorter than it was made, its end is lost, with
/// everything in it.
fn open_segment(files: &Arc<Files>, open: &OpenSegment) -> Result<Handle, OpenError> {
    let handle = files.named(Kind::Log, open.number)?;
    let found = handle.file.len().map_err(OpenError::io(&handle.path, "read"))?;
    if found < open.len {
        let what = format!("the file has {found} bytes and was made with {}: its end was cut off", open.len);
        return Err(OpenError::damaged(&handle.path, found, None, what));
    }
    Ok(handle)
}

impl Tail {
    /// Follows one segment, up to this offset where the log was cut (0: it was not); `false`: it has no good
    /// batch.
    fn follow_segment(&mut self, at: usize, end: u64) -> Result<bool, OpenError> {
        let handle = &self.files[at];
        let (file, path) = (&handle.file, &handle.path);
        let len = file.len().map_err(OpenError::io(path, "read"))?;
        let len = if end > 0 { len.min(end) } else { len };
        let mut scanner = Scanner::new(handle, self.identity, self.term, self.link, len);
        let start = self.link;
        while let Some(found) = scanner.next_batch().map_err(OpenError::io(path, "read"))? {
            self.synced_to = self.synced_to.max(found.header.synced_to);
            self.committed = self.committed.max(found.header.committed);
            self.link = scanner.link;
            self.end = scanner.at;
        }
        if scanner.at.offset == 0 {
            return Ok(false);
        }
        let (handle, end, len) = (handle.clone(), scanner.link, scanner.at.offset);
        self.parts.push(Stretch { handle, start, end, len });
        Ok(true)
    }

    /// Searches behind the good part for heads that show that more was synced.
    fn look_behind(&mut self) -> Result<(), OpenError> {
        let behind = |file: &&Handle| file.number >= self.end.segment;
        for Handle { number, file, path, .. } in self.files.iter().filter(behind) {
            let from = if *number == self.end.segment { self.end.offset } else { 0 };
            let found = highest_synced(file.clone(), *number, self.identity, from);
            let found = found.map_err(OpenError::io(path, "read"))?;
            self.synced_to = self.synced_to.max(found.unwrap_or_default());
        }
        Ok(())
    }

    /// Searches segments that the manifest does not name and that are newer than those it names. Copies left
    /// by an interrupted start show no more than was synced before; heads that show more were written under a
    /// later manifest.
    fn look_at_unnamed(&mut self, files: &Arc<Files>) -> Result<(), OpenError> {
        let last = self.files.last().map_or(0, |file| file.number);
        for number in files.segments_behind(last).map_err(OpenError::io(&self.dir, "list"))? {
            let path = files.path(Kind::Log, number);
            let file = files.open(&path).map_err(OpenError::io(&path, "open"))?;
            let found = highest_synced(file, number, self.identity, 0);
            let found = found.map_err(OpenError::io(&path, "read"))?;
            self.synced_to = self.synced_to.max(found.filter(|found| *found > self.end).unwrap_or_default());
        }
        Ok(())
    }

    /// Refuses damage before the synced position, which is never skipped.
    pub(crate) fn refuse_damage(&self) -> Result<(), OpenError> {
        if self.synced_to <= self.end {
            return Ok(());
        }
        if self.files.last().is_none_or(|last| self.synced_to.segment > last.number) {
            let newer = Kind::Log.name(self.synced_to.segment);
            let what = format!("the manifest is older than {newer}, which it does not name");
            return Err(OpenError::damaged(&self.dir.join(MANIFEST), 0, Some(self.link.next_index), what));
        }
        let path = self.dir.join(Kind::Log.name(self.end.segment));
        let what = format!(
            "the batch here is not whole, though the log was synced up to byte {} of {}",
            self.synced_to.offset,
            Kind::Log.name(self.synced_to.segment)
        );
        Err(OpenError::damaged(&path, self.end.offset, Some(self.link.next_index), what))
    }

    /// Index of the last record that is known to be committed, if the log goes that far.
    pub(crate) fn committed(&self, manifest: &Manifest, options: &Options) -> u64 {
        let last_index = self.link.next_index - 1;
        let known = manifest.told && options.commit == Commit::Told;
        if known { self.committed.min(last_index) } else { last_index }
    }

    /// True when nothing can be missing at the end: the journal was closed in order, and ends where it ended
    /// then.
    pub(crate) fn is_end_known(&self, manifest: &Manifest) -> bool {
        manifest.closed && manifest.synced_to == self.end
    }

    /// The bytes to be cut after the good part.
    pub(crate) fn cut(&self) -> Result<Option<Cut>, OpenError> {
        let mut cut = None;
        let behind = |file: &&Handle| file.number >= self.end.segment;
        for Handle { number, file, path, .. } in self.files.iter().filter(behind) {
            let offset = if *number == self.end.segment { self.end.offset } else { 0 };
            let end = content_end(file.clone(), offset).map_err(OpenError::io(path, "read"))?;
            if end > offset && cut.is_none() {
                let index = self.link.next_index;
                cut = Some(Cut { file: path.to_path_buf(), offset, index, bytes: end - offset });
            }
        }
        Ok(cut)
    }

    /// Seals what is durable and committed, copies the rest of the good part, and makes both the manifest's.
    pub(crate) fn rewrite(
        self,
        disk: &dyn Disk,
        files: &Arc<Files>,
        options: &Options,
        manifest: &mut Manifest,
    ) -> Result<Rewritten, OpenError> {
        let number = manifest.take_number();
        let path = options.dir.join(Kind::Log.name(number));
        // An interrupted start may have left the file; no manifest has named it.
        remove_if_there(disk, &path)?;
        let handle = files.create(Kind::Log, number).map_err(OpenError::io(&path, "make"))?;
        let committed = self.committed(manifest, options);
        let mut copy = Copy::new(&self, committed, handle.clone());
        let mut sealed = Vec::new();
        for part in &self.parts {
            if let Some(done) = self.split(part, committed, &mut copy)? {
                sealed.push(done);
            }
        }
        copy.flush()?;
        let prefilled =
            prefill(&*handle.file, copy.offset, options.first_prefill())
                // Without free space the segment grows as it is written.
                .or_else(|error| {
                    if is_full(&error) { handle.file.set_len(copy.offset).map(|()| 0) } else { Err(error) }
                })
                .and_then(|filled| handle.file.sync_data().map(|()| filled))
                .map_err(OpenError::io(&path, "write"))?;
        manifest.term = manifest.next_term(options);
        manifest.owner = options.owner.unwrap_or(manifest.owner);
        for (segment, _, table) in &mut sealed {
            *segment = write_table(files, segment, &Table::Log(table.clone()))
                .map_err(OpenError::io(&files.path(Kind::Table, segment.number), "write"))?;
            manifest.sealed.push(*segment);
        }
        manifest.keyring = files.keys().generation();
        manifest.open = vec![OpenSegment { number, len: prefilled.max(copy.offset), end: 0 }];
        manifest.open_start = copy.start;
        manifest.synced_to = Position { segment: number, offset: copy.offset };
        manifest.closed = false;
        (manifest.told, manifest.committed) = (options.commit == Commit::Told, committed);
        disk.sync_dir(&options.dir)
            .and_then(|()| manifest.store(disk, &options.dir))
            .map_err(OpenError::io(&options.dir, "write to"))?;
        for (segment, ..) in &sealed {
            let path = options.dir.join(Kind::Log.name(segment.number));
            disk.open(&path, OpenMode::Write)
                .and_then(|file| file.set_len(segment.len))
                .map_err(OpenError::io(&path, "shorten"))?;
        }
        let Copy { start, link: end, offset, table, committed: (link, len), held, begins, .. } = copy;
        let stretch = Stretch { handle: handle.clone(), start, end: link, len };
        Ok(Rewritten { sealed, handle, stretch, table, held, begins, end, offset, prefilled })
    }

    /// Divides a good part at the end of what is durable and committed: the first part is sealed, the rest
    /// copied.
    fn split(
        &self,
        part: &Stretch,
        committed: u64,
        copy: &mut Copy,
    ) -> Result<Option<(Sealed, Stretch, LogTable)>, OpenError> {
        let mut table = LogTable::new(part.start.next_index, !part.handle.seal.is_plain());
        let mut scanner = part.scanner(self.identity, self.term);
        let (mut end, mut len) = (part.start, 0);
        while scanner.link != part.end {
            let found = part.next_batch(&mut scanner)?;
            if scanner.at <= self.synced_to && scanner.link.next_index <= committed + 1 {
                table.push(&found.records, found.records_offset());
                (end, len) = (scanner.link, scanner.at.offset);
                copy.begin_at(end);
            } else {
                copy.add(&found)?;
            }
        }
        if len == 0 {
            return Ok(None);
        }
        let sealed = Sealed {
            number: part.handle.number,
            start: part.start,
            end,
            len,
            table_len: 0,
            table_checksum: 0,
        };
        Ok(Some((sealed, Stretch::of(&sealed, part.handle.clone()), table)))
    }
}

impl Found {
    /// Offset of its records.
    pub(crate) fn records_offset(&self) -> u64 {
        self.header.records_at()
    }

    /// Number of blobs in its records.
    pub(crate) fn blobs(&self) -> u64 {
        Records::new(&self.records).map(|record| u64::from(record.blob_count())).sum()
    }
}

/// The new segment, while batches are copied into it.
struct Copy {
    identity: u64,
    synced_to: Position,
    handle: Handle,
    start: Link,
    link: Link,
    offset: u64,
    /// Index of the last committed record.
    committed_index: u64,
    /// State of the chain after the last batch that is committed, and where that ends.
    committed: (Link, u64),
    /// Blobs of the committed batches.
    table: LogTable,
    /// The other batches, and where each begins.
    held: Vec<Held>,
    begins: Vec<Begin>,
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl Copy {
    fn new(tail: &Tail, committed_index: u64, handle: Handle) -> Copy {
        let start = tail.parts.first().map_or(tail.link, |part| part.start);
        Copy {
            identity: tail.identity,
            synced_to: tail.synced_to,
            start,
            link: start,
            offset: 0,
            committed_index,
            committed: (start, 0),
            table: LogTable::new(start.next_index, !handle.seal.is_plain()),
            held: Vec::new(),
            begins: Vec::new(),
            handle,
            buffer: Vec::new(),
            buffer_at: 0,
        }
    }

    /// Sets the chain that the first copied batch continues.
    fn begin_at(&mut self, link: Link) {
        (self.start, self.link, self.committed) = (link, link, (link, 0));
        self.table = LogTable::new(link.next_index, !self.handle.seal.is_plain());
    }

    fn add(&mut self, found: &Found) -> Result<(), OpenError> {
        let records = &found.records;
        let mut header = Header {
            at: Position { segment: self.handle.number, offset: self.offset },
            synced_to: self.synced_to,
            previous: self.link.previous,
            ..found.header
        };
        append_batch(&mut self.buffer, &self.handle.seal, self.identity, &mut header, records, false)
            .map_err(OpenError::Setting)?;
        let before = self.link;
        self.offset = header.end();
        self.link = Link::after(&header);
        if self.link.next_index <= self.committed_index + 1 {
            self.table.push(records, header.records_at());
            self.committed = (self.link, self.offset);
        } else if header.records > 0 {
            self.begins.push(Begin { at: header.at, link: before });
            self.held.push(Held::found(&header, records));
        }
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), OpenError> {
        let written = self.handle.file.write_at(&self.buffer, self.buffer_at);
        written.map_err(OpenError::io(&self.handle.path, "write"))?;
        self.buffer_at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes zeros from the next sector. Returns the offset of their end; 0 when none were requested.
fn prefill(file: &dyn File, offset: u64, bytes: u64) -> std::io::Result<u64> {
    if bytes == 0 {
        return Ok(0);
    }
    let from = next_sector(offset);
    file.write_at(&vec![0; bytes as usize], from)?;
    Ok(from + bytes)
}

fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), OpenError> {
    match disk.remove(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(OpenError::Io { file: path.to_owned(), action: "remove", error })
        }
        _ => Ok(()),
    }
}
