//! Word in the data directory that a journal of this node has failed while others relied on what was written
//! and not synced. The failure of a sync can take that with it, and the next process sees nothing of it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

const NAME: &str = "failed";

/// Notes it durably, as far as the disk lets it.
pub(crate) fn note(data_dir: &Path) -> io::Result<()> {
    File::create(data_dir.join(NAME))?.sync_all()?;
    File::open(data_dir)?.sync_all()
}

/// True: it was noted.
pub(crate) fn is_noted(data_dir: &Path) -> bool {
    data_dir.join(NAME).exists()
}

/// Forgets it, once the journals say themselves what may be lost.
pub(crate) fn clear(data_dir: &Path) -> io::Result<()> {
    match fs::remove_file(data_dir.join(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
