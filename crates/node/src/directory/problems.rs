//! Problems of a data directory that can be seen without opening its shards.

use std::path::Path;

use sluice_journal::{FsDisk, holds_journal, journal_file};

use super::marker::{DirectoryState, Marker, NAME, how_to_state};
use super::shards::{SHARDS_MAX, owner, shard_dir};

/// Problems of a data directory as a whole, as sentences for the operator; the content of its shards is not
/// examined. Writes nothing.
pub fn problems(data_dir: &Path) -> Vec<String> {
    match Marker::read(data_dir) {
        Ok(marker) => problems_of(data_dir, marker, false),
        Err(error) => vec![error.to_string()],
    }
}

/// Problems as [`problems`] tells them; a shard whose data is missing is none where it `may_lack` some.
pub(super) fn problems_of(data_dir: &Path, marker: Option<Marker>, may_lack: bool) -> Vec<String> {
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
    let missing = (0..marker.shards).filter(|shard| !may_lack && !holds(*shard));
    let missing = missing.map(|shard| lost(data_dir, shard));
    let elsewhere = (0..marker.shards_at_most()).filter_map(|shard| misplaced(data_dir, &marker, shard));
    let strangers =
        (marker.shards_at_most()..=SHARDS_MAX).filter(|shard| shard_dir(data_dir, *shard).exists());
    let strange = |shard| {
        format!(
            "{} does not belong to {dir}, which has {} shards: move it elsewhere",
            shard_dir(data_dir, shard).display(),
            marker.shards
        )
    };
    missing.chain(elsewhere).chain(strangers.map(strange)).collect()
}

/// Error about the place or the age of a shard, as a sentence for the operator. `None` also for a shard
/// without a readable manifest, which is reported elsewhere.
fn misplaced(data_dir: &Path, marker: &Marker, shard: u32) -> Option<String> {
    let owner = owner(data_dir, shard)?;
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
