//! Why a journal does not open.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::key_id::KeyId;

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
        /// Version or kind that is unknown.
        what: String,
    },
    /// A root key is missing. Nothing was changed.
    Key {
        /// The directory.
        dir: PathBuf,
        /// The key that is needed.
        needed: KeyId,
        /// Root keys that were given.
        given: Vec<KeyId>,
    },
    /// Bytes that must be there are not, or are wrong.
    Damaged(Damage),
    /// The operating system refused.
    Io {
        /// The file or directory.
        file: PathBuf,
        /// Action that failed, as in "open".
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
    /// Description of the damage.
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

/// The kind of server that wrote another version of a format than the one that is known.
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
