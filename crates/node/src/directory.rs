//! The data directory as a whole: which shards belong to it, and whether all of them are there.
//!
//! A file `directory` says so, in lines of text with a checksum at the end. It is written aside, synced,
//! renamed, and the directory synced; before shards are made or restored, and again when that is done. So a
//! restore that was cut short never passes for a whole directory, and a shard's directory that is lost is
//! missed. A file that is missing beside shards with data is damage: who knows how many shards there were
//! says so in it (`shards 3` alone), and the next start writes the rest.
//!
//! Each start has a number, one more than the `start` of the file. A shard's manifest gets it, with the
//! identity of the server and the number of the shard, when the shard is opened; the file gets it when all
//! are open, before anything is served. So the number in a manifest is that of the file or, after a start
//! that was interrupted, one more; a smaller one is that of an older copy of the shard. Without room for the
//! file the next start has the same number again, and copies of shards from between the two are not told from
//! the present ones.

mod owners;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sluice_journal::{Disk, FsDisk, Owner, holds_journal, journal_file};

use crate::api::StartError;

/// Upper limit of shards of a node.
pub(crate) const SHARDS_MAX: u32 = 64;

const NAME: &str = "directory";
const TITLE: &str = "sluice data directory";
const FORMAT_VERSION: u32 = 2;

/// Directory of a shard within the data directory.
pub(crate) fn shard_dir(data_dir: &Path, shard: u32) -> PathBuf {
    data_dir.join(format!("shard-{shard:03}"))
}

/// Content of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marker {
    /// Identity of this directory; a copy has the same.
    identity: u64,
    /// Number of the last start that opened all shards; 0: none.
    start: u64,
    /// Number of shards that exist.
    pub(crate) shards: u32,
    state: DirectoryState,
}

/// Change that was begun and may not be finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DirectoryState {
    Complete,
    /// Shards are being made, up to this many.
    Growing(u32),
    Restoring,
}

impl Marker {
    fn encode(&self) -> String {
        let state = match self.state {
            DirectoryState::Complete => "complete".to_owned(),
            DirectoryState::Growing(shards) => format!("growing {shards}"),
            DirectoryState::Restoring => "restoring".to_owned(),
        };
        let Marker { identity, start, shards, .. } = self;
        let body = format!(
            "{TITLE}\nformat {FORMAT_VERSION}\nidentity {identity:016x}\nstart {start}\nshards {shards}\nstate {state}\n"
        );
        format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()))
    }

    fn decode(path: &Path, text: &str) -> Result<Marker, StartError> {
        let damaged = || {
            StartError::Failed(format!(
                "{} is damaged: keep a copy of the data directory, and {}",
                path.display(),
                how_to_state("N", path)
            ))
        };
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        if !text.starts_with(TITLE) {
            return Err(damaged());
        }
        let version: u32 = field("format").and_then(|value| value.parse().ok()).ok_or_else(damaged)?;
        if version != FORMAT_VERSION {
            return Err(StartError::Refused(format!(
                "{} has format version {version}, and this program reads only version {FORMAT_VERSION}: \
                 it was written by another version of sluice; nothing was changed: use that version",
                path.display()
            )));
        }
        let state = match field("state").map(|state| state.split_once(' ').unwrap_or((state, ""))) {
            Some(("complete", "")) => Some(DirectoryState::Complete),
            Some(("restoring", "")) => Some(DirectoryState::Restoring),
            Some(("growing", shards)) => shards.parse().ok().map(DirectoryState::Growing),
            _ => None,
        };
        let marker = Marker {
            identity: field("identity").and_then(|v| u64::from_str_radix(v, 16).ok()).ok_or_else(damaged)?,
            start: field("start").and_then(|value| value.parse().ok()).ok_or_else(damaged)?,
            shards: field("shards").and_then(|value| value.parse().ok()).ok_or_else(damaged)?,
            state: state.ok_or_else(damaged)?,
        };
        if marker.encode() == text { Ok(marker) } else { Err(damaged()) }
    }

    /// Reads what an operator states of a directory whose file was lost: the number of its shards alone. The
    /// rest is taken from the shards. It is not complete, so that a start writes the whole file.
    fn stated(data_dir: &Path, text: &str) -> Option<Marker> {
        let shards = text.trim_end().strip_prefix("shards ")?.parse().ok()?;
        if !(1..=SHARDS_MAX).contains(&shards) {
            return None;
        }
        let (identity, start) = owners::latest(data_dir, shards).unwrap_or_else(|| (new_identity(), 0));
        Some(Marker { identity, start, shards, state: DirectoryState::Growing(shards) })
    }

    fn read(data_dir: &Path) -> Result<Option<Marker>, StartError> {
        let path = data_dir.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                Marker::stated(data_dir, &text).map_or_else(|| Marker::decode(&path, &text), Ok).map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StartError::of_io(&error, format!("cannot read {}: {error}", path.display()))),
        }
    }

    fn write(&self, data_dir: &Path) -> io::Result<()> {
        let aside = data_dir.join(format!("{NAME}.tmp"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(self.encode().as_bytes())?;
        file.sync_data()?;
        fs::rename(&aside, data_dir.join(NAME))?;
        File::open(data_dir)?.sync_all()
    }

    /// Owner that this start writes into the manifest of a shard.
    fn owner(&self, shard: u32) -> Owner {
        Owner { server: self.identity, shard, start: self.start }
    }

    /// Number of shards that exist, or may.
    fn shards_at_most(&self) -> u32 {
        match self.state {
            DirectoryState::Growing(shards) => shards.max(self.shards),
            DirectoryState::Complete | DirectoryState::Restoring => self.shards,
        }
    }
}

/// A data directory being opened or made.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Content of the file once all shards are open.
    complete: Marker,
}

