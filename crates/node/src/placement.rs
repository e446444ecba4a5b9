//! The shard of each namespace. The truth is in shard 0's engine; this is the node's copy of it.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::query::NamespaceView;
use sluice_engine::{Engine, Error, deleted_namespace};

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

/// The table; all callers and shard 0 share it.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    tables: RwLock<Tables>,
}

impl Placement {
    /// Takes up the namespaces that shard 0 knows.
    pub(crate) fn take_up(&self, views: &[NamespaceView]) {
        for view in views {
            self.insert(&view.name, NamespacePlace { namespace: view.id, shard: view.shard });
        }
    }

    /// Follows a record that shard 0 has applied: another node may have proposed it.
    pub(crate) fn follow(&self, engine: &Engine, outcome: &Outcome, body: &[u8]) {
        if let Reply::Namespace { namespace } = outcome.reply
            && let Some(view) = engine.namespace(namespace)
        {
            self.take_up(&[view]);
        }
        if let Some(deleted) = deleted_namespace(body)
            && engine.namespace(deleted).is_none()
        {
            self.forget(deleted);
        }
    }

    fn forget(&self, namespace: NamespaceId) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if tables.by_id.remove(&namespace).is_some() {
            tables.by_name.retain(|_, place| place.namespace != namespace);
        }
    }

    pub(crate) fn insert(&self, name: &str, place: NamespacePlace) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
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

    pub(crate) fn shard_of(&self, namespace: NamespaceId) -> Result<u32, Error> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let missing = || Error::NamespaceNotFound { namespace: format!("#{}", namespace.0) };
        tables.by_id.get(&namespace).copied().ok_or_else(missing)
    }
}
