//! Random operations on documents.

use std::collections::VecDeque;

use sluice_engine::command::{Command, DocumentCheck, DocumentDelete, DocumentPut};
use sluice_engine::documents::{DocumentCondition, DocumentTerms, DocumentVersion};
use sluice_engine::id::NamespaceId;

use super::indexes::some_terms;
use super::seen::Seen;
use super::{Generator, Lend, Op, SentBlob};
use crate::rng::Rng;

const CONTENT_TYPE: &str = "text/plain";
const KEYS: [&str; 4] = ["a", "b", "orders/1", "orders/2"];
/// Number of versions that are kept in order to write over them, too late as well.
const KEPT_MAX: usize = 12;

/// An operation on a document.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum DocumentOp {
    Put {
        namespace: NamespaceId,
        key: &'static str,
        when: DocumentCondition,
        ttl_ms: Option<u64>,
        history: Option<u16>,
        request: u64,
        content: Vec<u8>,
        terms: Vec<DocumentTerms>,
    },
    Delete {
        namespace: NamespaceId,
        key: &'static str,
        when: DocumentCondition,
    },
    Check {
        namespace: NamespaceId,
        key: &'static str,
        when: DocumentCondition,
    },
}

impl Lend for DocumentOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        f(&match self {
            DocumentOp::Put { namespace, key, when, ttl_ms, history, request, content, terms } => {
                Command::DocumentPut(DocumentPut {
                    namespace: *namespace,
                    key,
                    when: *when,
                    ttl_ms: *ttl_ms,
                    history: *history,
                    request: *request,
                    content_type: CONTENT_TYPE,
                    attributes: &[],
                    content,
                    terms,
                })
            }
            DocumentOp::Delete { namespace, key, when } => {
                Command::DocumentDelete(DocumentDelete { namespace: *namespace, key, when: *when })
            }
            DocumentOp::Check { namespace, key, when } => {
                Command::DocumentCheck(DocumentCheck { namespace: *namespace, key, when: *when })
            }
        });
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        match self {
            DocumentOp::Put { content, .. } if number == 0 => Some(SentBlob::Message {
                content_type: CONTENT_TYPE,
                headers: &[],
                tags: &[],
                payload: content,
            }),
            _ => None,
        }
    }
}

/// Versions of documents that clients were told of.
#[derive(Debug)]
pub(super) struct DocumentsKnown {
    rng: Rng,
    written: VecDeque<(NamespaceId, &'static str, DocumentVersion)>,
    writes: u64,
    /// The draws about indexes.
    pub(super) of_indexes: Rng,
}

impl DocumentsKnown {
    pub(super) fn new(rng: Rng, of_indexes: Rng) -> DocumentsKnown {
        DocumentsKnown { rng, written: VecDeque::new(), writes: 0, of_indexes }
    }
}

impl Generator {
    /// Notes a version that was written.
    pub fn written(&mut self, namespace: NamespaceId, key: &'static str, version: DocumentVersion) {
        if let Some(documents) = &mut self.documents {
            documents.written.push_back((namespace, key, version));
            if documents.written.len() > KEPT_MAX {
                documents.written.pop_front();
            }
        }
    }

    /// Draws an operation on a document, at times; by numbers of its own, so that the other draws of a seed
    /// do not change.
    pub(super) fn document(&mut self, seen: &Seen<'_>) -> Option<Op> {
        let token = self.some_token();
        let (shard, documents) = (self.shard, self.documents.as_mut()?);
        let rng = &mut documents.rng;
        if !rng.chance(1, 12) {
            return None;
        }
        let known = seen.namespaces(shard);
        let mut namespace = match shard == 0 && rng.chance(3, 4) {
            true => NamespaceId::DEFAULT,
            false if known.is_empty() => NamespaceId(77),
            false => *rng.pick(&known),
        };
        let mut key = KEYS[rng.index(KEYS.len())];
        let mut when = DocumentCondition::default();
        match rng.below(9) {
            0..4 if !documents.written.is_empty() => {
                let last = documents.written.len() - 1;
                let at = if rng.chance(2, 3) { last } else { rng.index(last + 1) };
                let written = documents.written[at];
                (namespace, key) = (written.0, written.1);
                match rng.chance(1, 2) {
                    true => when.version = Some(written.2.version),
                    false => when.revision = Some(written.2.revision),
                }
            }
            4 => when.version = Some(0),
            5 => when.exists = true,
            6 => when.token = token,
            _ => {}
        }
        if rng.chance(1, 6) {
            return Some(Op::Document(DocumentOp::Delete { namespace, key, when }));
        }
        documents.writes += 1;
        let content = format!("{}:{}", documents.writes, "x".repeat(rng.index(300))).into_bytes();
        Some(Op::Document(DocumentOp::Put {
            namespace,
            key,
            when,
            ttl_ms: *rng.pick(&[None, Some(0), Some(0), Some(1), Some(200), Some(5_000)]),
            history: *rng.pick(&[None, None, Some(0), Some(2)]),
            request: *rng.pick(&[0, 0, 1, 2]),
            terms: some_terms(seen, namespace, content.len(), &mut documents.of_indexes),
            content,
        }))
    }
}
