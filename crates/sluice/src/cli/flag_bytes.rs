//! Bytes given by a flag: as text, or from a file.

use super::{CliError, Result};

/// Reads the value of a flag. Text that begins with `@` names a file, `@-` is stdin; `@@` stands for a
/// literal `@` at the beginning.
pub(crate) fn flag_bytes(flag: &str, text: &str) -> Result<Vec<u8>> {
    let read = match text.strip_prefix('@') {
        None => return Ok(text.as_bytes().to_vec()),
        Some(rest) if rest.starts_with('@') => return Ok(rest.as_bytes().to_vec()),
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
        }
        Some(path) => std::fs::read(path),
    };
    read.map_err(|e| CliError::unreadable(&format!("{} of {flag}", &text[1..]), &e))
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
