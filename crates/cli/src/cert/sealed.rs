//! The private key of a CA, sealed with a root key of the data beside which it lies.

use data_encoding::BASE64;
use sluice_journal::{Encryption, RootKeys, sealed_with};

use super::pem::pem;

const LABEL: &str = "SLUICE SEALED KEY";
/// Purpose of the seal, which is part of it.
const PURPOSE: &str = "private key of a CA";

/// True for the text of a key that is sealed.
pub(super) fn is_sealed(text: &str) -> bool {
    text.contains(LABEL)
}

/// True when a key is sealed as new files are encrypted, or these are not.
pub(super) fn fits(text: &str, encryption: &Encryption) -> bool {
    let root = encryption.root_of_new();
    root.is_none() || bytes(text).and_then(|bytes| sealed_with(&bytes)) == root
}

/// Seals a key, as PEM, with the root key of new files; without one it stays as it is.
pub(super) fn seal(key: &str, encryption: &Encryption) -> Result<String, String> {
    match encryption.roots.current().filter(|_| encryption.new_files) {
        None => Ok(key.to_owned()),
        Some(root) => {
            let sealed = root.seal(PURPOSE, key.as_bytes(), &*encryption.random);
            Ok(pem(LABEL, &sealed.map_err(|e| e.to_string())?))
        }
    }
}

/// Opens a key that is sealed.
pub(super) fn open(text: &str, roots: &RootKeys) -> Result<String, String> {
    let bytes = bytes(text).ok_or("it is not sealed in a format that this version knows")?;
    let key = roots.open(PURPOSE, &bytes).map_err(|e| e.to_string())?;
    String::from_utf8(key.to_vec()).map_err(|_| "it holds no text".to_owned())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let lines = text.lines().filter(|line| !line.starts_with('-'));
    BASE64.decode(lines.collect::<String>().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use sluice_journal::RootKey;

    use super::*;

    #[test]
    fn a_key_is_sealed_as_new_files_are_and_opens_again() {
        let key = pem("PRIVATE KEY", &[7; 100]);
        let [one, two] = [1, 2].map(|byte| RootKeys::new(vec![RootKey::new([byte; 32])]));
        let plain = Encryption::only_read(one.clone());
        assert_eq!(seal(&key, &plain).unwrap(), key);
        assert!(fits(&key, &plain) && !is_sealed(&key));
        let under_one = Encryption::with(one.clone());
        let sealed = seal(&key, &under_one).unwrap();
        assert!(!fits(&key, &under_one) && fits(&sealed, &under_one) && fits(&sealed, &plain));
        assert!(is_sealed(&sealed) && !fits(&sealed, &Encryption::with(two.clone())));
        assert_eq!(open(&sealed, &one).unwrap(), key);
        let error = open(&sealed, &two).unwrap_err();
        assert!(error.contains(&one.current().unwrap().id().to_string()), "{error}");
        assert!(open("-----BEGIN SLUICE SEALED KEY-----\nAA==\n", &one).is_err());
    }
}
