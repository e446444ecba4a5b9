//! Caller's side of indexes of documents.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use sluice_engine::command::{Command, IndexFill};
use sluice_engine::documents::DocumentView;
use sluice_engine::indexes::{IndexLookup, IndexView, IndexWork};
use sluice_engine::{Error, NamespaceId};

use crate::handle::{LOOK_ITEMS, Node};
use crate::shard::request::{FoundDocument, ShardView};
use crate::shard::store;

/// Most documents that an index finds for one lookup; of more, all documents are looked at instead.
const INDEXED_MAX: usize = 4_096;
/// Most documents whose terms are told together.
const WORK_DOCUMENTS: usize = 100;

/// Documents that an index has found, by key.
#[derive(Debug, Default)]
pub struct IndexedDocuments {
    /// The first of them.
    pub found: Vec<FoundDocument>,
    /// Documents behind those, as they were.
    pub behind: VecDeque<DocumentView>,
}

impl Node {
    /// Declares an index, in the place of one with this name and another pointer.
    ///
    /// # Errors
    /// `limit_exceeded`; `invalid_name`, `invalid_argument`.
    pub async fn index_put(&self, namespace: NamespaceId, name: &str, pointer: &str) -> Result<(), Error> {
        let put = Command::IndexPut { namespace, name, pointer };
        let done = self.propose(namespace, &put).await?.result;
        self.inner.known_indexes.set(namespace, None);
        done.map(drop)
    }

    /// Deletes an index.
    ///
    /// # Errors
    /// `index_not_found`.
    pub async fn index_delete(&self, namespace: NamespaceId, name: &str) -> Result<(), Error> {
        let done = self.propose(namespace, &Command::IndexDelete { namespace, name }).await?.result;
        self.inner.known_indexes.set(namespace, None);
        done.map(drop)
    }

    /// The indexes of a namespace, by name.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn document_indexes(&self, namespace: NamespaceId) -> Result<Vec<IndexView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        self.look(shard, move |at| at.engine.document_indexes(namespace)).await
    }

    /// The indexes of a namespace, as they were less than a second ago.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn known_indexes(&self, namespace: NamespaceId) -> Result<Arc<[IndexView]>, Error> {
        if let Some(known) = self.inner.known_indexes.get(namespace) {
            return Ok(known);
        }
        let indexes: Arc<[IndexView]> = self.document_indexes(namespace).await?.into();
        self.inner.known_indexes.set(namespace, Some(Arc::clone(&indexes)));
        Ok(indexes)
    }

    /// Documents by key that have a term in one of some ranges of an index, and those whose terms it does not
    /// know, whose keys begin with `prefix` and are behind `after`. `None`: there is no such index, it is not
    /// built, or it finds too many.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn indexed_documents(
        &self,
        namespace: NamespaceId,
        index: u64,
        ranges: Vec<RangeInclusive<u128>>,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Option<IndexedDocuments>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let look = move |at: &mut ShardView<'_>| {
            let lookup = IndexLookup { index, ranges: &ranges, prefix: &prefix, after: after.as_deref() };
            let mut views = at.engine.indexed_documents(namespace, &lookup, INDEXED_MAX)?;
            let behind = views.split_off(views.len().min(LOOK_ITEMS));
            Some(IndexedDocuments { found: at.found(views), behind: behind.into() })
        };
        self.look(shard, look).await
    }

    /// Takes the first documents of `behind`, as they are by now; those that are gone are left out. Tells the
    /// key of the last that was taken, too.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn found_again(
        &self,
        namespace: NamespaceId,
        behind: &mut VecDeque<DocumentView>,
    ) -> Result<(Vec<FoundDocument>, Option<String>), Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let views: Vec<DocumentView> = behind.drain(..behind.len().min(LOOK_ITEMS)).collect();
        let last = views.last().map(|view| view.key.clone());
        let look = move |at: &mut ShardView<'_>| {
            let current = views.iter().filter_map(|view| at.engine.document(namespace, &view.key)).collect();
            at.found(current)
        };
        Ok((self.look(shard, look).await?, last))
    }

    /// Number of shards.
    pub fn shards(&self) -> u32 {
        self.inner.mailboxes.len() as u32
    }

    /// True if an index of a shard does not know the terms of some document, as far as this node knows.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`.
    pub async fn has_index_work(&self, shard: u32) -> Result<bool, Error> {
        let look = |at: &mut ShardView<'_>| at.engine.index_work(0, 1).is_some();
        self.stale().look(shard, look).await
    }

    /// Documents of a shard of which an index does not know the terms, with their bytes; `None`: all indexes
    /// know all. Indexes take turns, by their numbers: that behind `behind` is the first.
    ///
    /// # Errors
    /// Those of a node that does not lead.
    pub async fn index_work(
        &self,
        shard: u32,
        behind: u64,
    ) -> Result<Option<(IndexWork, Vec<FoundDocument>)>, Error> {
        let look = move |at: &mut ShardView<'_>| {
            let mut work = at.engine.index_work(behind, WORK_DOCUMENTS)?;
            let found = at.found(std::mem::take(&mut work.documents));
            Some((work, found))
        };
        self.look(shard, look).await
    }

    /// Tells the terms of documents.
    ///
    /// # Errors
    /// `namespace_not_found`; `limit_exceeded`: there is no room for so many terms.
    pub async fn index_fill(&self, fill: IndexFill<'_>) -> Result<(), Error> {
        self.propose(fill.namespace, &Command::IndexFill(fill)).await?.result.map(drop)
    }
}

impl ShardView<'_> {
    /// Documents with their bytes, or where these lie.
    pub(crate) fn found(&mut self, views: Vec<DocumentView>) -> Vec<FoundDocument> {
        let found = |view: DocumentView| FoundDocument { blob: store::read(self.journal, view.blob), view };
        views.into_iter().map(found).collect()
    }
}
