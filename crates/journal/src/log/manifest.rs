//! The manifest: the file that names all other files of the journal.
//!
//! It is written to `manifest.tmp`, synced, renamed to `manifest`, and the directory is synced. Layout:
//! magic, `u32` format version, `u32` checksum of the rest, then the fields in the order of
//! [`Manifest::encode`]. A file that the manifest does not name is left over from an interrupted step, and is
//! removed when the journal opens; a named file that is missing is damage.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use crate::codec::{Put, Reader};
use crate::disk::whole::{aside, write_aside};
use crate::disk::{Disk, OpenMode};
use crate::file_kind::Kind;
use crate::keys::keyring::KEYRING;
use crate::log::header::{Header, Position};
use crate::open_error::OpenError;
use crate::options::{Commit, Options, Owner};

/// Version of the formats of all files in a journal's directory, and of backups. It grows with each change of
/// any of them; other versions are refused.
pub(crate) const FORMAT_VERSION: u32 = 9;

/// Name of the manifest.
pub(crate) const MANIFEST: &str = "manifest";

/// Name of the file that exists while a backup is being restored; a directory that has it does not open.
pub(crate) const RESTORING: &str = "restoring";

const MAGIC: [u8; 8] = *b"SLUICEMF";

/// Maximum length of a manifest in bytes: room for two million segments.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// Maximum of any length, index or file number, so that sums of a few never overflow.
pub(crate) const NUMBER_MAX: u64 = 1 << 60;

/// State of the chain of batches between two batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Link {
    /// Index of the next record.
    pub(crate) next_index: u64,
    /// Number of the next batch.
    pub(crate) next_number: u64,
    /// Checksum of the last batch.
    pub(crate) previous: u32,
    /// Term of the last batch.
    pub(crate) term: u64,
    /// Time of the last batch, in microseconds since the Unix epoch.
    pub(crate) time_us: u64,
}

impl Link {
    /// State of the chain after this batch, or idle marker.
    pub(crate) fn after(header: &Header) -> Link {
        Link {
            next_index: header.first_index + u64::from(header.records),
            next_number: header.number + u64::from(header.records > 0),
            previous: header.checksum,
            term: header.term,
            time_us: header.time_us,
        }
    }

    /// The counts that a manifest limits.
    fn counts(&self) -> [u64; 2] {
        [self.next_index, self.next_number]
    }

    /// Number of the last batch; 0: none.
    pub(crate) fn last_number(&self) -> u64 {
        self.next_number - 1
    }
}

/// A segment that is no longer written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sealed {
    pub(crate) number: u64,
    /// State of the chain before its first batch.
    pub(crate) start: Link,
    /// State of the chain after its last batch.
    pub(crate) end: Link,
    /// Number of bytes that belong to the log; what follows does not.
    pub(crate) len: u64,
    /// Length of the file of its table; 0: no blobs, and no file.
    pub(crate) table_len: u64,
    /// Checksum of the table's file.
    pub(crate) table_checksum: u32,
}

/// A segment to which batches may be appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenSegment {
    pub(crate) number: u64,
    /// Minimum length of its file in bytes: the length with which it was made, which was durable before a
    /// manifest named it. An open segment is never shortened.
    pub(crate) len: u64,
    /// Offset at which the log was cut and goes on in the next segment; 0: not cut.
    pub(crate) end: u64,
}

/// A file of blobs that compaction has copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BlobFile {
    pub(crate) number: u64,
    /// Number of bytes of blobs; the table follows.
    pub(crate) data_len: u64,
    pub(crate) table_len: u64,
    pub(crate) table_checksum: u32,
    /// Ranges of record indexes (end exclusive) whose blobs it holds.
    pub(crate) ranges: Vec<(u64, u64)>,
}

/// The latest snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) number: u64,
    pub(crate) applied_index: u64,
    pub(crate) time_us: u64,
    pub(crate) len: u64,
    /// Number and term of the batch that ends with record `applied_index`; 0: none does.
    pub(crate) last_number: u64,
    pub(crate) last_term: u64,
    /// Bytes that the owner keeps with it.
    pub(crate) label: Vec<u8>,
}

