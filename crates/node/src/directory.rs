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
//!
//! On a node of a cluster a shard that is damaged or missing is filled by the others, and what was damaged is
//! set [`aside`] until then.

mod aside;
pub(crate) mod marker;
mod problems;
mod shards;

use std::io;
use std::path::{Path, PathBuf};

use sluice_journal::{Disk, FsDisk, Owner, holds_journal};

use crate::api::StartError;
use marker::{DirectoryState, Marker, new_identity};
use problems::problems_of;

pub(crate) use aside::{aside_dir, discard, set_aside};
pub(crate) use problems::lost;
pub use problems::problems;
pub(crate) use shards::{SHARDS_MAX, shard_dir};

/// Checks that a node of a cluster keeps the number of its shards, which all nodes have.
pub(crate) fn expect_same_shards(path: &Path, shards: u32) -> Result<(), StartError> {
    let Some(marker) = Marker::read(path)? else { return Ok(()) };
    let there = marker.shards_at_most();
    if there == shards {
        return Ok(());
    }
    Err(StartError::Refused(format!(
        "the data directory {} has {there} shards and was to be opened with {shards}: start with --shards {there}, for \
         the nodes of a cluster keep the number of shards with which it began; a cluster with more is begun from a \
         backup: `sluice restore`, then `sluice cluster init --shards {shards}`",
        path.display()
    )))
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
    /// made. It `may_lack` shards whose data others have.
    ///
    /// # Errors
    /// The directory is damaged or incomplete, has more shards, or cannot be read or written.
    pub(crate) fn open(path: &Path, shards: u32, may_lack: bool) -> Result<Directory, StartError> {
        let marker = Marker::read(path)?;
        if let Some(wrong) = problems_of(path, marker, may_lack).into_iter().next() {
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
        let missing = (known..shards).any(|shard| !holds_journal(&shard_dir(path, shard)));
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
