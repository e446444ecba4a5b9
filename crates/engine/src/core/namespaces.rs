//! Namespaces: creation, quotas, deletion, and look-ups by number and name.

use crate::core::namespace::{Namespace, NamespaceSlot};
use crate::core::{Core, internal};
use crate::error::Error;
use crate::hash::hash;
use crate::id::NamespaceId;
use crate::rules::name_rule;
use crate::settings::Quotas;
use crate::store::NIL;

fn name_hash(name: &str) -> u64 {
    hash(0, name.as_bytes())
}

impl Core {
    /// Creates a namespace, and returns its number. With `number` it is idempotent for the same name.
    pub(crate) fn namespace_create(
        &mut self,
        number: Option<NamespaceId>,
        name: &str,
        shard: u32,
        quotas: Quotas,
    ) -> Result<NamespaceId, Error> {
        let exists = || Error::NamespaceExists { namespace: name.to_owned() };
        if let Some(slot) = self.namespace_by_name_slot(name) {
            let namespace = NamespaceId(self.namespaces.get(slot).number);
            return if number == Some(namespace) { Ok(namespace) } else { Err(exists()) };
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
        Ok(namespace)
    }

    pub(crate) fn add_namespace(&mut self, namespace: Namespace) {
        self.next_namespace = self.next_namespace.max(namespace.number + 1);
        let slot = self.namespaces.insert(namespace);
        self.index_namespace(slot);
    }

    /// Derives the indexes after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        let slots: Vec<_> = self.namespaces.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.index_namespace(slot));
        self.shared_blobs.rebuild();
    }

    fn index_namespace(&mut self, slot: NamespaceSlot) {
        let namespace = self.namespaces.get(slot);
        self.namespace_numbers.insert(u64::from(namespace.number), slot);
        if !namespace.deleted {
            self.namespace_names.insert(name_hash(&namespace.name), slot);
        }
    }

    pub(crate) fn namespace_by_name_slot(&self, name: &str) -> Option<NamespaceSlot> {
        self.namespace_names.find(name_hash(name), |slot| *self.namespaces.get(slot).name == *name)
    }

    pub(crate) fn namespace_set(&mut self, namespace: NamespaceId, quotas: Quotas) -> Result<(), Error> {
        let slot = self.find_namespace(namespace)?;
        self.namespaces.get_mut(slot).quotas = quotas;
        Ok(())
    }

    /// Marks a namespace as deleted: nobody finds it any more. What modules hold of it is swept in slices:
    /// the last one that ends removes it.
    pub(crate) fn mark_deleted(&mut self, slot: NamespaceSlot) {
        let namespace = self.namespaces.get_mut(slot);
        namespace.deleted = true;
        self.last_namespace = None;
        self.namespace_names.remove(name_hash(&namespace.name), slot);
    }

    /// A module begins to sweep what it holds of a deleted namespace. Each begins before any ends.
    pub(crate) fn begin_sweep(&mut self, slot: NamespaceSlot) {
        self.namespaces.get_mut(slot).sweeping += 1;
    }

    /// A module holds nothing more of a deleted namespace; the last one removes it.
    pub(crate) fn end_sweep(&mut self, slot: NamespaceSlot) {
        let namespace = self.namespaces.get_mut(slot);
        namespace.sweeping -= 1;
        if namespace.sweeping == 0 {
            let number = u64::from(namespace.number);
            self.namespace_numbers.remove(number);
            self.namespaces.remove(slot);
        }
    }

    /// Checks that a namespace may hold so much more.
    #[inline(always)]
    pub(crate) fn admit_to_namespace(
        &self,
        slot: NamespaceSlot,
        messages: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        let namespace = self.namespaces.get(slot);
        namespace.admit_messages(messages)?;
        namespace.admit_bytes(bytes)
    }

    /// As [`Core::admit_to_namespace`]; but nothing more of what it holds too much of already is no refusal.
    pub(crate) fn admit_growth(&self, slot: NamespaceSlot, messages: u64, bytes: u64) -> Result<(), Error> {
        let namespace = self.namespaces.get(slot);
        if messages > 0 {
            namespace.admit_messages(messages)?;
        }
        if bytes > 0 { namespace.admit_bytes(bytes) } else { Ok(()) }
    }

    /// Slot of a namespace that exists.
    #[inline(always)]
    pub(crate) fn live_namespace(&mut self, namespace: NamespaceId) -> Option<NamespaceSlot> {
        if let Some((last, slot)) = self.last_namespace
            && last == namespace
        {
            return Some(slot);
        }
        self.look_up_namespace(namespace)
    }

    #[inline(never)]
    fn look_up_namespace(&mut self, namespace: NamespaceId) -> Option<NamespaceSlot> {
        let slot = self.namespace_slot(namespace)?;
        self.last_namespace = Some((namespace, slot));
        Some(slot)
    }

    /// Like [`Core::live_namespace`]; the error is `namespace_not_found`.
    pub(crate) fn find_namespace(&mut self, namespace: NamespaceId) -> Result<NamespaceSlot, Error> {
        self.live_namespace(namespace).ok_or_else(|| namespace.not_found())
    }

    /// Like [`Core::live_namespace`], for reads.
    #[inline]
    pub(crate) fn namespace_slot(&self, namespace: NamespaceId) -> Option<NamespaceSlot> {
        if let Some((last, slot)) = self.last_namespace
            && last == namespace
        {
            return Some(slot);
        }
        let slot = self.namespace_numbers.get(u64::from(namespace.0))?;
        (!self.namespaces.get(slot).deleted).then_some(slot)
    }
}

impl NamespaceId {
    /// The error that there is no such namespace. Where its name is known, that belongs in place of the
    /// number.
    #[cold]
    pub fn not_found(self) -> Error {
        Error::NamespaceNotFound { namespace: format!("#{}", self.0) }
    }
}
