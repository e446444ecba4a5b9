//! Data keys of an open journal.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::disk::Disk;
use crate::disk::whole::write_whole;
use crate::key_id::KeyId;
use crate::keys::cipher::FileKey;
use crate::keys::keyring::{KEYRING, Ring};
use crate::keys::{Encryption, Random, RootKeys};
use crate::lock::lock;
use crate::log::manifest::Manifest;
use crate::open_error::OpenError;

/// Number of keys made ahead, so that one replacement of the keyring serves this many files.
const SPARES: u64 = 64;

/// Data keys of a directory's files. A key is in the keyring, durably, before its file is made.
#[derive(Debug)]
pub(crate) struct Keys {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    random: Arc<dyn Random>,
    new_files: bool,
    state: Mutex<KeyState>,
}

#[derive(Debug)]
struct KeyState {
    roots: RootKeys,
    /// The keyring on the disk, without keys that are no longer needed.
    ring: Ring,
    keys: HashMap<u64, Arc<FileKey>>,
    /// Numbers of files whose keys were made ahead and not yet taken.
    spares: BTreeSet<u64>,
}

impl Keys {
    /// Loads the keys of all files that the manifest names; `None`: a new directory, for a journal of this
    /// identity.
    pub(crate) fn load(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        manifest: Option<&Manifest>,
        identity: u64,
        encryption: &Encryption,
    ) -> Result<Arc<Keys>, OpenError> {
        if encryption.new_files && encryption.roots.current().is_none() {
            return Err(OpenError::Setting(
                "new files are to be encrypted, and no root key is given".to_owned(),
            ));
        }
        let mut ring = Ring::empty(identity);
        let mut keys = HashMap::new();
        if let Some(manifest) = manifest.filter(|manifest| manifest.keyring > 0) {
            ring = load_ring(&**disk, dir, manifest)?;
            keys = unwrap_all(&ring, dir, manifest, &encryption.roots)?;
        }
        let state = KeyState { roots: encryption.roots.clone(), ring, keys, spares: BTreeSet::new() };
        Ok(Arc::new(Keys {
            disk: disk.clone(),
            dir: dir.to_owned(),
            random: encryption.random.clone(),
            new_files: encryption.new_files,
            state: Mutex::new(state),
        }))
    }

    /// The keys of a directory without encryption.
    #[cfg(test)]
    pub(crate) fn none() -> Arc<Keys> {
        let disk: Arc<dyn Disk> = Arc::new(crate::disk::FsDisk);
        Keys::load(&disk, Path::new(""), None, 0, &Encryption::default()).expect("nothing to load")
    }

    /// Prepares for the first file: drops the keys of files that do not exist, since whatever was written
    /// with them is lost, and makes new ones.
    pub(crate) fn begin(&self, manifest: &Manifest) -> io::Result<()> {
        let mut state = lock(&self.state);
        let before = state.ring.keys.len();
        let named = manifest.file_numbers();
        state.ring.keys.retain(|number, _| named.contains(number));
        if self.new_files {
            self.make(&mut state, manifest.next_file)
        } else if state.ring.keys.len() < before {
            let ring = Ring { generation: state.ring.generation + 1, ..state.ring.clone() };
            self.put(&mut state, ring)
        } else {
            Ok(())
        }
    }