impl Directory {
    /// Checks that the directory can be opened with this many shards, and notes in it which are about to be
    /// made.
    ///
    /// # Errors
    /// The directory is damaged or incomplete, has more shards, or cannot be read or written.
    pub(crate) fn open(path: &Path, shards: u32) -> Result<Directory, StartError> {
        let marker = Marker::read(path)?;
        if let Some(wrong) = problems_of(path, marker).into_iter().next() {
            return Err(StartError::Failed(wrong));
        }
        let known = marker.map_or(0, |marker| marker.shards);
        let held = (0..=SHARDS_MAX).rev().find(|shard| shard_dir(path, *shard).exists());
        let there = known.max(held.map_or(0, |shard| shard + 1));
        if there > shards {
            return Err(StartError::Refused(format!(
                "the data directory {} has {there} shards and was to be opened with {shards}: start with --shards {there}, \
                 for a directory can get more shards but not fewer",
                path.display()
            )));
        }
        let identity = marker.map_or_else(new_identity, |marker| marker.identity);
        let before = marker.map_or(0, |marker| marker.start);
        let complete =
            Marker { identity, start: before.saturating_add(1), shards, state: DirectoryState::Complete };
        let directory = Directory { path: path.to_owned(), complete };
        let missing = (0..shards).any(|shard| !holds_journal(&shard_dir(path, shard)));
        // A server that has it says itself what becomes of it, and this start will be refused.
        let in_use = FsDisk.is_locked(&shard_dir(path, 0)).unwrap_or(false);
        if missing && !in_use {
            FsDisk.create_dir(path).map_err(|error| directory.failed(&error))?;
            let growing =
                Marker { identity, start: before, shards: known, state: DirectoryState::Growing(shards) };
            growing.write(path).map_err(|error| directory.failed(&error))?;
        }
        Ok(directory)
    }

    /// Owner that this start writes into the manifest of a shard.
    pub(crate) fn owner(&self, shard: u32) -> Owner {
        self.complete.owner(shard)
    }

    /// Notes that all shards are open.
    pub(crate) fn complete(&self) -> Result<(), StartError> {
        match self.complete.write(&self.path).map_err(|error| self.failed(&error)) {
            // A full disk must not keep a server from starting, for only a server can drain it.
            Err(StartError::Full(_)) => {
                tracing::warn!(dir = %self.path.display(), "no room to note this start in the file `directory`");
                Ok(())
            }
            written => written,
        }
    }

    /// Begins a directory for restoring a backup with this many shards.
    pub(crate) fn begin_restore(path: &Path, shards: u32) -> Result<Restoring, StartError> {
        let marker = Marker { identity: new_identity(), start: 1, shards, state: DirectoryState::Restoring };
        let written = FsDisk.create_dir(path).and_then(|()| marker.write(path));
        written.map_err(|error| not_written(path, &error))?;
        Ok(Restoring { path: path.to_owned(), marker })
    }

    fn failed(&self, error: &io::Error) -> StartError {
        not_written(&self.path, error)
    }
}

