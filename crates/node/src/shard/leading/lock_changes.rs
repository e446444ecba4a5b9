//! Changes of locks: who watches one is told.

use sluice_engine::id::NamespaceId;

use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::store::Store;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Tells watchers which locks a record has changed, of each once.
    #[cold]
    pub(super) fn tell_lock_changes(&mut self, mut changed: Vec<(NamespaceId, String)>) {
        changed.sort_unstable();
        changed.dedup();
        for (namespace, key) in changed {
            self.leading.lock_watches.tell(namespace, &key);
        }
        self.watch_locks();
    }

    /// Has the engine tell of locks for as long as somebody watches one.
    pub(in crate::shard) fn watch_locks(&mut self) {
        self.engine.watch_locks(self.leading.lock_watches.is_watched());
    }

    /// Ends the watching of locks of deleted namespaces.
    pub(super) fn end_orphaned_lock_watches(&self) {
        self.leading.lock_watches.end(|namespace| self.engine.namespace(namespace).is_none());
    }
}
