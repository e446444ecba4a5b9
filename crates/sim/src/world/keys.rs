//! Encryption at rest, in a share of the runs: keys drawn from the seed are changed while the server runs,
//! and are missing or wrong at a start.

use sluice_journal::disk::Disk;
use sluice_journal::{KeyId, RootKey, RootKeys, keys_needed};

use super::World;
use super::config::{Config, shard_dir};
use super::server::{Refusal, open};
use crate::model::Checked;

impl World {
    /// Weight of the next change of keys, or of a start with wrong ones.
    pub(super) fn keys_weight(&self) -> u64 {
        if self.config.is_encrypted() { self.config.trouble.keys } else { 0 }
    }

    /// Changes the root key, or forgets root keys that no file needs any more.
    pub(super) fn change_keys(&mut self) -> Checked {
        if self.rng.chance(1, 3) {
            self.forget_keys();
            return Ok(());
        }
        let encryption = self.config.encryption();
        let root = RootKey::generate(&*encryption.random).map_err(|error| error.to_string())?;
        self.trace(|| format!("  a new root key {}", root.id()));
        // The operator holds the new key before the server does.
        let roots = encryption.roots.behind(root);
        self.config.set_roots(roots.clone());
        for lane in &self.lanes {
            let Some(server) = &lane.server else { continue };
            match server.keyring.replace(roots.clone()) {
                Ok(()) => {}
                Err(why) if self.armed || self.short() || self.tainted || self.disk.is_halted() => {
                    self.trace(|| format!("  the root key was not replaced: {why}"));
                }
                Err(why) => return Err(format!("the root key could not be replaced: {why}")),
            }
        }
        Ok(())
    }

    /// Forgets root keys that the running server does not list as needed. A backup may still need them.
    fn forget_keys(&mut self) {
        if self.backing_up.is_some() {
            return;
        }
        let mut used = Vec::new();
        for lane in &self.lanes {
            let Some(server) = &lane.server else { return };
            let status = server.keyring.status();
            used.extend(status.current);
            used.extend(status.uses.into_keys().flatten());
        }
        let before = self.config.encryption().roots;
        let first = before.current().map(RootKey::id);
        let kept = before.ids().into_iter().filter(|id| used.contains(id) || Some(*id) == first);
        let kept: Vec<RootKey> = kept.filter_map(|id| before.get(id).cloned()).collect();
        self.trace(|| format!("  root keys kept: {kept:?}"));
        self.config.set_roots(RootKeys::new(kept));
    }

    /// Starts on a copy of the disk without the right keys, or without the keyring; the server must refuse
    /// and change nothing.
    pub(super) fn start_without_keys(&mut self) -> Checked {
        if self.tainted || self.lanes[self.at].server.is_none() {
            return Ok(());
        }
        let copy = self.disk.copy(self.rng.fork()).map_err(|error| format!("the copy: {error}"))?;
        let shard = self.at as u32;
        let dir = shard_dir(shard);
        let needed = match keys_needed(&copy, &dir) {
            Ok(needed) => needed,
            Err(error) => return Err(format!("the keyring of a running server cannot be read: {error}")),
        };
        if needed.is_empty() {
            return Err("a server that encrypts has no file that is".to_owned());
        }
        let lost = self.rng.chance(1, 3);
        let mut config = self.config.clone();
        if lost {
            copy.remove(&dir.join("keyring")).map_err(|error| format!("the keyring: {error}"))?;
        } else {
            config.set_roots(self.wrong_keys(&needed)?);
        }
        let before = copy.dump();
        let refusal = match open(&config, shard, &copy, None, &self.clock, None) {
            Ok(_) => return Err("a server has started without its keys".to_owned()),
            Err(refusal) => refusal,
        };
        self.trace(|| format!("  without keys: {refusal}"));
        let told = match &refusal {
            Refusal::Damaged(why) => lost && why.contains("keyring"),
            Refusal::Key(why) => !lost && needed.iter().any(|id| why.contains(&id.to_string())),
            _ => false,
        };
        if !told {
            return Err(format!("a start without keys was refused for another reason: {refusal}"));
        }
        let same = copy.dump() == before;
        same.then_some(())
            .ok_or_else(|| format!("a start was refused ({refusal}), but the directory was changed"))
    }

    /// A wrong set of keys: unrelated ones, or all but one of those needed.
    fn wrong_keys(&mut self, needed: &[KeyId]) -> Result<RootKeys, String> {
        let encryption = self.config.encryption();
        let missing = *self.rng.pick(needed);
        let other = RootKey::generate(&*encryption.random).map_err(|error| error.to_string())?;
        let ids = encryption.roots.ids().into_iter().filter(|id| *id != missing);
        let mut keys: Vec<RootKey> = ids.filter_map(|id| encryption.roots.get(id).cloned()).collect();
        keys.insert(0, other);
        Ok(RootKeys::new(keys))
    }
}

impl Config {
    pub(super) fn is_encrypted(&self) -> bool {
        self.encryption().new_files
    }
}