    /// Source of keys, salts and nonces.
    pub(crate) fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// The key of an existing file; `None`: it is not encrypted.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<FileKey>> {
        lock(&self.state).keys.get(&number).cloned()
    }

    /// Takes the key for a new file; `None`: new files are not encrypted.
    pub(crate) fn take(&self, number: u64) -> io::Result<Option<Arc<FileKey>>> {
        if !self.new_files {
            return Ok(None);
        }
        let mut state = lock(&self.state);
        if !state.spares.contains(&number) {
            self.make(&mut state, number)?;
        }
        state.spares.remove(&number);
        Ok(state.keys.get(&number).cloned())
    }

    /// Drops the key of a file that no manifest names any more.
    pub(crate) fn forget(&self, number: u64) {
        let mut state = lock(&self.state);
        state.ring.keys.remove(&number);
        state.keys.remove(&number);
    }

    /// Generation of the keyring on the disk; 0: none.
    pub(crate) fn generation(&self) -> u64 {
        lock(&self.state).ring.generation
    }

    /// Root key of new files; `None`: they are not encrypted.
    pub(crate) fn current(&self) -> Option<KeyId> {
        lock(&self.state).roots.current().map(|root| root.id()).filter(|_| self.new_files)
    }

    /// Root key that wraps the key of a file.
    pub(crate) fn root_of(&self, number: u64) -> Option<KeyId> {
        lock(&self.state).ring.keys.get(&number).map(|key| key.root)
    }

    /// Numbers of the files that have keys, each with its root key.
    pub(crate) fn used(&self) -> Vec<(u64, KeyId)> {
        let state = lock(&self.state);
        let used = state.ring.keys.iter().filter(|(number, _)| !state.spares.contains(number));
        used.map(|(number, key)| (*number, key.root)).collect()
    }

    /// Replaces the root keys: new files get the first one. `next`: number of the next file.
    pub(crate) fn replace_roots(&self, roots: RootKeys, next: u64) -> Result<(), String> {
        let mut state = lock(&self.state);
        let used = |number: &u64| !state.spares.contains(number);
        let missing =
            state.ring.keys.iter().find(|(number, key)| used(number) && roots.get(key.root).is_none());
        if let Some((number, key)) = missing {
            return Err(format!(
                "file {number} still needs the root key {}, which is not among them",
                key.root
            ));
        }
        let before = std::mem::replace(&mut state.roots, roots);
        let made = self.make(&mut state, next);
        made.map_err(|error| {
            state.roots = before;
            format!("cannot replace {}: {error}", self.dir.join(KEYRING).display())
        })
    }

    /// Encodes a keyring with the keys of these files, and returns its generation; `None`: none of them has a
    /// key.
    pub(crate) fn select(&self, manifest: &Manifest) -> Option<(Vec<u8>, u64)> {
        let mut ring = lock(&self.state).ring.clone();
        let named = manifest.file_numbers();
        ring.keys.retain(|number, _| named.contains(number));
        (!ring.keys.is_empty()).then(|| (ring.encode(), ring.generation))
    }

    /// Makes keys for files from `next` on that have none, under the current root key. Keys made ahead under
    /// another root key are dropped.
    fn make(&self, state: &mut KeyState, next: u64) -> io::Result<()> {
        let Some(root) = state.roots.current().cloned() else {
            return Err(io::Error::other("there is no root key"));
        };
        let mut ring = Ring { generation: state.ring.generation + 1, ..state.ring.clone() };
        let outdated = |number: &u64| ring.keys.get(number).is_none_or(|key| key.root != root.id());
        let gone: Vec<u64> = state.spares.iter().copied().filter(outdated).collect();
        gone.iter().for_each(|number| _ = ring.keys.remove(number));
        let mut made = Vec::new();
        for number in next..next + SPARES {
            if !ring.keys.contains_key(&number) {
                let key = FileKey::generate(root.id(), &*self.random)?;
                ring.wrap(number, &key, &root, &*self.random)?;
                made.push((number, Arc::new(key)));
            }
        }
        self.put(state, ring)?;
        for number in &gone {
            state.spares.remove(number);
            state.keys.remove(number);
        }
        state.spares.extend(made.iter().map(|(number, _)| *number));
        state.keys.extend(made);
        Ok(())
    }

    /// Replaces the keyring. After an error either version may be on the disk: keys that only one of them
    /// holds are not used any more.
    fn put(&self, state: &mut KeyState, ring: Ring) -> io::Result<()> {
        let put = write_whole(&*self.disk, &self.dir, KEYRING, &ring.encode());
        match put.and_then(|()| self.disk.sync_dir(&self.dir)) {
            Ok(()) => state.ring = ring,
            Err(error) => {
                for number in std::mem::take(&mut state.spares) {
                    state.ring.keys.remove(&number);
                    state.keys.remove(&number);
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

fn load_ring(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<Ring, OpenError> {
    let path = dir.join(KEYRING);
    let damaged = |what| Err(OpenError::damaged(&path, 0, None, what));
    match Ring::load(disk, dir)? {
        None => damaged("the keyring is missing, and the manifest relies on it"),
        Some(ring) if ring.identity != manifest.identity => damaged("the keyring is another journal's"),
        Some(ring) if ring.generation < manifest.keyring => {
            damaged("the keyring is older than the one that the manifest relies on")
        }
        Some(ring) => Ok(ring),
    }
}

fn unwrap_all(
    ring: &Ring,
    dir: &Path,
    manifest: &Manifest,
    roots: &RootKeys,
) -> Result<HashMap<u64, Arc<FileKey>>, OpenError> {
    let named = manifest.file_numbers();
    let mut keys = HashMap::new();
    for (number, wrapped) in ring.keys.iter().filter(|(number, _)| named.contains(number)) {
        let Some(root) = roots.get(wrapped.root) else {
            let (needed, given) = (wrapped.root, roots.ids());
            return Err(OpenError::Key { dir: dir.to_owned(), needed, given });
        };
        let Some(key) = ring.unwrap(*number, wrapped, root) else {
            let what = format!("the key of file {number} is not the one that was wrapped");
            return Err(OpenError::damaged(&dir.join(KEYRING), 0, None, what));
        };
        keys.insert(*number, Arc::new(key));
    }
    Ok(keys)
}

/// The root keys needed to open a directory; empty when it holds no journal, or nothing in it is encrypted.
pub fn keys_needed(disk: &dyn Disk, dir: &Path) -> Result<Vec<KeyId>, OpenError> {
    let Some(manifest) = Manifest::load(disk, dir)?.filter(|manifest| manifest.keyring > 0) else {
        return Ok(Vec::new());
    };
    let ring = load_ring(disk, dir, &manifest)?;
    let named = manifest.file_numbers();
    let keys = ring.keys.iter().filter(|(number, _)| named.contains(number));
    let roots: BTreeSet<KeyId> = keys.map(|(_, key)| key.root).collect();
    Ok(roots.into_iter().collect())
}
