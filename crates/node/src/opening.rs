//! Opening of a shard on disk: its journal, the state that comes of it, and the start of its member.
//!
//! A node that has joined a cluster need not stop for a shard that is damaged or missing, as the others have
//! its data. But under its present number it has acknowledged what is lost here, and must not vote any more.
//! So an empty shard in memory stands in the place of the damaged one, which stays as it is, and the node is
//! silent until the leader of the cluster, which proves that a majority is well, gives it a new number. Under
//! that one it has promised nothing: the damaged shard is set aside, and an empty one opens in its place,
//! which gets everything from the others. The other shards go on with what they have.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use sluice_engine::Engine;
use sluice_journal::{
    Backups, BlobError, Damage, Disk, DiskJournal, FsDisk, Keyring, Maintenance, Opened, Options, Overlay,
    RecoveryReport, Writer, holds_journal,
};
use sluice_replica::Start;

use crate::api::StartError;
use crate::cluster::Ways;
use crate::directory::{aside_dir, set_aside, shard_dir};
use crate::shard::recover::recover;

/// Size of a segment of a shard that is nowhere but in memory, and gets no records.
const STAND_IN_SEGMENT_BYTES: u64 = 64 << 10;

/// A shard that is open.
pub(crate) struct OpenShard {
    pub(crate) journal: DiskJournal,
    pub(crate) writer: Writer,
    pub(crate) maintenance: Maintenance,
    pub(crate) backups: Backups,
    pub(crate) keyring: Keyring,
    pub(crate) report: RecoveryReport,
    pub(crate) engine: Engine,
    /// Start of its member; `None`: the node is alone.
    pub(crate) start: Option<Start>,
    /// Damage for which it stands in, a sentence.
    pub(crate) damage: Option<String>,
}

impl OpenShard {
    /// Opens a shard of a node that is alone, or, with `ways`, of one of a cluster.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        ways: Option<&Ways>,
    ) -> Result<OpenShard, StartError> {
        let dir = options.dir.clone();
        let opened = DiskJournal::open(disk, options)?;
        let Opened { mut journal, writer, maintenance, backups, keyring, report, .. } = opened;
        let engine = recover(opened.snapshot, opened.replay, &mut journal)?;
        let start = ways.map(|ways| ways.start(&journal, &opened.hard_state)).transpose();
        let start = start.map_err(|error| unread(&dir, error))?;
        Ok(OpenShard { journal, writer, maintenance, backups, keyring, report, engine, start, damage: None })
    }
}

/// A shard of a node that has joined a cluster, which opens whatever has become of its data.
pub(crate) struct JoinedShard<'n> {
    pub(crate) data_dir: &'n Path,
    pub(crate) number: u32,
    pub(crate) options: Options,
    pub(crate) ways: &'n Ways,
}

impl JoinedShard<'_> {
    /// Opens it.
    pub(crate) fn open(self) -> Result<OpenShard, StartError> {
        let dir = shard_dir(self.data_dir, self.number);
        let opened = if !self.ways.is_new() && is_missing(&dir)? {
            Err(StartError::Damaged(damage(&dir, "the data of the shard is missing")))
        } else {
            OpenShard::open(Arc::new(FsDisk), self.options.clone(), Some(self.ways))
        };
        match opened {
            Err(StartError::Damaged(damage)) if self.ways.is_new() => self.begin_again(&damage),
            Err(StartError::Damaged(damage)) => self.stand_in(&damage),
            opened => opened,
        }
    }

    /// Sets the damaged shard aside, and opens an empty one.
    fn begin_again(self, damage: &Damage) -> Result<OpenShard, StartError> {
        let JoinedShard { data_dir, number, options, ways } = self;
        let aside = aside_dir(data_dir, number);
        set_aside(data_dir, number).map_err(|error| {
            let dir = shard_dir(data_dir, number);
            StartError::of_io(
                &error,
                format!("cannot move {} to {}: {error}", dir.display(), aside.display()),
            )
        })?;
        let mut shard = OpenShard::open(Arc::new(FsDisk), options, Some(ways))?;
        let note = format!(
            "{damage}; the shard gets everything from the other nodes, and until then {} keeps what it had",
            aside.display()
        );
        tracing::error!(shard = number, "{note}");
        shard.report.notes.push(note);
        Ok(shard)
    }

    /// An empty shard in memory for the damaged one. Nothing is written: it lies over the data directory,
    /// which holds no journal itself.
    fn stand_in(self, damage: &Damage) -> Result<OpenShard, StartError> {
        tracing::error!(
            shard = self.number,
            "{damage}; nothing of it is changed until the leader of the cluster gives this node a new number, under \
             which it gets the data from the others"
        );
        let options = Options {
            dir: self.data_dir.to_owned(),
            segment_bytes: STAND_IN_SEGMENT_BYTES,
            owner: None,
            ..self.options
        };
        let shard = OpenShard::open(Arc::new(Overlay::new(Arc::new(FsDisk))), options, Some(self.ways))?;
        Ok(OpenShard { damage: Some(damage.to_string()), ..shard })
    }
}

/// True: the directory holds no journal. What cannot be looked at is not missing.
fn is_missing(dir: &Path) -> Result<bool, StartError> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StartError::of_io(&error, format!("cannot look into {}: {error}", dir.display())))
        }
        _ => Ok(!holds_journal(dir)),
    }
}

fn damage(dir: &Path, what: &str) -> Damage {
    Damage { file: dir.to_owned(), offset: 0, record: None, what: what.to_owned() }
}

/// The error of a log that could not be read back.
fn unread(dir: &Path, error: BlobError) -> StartError {
    match error {
        BlobError::Damaged(what) => StartError::Damaged(damage(dir, &what)),
        BlobError::Io(error) => {
            StartError::of_io(&error, format!("cannot read the log in {} back: {error}", dir.display()))
        }
    }
}
