//! Reading the documents of a query, a part at a time: no part delays the shard, nor takes much memory.

use std::collections::VecDeque;

use bytes::Bytes;
use sluice_engine::NamespaceId;
use sluice_engine::documents::DocumentView;
use sluice_node::{FoundDocument, IndexedDocuments};

use crate::access::Right;
use crate::error::CallError;
use crate::permit::Permit;

/// Most bytes of contents that are read together; the first content may be larger.
const PART_BYTES_MAX: usize = 1 << 20;
/// Memory that each byte of a content takes while it is looked at: as it is stored, and in the answer.
const BYTES_EACH: usize = 2;

/// The bounds of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    /// Documents to look at.
    pub(super) documents: usize,
    /// Bytes of their contents.
    pub(super) bytes: usize,
    /// Keys that the caller may not read.
    pub(super) passed: usize,
}

/// The documents of a namespace by key, all or those that an index has found, as far as the caller may read
/// them.
pub(super) struct Scan<'p> {
    permit: &'p Permit<'p>,
    namespace: NamespaceId,
    prefix: &'p str,
    most: Most,
    /// Documents that an index has found and that are not read yet; `None`: all documents are looked at.
    indexed: Option<VecDeque<DocumentView>>,
    /// Documents that were found and are not looked at yet.
    found: VecDeque<FoundDocument>,
    /// Key up to which the shard was asked.
    asked: Option<String>,
    is_last: bool,
    /// Key of the document that was looked at last.
    behind: Option<String>,
    documents: usize,
    bytes: usize,
    passed: usize,
}

/// The next part of a scan.
#[derive(Debug)]
pub(super) enum Part {
    /// Documents to look at, with their bytes.
    Documents(Vec<(DocumentView, Bytes)>),
    /// Nothing: a bound is reached.
    Enough,
    /// Nothing: there are no more.
    End,
}

impl<'p> Scan<'p> {
    /// The documents whose keys begin with `prefix`, after a key.
    pub(super) fn new(
        permit: &'p Permit<'p>,
        prefix: &'p str,
        after: Option<String>,
        most: Most,
    ) -> Result<Scan<'p>, CallError> {
        Ok(Scan {
            permit,
            namespace: permit.namespace_id()?,
            prefix,
            most,
            indexed: None,
            found: VecDeque::new(),
            asked: after.clone(),
            is_last: false,
            behind: after,
            documents: 0,
            bytes: 0,
            passed: 0,
        })
    }

    /// The same of the documents that an index has found with this prefix and behind this key.
    pub(super) fn of(self, indexed: IndexedDocuments) -> Scan<'p> {
        let mut scan = Scan { indexed: Some(indexed.behind), ..self };
        scan.take_up(indexed.found);
        scan
    }

    /// The next documents. Sets memory aside for them, besides what is `held`.
    ///
    /// # Errors
    /// `overloaded`; `payload_damaged`: a document cannot be read.
    pub(super) async fn next(&mut self, held: usize) -> Result<Part, CallError> {
        let is_enough =
            |scan: &Scan<'_>| scan.documents >= scan.most.documents || scan.bytes >= scan.most.bytes;
        while self.found.is_empty() {
            if self.is_last {
                return Ok(Part::End);
            }
            if is_enough(self) || self.passed >= self.most.passed {
                return Ok(Part::Enough);
            }
            self.ask().await?;
        }
        if is_enough(self) {
            return Ok(Part::Enough);
        }
        let part = self.take();
        let bytes: usize = part.iter().map(|one| one.view.content_bytes as usize).sum();
        self.permit.room().reserve(held + bytes * BYTES_EACH)?;
        self.documents += part.len();
        self.bytes += bytes;
        self.behind = part.last().map(|one| one.view.key.clone());
        Ok(Part::Documents(FoundDocument::load_all(part).await?))
    }

    /// Asks the shard for more.
    async fn ask(&mut self) -> Result<(), CallError> {
        let node = self.permit.node();
        let Some(indexed) = &mut self.indexed else {
            let after = self.asked.as_deref();
            let (found, is_last) = node.found_documents(self.namespace, self.prefix, after).await?;
            self.is_last = is_last;
            self.take_up(found);
            return Ok(());
        };
        let (found, last) = node.found_again(self.namespace, indexed).await?;
        self.take_up(found);
        self.asked = last.or(self.asked.take());
        Ok(())
    }

    /// Takes up documents that were found, as far as the caller may read them.
    fn take_up(&mut self, mut found: Vec<FoundDocument>) {
        if let Some(last) = found.last() {
            self.asked = Some(last.view.key.clone());
        }
        self.is_last |= self.indexed.as_ref().is_some_and(VecDeque::is_empty);
        let all = found.len();
        found.retain(|one| self.permit.may_key(Right::Read, &one.view.key));
        self.passed += all - found.len();
        self.found = found.into();
    }

    /// Takes the next of those that were found.
    fn take(&mut self) -> Vec<FoundDocument> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while let Some(one) = self.found.front() {
            bytes += one.view.content_bytes as usize;
            if bytes > PART_BYTES_MAX && !part.is_empty() {
                break;
            }
            part.extend(self.found.pop_front());
        }
        part
    }

    /// Number of documents that were looked at.
    pub(super) fn documents(&self) -> usize {
        self.documents
    }

    /// Key behind which the scan goes on; the caller may not be allowed to read it.
    pub(super) fn place(&self) -> Option<&str> {
        let key = if self.found.is_empty() { &self.asked } else { &self.behind };
        key.as_deref()
    }
}
