//! Seal of the key of a cluster's CA, which lies on each node: with the root key of the node's new files.

use sluice_journal::{Encryption, KeyId, RootKeys};
use sluice_node::keys::{KeySource, RotateError};

use crate::cert::Folder;
use crate::root_keys::{RootKeyStore, ServerEncryption};

/// Source of root keys that seals the CA's key with each new one, before the data follow: the former root key
/// may be thrown away when nothing of the data needs it any more.
#[derive(Debug)]
pub(super) struct SealingSource {
    store: RootKeyStore,
    folder: Folder,
}

impl SealingSource {
    /// Seals the key of the CA in this folder with the root key that was chosen. The server runs without it
    /// too, until it needs a new certificate.
    pub(super) fn begin(chosen: &ServerEncryption, folder: &Folder) -> SealingSource {
        if let Err(error) = folder.seal_ca(&chosen.encryption) {
            tracing::warn!(
                "the key of the cluster's CA could not be sealed with the root key: {}",
                error.message()
            );
        }
        SealingSource { store: chosen.store.clone(), folder: folder.clone() }
    }
}

impl KeySource for SealingSource {
    fn rotate(&self, current: KeyId) -> Result<RootKeys, RotateError> {
        let roots = self.store.rotate(current)?;
        let sealed = self.folder.seal_ca(&Encryption::with(roots.clone()));
        sealed.map_err(|error| RotateError::Refused(error.message().to_owned()))?;
        Ok(roots)
    }
}
