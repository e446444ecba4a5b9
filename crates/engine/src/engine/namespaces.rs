//! Namespaces as a whole: what the core keeps of them, and what modules hold of them.

use crate::core::PAGE_ITEMS_MAX;
use crate::core::namespace::NamespaceSlot;
use crate::engine::Engine;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::outcome::{Outcome, Reply};
use crate::query::NamespaceView;
use crate::settings::Quotas;

impl Engine {
    pub(super) fn namespace_create(
        &mut self,
        number: Option<NamespaceId>,
        name: &str,
        shard: u32,
        quotas: Quotas,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace = self.core.namespace_create(number, name, shard, quotas)?;
        self.queue.cover_namespaces(&self.core);
        self.locks.cover_namespaces(&self.core);
        self.documents.cover_namespaces(&self.core);
        out.reply = Reply::Namespace { namespace };
        Ok(())
    }

    /// Deletes a namespace. It and what it holds is gone at once for all who ask; each module sweeps its part
    /// in slices.
    pub(super) fn namespace_delete(
        &mut self,
        namespace: NamespaceId,
        force: bool,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let slot = self.core.find_namespace(namespace)?;
        self.documents.end_some(&mut self.core, out);
        let found = self.core.namespaces.get(slot);
        if namespace == NamespaceId::SYS || namespace == NamespaceId::DEFAULT {
            let reason = format!("{:?} always exists and cannot be deleted", found.name);
            return Err(Error::InvalidArgument { field: "namespace".into(), reason });
        }
        if !force && !self.two_phase.prepared_in(namespace).is_empty() {
            return Err(Error::InDoubt { what: format!("namespace {:?}", found.name) });
        }
        let (queues, documents) = (self.queue.queues_in(slot), self.documents.documents_in(slot));
        if queues + documents > 0 && !force {
            return Err(Error::NamespaceNotEmpty { namespace: found.name.to_string(), queues, documents });
        }
        self.drop_parts(namespace, out)?;
        let messages = self.core.namespaces.get(slot).messages;
        self.core.mark_deleted(slot);
        // All begin before one of them may end.
        self.locks.begin_sweep(slot, &mut self.core);
        self.documents.begin_sweep(slot, &mut self.core);
        self.queue.delete_namespace(namespace, slot, &mut self.core, out);
        self.locks.sweep_slice(&mut self.core, out);
        self.documents.sweep_slice(&mut self.core, out);
        out.reply = Reply::Count { messages };
        Ok(())
    }

    /// One namespace.
    pub fn namespace(&self, namespace: NamespaceId) -> Option<NamespaceView> {
        self.core.namespace_slot(namespace).map(|slot| self.namespace_view(slot))
    }

    /// The number behind a name.
    pub fn namespace_by_name(&self, name: &str) -> Option<NamespaceId> {
        let slot = self.core.namespace_by_name_slot(name)?;
        Some(NamespaceId(self.core.namespaces.get(slot).number))
    }

    /// The number that the next new namespace gets: greater than all that were ever given or told here.
    pub fn next_namespace(&self) -> NamespaceId {
        NamespaceId(self.core.next_namespace)
    }

    /// All namespaces, by number. Takes long with many: not while serving, when [`Engine::namespaces_after`]
    /// is used.
    pub fn namespaces(&self) -> Vec<NamespaceView> {
        let mut all = Vec::new();
        loop {
            let page = self.namespaces_after(all.last().map(|last: &NamespaceView| last.id), PAGE_ITEMS_MAX);
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    /// Namespaces by number, after `after`; at most `limit` and [`PAGE_ITEMS_MAX`].
    pub fn namespaces_after(&self, after: Option<NamespaceId>, limit: usize) -> Vec<NamespaceView> {
        let from = after.map_or(0, |after| u64::from(after.0) + 1);
        let (found, _) = self.core.namespace_numbers.from(from, usize::MAX);
        found
            .map(|(_, slot)| slot)
            .filter(|&slot| !self.core.namespaces.get(slot).deleted)
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|slot| self.namespace_view(slot))
            .collect()
    }

    fn namespace_view(&self, slot: NamespaceSlot) -> NamespaceView {
        let namespace = self.core.namespaces.get(slot);
        NamespaceView {
            id: NamespaceId(namespace.number),
            name: namespace.name.to_string(),
            shard: namespace.shard,
            quotas: namespace.quotas,
            queues: self.queue.queues_in(slot),
            messages: namespace.messages,
            bytes: namespace.bytes,
            created_at_us: namespace.created_at_us,
        }
    }

    /// The high end of the ids that a namespace has given so far.
    pub fn last_sequence(&self, namespace: NamespaceId) -> Option<u64> {
        self.core.namespace_slot(namespace).map(|slot| self.core.namespaces.get(slot).last_sequence)
    }

    /// Two numbers that differ once a message was sent to the namespace, or has left it: the high end of its
    /// ids, and how many it holds.
    pub fn comings_and_goings(&self, namespace: NamespaceId) -> Option<(u64, u64)> {
        let namespace = self.core.namespaces.get(self.core.namespace_slot(namespace)?);
        Some((namespace.last_sequence, namespace.messages))
    }
}
