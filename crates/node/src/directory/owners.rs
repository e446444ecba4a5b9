//! Whether each shard is where it belongs and is no older copy, by what its manifest says of its owner.

use std::path::Path;

use sluice_journal::{FsDisk, Owner, owner_of};

use super::{Marker, NAME, how_to_state, shard_dir};

/// Identity of the server whose shard was opened last, and the number of the last start that had opened all
/// of so many shards, as far as they tell; `None`: there is no shard.
pub(super) fn latest(data_dir: &Path, shards: u32) -> Option<(u64, u64)> {
    let owners: Vec<Owner> = (0..shards).filter_map(|shard| read(data_dir, shard)).collect();
    let last = owners.iter().max_by_key(|owner| owner.start)?;
    // The last start may have been interrupted before it came to some of them.
    let all = owners.iter().all(|owner| owner.start == last.start);
    Some((last.server, if all { last.start } else { last.start - 1 }))
}

/// What is wrong with the place or the age of a shard, as a sentence for the operator. Nothing is said of one
/// without a manifest that can be read: that is told elsewhere.
pub(super) fn problem(data_dir: &Path, marker: &Marker, shard: u32) -> Option<String> {
    let owner = read(data_dir, shard)?;
    let path = shard_dir(data_dir, shard);
    let dir = path.display();
    if owner.server != marker.identity {
        return Some(format!(
            "{dir} does not belong to {}: another server made it: move it elsewhere, and bring this server's own \
             directory back, or restore the latest backup",
            data_dir.display()
        ));
    }
    if owner.shard != shard {
        return Some(format!(
            "{dir} is not where it belongs: it holds shard {} of this server: rename it to {}, and bring the directory of \
             shard {shard} back",
            owner.shard,
            shard_dir(data_dir, owner.shard).display()
        ));
    }
    if owner.start < marker.start {
        return Some(format!(
            "{dir} was last used at start {}, and the server has since had start {}: it is an older copy: bring the newer \
             directory back, or restore all shards from one backup",
            owner.start, marker.start
        ));
    }
    let file = data_dir.join(NAME);
    (owner.start > marker.start.saturating_add(1)).then(|| {
        format!(
            "{} is from start {}, and {dir} was last used at start {}: the file is an older copy: {}",
            file.display(),
            marker.start,
            owner.start,
            how_to_state(&marker.shards.to_string(), &file)
        )
    })
}

fn read(data_dir: &Path, shard: u32) -> Option<Owner> {
    owner_of(&FsDisk, &shard_dir(data_dir, shard)).ok().flatten()
}
