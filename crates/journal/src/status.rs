//! Figures and findings that a journal tells of itself.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::key_id::KeyId;

/// Figures of a journal; counts are since it was opened.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Batches committed.
    pub batches: u64,
    /// Records committed.
    pub records: u64,
    /// Bytes written to the log, headers included.
    pub log_bytes: u64,
    /// Syncs of files.
    pub fsyncs: u64,
    /// Duration of the last sync of the log, in microseconds.
    pub last_fdatasync_us: u64,
    /// Bytes that the journal's files take.
    pub disk_bytes: u64,
    /// Bytes free on the disk, as last seen.
    pub disk_free_bytes: u64,
    /// Segments, of the log and of compaction.
    pub segments: u64,
    /// Snapshots taken.
    pub snapshots: u64,
    /// Whether one is being taken.
    pub snapshot_running: bool,
    /// Bytes that compaction has copied.
    pub compacted_bytes: u64,
    /// Blobs that did not verify.
    pub damaged_blobs: u64,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// Blob reads that had to go to the disk.
    pub cache_misses: u64,
    /// Whether growing batches are refused for lack of room.
    pub full: bool,
    /// Whether free space is below the low-water mark.
    pub low: bool,
    /// Segments that were not ready when the log needed them, so that it had to wait for their making.
    pub late_segments: u64,
    /// Bytes of the reserve that are left.
    pub reserve_bytes: u64,
}

/// What opening a journal found.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Whether the journal is new.
    pub fresh: bool,
    /// Number of this opening: larger than those of all before.
    pub term: u64,
    /// Index that the next record gets.
    pub next_index: u64,
    /// Time of the last batch, or of the snapshot, in microseconds since the Unix epoch; 0: none.
    pub last_time_us: u64,
    /// What was cut from the end of the log.
    pub cut: Option<Cut>,
    /// Whether the journal is new or was closed in order. Otherwise what was written since the manifest last
    /// told how far the log is durable may be missing without a trace.
    pub end_known: bool,
    /// Other things that an operator may want to know, as sentences.
    pub notes: Vec<String>,
}

/// An end of the log that was not whole, and of which nothing on the disk tells that it had been synced.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The segment.
    pub file: PathBuf,
    /// Where in it the first bad batch began.
    pub offset: u64,
    /// Index that its first record would have had.
    pub index: u64,
    /// Bytes from there to the last one that is not zero.
    pub bytes: u64,
}

/// Why a journal did not open: file, cause and remedy.
#[derive(Debug)]
pub enum OpenError {
    /// Another process uses the directory.
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Process id of the holder, when known.
        pid: Option<u32>,
    },
    /// Another version of Sluice wrote this.
    Format {
        /// The file.
        file: PathBuf,
        /// Its format version.
        found: u32,
        /// The one that this program reads.
        known: u32,
    },
    /// Another version of Sluice wrote what the state machine above cannot replay.
    Unknown {
        /// The file.
        file: PathBuf,
        /// Index of the record; of a snapshot, the last record that it holds.
        record: u64,
        /// What is not known.
        what: String,
    },
    /// A root key is missing. Nothing was changed.
    Key {
        /// The directory.
        dir: PathBuf,
        /// The key that is needed.
        needed: KeyId,
        /// Those that were given.
        given: Vec<KeyId>,
    },
    /// Bytes that must be there are not, or are wrong.
    Damaged(Damage),
    /// The operating system refused.
    Io {
        /// The file or directory.
        file: PathBuf,
        /// What was tried, as in "open".
        action: &'static str,
        /// Its answer.
        error: io::Error,
    },
    /// A setting is out of range.
    Setting(String),
}

/// Damage that recovery must not guess around.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// Index of the first record that is affected, when known.
    pub record: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl OpenError {
    pub(crate) fn io(file: &Path, action: &'static str) -> impl FnOnce(io::Error) -> OpenError {
        move |error| OpenError::Io { file: file.to_owned(), action, error }
    }

    pub(crate) fn damaged(
        file: &Path,
        offset: u64,
        record: Option<u64>,
        what: impl Into<String>,
    ) -> OpenError {
        OpenError::Damaged(Damage { file: file.to_owned(), offset, record, what: what.into() })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at byte {}", self.file.display(), self.offset)?;
        if let Some(record) = self.record {
            write!(f, " (record {record})")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse { dir, pid } => {
                write!(f, "the data directory {} is in use by another process", dir.display())?;
                if let Some(pid) = pid {
                    write!(f, " (pid {pid})")?;
                }
                f.write_str("; stop that one, or give this one another directory")
            }
            OpenError::Format { file, found, known } => write!(
                f,
                "{} has format version {found}, and this program reads only version {known}: \
                 it was written by {} sluice; nothing was changed: use that version",
                file.display(),
                writer(*found, *known)
            ),
            OpenError::Unknown { file, record, what } => write!(
                f,
                "{} (record {record}) cannot be replayed: {what}; nothing was changed: \
                 start the version that wrote it",
                file.display()
            ),
            OpenError::Key { dir, needed, given } => write!(
                f,
                "{} is encrypted, and it takes the root key {needed} to open it, which {}; nothing was changed: give the \
                 key that was in use, or a backup of it",
                dir.display(),
                not_among(given)
            ),
            OpenError::Damaged(damage) => write!(
                f,
                "{damage}; nothing was changed: keep a copy of the directory, run `sluice check` for the whole \
                 extent, look for disk errors, and restore the latest backup with `sluice restore`"
            ),
            OpenError::Io { file, action, error } => {
                write!(f, "cannot {action} {}: {error}; {}", file.display(), remedy(error))
            }
            OpenError::Setting(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OpenError {}

/// Which sluice wrote another version of a format than the one that is known.
pub(crate) fn writer(found: u32, known: u32) -> &'static str {
    if found < known { "an older" } else { "a newer" }
}

/// Says which root keys were given instead of the one that is needed.
pub(crate) fn not_among(given: &[KeyId]) -> String {
    match given {
        [] => "is not given, nor is any other".to_owned(),
        [only] => format!("is not the one that is given ({only})"),
        more => {
            let ids: Vec<String> = more.iter().map(KeyId::to_string).collect();
            format!("is not among those that are given ({})", ids.join(", "))
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "give this user the right to read and write it",
        io::ErrorKind::ReadOnlyFilesystem => "mount the disk for writing, or give another directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space on the disk and start again"
        }
        io::ErrorKind::NotADirectory => "give a directory",
        _ => "look into the system's log for the cause",
    }
}
