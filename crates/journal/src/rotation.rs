//! Root keys of an open journal: which are in use, and their replacement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::key_id::KeyId;
use crate::keys::RootKeys;
use crate::lock::lock;
use crate::log::shared::Shared;

/// Handle that shows and replaces the root keys, from any thread.
#[derive(Clone, Debug)]
pub struct Keyring {
    shared: Arc<Shared>,
}

/// Root keys in use by a journal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KeyStatus {
    /// Root key of new files; `None`: they are not encrypted.
    pub current: Option<KeyId>,
    /// Use of each root key; `None`: files that are not encrypted.
    pub uses: BTreeMap<Option<KeyId>, KeyUse>,
}

/// Files under one root key.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KeyUse {
    /// Number of segments, snapshots and files of copied blobs.
    pub files: u64,
    /// Bytes of those files that are complete.
    pub bytes: u64,
}

impl Keyring {
    pub(crate) fn new(shared: Arc<Shared>) -> Keyring {
        Keyring { shared }
    }

    /// The root keys in use now.
    pub fn status(&self) -> KeyStatus {
        let keys = self.shared.files.keys();
        let manifest = lock(&self.shared.manifest).clone();
        let sealed = manifest.sealed.iter().map(|s| (s.number, s.len + s.table_len));
        let open = manifest.open.iter().map(|open| (open.number, 0));
        let copied = manifest.blob_files.iter().map(|b| (b.number, b.data_len + b.table_len));
        let snapshot = manifest.snapshot.iter().map(|s| (s.number, s.len));
        let mut status = KeyStatus { current: keys.current(), ..KeyStatus::default() };
        for (number, bytes) in sealed.chain(open).chain(copied).chain(snapshot) {
            let found = status.uses.entry(keys.root_of(number)).or_default();
            found.files += 1;
            found.bytes += bytes;
        }
        // Files that are being made, too: they will need their keys.
        let named = manifest.file_numbers();
        for (_, root) in keys.used().into_iter().filter(|(number, _)| !named.contains(number)) {
            status.uses.entry(Some(root)).or_default().files += 1;
        }
        status
    }

    /// Replaces the root keys. Whatever is written after the return is under the first of them: the growing
    /// segment ends with its last batch. Older files keep their root key until compaction or a snapshot
    /// rewrites them. Blocks for some writes.
    ///
    /// # Errors
    /// The old keys stay in use.
    pub fn replace(&self, roots: RootKeys) -> Result<(), String> {
        let shared = &self.shared;
        if let Some(what) = shared.failure() {
            return Err(what.clone());
        }
        if shared.files.keys().current().is_none() {
            return Err("new files are not encrypted here, so that there is no key to replace".to_owned());
        }
        // Held, so that the writer, when it finds no segment ready, waits with making one.
        let mut manifest = lock(&shared.manifest);
        // They were made for the key of before.
        shared
            .give_up_ready(&mut manifest)
            .map_err(|error| format!("the segments that were made ahead could not be given up: {error}"))?;
        shared.files.keys().replace_roots(roots, shared.next_number())?;
        drop(manifest);
        shared.roll.store(true, Relaxed);
        shared.maintenance_signal.notify();
        Ok(())
    }
}
