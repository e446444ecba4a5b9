//! Namespaces: create, set, delete.

use crate::core::namespace::Namespace;
use crate::engine::{Engine, internal};
use crate::error::Error;
use crate::id::NamespaceId;
use crate::outcome::{Outcome, Reply};
use crate::queue::message::lookup::namespace_hash;
use crate::queue::work::Work;
use crate::record::name_rule;
use crate::settings::Quotas;
use crate::store::NIL;

impl Engine {
    pub(crate) fn namespace_create(
        &mut self,
        number: Option<NamespaceId>,
        name: &str,
        shard: u32,
        quotas: Quotas,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let exists = || Error::NamespaceExists { namespace: name.to_owned() };
        if let Some(slot) = self.namespace_by_name_slot(name) {
            let namespace = NamespaceId(self.namespaces.get(slot).number);
            if number != Some(namespace) {
                return Err(exists());
            }
            out.reply = Reply::Namespace { namespace };
            return Ok(());
        }
        name_rule("namespace", name).map_err(internal)?;
        let namespace = number.unwrap_or(NamespaceId(self.next_namespace));
        if namespace.0 == NIL || self.namespace_numbers.get(u64::from(namespace.0)).is_some() {
            return Err(exists());
        }
        if self.namespaces.used() >= self.limits.namespaces {
            let limit = u64::from(self.limits.namespaces);
            return Err(Error::LimitExceeded { what: "namespaces", limit });
        }
        self.add_namespace(Namespace::new(namespace.0, name, shard, quotas, self.now_us));
        out.reply = Reply::Namespace { namespace };
        Ok(())
    }

    pub(crate) fn add_namespace(&mut self, namespace: Namespace) {
        self.next_namespace = self.next_namespace.max(namespace.number + 1);
        let slot = self.namespaces.insert(namespace);
        self.index_namespace(slot);
        self.indexes.add(slot);
    }

    /// Enters a namespace into what is derived from it.
    pub(crate) fn index_namespace(&mut self, slot: u32) {
        let namespace = self.namespaces.get(slot);
        self.namespace_numbers.insert(u64::from(namespace.number), slot);
        if !namespace.deleted {
            self.namespace_names.insert(namespace_hash(&namespace.name), slot);
        }
    }

    pub(crate) fn namespace_by_name_slot(&self, name: &str) -> Option<u32> {
        self.namespace_names.find(namespace_hash(name), |slot| *self.namespaces.get(slot).name == *name)
    }

    pub(crate) fn namespace_set(&mut self, namespace: NamespaceId, quotas: Quotas) -> Result<(), Error> {
        let slot = self.find_namespace(namespace)?;
        self.namespaces.get_mut(slot).quotas = quotas;
        Ok(())
    }

    /// The namespace and what it holds is gone at once for all who ask; its queues are swept in slices.
    pub(crate) fn namespace_delete(
        &mut self,
        namespace: NamespaceId,
        force: bool,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let slot = self.find_namespace(namespace)?;
        let deleted = self.namespaces.get_mut(slot);
        if namespace == NamespaceId::SYS || namespace == NamespaceId::DEFAULT {
            let reason = format!("{:?} is always there and cannot be deleted", deleted.name);
            return Err(Error::InvalidArgument { field: "namespace".into(), reason });
        }
        let queues = self.indexes.get(slot).queues.len() as u64;
        if queues > 0 && !force {
            return Err(Error::NamespaceNotEmpty { namespace: deleted.name.to_string(), queues });
        }
        let messages = deleted.messages;
        deleted.deleted = true;
        self.last_namespace = None;
        self.namespace_names.remove(namespace_hash(&deleted.name), slot);
        self.detach_all(Some(namespace), out);
        self.begin_work(Work::Namespace(slot), out);
        out.reply = Reply::Count { messages };
        Ok(())
    }
}
