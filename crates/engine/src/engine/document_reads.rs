//! Reads of documents.

use crate::documents::{ChangePosition, DocumentChanges, DocumentView};
use crate::engine::Engine;
use crate::id::NamespaceId;
use crate::indexes::{IndexLookup, IndexView, IndexWork};

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
    /// behind this place are forgotten already, or the place was never reached: the state is that of a backup
    /// of a time before.
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

    /// Indexes of the documents of a namespace, by name.
    pub fn document_indexes(&self, namespace: NamespaceId) -> Vec<IndexView> {
        self.documents.index_views(namespace, &self.core)
    }

    /// Documents by key that have a term in one of the ranges, and those whose terms the index does not know
    /// yet. `None`: there is no such index, it is not built, or it finds more than `most`.
    pub fn indexed_documents(
        &self,
        namespace: NamespaceId,
        lookup: &IndexLookup<'_>,
        most: usize,
    ) -> Option<Vec<DocumentView>> {
        self.documents.indexed(namespace, lookup, most, &self.core)
    }

    /// Documents, at most `most`, of which an index of some namespace does not know the terms; `None`: all
    /// know all. Indexes take turns, by their numbers: that behind `behind` is the first.
    pub fn index_work(&self, behind: u64, most: usize) -> Option<IndexWork> {
        self.documents.index_work(behind, most, &self.core)
    }
}
