//! The file `keyring`: the wrapped data keys of a directory's files.
//!
//! It is written aside, synced, renamed, and the directory is synced, like the manifest. Layout: magic, `u32`
//! format version, `u32` checksum of the rest; `u64` the journal's identity, `u64` generation, `u32` number
//! of keys; per key `u64` number of its file, `u64` id of its root key, 12 bytes nonce, 32 bytes wrapped key
//! and 16 bytes tag. Identity and number are authenticated with the key. The generation grows with each
//! replacement; the manifest stores the minimum that it relies on, by which a missing or older keyring is
//! told from a journal without one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use zeroize::Zeroizing;

use super::cipher::{Aead, FileKey, SecretBytes, TAG};
use super::{Random, RootKey};
use crate::codec::{Put, Reader};
use crate::disk::{Disk, OpenMode, read_exact_at};
use crate::key_id::KeyId;
use crate::open_error::OpenError;

/// File name of the keyring.
pub(crate) const KEYRING: &str = "keyring";

const MAGIC: [u8; 8] = *b"SLUICEKR";
const FORMAT_VERSION: u32 = 1;

/// Length of an encoded key, in bytes.
const ENTRY: usize = 8 + 8 + 12 + 32 + TAG;

/// A wrapped data key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrapped {
    /// Root key that unwraps it.
    pub(crate) root: KeyId,
    nonce: [u8; 12],
    secret: [u8; 32],
    tag: [u8; TAG],
}

/// Content of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ring {
    pub(crate) identity: u64,
    pub(crate) generation: u64,
    /// Wrapped keys, by the number of their file.
    pub(crate) keys: BTreeMap<u64, Wrapped>,
}

impl Ring {
    /// A keyring without keys.
    pub(crate) fn empty(identity: u64) -> Ring {
        Ring { identity, generation: 0, keys: BTreeMap::new() }
    }

    /// Adds a key.
    pub(crate) fn wrap(
        &mut self,
        number: u64,
        key: &FileKey,
        root: &RootKey,
        random: &dyn Random,
    ) -> io::Result<()> {
        let mut nonce = [0; 12];
        random.fill(&mut nonce)?;
        let mut secret = *key.secret.0;
        let tag = Aead::new(&root.wrapping()).seal(nonce, &self.context(number), &mut secret);
        self.keys.insert(number, Wrapped { root: root.id(), nonce, secret, tag });
        Ok(())
    }

    /// Unwraps a key; `None`: it does not authenticate.
    pub(crate) fn unwrap(&self, number: u64, wrapped: &Wrapped, root: &RootKey) -> Option<FileKey> {
        let mut secret = Zeroizing::new(wrapped.secret);
        let context = self.context(number);
        let opens = Aead::new(&root.wrapping()).open(wrapped.nonce, &context, &wrapped.tag, &mut *secret);
        opens.then_some(FileKey { secret: SecretBytes(secret), root: wrapped.root, is_new: false })
    }

    /// Additional data authenticated with a key.
    fn context(&self, number: u64) -> [u8; 16] {
        let mut context = [0; 16];
        context[..8].copy_from_slice(&self.identity.to_le_bytes());
        context[8..].copy_from_slice(&number.to_le_bytes());
        context
    }

    /// Encodes the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(20 + self.keys.len() * ENTRY);
        body.put_u64(self.identity);
        body.put_u64(self.generation);
        body.put_u32(self.keys.len() as u32);
        for (number, key) in &self.keys {
            body.put_u64(*number);
            body.put_u64(key.root.0);
            body.extend_from_slice(&key.nonce);
            body.extend_from_slice(&key.secret);
            body.extend_from_slice(&key.tag);
        }
        let mut out = MAGIC.to_vec();
        out.put_u32(FORMAT_VERSION);
        out.put_u32(crc32fast::hash(&body));
        out.extend_from_slice(&body);
        out
    }

    /// Decodes `bytes`, the content of `path`.
    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Ring, OpenError> {
        let mut reader = Reader(bytes);
        let damaged = |offset, what| OpenError::damaged(path, offset, None, what);
        if reader.take(8) != Some(&MAGIC[..]) {
            return Err(damaged(0, "it does not begin as a keyring does"));
        }
        let short = || damaged(bytes.len() as u64, "the keyring ends early");
        let found = reader.u32().ok_or_else(short)?;
        let sum = reader.u32().ok_or_else(short)?;
        if found != FORMAT_VERSION {
            return Err(OpenError::Format { file: path.to_owned(), found, known: FORMAT_VERSION });
        }
        if sum != crc32fast::hash(reader.0) {
            return Err(damaged(16, "the keyring does not match its checksum"));
        }
        decode_body(&mut reader).ok_or_else(short)
    }

    /// Reads the keyring of a directory; `None` when it has none.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Ring>, OpenError> {
        let path = dir.join(KEYRING);
        let file = match disk.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::Io { file: path, action: "open", error }),
        };
        let len = file.len().map_err(OpenError::io(&path, "read"))?;
        let mut bytes = vec![0; len as usize];
        read_exact_at(&*file, &mut bytes, 0).map_err(OpenError::io(&path, "read"))?;
        Ring::decode(&path, &bytes).map(Some)
    }
}

fn decode_body(reader: &mut Reader<'_>) -> Option<Ring> {
    let mut ring = Ring { identity: reader.u64()?, generation: reader.u64()?, keys: BTreeMap::new() };
    for _ in 0..reader.count(ENTRY)? {
        let number = reader.u64()?;
        let key = Wrapped {
            root: KeyId(reader.u64()?),
            nonce: reader.take(12)?.try_into().ok()?,
            secret: reader.take(32)?.try_into().ok()?,
            tag: reader.take(TAG)?.try_into().ok()?,
        };
        ring.keys.insert(number, key);
    }
    reader.0.is_empty().then_some(ring)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SystemRandom;

    #[test]
    fn a_keyring_comes_back_and_any_flipped_byte_is_seen() {
        let root = RootKey::new([3; 32]);
        let mut ring = Ring { generation: 9, ..Ring::empty(7) };
        for number in [1, 5] {
            let key = FileKey::generate(root.id(), &SystemRandom).unwrap();
            ring.wrap(number, &key, &root, &SystemRandom).unwrap();
            let found = ring.unwrap(number, &ring.keys[&number], &root).unwrap();
            assert_eq!((*found.secret.0, found.root), (*key.secret.0, root.id()));
            assert!(!found.is_new, "it only opens");
        }
        let path = Path::new("keyring");
        let mut bytes = ring.encode();
        assert_eq!(Ring::decode(path, &bytes).unwrap(), ring);
        for at in 0..bytes.len() {
            bytes[at] ^= 0x20;
            assert!(Ring::decode(path, &bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x20;
            assert!(Ring::decode(path, &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_key_opens_with_its_root_key_for_its_file_and_its_journal_only() {
        let root = RootKey::new([3; 32]);
        let mut ring = Ring::empty(7);
        let key = FileKey::generate(root.id(), &SystemRandom).unwrap();
        ring.wrap(1, &key, &root, &SystemRandom).unwrap();
        let wrapped = ring.keys[&1].clone();
        assert!(ring.unwrap(1, &wrapped, &RootKey::new([4; 32])).is_none());
        assert!(ring.unwrap(2, &wrapped, &root).is_none());
        assert!(Ring { identity: 8, ..ring.clone() }.unwrap(1, &wrapped, &root).is_none());
        let shown = format!("{key:?}");
        assert!(shown.contains('…'), "{shown}");
    }
}
