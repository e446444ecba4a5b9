//! Reads of documents.

use crate::documents::{ChangePosition, DocumentChanges, DocumentView};
use crate::engine::Engine;
use crate::id::NamespaceId;

impl Engine {
    /// The document of a key.
    pub fn document(&self, namespace: NamespaceId, key: &str) -> Option<DocumentView> {
        self.documents.document(namespace, key, &self.core)
    }

    /// The versions of a document that are kept, the current one first; none: there is no document.
    pub fn document_versions(&self, namespace: NamespaceId, key: &str) -> Vec<DocumentView> {
        self.documents.versions(namespace, key, &self.core)
    }

    /// Documents whose keys begin with `prefix`, in the order of their keys after `after`; at most `limit`
    /// and [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn documents_after(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<DocumentView> {
        self.documents.documents_after(namespace, prefix, after, limit, &self.core)
    }

    /// Changes of the documents whose keys begin with `prefix`, from a place on, at most `limit`: of each
    /// document the last one, and its ends. A part of them may be empty and yet not the last. `None`: ends
    /// behind this place are forgotten already.
    pub fn document_changes(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        from: ChangePosition,
        limit: usize,
    ) -> Option<DocumentChanges> {
        self.documents.changes(namespace, prefix, from, limit, &self.core)
    }

    /// Revision of the last change of a document; 0: there was none.
    pub fn latest_document_change(&self) -> u64 {
        self.documents.latest
    }
}
