//! Recovery of a cluster whose majority is gone for good, on one node that is not running.

use std::sync::Arc;

use sluice_journal::{Commit, DiskJournal, FsDisk, Journal, Opened, Writer, holds_journal};
use sluice_replica::{Members, NodeId, Remains, Start};

use crate::api::{Options, StartError};
use crate::directory::shard_dir;
use crate::shard::recover::knows;
use crate::shard::replicated::OWN_RECORDS;

/// End of a shard's log, as one node has it. What the lost nodes acknowledged behind it is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardEnd {
    /// Number of the shard.
    pub shard: u32,
    /// Index of the last record.
    pub index: u64,
    /// Index of the last record that this node knows to be committed.
    pub committed_index: u64,
    /// Time of the last record, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// Members in force there.
    pub members: Members,
}

/// A shard that is being recovered.
struct Shard {
    journal: DiskJournal,
    writer: Writer,
    remains: Remains,
    end: ShardEnd,
}

/// Makes a node that is not running the only voter of a cluster of its own, with all that its data directory
/// holds, when `is_agreed` says so of the ends of its logs: what other nodes have beyond them is lost.
/// Returns the number under which the node has to start from then on, above all that were given; `None`: it
/// was not agreed, and nothing has changed. A recovery that was interrupted is to be repeated. Blocks.
///
/// The other nodes must never run again with the data that they have: a majority of them would go on as the
/// former cluster.
///
/// # Errors
/// A sentence for the operator: the directory holds no data of a cluster, or cannot be read or written.
pub fn recover_cluster(
    options: &Options,
    is_agreed: impl FnOnce(&[ShardEnd]) -> bool,
) -> Result<Option<NodeId>, StartError> {
    let shards = (0..options.shards).map(|shard| Shard::open(options, shard));
    let shards: Vec<Shard> = shards.collect::<Result<_, _>>()?;
    let ends: Vec<ShardEnd> = shards.iter().map(|shard| shard.end.clone()).collect();
    if !is_agreed(&ends) {
        return Ok(None);
    }
    let highest = shards.iter().map(|shard| shard.remains.highest).max().unwrap_or_default();
    let Some(id) = NodeId::new(highest + 1) else { return Ok(None) };
    for Shard { mut journal, writer, remains, .. } in shards {
        remains.become_sole_voter(id, &mut journal, &writer).map_err(StartError::Failed)?;
    }
    Ok(Some(id))
}

impl Shard {
    fn open(options: &Options, shard: u32) -> Result<Shard, StartError> {
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
        let Opened { journal, writer, hard_state, report, .. } =
            DiskJournal::open(Arc::new(FsDisk), options)?;
        let start = Start::read(&journal, Members::default(), &hard_state, OWN_RECORDS, 0);
        let start = start
            .map_err(|error| StartError::Failed(format!("the log could not be read back: {error:?}")))?;
        let remains = Remains::of(start, &journal);
        let remains = remains.map_err(|error| StartError::Refused(error.to_string()))?;
        let end = ShardEnd {
            shard,
            index: journal.next_index() - 1,
            committed_index: journal.committed_index(),
            time_us: report.last_time_us,
            members: remains.members.clone(),
        };
        Ok(Shard { journal, writer, remains, end })
    }
}
