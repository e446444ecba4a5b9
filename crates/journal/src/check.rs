//! Verification of a data directory that no process uses, down to the last blob. Never writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::Disk;
use crate::file_kind::Kind;
use crate::keys::{Encryption, RootKeys};
use crate::log::blob_holder::BlobHolder;
use crate::log::file_keys::Keys;
use crate::log::files::Files;
use crate::log::manifest::{BlobFile, MANIFEST, Manifest, Sealed};
use crate::log::recovery::{follow, load_blob_table};
use crate::log::replay::Stretch;
use crate::log::sealing::load_table;
use crate::log::snapshot::SnapshotReader;
use crate::open_error::{Damage, OpenError};
use crate::seam::batch::damaged_blobs;
use crate::seam::blob::BlobError;
use crate::status::Cut;

/// Upper limit of open files.
const OPEN_FILES: usize = 16;

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Term of the last opening.
    pub term: u64,
    /// Verified files.
    pub files: Vec<CheckedFile>,
    /// Number of batches in the log.
    pub batches: u64,
    /// Number of records in the log.
    pub records: u64,
    /// Number of verified blobs, live or not.
    pub blobs: u64,
    /// Index of the last record in the snapshot; 0: no snapshot.
    pub snapshot_index: u64,
    /// Index of the next record.
    pub next_index: u64,
    /// The incomplete end of the log that opening will cut off, if any.
    pub cut: Option<Cut>,
    /// True when the journal was closed in order. Otherwise records written after the manifest last noted the
    /// synced position may be missing without a trace.
    pub end_known: bool,
    /// Damage found; empty: none.
    pub problems: Vec<Damage>,
}

/// A file that was verified.
#[derive(Clone, Debug)]
pub struct CheckedFile {
    /// Its path.
    pub path: PathBuf,
    /// Bytes of it that belong to the journal.
    pub bytes: u64,
}

/// Verifies a data directory. Damage goes into the report.
///
/// # Errors
/// The directory cannot be read, its manifest is unusable, or one of the root keys is missing.
pub fn check(disk: Arc<dyn Disk>, dir: &Path, roots: &RootKeys) -> Result<CheckReport, OpenError> {
    if disk.is_locked(dir).map_err(OpenError::io(dir, "look into"))? {
        return Err(OpenError::InUse { dir: dir.to_owned(), pid: None });
    }
    let path = dir.join(MANIFEST);
    let Some(manifest) = Manifest::load(&*disk, dir)? else {
        return Err(OpenError::damaged(&path, 0, None, "there is no manifest"));
    };
    let keys =
        Keys::load(&disk, dir, Some(&manifest), manifest.identity, &Encryption::only_read(roots.clone()))?;
    let files = Files::new(disk, dir, OPEN_FILES, keys);
    let mut checker = Checker { files, dir, manifest: &manifest, report: CheckReport::default() };
    checker.report.term = manifest.term;
    checker.run()?;
    Ok(checker.report)
}

struct Checker<'a> {
    files: Arc<Files>,
    dir: &'a Path,
    manifest: &'a Manifest,
    report: CheckReport,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<(), OpenError> {
        self.report.snapshot_index = self.manifest.applied_index();
        let result = self.snapshot();
        self.keep(result)?;
        for sealed in &self.manifest.sealed {
            let result = self.sealed(sealed);
            self.keep(result)?;
        }
        for file in &self.manifest.blob_files {
            let result = self.blob_file(file);
            self.keep(result)?;
        }
        let result = self.tail();
        self.keep(result)
    }

    /// Adds damage to the report, so that the check goes on; other errors end it.
    fn keep(&mut self, result: Result<(), OpenError>) -> Result<(), OpenError> {
        match result {
            Err(OpenError::Damaged(damage)) => self.report.problems.push(damage),
            other => other?,
        }
        Ok(())
    }

    fn checked(&mut self, path: &Path, bytes: u64) {
        self.report.files.push(CheckedFile { path: path.to_owned(), bytes });
    }

    fn snapshot(&mut self) -> Result<(), OpenError> {
        let Some(named) = &self.manifest.snapshot else { return Ok(()) };
        let handle = self.files.named(Kind::Snapshot, named.number)?;
        self.checked(&handle.path, named.len);
        SnapshotReader::new(self.manifest.identity, handle, named)?.verify()
    }

    fn sealed(&mut self, sealed: &Sealed) -> Result<(), OpenError> {
        let handle = self.files.named(Kind::Log, sealed.number)?;
        self.checked(&handle.path, sealed.len);
        let stretch = Stretch::of(sealed, handle);
        let result = stretch.verify_head(self.manifest.identity).and_then(|()| self.stretch(&stretch));
        self.keep(result)?;
        let path = self.dir.join(Kind::Table.name(sealed.number));
        if sealed.table_len > 0 {
            self.checked(&path, sealed.table_len);
        }
        if load_table(&self.files, sealed)?.is_none() {
            let what = "the table is missing or damaged; opening rebuilds it from the segment";
            return Err(OpenError::damaged(&path, 0, Some(sealed.start.next_index), what));
        }
        Ok(())
    }

    /// Verifies every batch and blob of a part of the log.
    fn stretch(&mut self, stretch: &Stretch) -> Result<(), OpenError> {
        let report = &mut self.report;
        stretch.verify(self.manifest.identity, self.manifest.newest_term(), |found| {
            report.batches += u64::from(found.header.records > 0);
            report.records += u64::from(found.header.records);
            report.blobs += found.blobs();
            for key in damaged_blobs(&found.records, found.header.first_index) {
                let what = format!("blob {} does not match its checksum", key.item);
                let (file, offset) = (stretch.handle.path.to_path_buf(), found.records_offset());
                report.problems.push(Damage { file, offset, record: Some(key.index), what });
            }
        })
    }

    fn blob_file(&mut self, named: &BlobFile) -> Result<(), OpenError> {
        let handle = self.files.named(Kind::Blobs, named.number)?;
        let path = handle.path.clone();
        self.checked(&path, named.data_len + named.table_len);
        let table = load_blob_table(&handle, named)?;
        let holder = BlobHolder::new(handle, table, named.data_len);
        for ordinal in 0..holder.table.len() {
            let location = holder.location(ordinal);
            self.report.blobs += 1;
            match location.read() {
                Ok(_) => {}
                Err(BlobError::Io(error)) => return Err(OpenError::io(&path, "read")(error)),
                Err(BlobError::Damaged(_)) => {
                    let what = format!("blob {} does not match its checksum", location.key.item);
                    let (file, offset, record) =
                        (path.to_path_buf(), location.offset, Some(location.key.index));
                    self.report.problems.push(Damage { file, offset, record, what });
                }
            }
        }
        Ok(())
    }

    fn tail(&mut self) -> Result<(), OpenError> {
        let tail = follow(&self.files, self.dir, self.manifest)?;
        self.report.next_index = tail.link.next_index;
        for part in &tail.parts {
            self.checked(&part.handle.path, part.len);
            let result = self.stretch(part);
            self.keep(result)?;
        }
        tail.refuse_damage()?;
        self.report.end_known = tail.is_end_known(self.manifest);
        self.report.cut = tail.cut()?;
        Ok(())
    }
}
