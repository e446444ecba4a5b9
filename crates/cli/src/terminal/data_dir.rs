//! Checks of data directories named on the command line.

use std::io::ErrorKind;
use std::path::Path;

use sluice_journal::{Disk as _, FsDisk};

use super::{CliError, Fault, Result};

/// The remark about a server that was killed, or whose machine lost power.
pub(crate) const NOT_IN_ORDER: &str =
    "the server was not stopped in order: nobody can know whether its last writes are all present";

/// Refuses a path that exists and is no directory, or that cannot be read. A missing path is accepted.
pub(crate) fn expect_directory(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(found) if !found.is_dir() => {
            Err(CliError::usage(format!("{} is a file, not a data directory of Sluice", path.display()))
                .hint(
                    "Give the directory that `sluice serve --data-dir` uses; it holds shard-000 and so on.",
                ))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(CliError::unreadable(&path.display().to_string(), &error))
        }
        _ => Ok(()),
    }
}

/// Refuses a data directory that a server uses.
pub(crate) fn expect_stopped(path: &Path) -> Result<()> {
    if !FsDisk.is_locked(&path.join("shard-000")).unwrap_or(false) {
        return Ok(());
    }
    let used = format!("a server uses the data directory {}", path.display());
    Err(CliError::of(Fault::InUse, used).hint("Stop it, and start it again afterwards."))
}
