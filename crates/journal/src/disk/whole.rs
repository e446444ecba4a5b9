//! Replacing a file as a whole.

use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, OpenMode};

/// Where a file is written before it is renamed.
pub(crate) fn aside(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.tmp"))
}

/// Puts a file in place as a whole: written aside, synced, renamed. The directory is yet to be synced.
pub(crate) fn write_whole(disk: &dyn Disk, dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let aside = write_aside(disk, dir, name, bytes)?;
    disk.rename(&aside, &dir.join(name))
}

pub(crate) fn write_aside(disk: &dyn Disk, dir: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let aside = aside(dir, name);
    match disk.remove(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.open(&aside, OpenMode::CreateNew)?;
    file.write_at(bytes, 0)?;
    file.sync_data()?;
    Ok(aside)
}
