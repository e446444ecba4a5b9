//! Bytes given by a flag: as text, or from a file.

use std::path::Path;

use super::Result;
use super::bounded::{FILE_BYTES_MAX, read_file};

/// Reads the value of a flag. Text that begins with `@` names a file, `@-` is stdin; `@@` stands for a
/// literal `@` at the beginning.
pub(crate) fn flag_bytes(flag: &str, text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix('@') {
        None => Ok(text.as_bytes().to_vec()),
        Some(rest) if rest.starts_with('@') => Ok(rest.as_bytes().to_vec()),
        Some(path) => read_file(Path::new(path), FILE_BYTES_MAX).map_err(|error| error.context(flag)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_at_sign_names_a_file() {
        let read = |text: &str| flag_bytes("--result", text).ok();
        assert_eq!(read("plain").as_deref(), Some(&b"plain"[..]));
        assert_eq!(read("@@home").as_deref(), Some(&b"@home"[..]));
        assert!(flag_bytes("--result", "@/no/such/file").is_err());
    }
}
