//! A secret that is kept beside the data, such as a private key, sealed with a root key.
//!
//! Layout, little endian: `u32` format version, `u64` id of the root key, 12 bytes nonce, 16 bytes tag, and
//! the encrypted secret. The purpose is authenticated with it, so that one secret is never taken for another.

use std::fmt;
use std::io;

use zeroize::Zeroizing;

use super::cipher::{Aead, TAG};
use super::{Random, RootKey, RootKeys};
use crate::codec::{Put, Reader};
use crate::key_id::KeyId;

const FORMAT_VERSION: u32 = 1;
/// Length of a secret, in bytes.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// Reason for which a sealed secret does not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SealError {
    /// The bytes are no sealed secret of a known format.
    Format,
    /// The root key with this id is not there.
    Key(KeyId),
    /// The bytes were changed, or are sealed for another purpose.
    Changed,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealError::Format => f.write_str("it is not sealed in a format that this version knows"),
            SealError::Key(id) => write!(f, "it is sealed with the root key {id}, which is not there"),
            SealError::Changed => f.write_str("it is damaged: its seal does not fit"),
        }
    }
}

impl RootKey {
    /// Seals a secret of at most 64 KiB for a purpose.
    ///
    /// # Errors
    /// The system gives no random bytes, or the secret is too long.
    pub fn seal(&self, purpose: &str, secret: &[u8], random: &dyn Random) -> io::Result<Vec<u8>> {
        if secret.len() > SECRET_BYTES_MAX {
            return Err(io::Error::other("the secret is too long to be sealed"));
        }
        let mut nonce = [0; 12];
        random.fill(&mut nonce)?;
        let mut secret = Zeroizing::new(secret.to_vec());
        let tag = Aead::new(&self.sealing()).seal(nonce, purpose.as_bytes(), &mut secret);
        let mut sealed = Vec::new();
        sealed.put_u32(FORMAT_VERSION);
        sealed.put_u64(self.id().0);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&tag);
        sealed.extend_from_slice(&secret);
        Ok(sealed)
    }
}

impl RootKeys {
    /// Opens a secret that was sealed with one of these keys for a purpose.
    ///
    /// # Errors
    /// The reason for which it does not open.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let id = sealed_with(sealed).ok_or(SealError::Format)?;
        let parts = || {
            let (nonce, rest) = sealed.get(12..)?.split_first_chunk::<12>()?;
            let (tag, secret) = rest.split_first_chunk::<TAG>()?;
            Some((*nonce, *tag, Zeroizing::new(secret.to_vec())))
        };
        let (nonce, tag, mut secret) = parts().ok_or(SealError::Format)?;
        let root = self.get(id).ok_or(SealError::Key(id))?;
        match Aead::new(&root.sealing()).open(nonce, purpose.as_bytes(), &tag, &mut secret) {
            true => Ok(secret),
            false => Err(SealError::Changed),
        }
    }
}

/// Id of the root key with which a secret is sealed; `None`: the bytes are no sealed secret.
pub fn sealed_with(sealed: &[u8]) -> Option<KeyId> {
    let mut reader = Reader(sealed);
    (reader.u32()? == FORMAT_VERSION).then_some(())?;
    Some(KeyId(reader.u64()?))
}

#[cfg(test)]
mod tests {
    use super::super::SystemRandom;
    use super::*;

    #[test]
    fn a_secret_opens_with_its_key_for_its_purpose_and_unchanged() {
        let [one, other] = [1, 2].map(|byte| RootKey::new([byte; 32]));
        let sealed = one.seal("ca", b"secret", &SystemRandom).unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(sealed_with(&sealed), Some(one.id()));
        let both = RootKeys::new(vec![other.clone(), one.clone()]);
        assert_eq!(**both.open("ca", &sealed).unwrap(), *b"secret");
        assert_eq!(RootKeys::new(vec![other]).open("ca", &sealed), Err(SealError::Key(one.id())));
        assert_eq!(both.open("else", &sealed), Err(SealError::Changed));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(both.open("ca", &changed).is_err(), "{at}");
            assert!(both.open("ca", &sealed[..at]).is_err(), "{at}");
        }
        assert!(one.seal("ca", &vec![0; SECRET_BYTES_MAX + 1], &SystemRandom).is_err());
    }
}
