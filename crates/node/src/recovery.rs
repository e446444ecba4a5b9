//! Recovery of a cluster whose majority is gone for good, on one node that is not running.

use std::path::Path;
use std::sync::Arc;

use sluice_journal::{Commit, Disk, DiskJournal, FsDisk, Journal, Opened, Overlay, Writer, holds_journal};
use sluice_replica::{Members, NodeId, Remains, Start, StartError as MemberError};

use crate::api::{Options, StartError};
use crate::directory::{self, SHARDS_MAX, shard_dir};
use crate::shard::recover::knows;
use crate::shard::replicated::OWN_RECORDS;

/// End of a shard's log, as one node has it. What the lost nodes acknowledged behind it is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardEnd {
    /// Number of the shard.
    pub shard: u32,
    /// Term of the last record: of two nodes the one with the higher term knows more, whatever the index.
    pub term: u64,
    /// Index of the last record.
    pub index: u64,
    /// Index of the last record that this node knows to be committed.
    pub committed_index: u64,
    /// Time of the last record, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// Members in force there.
    pub members: Members,
    /// True: the node had not caught up with a state of another one, so that payloads of messages may be
    /// missing for good.
    pub may_lack_payloads: bool,
}

/// The data of a node that is not running, opened to make it the only voter of a cluster of its own. No
/// server can use them meanwhile.
#[derive(Debug)]
pub struct Recovery {
    shards: Vec<Shard>,
}

/// A shard that is being recovered.
#[derive(Debug)]
struct Shard {
    journal: DiskJournal,
    writer: Writer,
    remains: Remains,
    end: ShardEnd,
}

impl Recovery {
    /// Ends of the logs of a data directory, by shard. Writes nothing: a journal that was closed in order
    /// stays so. Takes the memory of what an opening writes. Blocks.
    ///
    /// # Errors
    /// As [`Recovery::open`].
    pub fn look(options: &Options) -> Result<Vec<ShardEnd>, StartError> {
        Ok(Recovery::open_on(&(Arc::new(Overlay::new(Arc::new(FsDisk))) as Arc<dyn Disk>), options)?.ends())
    }

    /// Opens the shards of a data directory, as a start does: what was torn at their ends is cut, and they
    /// count as not closed in order. Blocks.
    ///
    /// # Errors
    /// A sentence for the operator: a server uses the directory, or it holds no data of a cluster, more
    /// shards than the options say, or what cannot be read.
    pub fn open(options: &Options) -> Result<Recovery, StartError> {
        Recovery::open_on(&(Arc::new(FsDisk) as Arc<dyn Disk>), options)
    }

    fn open_on(disk: &Arc<dyn Disk>, options: &Options) -> Result<Recovery, StartError> {
        if let Some(data_dir) = &options.data_dir {
            check_directory(data_dir, options.shards)?;
        }
        let shards = (0..options.shards).map(|shard| Shard::open(disk.clone(), options, shard));
        Ok(Recovery { shards: shards.collect::<Result<_, _>>()? })
    }

    /// Ends of the logs, by shard.
    pub fn ends(&self) -> Vec<ShardEnd> {
        self.shards.iter().map(|shard| shard.end.clone()).collect()
    }

    /// Number for the node, above all that were given; `None`: there is none left.
    pub fn next_number(&self) -> Option<NodeId> {
        let highest = self.shards.iter().map(|shard| shard.remains.highest).max()?;
        NodeId::new(highest.checked_add(1)?)
    }

    /// Commits all that the logs hold, and makes the node the only voter of each, with the number under which
    /// it has to start from then on. Where that was interrupted it is to be repeated with the same number.
    /// Blocks.
    ///
    /// The other nodes must never run again with the data that they have: a majority of them would go on as
    /// the former cluster.
    ///
    /// # Errors
    /// A sentence for the operator: the number was given before, or the disk has failed.
    pub fn make_sole_voter(self, id: NodeId) -> Result<(), StartError> {
        self.shards.into_iter().try_for_each(|Shard { mut journal, writer, remains, .. }| {
            remains.become_sole_voter(id, &mut journal, &writer).map_err(StartError::Failed)
        })
    }
}

/// Checks that the directory is whole, and that no shard would be left out.
fn check_directory(data_dir: &Path, shards: u32) -> Result<(), StartError> {
    if let Some(problem) = directory::problems(data_dir).into_iter().next() {
        return Err(StartError::Failed(problem));
    }
    match (shards..SHARDS_MAX).rev().find(|shard| shard_dir(data_dir, *shard).exists()) {
        None => Ok(()),
        Some(last) => Err(StartError::Refused(format!(
            "the data directory {} has {} shards, and the setting shards is {shards}: set it to {}",
            data_dir.display(),
            last + 1,
            last + 1
        ))),
    }
}

impl Shard {
    fn open(disk: Arc<dyn Disk>, options: &Options, shard: u32) -> Result<Shard, StartError> {
        let dir = options.data_dir.as_deref().map(|dir| shard_dir(dir, shard));
        let Some(dir) = dir.filter(|dir| holds_journal(dir)) else {
            return Err(StartError::Refused(format!("there is no data of shard {shard} to recover")));
        };
        let options = sluice_journal::Options {
            commit: Commit::Told,
            reserve_bytes: 0,
            encryption: options.encryption.clone(),
            knows: knows(),
            ..sluice_journal::Options::new(dir)
        };
        let Opened { journal, writer, hard_state, report, .. } = DiskJournal::open(disk, options)?;
        let start = Start::read(&journal, Members::default(), &hard_state, OWN_RECORDS, 0);
        let start = start
            .map_err(|error| StartError::Failed(format!("the log could not be read back: {error:?}")))?;
        let remains = Remains::of(start, &journal).map_err(|error| {
            let advice = match error {
                MemberError::NoVoters => {
                    "start the server if this directory was restored or just begun, otherwise recover another node"
                }
                _ => "recover another node",
            };
            StartError::Refused(format!("shard {shard} has no log that can go on alone: {error}; {advice}"))
        })?;
        let end = ShardEnd {
            shard,
            term: remains.last.term,
            index: journal.next_index() - 1,
            committed_index: journal.committed_index(),
            time_us: report.last_time_us,
            members: remains.members.clone(),
            may_lack_payloads: journal.may_miss_blobs(),
        };
        Ok(Shard { journal, writer, remains, end })
    }
}