/// Distance from the last term to the next where the clock has not passed the last one. Ids that the engine
/// counts up from a term have this much room before the next term, which does not know how far a lost end of
/// the log has counted.
const TERM_STEP: u64 = 1_000;

/// Files of the journal, and its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    pub(crate) identity: u64,
    pub(crate) owner: Owner,
    /// Term of the last opening, and no smaller than those of sealed batches.
    pub(crate) term: u64,
    /// Number of the next file; no number is used twice.
    pub(crate) next_file: u64,
    /// Position before which everything was synced when the manifest was written.
    pub(crate) synced_to: Position,
    /// True when the journal was closed in order after its last opening: nothing was written after
    /// `synced_to`.
    pub(crate) closed: bool,
    /// True when the last opening was under [`Commit::Told`]; else every whole batch is committed.
    pub(crate) told: bool,
    /// Index of a record up to which the log was committed when the manifest was written; it may lie behind
    /// the end of what a power loss has left.
    pub(crate) committed: u64,
    /// Index of the record from which on the state refers to no blob that was released elsewhere before the
    /// state was received; 0: it never did.
    pub(crate) whole_from: u64,
    /// The owner's hard state.
    pub(crate) hard_state: Vec<u8>,
    /// State of the chain before the first open segment.
    pub(crate) open_start: Link,
    /// Segments that are no longer written, in the order of the log.
    pub(crate) sealed: Vec<Sealed>,
    /// Segments to which batches may be appended, in order.
    pub(crate) open: Vec<OpenSegment>,
    pub(crate) blob_files: Vec<BlobFile>,
    pub(crate) snapshot: Option<SnapshotFile>,
    /// Minimum generation of the keyring; 0: there need not be one.
    pub(crate) keyring: u64,
}

/// True when a directory holds a journal, of any version and in any state.
pub fn holds_journal(dir: &Path) -> bool {
    dir.join(MANIFEST).exists()
}

/// The owner in the manifest of a directory; `None`: there is no manifest. Changes nothing.
///
/// # Errors
/// The manifest cannot be read, is damaged, or has another version.
pub fn owner_of(disk: &dyn Disk, dir: &Path) -> Result<Option<Owner>, OpenError> {
    Ok(Manifest::load(disk, dir)?.map(|manifest| manifest.owner))
}

/// True when the owner has kept a hard state in the journal of a directory; a backup holds none. Changes
/// nothing.
///
/// # Errors
/// As [`owner_of`].
pub fn has_hard_state(disk: &dyn Disk, dir: &Path) -> Result<bool, OpenError> {
    Ok(Manifest::load(disk, dir)?.is_some_and(|manifest| !manifest.hard_state.is_empty()))
}

/// The name of the first journal file in a directory, in alphabetical order; `None`: there is none.
///
/// # Errors
/// The directory cannot be listed; a missing directory has no files.
pub fn journal_file(disk: &dyn Disk, dir: &Path) -> io::Result<Option<String>> {
    let mut names = match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        listed => listed?,
    };
    names.retain(|name| name == MANIFEST || name == KEYRING || Kind::parse(name).is_some());
    names.sort_unstable();
    Ok(names.into_iter().next())
}

impl Manifest {
    /// The manifest of an empty journal.
    pub(crate) fn fresh(identity: u64) -> Manifest {
        Manifest {
            identity,
            owner: Owner::default(),
            term: 0,
            next_file: 1,
            synced_to: Position::default(),
            closed: false,
            told: false,
            committed: 0,
            whole_from: 0,
            hard_state: Vec::new(),
            open_start: Link { next_index: 1, next_number: 1, ..Link::default() },
            sealed: Vec::new(),
            open: Vec::new(),
            blob_files: Vec::new(),
            snapshot: None,
            keyring: 0,
        }
    }

