//! A full count of what is kept of uploads and attachments.

use std::collections::BTreeMap;

use crate::core::agree;
use crate::core::namespace::NamespaceSlot;
use crate::document::DocumentModule;
use crate::document::attachment::Attachments;
use crate::document::state::attachment::{Chain, ExtentSlot};

impl DocumentModule {
    /// Compares sets, chains, timers and orders with each other, and adds the bytes of each namespace.
    pub(crate) fn recount_attachments(&self, bytes: &mut BTreeMap<NamespaceSlot, u64>) -> Result<(), String> {
        let attachments = &self.attachments;
        let sets = self
            .documents
            .slots
            .iter()
            .filter_map(|(_, document)| Some((document.namespace, document.attached.some()?)));
        let mut named = attachments.orphans.len() as u64;
        for (namespace, set) in sets {
            *bytes.entry(namespace).or_insert(0) += attachments.sets.get(set).bytes;
            named += 1;
        }
        agree("sets of attachments", named, attachments.sets.used().into())?;
        for (_, upload) in attachments.uploads.iter() {
            *bytes.entry(upload.namespace).or_insert(0) += upload.progress.bytes;
        }
        attachments.recount_orders()?;
        attachments.recount_chains()
    }
}

impl Attachments {
    fn recount_orders(&self) -> Result<(), String> {
        let used = u64::from(self.uploads.used());
        agree("uploads in order", self.order_of_uploads.recount(&self.uploads)?, used)?;
        let of_namespaces = self.uploads_of.values().map(|count| u64::from(*count)).sum();
        agree("uploads of namespaces", of_namespaces, used)?;
        let is_timed = |&(bucket, slot): &(usize, _)| {
            crate::core::wheel::Timed::bucket(self.uploads.get(slot)) == bucket as u16
        };
        agree("timers of uploads", self.timers().filter(is_timed).count() as u64, used)?;
        let mut listed = 0;
        for (set, kept) in self.sets.iter() {
            let slots: Vec<_> = self.of_set(set, &[]).collect();
            if !slots.is_sorted_by(|one, next| self.rank(*one) < self.rank(*next)) {
                return Err(format!("attachments of set {set} are not in order"));
            }
            agree("attachments of a set", slots.len() as u64, kept.count.into())?;
            let bytes = slots.iter().map(|slot| self.slots.get(*slot).bytes).sum();
            agree("bytes of a set", bytes, kept.bytes)
                .or_else(|why| if self.orphans.contains(&set) { Ok(()) } else { Err(why) })?;
            listed += slots.len() as u64;
        }
        agree("attachments in order", listed, self.slots.used().into())
    }

    fn recount_chains(&self) -> Result<(), String> {
        let uploads = self.uploads.iter().map(|(_, upload)| (upload.chain, upload.progress.bytes));
        let attachments = self.slots.iter().map(|(_, attachment)| (attachment.chain, attachment.bytes));
        let mut extents = 0;
        for (chain, bytes) in uploads.chain(attachments) {
            let slots: Vec<ExtentSlot> = self.extents_of(chain).collect();
            let of = |slot: &ExtentSlot| self.extents.get(*slot);
            agree("bytes of a chain", slots.iter().map(|slot| of(slot).bytes()).sum(), bytes)?;
            let chunks: usize = slots.iter().map(|slot| of(slot).chunks.len()).sum();
            agree("chunks of a chain", chunks as u64, chain.chunks.into())?;
            if slots.last().copied() != chain.last.some() {
                return Err(format!("a chain does not end with extent {}", chain.last));
            }
            extents += slots.len();
        }
        for first in &self.freed {
            extents += self.extents_of(Chain { first: *first, ..Chain::EMPTY }).count();
        }
        agree("extents", extents as u64, self.extents.used().into())?;
        agree("chunks", self.owned_blobs().count() as u64, self.chunks.into())
    }
}
