//! Reads of locks.

use crate::engine::Engine;
use crate::id::NamespaceId;
use crate::locks::LockView;

impl Engine {
    /// The lock of a key, with the first `detail` of its holders and of those that wait; `None`: it is free.
    pub fn lock(&self, namespace: NamespaceId, key: &str, detail: usize) -> Option<LockView> {
        self.locks.lock(namespace, key, detail, &self.core)
    }

    /// Locks that are not free and whose keys begin with `prefix`, in the order of their keys after `after`,
    /// each with its first holder and the first that waits; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn locks_after(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<LockView> {
        self.locks.locks_after(namespace, prefix, after, limit, &self.core)
    }
}
