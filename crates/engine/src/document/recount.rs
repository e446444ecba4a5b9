//! A full count of what the module keeps.

use std::collections::BTreeMap;

use crate::core::agree;
use crate::core::namespace::NamespaceSlot;
use crate::document::DocumentModule;
use crate::documents::DocumentVersion;

impl DocumentModule {
    /// Compares lists, timers and indexes with the documents. Slow: looks at everything. The bytes of each
    /// namespace's documents.
    pub(crate) fn recount(&self) -> Result<BTreeMap<NamespaceSlot, u64>, String> {
        self.documents.recount()?;
        let used = u64::from(self.documents.slots.used());
        agree("documents in order", self.order.recount(&self.documents.slots)?, used)?;
        agree("documents by change", self.order_of_changes.recount(&self.documents)?, used)?;
        self.ends.recount()?;
        self.recount_terms()?;
        let (mut bytes, mut formers) = (BTreeMap::new(), 0);
        for (slot, document) in self.documents.slots.iter() {
            let of_namespace = bytes.entry(document.namespace).or_insert(0);
            *of_namespace += document.body.bytes();
            let mut versions = vec![document.body.version];
            for former in self.formers_of(slot) {
                let body = self.formers.get(former).body;
                *of_namespace += body.bytes();
                versions.push(body.version);
            }
            let is_later = |one: &DocumentVersion, next: &DocumentVersion| {
                one.version == next.version + 1 && one.revision > next.revision
            };
            if versions.len() > usize::from(document.history) + 1 || !versions.is_sorted_by(is_later) {
                return Err(format!("document {slot} may keep {}, and has {versions:?}", document.history));
            }
            formers += versions.len() as u64 - 1;
        }
        self.recount_attachments(&mut bytes)?;
        agree("former versions", formers, self.formers.used().into())?;
        Ok(bytes)
    }

    /// Compares the terms of documents with those in indexes.
    fn recount_terms(&self) -> Result<(), String> {
        let mut chained = 0;
        for (slot, document) in self.documents.slots.iter() {
            for entry in self.indexes.chain(document.entries) {
                if self.indexes.entries.get(entry).document != slot {
                    return Err(format!("document {slot} has a term of another"));
                }
                chained += 1;
            }
        }
        agree("terms of documents", chained, self.indexes.recount()?)
    }
}
