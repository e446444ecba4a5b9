//! Reads of documents.

use crate::core::namespace::NamespaceSlot;
use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::document::DocumentModule;
use crate::document::state::DocumentSlot;
use crate::document::state::body::Body;
use crate::documents::DocumentView;
use crate::id::NamespaceId;

impl DocumentModule {
    /// The document of a key that is not over.
    pub(crate) fn live(&self, namespace: NamespaceId, key: &str, core: &Core) -> Option<DocumentSlot> {
        let slot = self.documents.find(core.namespace_slot(namespace)?, key)?;
        (!self.is_over(slot, core)).then_some(slot)
    }

    /// Number of documents of a namespace, those that are over and not let go of yet included.
    pub(crate) fn documents_in(&self, namespace: NamespaceSlot) -> u64 {
        self.order.len(namespace.index()) as u64
    }

    pub(crate) fn document(&self, namespace: NamespaceId, key: &str, core: &Core) -> Option<DocumentView> {
        self.live(namespace, key, core).map(|slot| self.view(slot))
    }

    pub(crate) fn versions(&self, namespace: NamespaceId, key: &str, core: &Core) -> Vec<DocumentView> {
        let Some(slot) = self.live(namespace, key, core) else { return Vec::new() };
        let current = self.view(slot);
        let former = |former| {
            let former = self.formers.get(former);
            let (content_bytes, blob) = (content_bytes(&former.body, former.head_bytes), former.body.blob);
            let version = former.body.version;
            DocumentView { version, content_bytes, blob, expires_at_us: None, ..current.clone() }
        };
        let formers: Vec<DocumentView> = self.formers_of(slot).map(former).collect();
        std::iter::once(current.clone()).chain(formers).collect()
    }

    pub(crate) fn documents_after(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Vec<DocumentView> {
        let Some(namespace) = core.namespace_slot(namespace) else { return Vec::new() };
        self.order
            .page(namespace.index(), prefix, after, &self.documents.slots)
            .filter(|slot| !self.is_over(*slot, core))
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|slot| self.view(slot))
            .collect()
    }

    pub(crate) fn view(&self, slot: DocumentSlot) -> DocumentView {
        let document = self.documents.slots.get(slot);
        DocumentView {
            key: String::from_utf8_lossy(&document.key).into_owned(),
            version: document.body.version,
            content_bytes: content_bytes(&document.body, document.head_bytes),
            blob: document.body.blob,
            expires_at_us: Some(self.due_us(slot)).filter(|due_us| *due_us != 0),
            history: document.history,
        }
    }
}

fn content_bytes(body: &Body, head_bytes: u16) -> u64 {
    body.bytes() - u64::from(head_bytes)
}
