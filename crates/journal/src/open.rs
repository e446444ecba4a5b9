//! Opening a journal on disk: all its sides at once.

use std::sync::Arc;

use crate::backup::Backups;
use crate::disk::Disk;
use crate::log::recovery::{Recovered, recover};
use crate::log::{DiskJournal, Maintenance, Replay, SnapshotReader, Writer};
use crate::open_error::OpenError;
use crate::options::Options;
use crate::rotation::Keyring;
use crate::status::RecoveryReport;

/// The parts of an open journal. Restore the state from `snapshot`, apply `replay`, call
/// [`DiskJournal::set_live`], then serve.
#[derive(Debug)]
pub struct Opened {
    /// Proposes, and gives committed batches; for the shard's thread.
    pub journal: DiskJournal,
    /// Writes and syncs; clones share the work.
    pub writer: Writer,
    /// Background work.
    pub maintenance: Maintenance,
    /// Begins backups.
    pub backups: Backups,
    /// Shows and replaces root keys.
    pub keyring: Keyring,
    /// The latest snapshot.
    pub snapshot: Option<SnapshotReader>,
    /// Committed batches after the snapshot.
    pub replay: Replay,
    /// Number of the last committed batch, with which replay ends; 0: none.
    pub last_number: u64,
    /// Term of that batch; 0: none.
    pub last_term: u64,
    /// The owner's hard state; empty: none.
    pub hard_state: Vec<u8>,
    /// Findings of the opening.
    pub report: RecoveryReport,
}

impl DiskJournal {
    /// Opens the journal in a directory, which is created when missing.
    ///
    /// # Errors
    /// Why it does not open: file, cause and remedy.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Opened, OpenError> {
        let Recovered {
            shared,
            journal,
            writer,
            maintenance,
            snapshot,
            replay,
            committed,
            hard_state,
            report,
        } = recover(disk, options)?;
        Ok(Opened {
            journal,
            writer,
            maintenance,
            backups: Backups::new(shared.clone()),
            keyring: Keyring::new(shared),
            snapshot,
            replay,
            last_number: committed.last_number(),
            last_term: committed.term,
            hard_state,
            report,
        })
    }
}
