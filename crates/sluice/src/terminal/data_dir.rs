//! What is said of a data directory.

use std::io::ErrorKind;
use std::path::Path;

use super::{CliError, Result};

/// What is said of a server that was killed, or whose machine lost power.
pub(crate) const NOT_IN_ORDER: &str =
    "the server was not stopped in order: whether its very last writes are all there cannot be known";

/// Refuses a path that is there and is no directory, or that cannot be looked at. One that is not there is
/// none of its business.
pub(crate) fn expect_directory(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(found) if !found.is_dir() => {
            Err(CliError::usage(format!("{} is a file, and no data directory of Sluice", path.display()))
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