    /// Index of the last record in the snapshot; 0: no snapshot.
    pub(crate) fn applied_index(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.applied_index)
    }

    /// The term of the next opening. Under [`Commit::Own`]: `term_min` if that is above the last term, else
    /// [`TERM_STEP`] above the last term. Under [`Commit::Told`] the last term, since the owner gives terms.
    pub(crate) fn next_term(&self, options: &Options) -> u64 {
        match options.commit {
            Commit::Told => self.term,
            Commit::Own if options.term_min > self.term => options.term_min,
            Commit::Own => self.term.saturating_add(TERM_STEP),
        }
    }

    /// Upper limit of the terms in the log.
    pub(crate) fn newest_term(&self) -> u64 {
        if self.told { u64::MAX } else { self.term }
    }

    /// Notes how far the log is synced.
    pub(crate) fn note_synced(&mut self, synced_to: Position) {
        self.synced_to = self.synced_to.max(synced_to);
    }

    /// Takes a number for a new file.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file - 1
    }

    /// True when a file belongs to the journal.
    pub(crate) fn names(&self, kind: Kind, number: u64) -> bool {
        let sealed = |number| self.sealed.iter().find(|s| s.number == number);
        match kind {
            Kind::Log => self.open.iter().any(|o| o.number == number) || sealed(number).is_some(),
            Kind::Table => sealed(number).is_some_and(|s| s.table_len > 0),
            Kind::Blobs => self.blob_files.iter().any(|b| b.number == number),
            Kind::Snapshot => self.snapshot.as_ref().is_some_and(|s| s.number == number),
        }
    }

    /// Numbers of all files that belong to the journal.
    pub(crate) fn file_numbers(&self) -> HashSet<u64> {
        let sealed = self.sealed.iter().map(|segment| segment.number);
        let copied = self.blob_files.iter().map(|file| file.number);
        let snapshot = self.snapshot.iter().map(|snapshot| snapshot.number);
        sealed.chain(self.open.iter().map(|o| o.number)).chain(copied).chain(snapshot).collect()
    }

    /// Removes sealed segments and files of copied blobs.
    pub(crate) fn forget(&mut self, numbers: &[u64]) {
        self.sealed.retain(|sealed| !numbers.contains(&sealed.number));
        self.blob_files.retain(|file| !numbers.contains(&file.number));
    }

    /// Encodes the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u64(self.identity);
        body.put_u64(self.owner.server);
        body.put_u32(self.owner.shard);
        for value in [self.owner.start, self.term, self.next_file] {
            body.put_u64(value);
        }
        body.put_u64(self.synced_to.segment);
        body.put_u64(self.synced_to.offset);
        body.push(u8::from(self.closed));
        body.push(u8::from(self.told));
        body.put_u64(self.committed);
        body.put_u64(self.whole_from);
        put_bytes(&mut body, &self.hard_state);
        put_link(&mut body, &self.open_start);
        body.put_u32(self.sealed.len() as u32);
        for segment in &self.sealed {
            body.put_u64(segment.number);
            put_link(&mut body, &segment.start);
            put_link(&mut body, &segment.end);
            body.put_u64(segment.len);
            body.put_u64(segment.table_len);
            body.put_u32(segment.table_checksum);
        }
        body.put_u32(self.open.len() as u32);
        for segment in &self.open {
            for value in [segment.number, segment.len, segment.end] {
                body.put_u64(value);
            }
        }
        body.put_u32(self.blob_files.len() as u32);
        for file in &self.blob_files {
            body.put_u64(file.number);
            body.put_u64(file.data_len);
            body.put_u64(file.table_len);
            body.put_u32(file.table_checksum);
            body.put_u32(file.ranges.len() as u32);
            for (first, end) in &file.ranges {
                body.put_u64(*first);
                body.put_u64(*end);
            }
        }
        body.push(u8::from(self.snapshot.is_some()));
        if let Some(SnapshotFile { number, applied_index, time_us, len, last_number, last_term, label }) =
            &self.snapshot
        {
            for value in [number, applied_index, time_us, len, last_number, last_term] {
                body.put_u64(*value);
            }
            put_bytes(&mut body, label);
        }
        body.put_u64(self.keyring);
        let mut out = MAGIC.to_vec();
        out.put_u32(FORMAT_VERSION);
        out.put_u32(crc32fast::hash(&body));
        out.extend_from_slice(&body);
        out
    }

    /// Decodes `bytes`, the content of `path`.
    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest, OpenError> {
        let mut reader = Reader(bytes);
        if reader.take(8) != Some(&MAGIC[..]) {
            return Err(OpenError::damaged(path, 0, None, "it does not begin as a manifest does"));
        }
        let short = || OpenError::damaged(path, bytes.len() as u64, None, "the manifest ends early");
        let found = reader.u32().ok_or_else(short)?;
        if found != FORMAT_VERSION {
            return Err(OpenError::Format { file: path.to_owned(), found, known: FORMAT_VERSION });
        }
        let sum = reader.u32().ok_or_else(short)?;
        if sum != crc32fast::hash(reader.0) {
            return Err(OpenError::damaged(path, 16, None, "the manifest does not match its checksum"));
        }
        let manifest = decode_body(&mut reader).ok_or_else(short)?;
        if manifest.numbers().any(|number| number > NUMBER_MAX) {
            return Err(OpenError::damaged(
                path,
                16,
                None,
                "the manifest holds a number that no journal reaches",
            ));
        }
        Ok(manifest)
    }

    /// All lengths, offsets, indexes and numbers of files.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let sealed = self.sealed.iter().flat_map(|s| {
            [s.number, s.len, s.table_len].into_iter().chain(s.start.counts()).chain(s.end.counts())
        });
        let blob_files = self.blob_files.iter().flat_map(|b| {
            let ranges = b.ranges.iter().flat_map(|(first, end)| [*first, *end]);
            [b.number, b.data_len, b.table_len].into_iter().chain(ranges)
        });
        let snapshot = self.snapshot.iter().flat_map(|s| [s.number, s.applied_index, s.len, s.last_number]);
        let Position { segment, offset } = self.synced_to;
        let own =
            [self.owner.start, self.next_file, self.term, segment, offset, self.committed, self.keyring];
        own.into_iter()
            .chain([self.whole_from])
            .chain(self.open_start.counts())
            .chain(sealed)
            .chain(self.open.iter().flat_map(|o| [o.number, o.len, o.end]))
            .chain(blob_files)
            .chain(snapshot)
    }

    /// Reads the manifest of a directory; `None` when it has none.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, OpenError> {
        let path = dir.join(MANIFEST);
        let file = match disk.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::Io { file: path, action: "open", error }),
        };
        let len = file.len().map_err(OpenError::io(&path, "read"))?;
        if len > MANIFEST_BYTES_MAX {
            let what = format!("it has {len} bytes, which no manifest reaches");
            return Err(OpenError::damaged(&path, 0, None, what));
        }
        let mut bytes = vec![0; len as usize];
        crate::disk::read_exact_at(&*file, &mut bytes, 0).map_err(OpenError::io(&path, "read"))?;
        Manifest::decode(&path, &bytes).map(Some)
    }

    /// Replaces the directory's manifest by this one, durably.
    pub(crate) fn store(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        self.write_aside(disk, dir)?;
        disk.rename(&aside(dir, MANIFEST), &dir.join(MANIFEST))?;
        disk.sync_dir(dir)
    }

    /// Writes `manifest.tmp`; a failure changes nothing.
    pub(crate) fn write_aside(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        write_aside(disk, dir, MANIFEST, &self.encode()).map(|_| ())
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn bytes(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let len = reader.count(1)?;
    reader.take(len).map(<[u8]>::to_vec)
}

fn put_link(out: &mut Vec<u8>, link: &Link) {
    out.put_u64(link.next_index);
    out.put_u64(link.next_number);
    out.put_u32(link.previous);
    out.put_u64(link.term);
    out.put_u64(link.time_us);
}

fn link(reader: &mut Reader<'_>) -> Option<Link> {
    Some(Link {
        next_index: reader.u64()?,
        next_number: reader.u64()?,
        previous: reader.u32()?,
        term: reader.u64()?,
        time_us: reader.u64()?,
    })
}

fn decode_body(reader: &mut Reader<'_>) -> Option<Manifest> {
    let mut manifest = Manifest::fresh(reader.u64()?);
    manifest.owner = Owner { server: reader.u64()?, shard: reader.u32()?, start: reader.u64()? };
    manifest.term = reader.u64()?;
    manifest.next_file = reader.u64()?;
    manifest.synced_to = Position { segment: reader.u64()?, offset: reader.u64()? };
    manifest.closed = reader.u8()? == 1;
    manifest.told = reader.u8()? == 1;
    manifest.committed = reader.u64()?;
    manifest.whole_from = reader.u64()?;
    manifest.hard_state = bytes(reader)?;
    manifest.open_start = link(reader)?;
    for _ in 0..reader.count(100)? {
        manifest.sealed.push(Sealed {
            number: reader.u64()?,
            start: link(reader)?,
            end: link(reader)?,
            len: reader.u64()?,
            table_len: reader.u64()?,
            table_checksum: reader.u32()?,
        });
    }
    for _ in 0..reader.count(24)? {
        let (number, len, end) = (reader.u64()?, reader.u64()?, reader.u64()?);
        manifest.open.push(OpenSegment { number, len, end });
    }
    for _ in 0..reader.count(32)? {
        let mut file = BlobFile {
            number: reader.u64()?,
            data_len: reader.u64()?,
            table_len: reader.u64()?,
            table_checksum: reader.u32()?,
            ranges: Vec::new(),
        };
        for _ in 0..reader.count(16)? {
            file.ranges.push((reader.u64()?, reader.u64()?));
        }
        manifest.blob_files.push(file);
    }
    if reader.u8()? == 1 {
        manifest.snapshot = Some(SnapshotFile {
            number: reader.u64()?,
            applied_index: reader.u64()?,
            time_us: reader.u64()?,
            len: reader.u64()?,
            last_number: reader.u64()?,
            last_term: reader.u64()?,
            label: bytes(reader)?,
        });
    }
    manifest.keyring = reader.u64()?;
    reader.0.is_empty().then_some(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let mut manifest = Manifest::fresh(77);
        manifest.owner = Owner { server: 78, shard: 2, start: 3 };
        let link = Link { next_index: 9, next_number: 5, previous: 8, term: 7, time_us: 6 };
        manifest.sealed.push(Sealed {
            number: 1,
            start: Link::default(),
            end: link,
            len: 100,
            table_len: 5,
            table_checksum: 4,
        });
        manifest.open =
            vec![OpenSegment { number: 2, len: 4096, end: 512 }, OpenSegment { number: 3, len: 0, end: 0 }];
        (manifest.told, manifest.committed, manifest.whole_from) = (true, 7, 8);
        manifest.hard_state = b"term and vote".to_vec();
        manifest.blob_files.push(BlobFile {
            number: 4,
            data_len: 10,
            table_len: 20,
            table_checksum: 3,
            ranges: vec![(1, 5), (9, 12)],
        });
        manifest.snapshot = Some(SnapshotFile {
            number: 5,
            applied_index: 8,
            time_us: 1,
            len: 2,
            last_number: 4,
            last_term: 7,
            label: b"members".to_vec(),
        });
        manifest.keyring = 11;
        manifest.closed = true;
        manifest
    }

    #[test]
    fn it_comes_back_and_any_flipped_byte_is_seen() {
        let path = Path::new("manifest");
        let mut bytes = example().encode();
        assert_eq!(Manifest::decode(path, &bytes).unwrap(), example());
        for at in 0..bytes.len() {
            bytes[at] ^= 0x40;
            assert!(Manifest::decode(path, &bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x40;
            assert!(Manifest::decode(path, &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn numbers_whose_sum_overflows_are_refused() {
        let mut manifest = example();
        manifest.blob_files[0].data_len = u64::MAX;
        let error = Manifest::decode(Path::new("manifest"), &manifest.encode()).unwrap_err();
        assert!(error.to_string().contains("a number that no journal reaches"), "{error}");
    }

    #[test]
    fn another_format_is_told_from_damage() {
        let mut bytes = example().encode();
        for other in [1, 8, 10] {
            bytes[8] = other;
            let error = Manifest::decode(Path::new("manifest"), &bytes).unwrap_err();
            let OpenError::Format { found, known, .. } = error else { panic!("{error}") };
            assert_eq!((found, known), (other.into(), FORMAT_VERSION));
        }
    }

    #[test]
    fn names_are_told_apart() {
        assert_eq!(Kind::parse(&Kind::Blobs.name(12)), Some((Kind::Blobs, 12)));
        assert_eq!(Kind::parse("12.log"), None);
        assert_eq!(Kind::parse("notes.txt"), None);
    }
}
