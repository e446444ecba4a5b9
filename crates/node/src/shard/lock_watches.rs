//! Watchers of locks. A watcher hears that its lock has changed, and then looks at it: so it costs the shard
//! a look-up for each change, and gathers nothing however slow it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use tokio::sync::watch;

use super::feed::share;

/// Wait suggested to a watcher that found too many, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// The watchers of the locks of a shard under one leadership.
#[derive(Debug, Default)]
pub struct LockWatches {
    of_namespaces: Mutex<FxHashMap<NamespaceId, OfNamespace>>,
    /// Upper limit of watchers; one namespace may have three quarters of them.
    most: usize,
}

/// The watchers of the locks of one namespace.
#[derive(Debug, Default)]
struct OfNamespace {
    /// Sender of the changes of each key.
    keys: FxHashMap<Box<str>, watch::Sender<()>>,
    watchers: usize,
}

/// Changes of one lock, for one watcher; dropping it ends watching.
#[derive(Debug)]
pub struct LockChanges {
    watches: Arc<LockWatches>,
    namespace: NamespaceId,
    key: Box<str>,
    changed: watch::Receiver<()>,
}

impl LockWatches {
    pub(super) fn new(most: usize) -> Arc<LockWatches> {
        Arc::new(LockWatches { most, ..LockWatches::default() })
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<NamespaceId, OfNamespace>> {
        self.of_namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch the lock of a key: the watcher hears of changes from now on.
    ///
    /// # Errors
    /// `overloaded`: there are too many watchers.
    pub(crate) fn watch(self: &Arc<Self>, namespace: NamespaceId, key: &str) -> Result<LockChanges, Error> {
        let mut all = self.lock();
        let watchers: usize = all.values().map(|known| known.watchers).sum();
        let of_namespace = all.get(&namespace).map_or(0, |known| known.watchers);
        if watchers >= self.most || of_namespace >= share(self.most) {
            return Err(Error::Overloaded { what: "watchers of locks", retry_after_ms: RETRY_AFTER_MS });
        }
        let known = all.entry(namespace).or_default();
        known.watchers += 1;
        let changed = known.keys.entry(key.into()).or_insert_with(|| watch::Sender::new(())).subscribe();
        drop(all);
        Ok(LockChanges { watches: Arc::clone(self), namespace, key: key.into(), changed })
    }

    /// True if somebody watches a lock.
    pub(super) fn is_watched(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Tells the watchers of a lock that it has changed.
    pub(super) fn tell(&self, namespace: NamespaceId, key: &str) {
        if let Some(sender) = self.lock().get(&namespace).and_then(|known| known.keys.get(key)) {
            sender.send_replace(());
        }
    }

    /// Ends the watching of all locks for which `is_over` is true of the namespace.
    pub(super) fn end(&self, is_over: impl Fn(NamespaceId) -> bool) {
        self.lock().retain(|namespace, _| !is_over(*namespace));
    }

    fn leave(&self, changes: &LockChanges) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(&changes.namespace) else { return };
        // One that was ended is no more among those that are counted.
        if changes.changed.has_changed().is_err() {
            return;
        }
        known.watchers -= 1;
        // Its own receiver is still there.
        if known.keys.get(&changes.key).is_some_and(|sender| sender.receiver_count() <= 1) {
            known.keys.remove(&changes.key);
        }
        if known.watchers == 0 {
            all.remove(&changes.namespace);
        }
    }
}

impl LockChanges {
    /// Waits until the lock has changed since this was called last. Dropping the future loses nothing. False:
    /// it is not told any more, since the leadership or the namespace has ended.
    pub async fn next(&mut self) -> bool {
        self.changed.changed().await.is_ok()
    }
}

impl Drop for LockChanges {
    fn drop(&mut self) {
        self.watches.leave(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

    #[tokio::test]
    async fn watchers_hear_of_their_lock_and_leave_nothing_behind() {
        let watches = LockWatches::new(8);
        let (mut one, mut two) =
            (watches.watch(NAMESPACE, "k").unwrap(), watches.watch(NAMESPACE, "k").unwrap());
        let other = watches.watch(NamespaceId(7), "k").unwrap();
        watches.tell(NAMESPACE, "other");
        watches.tell(NAMESPACE, "k");
        watches.tell(NAMESPACE, "k");
        assert!(one.next().await && two.next().await);
        assert!([&one, &two, &other].iter().all(|changes| !changes.changed.has_changed().unwrap()));
        drop(one);
        watches.tell(NAMESPACE, "k");
        assert!(two.next().await);
        watches.end(|namespace| namespace == NAMESPACE);
        assert!(!two.next().await && !other.changed.has_changed().unwrap());
        // Who was ended does not count among those that come later.
        let again = watches.watch(NAMESPACE, "k").unwrap();
        drop(two);
        assert_eq!(watches.lock()[&NAMESPACE].watchers, 1);
        drop((again, other));
        assert!(!watches.is_watched());
    }

    #[test]
    fn one_namespace_leaves_watchers_to_others() {
        let watches = LockWatches::new(8);
        let mut kept = Vec::new();
        let mut enter =
            |namespace| watches.watch(NamespaceId(namespace), "k").map(|it| kept.push(it)).is_ok();
        assert_eq!((0..8).filter(|_| enter(1)).count(), 6);
        assert!(enter(2) && enter(2) && !enter(2));
    }
}
