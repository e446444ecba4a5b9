//! A page of a query: the first documents behind a rank, as many as the page may have.

use std::collections::BTreeMap;

use super::plan::{Match, Rank};
use crate::documents::Document;

/// Most bytes of a page; its first document may be larger.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The first documents so far.
#[derive(Debug)]
pub(super) struct Page {
    /// Most documents.
    documents_max: usize,
    /// Rank behind which the page begins.
    after: Option<Rank>,
    found: BTreeMap<Rank, (Document, usize)>,
    /// Memory of what was found, in bytes.
    bytes: usize,
    /// The first document that has no place in the page.
    cut: Option<Rank>,
}

impl Page {
    pub(super) fn new(documents_max: usize, after: Option<Rank>) -> Page {
        Page { documents_max, after, found: BTreeMap::new(), bytes: 0, cut: None }
    }

    /// Memory that it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a document where it belongs. False: some document has no place in the page.
    pub(super) fn add(&mut self, one: Match) -> bool {
        let Match { rank, document, bytes, .. } = one;
        let is_before = self.after.as_ref().is_some_and(|after| rank <= *after);
        let is_behind = self.cut.as_ref().is_some_and(|cut| rank >= *cut);
        if !is_before && !is_behind {
            self.bytes += bytes;
            self.found.insert(rank, (document, bytes));
        }
        while self.found.len() > self.documents_max || self.bytes > PAGE_BYTES_MAX && self.found.len() > 1 {
            let Some((rank, (_, bytes))) = self.found.pop_last() else { break };
            self.bytes -= bytes;
            self.cut = Some(rank);
        }
        self.cut.is_none()
    }

    /// The documents, and the rank of the last one if there are more behind it.
    pub(super) fn into_documents(self) -> (Vec<Document>, Option<Rank>) {
        let last = self.found.last_key_value().map(|(rank, _)| rank.clone());
        let documents = self.found.into_values().map(|(document, _)| document).collect();
        (documents, last.filter(|_| self.cut.is_some()))
    }
}
