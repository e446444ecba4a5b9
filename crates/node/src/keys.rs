//! Root keys while the node runs: which are in use, and changing them.

use std::sync::PoisonError;

use sluice_engine::Error;
use sluice_journal::{FsDisk, Keyring, OpenError, RootKeys, keys_needed};
pub use sluice_journal::{KeyId, KeyStatus, KeyUse};

use crate::api::StartError;
pub use crate::api::{KeySource, RotateError};
use crate::directory::{SHARDS_MAX, shard_dir};
use crate::handle::Node;

/// The root keys that it takes to open a data directory, as far as its shards are not damaged.
///
/// # Errors
/// What is wrong with the directory: damage, only if no other shard needs a key.
pub fn needed(data_dir: &std::path::Path) -> Result<Vec<KeyId>, StartError> {
    let (mut needed, mut damaged) = (Vec::new(), None);
    for dir in (0..=SHARDS_MAX).map(|shard| shard_dir(data_dir, shard)).filter(|dir| dir.is_dir()) {
        match keys_needed(&FsDisk, &dir) {
            Err(OpenError::Damaged(damage)) => damaged = damaged.or(Some(damage)),
            found => needed.extend(found?),
        }
    }
    if let (Some(damage), true) = (damaged, needed.is_empty()) {
        return Err(StartError::Damaged(damage));
    }
    needed.sort_unstable();
    needed.dedup();
    Ok(needed)
}

impl Node {
    /// Files and root keys in use, of all shards together.
    ///
    /// # Errors
    /// `invalid_argument` when the data is in memory only; `shutting_down`.
    pub async fn keys(&self) -> Result<KeyStatus, Error> {
        self.with_keyrings(|node| Ok(node.key_status())).await
    }

    /// Gets a new root key, and encrypts what is written from now on under it, without a pause. What was
    /// written before follows as it is compacted.
    ///
    /// # Errors
    /// `invalid_argument` when the data is in memory or not encrypted, or when the source of the keys does
    /// not give a new one with those that files need; `internal` when it, or a shard, has failed to. Trying
    /// again is safe.
    pub async fn rotate_keys(&self) -> Result<KeyStatus, Error> {
        self.with_keyrings(Node::rotate_now).await
    }

    /// Runs what blocks, where that does no harm.
    async fn with_keyrings(
        &self,
        run: impl FnOnce(&Node) -> Result<KeyStatus, Error> + Send + 'static,
    ) -> Result<KeyStatus, Error> {
        if self.inner.data_dir.is_none() {
            return Err(refused(
                "this server keeps its data in memory: there are no encrypted files".to_owned(),
            ));
        }
        let node = self.clone();
        let done = tokio::task::spawn_blocking(move || run(&node)).await;
        done.map_err(|error| Error::Internal { reason: error.to_string() })?
    }

    fn key_status(&self) -> KeyStatus {
        let mut all = KeyStatus::default();
        for keyring in self.inner.keyrings.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let status = keyring.status();
            all.current = status.current;
            for (root, found) in status.uses {
                let sum = all.uses.entry(root).or_default();
                sum.files += found.files;
                sum.bytes += found.bytes;
            }
        }
        // Right after a rotation nothing is under it yet.
        if all.current.is_some() {
            all.uses.entry(all.current).or_default();
        }
        all
    }

    fn rotate_now(&self) -> Result<KeyStatus, Error> {
        // Held, so that two rotations come one after the other.
        let keyrings = self.inner.keyrings.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = keyrings.first() else { return Err(Error::ShuttingDown {}) };
        let (Some(current), Some(source)) = (first.status().current, &self.inner.key_source) else {
            return Err(refused("new files are not encrypted here: there is no key to replace".to_owned()));
        };
        let roots = source.rotate(current).map_err(|error| match error {
            RotateError::Refused(reason) => refused(reason),
            RotateError::Failed(reason) => Error::Internal { reason },
        })?;
        if let Some(missing) = keyrings.iter().find_map(|keyring| first_missing(keyring, &roots)) {
            return Err(refused(format!(
                "the new keys are without {missing}, under which files are still encrypted: nothing was changed; put it \
                 behind the new one, and ask again"
            )));
        }
        for keyring in keyrings.iter() {
            keyring.replace(roots.clone()).map_err(|reason| Error::Internal { reason })?;
        }
        drop(keyrings);
        Ok(self.key_status())
    }
}

/// A key that these files need, and that is not among the roots.
fn first_missing(keyring: &Keyring, roots: &RootKeys) -> Option<KeyId> {
    let ids = roots.ids();
    keyring.status().uses.into_keys().flatten().find(|used| !ids.contains(used))
}

fn refused(reason: String) -> Error {
    Error::InvalidArgument { field: "key_source".to_owned(), reason }
}
