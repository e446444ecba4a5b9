//! Directories of the shards, and what their manifests say of their owner.

use std::path::{Path, PathBuf};

use sluice_journal::{FsDisk, Owner, owner_of};

/// Upper limit of shards of a node.
pub(crate) const SHARDS_MAX: u32 = 64;

/// Directory of a shard within the data directory.
pub(crate) fn shard_dir(data_dir: &Path, shard: u32) -> PathBuf {
    data_dir.join(format!("shard-{shard:03}"))
}

/// Identity of the server whose shard was opened last, and the number of the last start that had opened all
/// of so many shards, as far as they tell; `None`: there is no shard.
pub(super) fn latest_start(data_dir: &Path, shards: u32) -> Option<(u64, u64)> {
    let owners: Vec<Owner> = (0..shards).filter_map(|shard| owner(data_dir, shard)).collect();
    let last = owners.iter().max_by_key(|owner| owner.start)?;
    // The last start may have been interrupted before it came to some of them.
    let all = owners.iter().all(|owner| owner.start == last.start);
    Some((last.server, if all { last.start } else { last.start - 1 }))
}

/// Owner of a shard; `None`: it has no manifest that can be read.
pub(super) fn owner(data_dir: &Path, shard: u32) -> Option<Owner> {
    owner_of(&FsDisk, &shard_dir(data_dir, shard)).ok().flatten()
}
