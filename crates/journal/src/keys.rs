//! Encryption at rest: AES-256-GCM over everything that a journal writes, except the [manifest](crate::log)
//! and heads.
//!
//! Each file has its own random *data key*. Data keys are in the [keyring](keyring), a file of the directory,
//! each wrapped (encrypted) by a *root key*, which is never stored there. The operator keeps the root key:
//! its [id](crate::KeyId) is stored with every data key, so that an error can name a missing one.
//!
//! Why no nonce is ever used twice with one key:
//! - A data key read from the keyring only opens. Only a key made by this process seals, for a file that it
//!   makes, under a number that no file had before. So no start, no cut by recovery (which copies what is
//!   good into a new file), and no copied or restored directory goes on with a key with which something was
//!   sealed.
//! - The nonces of a segment's batches are counted in the key itself: each chunk takes the next one, and none
//!   is given back. So it does not matter what a failed, torn or repeated write has left at the same place,
//!   or what was filled with zeros or skipped up to the next sector. A batch that is encoded again at another
//!   place is sealed again.
//! - Other files are written once, from beginning to end, with a key derived from the data key and a random
//!   salt of their own. The nonce is the chunk's number. So a table rebuilt under its old number has another
//!   key.
//! - A root key wraps with random nonces, of which two are equal with a probability of about 2⁻³³ after 2³²
//!   files.
//!
//! Files divided into chunks of at most [`cipher::CHUNK`] can be read from the middle: one blob costs one or
//! two chunks. A chunk is bound to its place by its nonce, and in a segment also by the head of its batch,
//! which is authenticated with it.

pub(crate) mod chunks;
pub(crate) mod cipher;
pub(crate) mod keyring;
mod root;
mod sealed;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use ring::rand::SecureRandom;

use crate::key_id::KeyId;
pub use root::{RootKey, RootKeys};
pub use sealed::{SealError, sealed_with};

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
