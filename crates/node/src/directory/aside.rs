//! Copy of what a damaged shard of a node of a cluster had, set aside until the shard has everything from the
//! others.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sluice_journal::{Disk, FsDisk};

use super::shards::shard_dir;

/// Place of what a shard had.
pub(crate) fn aside_dir(data_dir: &Path, shard: u32) -> PathBuf {
    shard_dir(data_dir, shard).with_extension("damaged")
}

/// Sets a damaged shard aside, durably. One copy is kept, the first: a shard that is damaged again before it
/// had everything has nothing that is not from the others, and is removed. What was interrupted is repeated.
pub(crate) fn set_aside(data_dir: &Path, shard: u32) -> io::Result<()> {
    let (dir, aside) = (shard_dir(data_dir, shard), aside_dir(data_dir, shard));
    if aside.try_exists()? {
        fs::remove_dir_all(&dir)?;
    } else {
        fs::rename(&dir, &aside)?;
    }
    FsDisk.sync_dir(data_dir)
}

/// Removes what a shard had before, if anything is kept of it. Returns at once; what is left when the process
/// ends is for the next call.
pub(crate) fn discard(data_dir: &Path, shard: u32) {
    let aside = aside_dir(data_dir, shard);
    if !aside.exists() {
        return;
    }
    std::thread::spawn(move || match fs::remove_dir_all(&aside) {
        Ok(()) => tracing::info!(shard, "the shard has everything again, and {} is removed", aside.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(shard, "cannot remove {}: {error}", aside.display()),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_copy_is_kept_until_it_is_discarded() {
        let dir = tempfile::tempdir().unwrap();
        let (shard, aside) = (shard_dir(dir.path(), 0), aside_dir(dir.path(), 0));
        for content in ["first", "second"] {
            fs::create_dir(&shard).unwrap();
            fs::write(shard.join("manifest"), content).unwrap();
            set_aside(dir.path(), 0).unwrap();
            assert!(!shard.exists());
            assert_eq!(fs::read_to_string(aside.join("manifest")).unwrap(), "first");
        }
        assert!(set_aside(dir.path(), 1).is_err(), "there is nothing of it");
        discard(dir.path(), 0);
        while aside.exists() {
            std::thread::yield_now();
        }
        discard(dir.path(), 0);
    }
}
