//! Root keys, which the operator keeps.

use std::fmt;
use std::io;

use data_encoding::HEXLOWER_PERMISSIVE;
use zeroize::Zeroizing;

use super::Random;
use super::cipher::{Secret, derive};
use crate::key_id::KeyId;

/// Maximum number of root keys.
const KEYS_MAX: usize = 1000;

/// A key that wraps data keys: 32 bytes, cleared from memory when dropped.
#[derive(Clone)]
pub struct RootKey {
    secret: Secret,
    id: KeyId,
}

impl RootKey {
    /// The key with these bytes.
    pub fn new(secret: [u8; 32]) -> RootKey {
        let secret = Zeroizing::new(secret);
        let named = derive(&secret, &[b"sluice root key id"]);
        let (id, _) = named.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        RootKey { id: KeyId(u64::from_be_bytes(*id)), secret }
    }

    /// Generates a new key.
    pub fn generate(random: &dyn Random) -> io::Result<RootKey> {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(&mut *secret)?;
        Ok(RootKey::new(*secret))
    }

    /// Id of the key, derived from its bytes.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The key as 64 hexadecimal digits, as [`RootKeys::parse`] reads it.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(HEXLOWER_PERMISSIVE.encode(&*self.secret))
    }

    /// Key that wraps data keys, derived from this one.
    pub(crate) fn wrapping(&self) -> Secret {
        derive(&self.secret, &[b"sluice wrapping key"])
    }

    /// Key that seals secrets beside the data, derived from this one.
    pub(super) fn sealing(&self) -> Secret {
        derive(&self.secret, &[b"sluice sealing key"])
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootKey({})", self.id)
    }
}

/// The available root keys: new files use the first; existing files may use any.
#[derive(Clone, Default, Debug)]
pub struct RootKeys(Vec<RootKey>);

impl RootKeys {
    /// A list of keys; the first is for new files.
    pub fn new(keys: Vec<RootKey>) -> RootKeys {
        RootKeys(keys)
    }

    /// Parses keys of 64 hexadecimal digits each, separated by spaces, commas or line ends; a `#` begins a
    /// comment up to the end of the line. Errors say what is wrong, and show nothing of the text.
    pub fn parse(text: &str) -> Result<RootKeys, String> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty()) {
                if word.len() != 64 {
                    let found = word.chars().count();
                    return Err(format!(
                        "line {number} holds a word of {found} characters, where a key has 64 hexadecimal digits"
                    ));
                }
                let bytes = HEXLOWER_PERMISSIVE.decode(word.as_bytes()).map(Zeroizing::new);
                let secret = bytes.ok().and_then(|bytes| <[u8; 32]>::try_from(&bytes[..]).ok());
                let Some(secret) = secret.map(Zeroizing::new) else {
                    return Err(format!(
                        "line {number} holds a key with something else than hexadecimal digits"
                    ));
                };
                keys.push(RootKey::new(*secret));
            }
        }
        match keys.len() {
            0 => Err("there is no key in it; a key has 64 hexadecimal digits".to_owned()),
            1..=KEYS_MAX => Ok(RootKeys(keys)),
            more => Err(format!("it holds {more} keys; at most {KEYS_MAX} are read")),
        }
    }

    /// The key for new files.
    pub fn current(&self) -> Option<&RootKey> {
        self.0.first()
    }

    /// The key with this id.
    pub fn get(&self, id: KeyId) -> Option<&RootKey> {
        self.0.iter().find(|key| key.id == id)
    }

    /// The ids of all keys.
    pub fn ids(&self) -> Vec<KeyId> {
        self.0.iter().map(RootKey::id).collect()
    }

    /// These keys, after a new first one.
    pub fn behind(&self, key: RootKey) -> RootKeys {
        RootKeys([&[key], &self.0[..]].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written_and_nothing_of_them_is_shown() {
        let (one, two) = (RootKey::new([1; 32]), RootKey::new([0xab; 32]));
        let text = format!(
            "# the newest first\n{} # today's\n\n{},\n",
            *one.to_text(),
            two.to_text().to_uppercase()
        );
        let keys = RootKeys::parse(&text).unwrap();
        assert_eq!(keys.ids(), [one.id(), two.id()]);
        assert_ne!(one.id(), two.id());
        let shown = format!("{keys:?} {one:?}");
        assert!(shown.contains(&one.id().to_string()) && !shown.contains(&one.to_text()[..8]), "{shown}");
    }

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        for (text, why) in [
            ("", "there is no key"),
            ("# only words\n", "there is no key"),
            ("\nsecret", "line 2 holds a word of 6 characters"),
            (&"g".repeat(64), "something else than hexadecimal"),
            (&"ü".repeat(32), "something else than hexadecimal"),
        ] {
            let error = RootKeys::parse(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }
}
