//! Files and stdin that are read as a whole, up to a limit: a larger one does not fill the memory.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use serde_json::Value;

use super::format::size;
use super::{CliError, Result};

/// Most bytes of a file for which no smaller limit is known: more than any request may have.
pub(super) const FILE_BYTES_MAX: u64 = 96 << 20;

/// Reads a file, or stdin for `-`, of at most `limit` bytes.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        return read_stdin(limit);
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| CliError::unreadable(&name, &e))?;
    read_source(file, &name, limit)
}

/// Reads stdin, of at most `limit` bytes.
pub(super) fn read_stdin(limit: u64) -> Result<Vec<u8>> {
    read_source(stdin(), "stdin", limit)
}

/// Reads a source that `name` names in errors, of at most `limit` bytes.
fn read_source(source: impl Read, name: &str, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = source.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|e| CliError::unreadable(name, &e))?;
    if bytes.len() as u64 > limit {
        let reason = format!("{name} has more than {}, which is the limit", size(limit));
        return Err(CliError::server("payload_too_large", &reason, &Value::Null));
    }
    Ok(bytes)
}

/// Reads bytes as text.
pub(super) fn text(bytes: Vec<u8>, name: &str) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| CliError::usage(format!("{name} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use sluice_calls::codes::exit;

    use super::*;

    #[test]
    fn no_more_is_read_than_the_limit_and_a_byte() {
        assert_eq!(read_source(&b"abc"[..], "it", 3).unwrap(), b"abc");
        let mut endless = std::io::repeat(b'x');
        let refused = read_source(&mut endless, "it", 1 << 20).unwrap_err();
        assert_eq!(refused.message(), "it has more than 1.0 MiB, which is the limit");
        assert_eq!(refused.exit(), exit::TOO_LARGE);
        assert!(read_file(Path::new("/no/such/file"), 3).is_err());
    }
}
