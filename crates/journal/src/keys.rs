//! Encryption at rest: AES-256-GCM over everything that a journal writes, but for the [manifest](crate::log)
//! and heads.
//!
//! Each file has a *data key* of its own, which is random. Data keys lie in the [keyring](keyring), a file of
//! the directory, each wrapped (encrypted) by a *root key*, which never lies there. The root key is the
//! operator's: its [id](crate::KeyId) stands with every data key, so that it can be said which one is
//! missing.
//!
//! Why no nonce is ever used twice under one key:
//! - a data key that was read from the keyring only opens. What seals is only ever a key that this process
//!   has made, for a file that it makes, under a number that no file had before. So a start, a cut by
//!   recovery (which copies what is good into a new file), a directory that was copied or set back to an
//!   older state: none of them goes on with a key that something was sealed with.
//! - the nonces of a segment's batches are counted, in the key itself: each chunk takes the next one, and
//!   none is given back. So it does not matter what a failed, torn or repeated write has left at the same
//!   place, nor what was filled with zeros ahead or skipped up to the next sector. A batch that is encoded
//!   anew at another place is sealed anew.
//! - other files are written once, from beginning to end, under a key derived from the data key and a random
//!   salt of their own. The nonce is the chunk's number. So a table that is rebuilt, under its old number,
//!   has another key.
//! - a root key wraps with random nonces, some 2⁻³³ likely to meet after 2³² files.
//!
//! What is cut into chunks of at most [`cipher::CHUNK`] can be read from the middle: one blob costs one chunk
//! or two. A chunk is bound to its place: by its nonce, and, in a segment, by the head of its batch, which is
//! authenticated with it.

pub(crate) mod chunks;
pub(crate) mod cipher;
pub(crate) mod keyring;
mod root;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use ring::rand::SecureRandom;

use crate::key_id::KeyId;
pub use root::{RootKey, RootKeys};

/// Source of random bytes for keys, salts and nonces.
pub trait Random: Send + Sync + Debug {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// Random bytes of the operating system.
#[derive(Clone, Copy, Default, Debug)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let filled = ring::rand::SystemRandom::new().fill(bytes);
        filled.map_err(|_| io::Error::other("the operating system gives no random bytes"))
    }
}

/// Encryption settings of a journal.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// Root keys; new files get the first, existing files are read with any.
    pub roots: RootKeys,
    /// True when new files are encrypted.
    pub new_files: bool,
    /// Source of random bytes. Simulators set it, to get the same bytes each time.
    pub random: Arc<dyn Random>,
}

/// No encryption, and no root keys.
impl Default for Encryption {
    fn default() -> Encryption {
        Encryption::only_read(RootKeys::default())
    }
}

impl Encryption {
    /// Encryption of new files under the first of these keys.
    pub fn with(roots: RootKeys) -> Encryption {
        Encryption { roots, new_files: true, random: Arc::new(SystemRandom) }
    }

    /// Root key of new files; `None`: they are not encrypted.
    pub fn root_of_new(&self) -> Option<KeyId> {
        self.roots.current().map(RootKey::id).filter(|_| self.new_files)
    }

    /// No encryption of new files; these keys read existing ones.
    pub fn only_read(roots: RootKeys) -> Encryption {
        Encryption { roots, new_files: false, random: Arc::new(SystemRandom) }
    }
}
