//! A state of another node in the place of the present one: this node was so far behind that the log which it
//! lacks is gone.

use super::Shard;
use super::damage::Damaged;
use super::store::Store;
use crate::clock::Clock;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Goes on with the state that the store has installed, if it has. Only a follower is sent one, so that
    /// nobody waits here but callers of a former leadership: what became of their records cannot be told.
    pub(super) fn take_over(&mut self) {
        let Some(engine) = self.store.take_state() else { return };
        let before = std::mem::replace(&mut self.engine, *engine);
        debug_assert!(self.applying.is_none(), "the store is polled when all that it gave is applied");
        self.snapshotting = None;
        self.damaged = Damaged::default();
        self.give_up_in_flight();
        if let Some(placement) = &self.placement {
            placement.follow_state(&before.namespaces(), &self.engine.namespaces());
        }
        if let Some(limits) = &self.limits {
            limits.set(self.engine.limits());
        }
        let (shard, index) = (self.number, self.engine.applied_index());
        tracing::info!(shard, index, "a state of another node was taken over");
    }
}
