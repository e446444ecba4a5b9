//! The shard of each namespace. The truth is in shard 0's engine; this is the node's copy of it. In a cluster
//! it follows what all shards apply, since a node may have applied more of another shard than of shard 0.
//! Numbers of namespaces grow, so of two with one name the greater is the later.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::query::NamespaceView;
use sluice_engine::{Engine, Error, changed_namespace, sets_limits};

/// Where a namespace lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NamespacePlace {
    pub(crate) namespace: NamespaceId,
    pub(crate) shard: u32,
}

#[derive(Debug, Default)]
struct Tables {
    by_name: HashMap<String, NamespacePlace>,
    by_id: HashMap<NamespaceId, u32>,
}

/// The table; all callers and shards share it.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    tables: RwLock<Tables>,
    /// Number of records that were followed.
    changes: AtomicU64,
}

impl Placement {
    /// Takes up the namespaces that shard 0 knows.
    pub(crate) fn take_up(&self, views: &[NamespaceView]) {
        for view in views {
            self.insert(&view.name, NamespacePlace { namespace: view.id, shard: view.shard });
        }
    }

    /// Number that differs when a shard has created, deleted or changed a namespace since, or its limits.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Follows a record that a shard has applied: another node may have proposed it.
    pub(crate) fn follow(&self, engine: &Engine, outcome: &Outcome, body: &[u8]) {
        if let Reply::Namespace { namespace } = outcome.reply
            && let Some(view) = engine.namespace(namespace)
        {
            self.take_up(&[view]);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(changed) = changed_namespace(body) {
            if engine.namespace(changed).is_none() {
                self.forget(changed);
            }
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        if sets_limits(body) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Follows a shard whose state was replaced by a later one; these are the namespaces that it knew before
    /// and knows now.
    pub(crate) fn follow_state(&self, before: &[NamespaceView], now: &[NamespaceView]) {
        let is_gone = |view: &&NamespaceView| !now.iter().any(|other| other.id == view.id);
        before.iter().filter(is_gone).for_each(|view| self.forget(view.id));
        self.take_up(now);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn forget(&self, namespace: NamespaceId) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if tables.by_id.remove(&namespace).is_some() {
            tables.by_name.retain(|_, place| place.namespace != namespace);
        }
    }

    /// Enters a namespace, unless there is a later one of the same name.
    pub(crate) fn insert(&self, name: &str, place: NamespacePlace) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let former = tables.by_name.get(name).map(|former| former.namespace);
        if former.is_some_and(|former| former > place.namespace) {
            return;
        }
        former.and_then(|former| tables.by_id.remove(&former));
        tables.by_name.insert(name.to_owned(), place);
        tables.by_id.insert(place.namespace, place.shard);
    }

    pub(crate) fn remove(&self, name: &str) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = tables.by_name.remove(name) {
            tables.by_id.remove(&place.namespace);
        }
    }

    pub(crate) fn by_name(&self, name: &str) -> Result<NamespacePlace, Error> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables
            .by_name
            .get(name)
            .copied()
            .ok_or_else(|| Error::NamespaceNotFound { namespace: name.chars().take(128).collect() })
    }

    /// Names of those of these namespaces that exist, as far as this node knows.
    pub(crate) fn names(&self, of: &BTreeSet<NamespaceId>) -> BTreeMap<NamespaceId, String> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let places = tables.by_name.iter().filter(|(_, place)| of.contains(&place.namespace));
        places.map(|(name, place)| (place.namespace, name.clone())).collect()
    }

    pub(crate) fn shard_of(&self, namespace: NamespaceId) -> Result<u32, Error> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let missing = || namespace.not_found();
        tables.by_id.get(&namespace).copied().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(namespace: u32, shard: u32) -> NamespacePlace {
        NamespacePlace { namespace: NamespaceId(namespace), shard }
    }

    #[test]
    fn a_shard_that_is_behind_does_not_bring_back_the_former_namespace_of_a_name() {
        let placement = Placement::default();
        placement.insert("shop", place(9, 2));
        placement.insert("shop", place(5, 1));
        assert_eq!(placement.by_name("shop"), Ok(place(9, 2)));
        placement.forget(NamespaceId(5));
        assert_eq!(placement.by_name("shop"), Ok(place(9, 2)));
        placement.insert("shop", place(11, 1));
        assert_eq!(placement.by_name("shop"), Ok(place(11, 1)));
        assert!(placement.shard_of(NamespaceId(9)).is_err());
    }
}