/// A directory that a backup is being restored into; it does not open until that is done.
#[derive(Debug)]
pub(crate) struct Restoring {
    path: PathBuf,
    marker: Marker,
}

impl Restoring {
    /// Owner in the manifest of a restored shard.
    pub(crate) fn owner(&self, shard: u32) -> Owner {
        self.marker.owner(shard)
    }

    /// Notes that everything is restored.
    pub(crate) fn complete(self) -> Result<(), StartError> {
        let complete = Marker { state: DirectoryState::Complete, ..self.marker };
        complete.write(&self.path).map_err(|error| not_written(&self.path, &error))
    }
}

fn not_written(data_dir: &Path, error: &io::Error) -> StartError {
    let told = format!("cannot write to the data directory {}: {error}", data_dir.display());
    StartError::of_io(error, told)
}

/// Problems of a data directory as a whole, as sentences for the operator; the content of its shards is not
/// examined. Writes nothing.
pub fn problems(data_dir: &Path) -> Vec<String> {
    match Marker::read(data_dir) {
        Ok(marker) => problems_of(data_dir, marker),
        Err(error) => vec![error.to_string()],
    }
}

fn problems_of(data_dir: &Path, marker: Option<Marker>) -> Vec<String> {
    let dir = data_dir.display();
    let holds = |shard: u32| holds_journal(&shard_dir(data_dir, shard));
    let Some(marker) = marker else {
        // It is there before the first shard is.
        let Some(last) = (0..=SHARDS_MAX).rev().find(|shard| holds(*shard)) else { return Vec::new() };
        let path = data_dir.join(NAME);
        let missing = format!(
            "{} is missing, though {} holds data: {}",
            path.display(),
            shard_dir(data_dir, last).display(),
            how_to_state(&(last + 1).to_string(), &path)
        );
        return std::iter::once(missing)
            .chain((0..last).filter(|shard| !holds(*shard)).map(|shard| lost(data_dir, shard)))
            .collect();
    };
    if marker.state == DirectoryState::Restoring {
        return vec![format!(
            "restoring a backup into {dir} was begun and not finished: remove the directory, and restore the backup again"
        )];
    }
    let missing = (0..marker.shards).filter(|shard| !holds(*shard)).map(|shard| lost(data_dir, shard));
    let misplaced =
        (0..marker.shards_at_most()).filter_map(|shard| owners::problem(data_dir, &marker, shard));
    let strangers =
        (marker.shards_at_most()..=SHARDS_MAX).filter(|shard| shard_dir(data_dir, *shard).exists());
    let strange = |shard| {
        format!(
            "{} does not belong to {dir}, which has {} shards: move it elsewhere",
            shard_dir(data_dir, shard).display(),
            marker.shards
        )
    };
    missing.chain(misplaced).chain(strangers.map(strange)).collect()
}

/// The sentence that says that a shard's manifest is missing.
pub(crate) fn lost(data_dir: &Path, shard: u32) -> String {
    let dir = shard_dir(data_dir, shard);
    match journal_file(&FsDisk, &dir) {
        Ok(Some(name)) => format!(
            "the manifest is missing, though {} is there: bring the file {} back, or restore the latest backup with \
             `sluice restore`",
            dir.join(name).display(),
            dir.join("manifest").display()
        ),
        _ => format!(
            "the data of {} is missing, though {} counts on it: bring the directory back, or restore the latest backup \
             with `sluice restore`",
            dir.display(),
            data_dir.join(NAME).display()
        ),
    }
}

/// The remedy for a file that does not tell the number of shards.
fn how_to_state(shards: &str, path: &Path) -> String {
    format!(
        "bring the file back from a copy, or restore the latest backup with `sluice restore`; or, if you are sure that \
         there were {shards} shards and each one's directory is in place, say so: echo shards {shards} > {}",
        path.display()
    )
}

fn new_identity() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_and_any_flipped_byte_is_seen() {
        let path = Path::new("directory");
        for state in [DirectoryState::Complete, DirectoryState::Growing(7), DirectoryState::Restoring] {
            let marker = Marker { identity: 0x12ab, start: 9, shards: 3, state };
            let text = marker.encode();
            assert_eq!(Marker::decode(path, &text).expect("whole"), marker);
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                let flipped = String::from_utf8_lossy(&bytes).into_owned();
                assert!(Marker::decode(path, &flipped).is_err(), "byte {at}");
                assert!(Marker::decode(path, &text[..at]).is_err(), "cut at {at}");
            }
        }
    }
}
