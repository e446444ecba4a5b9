//! Indexes, as those see them who look: an index that is built finds the documents that a look at each of
//! them would find, and besides only those whose terms nobody has told.

use sluice_engine::command::IndexFill;
use sluice_engine::id::NamespaceId;
use sluice_engine::indexes::{IndexLookup, IndexView};

use super::Record;
use super::documents::Documents;
use crate::model::{Checked, ensure};
use crate::workload::{TERMS, terms_of};

/// Most documents of a lookup: more than there are.
const MOST: usize = 1_000;

impl Documents {
    /// Notes the documents of which an index is told the terms.
    pub(super) fn filled(&mut self, fill: &IndexFill<'_>) {
        for filled in fill.documents {
            let live = self.live.get_mut(&(fill.namespace, filled.key.to_owned()));
            if let Some(document) = live.filter(|live| live.version.revision == filled.revision) {
                document.told.insert(fill.index);
            }
        }
    }

    /// Compares what indexes find with what is there.
    pub(super) fn are_found(&self, record: &Record<'_>) -> Checked {
        for namespace in record.engine.namespaces() {
            for index in record.engine.document_indexes(namespace.id) {
                for term in TERMS {
                    self.is_found(record, namespace.id, &index, term)?;
                }
            }
        }
        Ok(())
    }

    fn is_found(
        &self,
        record: &Record<'_>,
        namespace: NamespaceId,
        index: &IndexView,
        term: u128,
    ) -> Checked {
        let lookup = IndexLookup { index: index.number, ranges: &[term..=term], prefix: "", after: None };
        let Some(found) = record.engine.indexed_documents(namespace, &lookup, MOST) else {
            ensure!(!index.is_built, "{index:?} is built, and finds nothing");
            return Ok(());
        };
        let found: Vec<String> = found.into_iter().map(|view| view.key).collect();
        let live = self.live.iter().filter(|((of, _), document)| {
            let is_unknown = !document.told.contains(&index.number);
            *of == namespace
                && (is_unknown || terms_of(&index.pointer, document.content_bytes).contains(&term))
        });
        let live: Vec<String> = live.map(|((_, key), _)| key.clone()).collect();
        ensure!(found == live, "{index:?} finds {found:?} by {term}, and there are {live:?}");
        Ok(())
    }
}
