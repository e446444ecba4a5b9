//! The module's part in namespaces: what it holds of one, and how that goes when the namespace is deleted.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::id::NamespaceId;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::state::work::Work;

impl QueueModule {
    /// Makes room for what new namespaces will hold.
    pub(crate) fn cover_namespaces(&mut self, core: &Core) {
        self.indexes.cover(core.namespaces.slots());
    }

    /// Queues of a namespace, by its slot.
    pub(crate) fn queues_in(&self, slot: NamespaceSlot) -> u64 {
        self.indexes.get(slot).queues.len() as u64
    }

    /// Begins to sweep a namespace that is marked as deleted; its consumers are detached at once.
    pub(crate) fn delete_namespace(
        &mut self,
        namespace: NamespaceId,
        slot: NamespaceSlot,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        core.begin_sweep(slot);
        self.detach_all(Some(namespace), core, out);
        self.begin_work(Work::Namespace(slot), core, out);
    }
}
