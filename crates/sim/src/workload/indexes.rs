//! Random declarations of indexes, and the terms by which they find documents.

use sluice_engine::command::{Command, IndexFill};
use sluice_engine::documents::DocumentTerms;
use sluice_engine::id::NamespaceId;
use sluice_engine::indexes::{FilledDocument, IndexWork};

use super::seen::Seen;
use super::{Generator, Lend, Op};
use crate::rng::Rng;

const NAMES: [&str; 2] = ["one", "other"];
const POINTERS: [&str; 3] = ["/one", "/two", "/some"];

/// Terms that documents have.
pub const TERMS: [u128; 9] = [0, 1, 2, 10, 11, 12, 13, 14, 20];

/// Terms of a document at a pointer: one, two, or none at times. The node makes them of the content; these
/// are made of its length, which readers of the engine see.
pub fn terms_of(pointer: &str, content_bytes: u64) -> Vec<u128> {
    let bytes = u128::from(content_bytes);
    match pointer {
        "/one" => vec![bytes % 3],
        "/two" => vec![bytes % 2, 10 + bytes % 5],
        _ if bytes % 2 == 0 => vec![20],
        _ => Vec::new(),
    }
}

/// An operation on an index.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum IndexOp {
    Put { namespace: NamespaceId, name: &'static str, pointer: &'static str },
    Delete { namespace: NamespaceId, name: &'static str },
    Fill(IndexWork),
}

impl Lend for IndexOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        match self {
            IndexOp::Put { namespace, name, pointer } => {
                f(&Command::IndexPut { namespace: *namespace, name, pointer });
            }
            IndexOp::Delete { namespace, name } => f(&Command::IndexDelete { namespace: *namespace, name }),
            IndexOp::Fill(work) => {
                let terms = |bytes| terms_of(&work.pointer, bytes);
                let filled = work.documents.iter().map(|view| FilledDocument {
                    key: &view.key,
                    revision: view.version.revision,
                    terms: terms(view.content_bytes),
                });
                let documents: Vec<_> = filled.collect();
                f(&Command::IndexFill(IndexFill {
                    namespace: work.namespace,
                    index: work.index,
                    documents: &documents,
                    until: work.until.as_deref(),
                    is_last: work.is_last,
                }));
            }
        }
    }
}

/// The terms of a document in the indexes of its namespace; those of some are left out, as by a node that
/// does not know them yet.
pub(super) fn some_terms(
    seen: &Seen<'_>,
    namespace: NamespaceId,
    content_bytes: usize,
    rng: &mut Rng,
) -> Vec<DocumentTerms> {
    let mut known = seen.0.document_indexes(namespace);
    known.retain(|_| rng.chance(5, 6));
    let terms = known.into_iter().map(|index| DocumentTerms {
        index: index.number,
        terms: terms_of(&index.pointer, content_bytes as u64),
    });
    terms.collect()
}

impl Generator {
    /// Draws an operation on an index, at times; only in runs that use documents.
    pub(super) fn index(&mut self, seen: &Seen<'_>) -> Option<Op> {
        let shard = self.shard;
        let rng = &mut self.documents.as_mut()?.of_indexes;
        if !rng.chance(1, 20) {
            return None;
        }
        if rng.chance(1, 2) {
            let work = seen.0.index_work(rng.bits() % 2_000, 1 + rng.index(3))?;
            return Some(Op::Index(IndexOp::Fill(work)));
        }
        let known = seen.namespaces(shard);
        let namespace = match shard == 0 && rng.chance(4, 5) || known.is_empty() {
            true => NamespaceId::DEFAULT,
            false => *rng.pick(&known),
        };
        let (name, pointer) = (*rng.pick(&NAMES), *rng.pick(&POINTERS));
        Some(Op::Index(match rng.chance(1, 4) {
            true => IndexOp::Delete { namespace, name },
            false => IndexOp::Put { namespace, name, pointer },
        }))
    }
}
