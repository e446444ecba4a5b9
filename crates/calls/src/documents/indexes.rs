//! Indexes of documents: put, list, delete; `building` tells the terms of what was there before.

mod building;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::NamespaceId;
use sluice_engine::documents::DocumentTerms;
use sluice_engine::indexes::IndexView;
use sluice_engine::limits::DOCUMENT_TERMS_MAX;
use sluice_filter::{IndexTerm, Pointer, terms_of};
use sluice_node::Node;

pub use building::keep_indexes;

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::Fault;
use crate::permit::Permit;
use crate::value::Nothing;

/// Most bytes of the contents of a write or a transaction whose terms are told with it: those of others are
/// told later, by a thread that may take long.
const CONTENT_BYTES_MAX: usize = 64 << 10;
/// Most terms that the documents of one transaction tell.
const TRANSACTION_TERMS_MAX: usize = 2_048;
/// Most terms of a document in one index, if it has too many in all.
const LIST_TERMS_CUT: usize = 16;

/// An index to declare.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentIndexRequest", example = json!({"pointer": "/state"}))]
pub struct Put {
    /// JSON pointer (RFC 6901) of the values by which documents are found, of at most 255 bytes.
    #[schemars(required)]
    pointer: Option<String>,
}

/// An index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentIndex")]
#[schemars(example = example())]
pub struct Index {
    /// Its name.
    name: String,
    /// JSON pointer of the values.
    pointer: String,
    /// `building` or `ready`: then queries use it.
    state: State,
    /// Number of values that it holds: of a list each item is one.
    terms: u64,
}

/// The state of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DocumentIndexState")]
pub enum State {
    /// No query uses it: there are documents that it does not know yet.
    Building,
    /// Queries use it.
    Ready,
}

fn example() -> Value {
    json!({"name": "state", "pointer": "/state", "state": "ready", "terms": 1200})
}

impl From<IndexView> for Index {
    fn from(view: IndexView) -> Index {
        let IndexView { number: _, name, pointer, is_built, terms } = view;
        Index { name, pointer, state: if is_built { State::Ready } else { State::Building }, terms }
    }
}

impl Unary for Put {
    type Answer = Index;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Index>, CallError> {
        let pointer = self.pointer.as_deref().ok_or_else(|| {
            Fault::missing("pointer", "say where in a document the values are, such as /state")
        })?;
        if Pointer::parse(pointer).is_none() {
            return Err(Fault::invalid("expected a JSON pointer, such as /state").inside("pointer").into());
        }
        let (node, namespace, name) = (permit.node(), permit.namespace_id()?, permit.name());
        node.index_put(namespace, name, pointer).await?;
        let index = node.document_indexes(namespace).await?.into_iter().find(|index| index.name == name);
        // Another caller may have deleted it since.
        let gone = || sluice_engine::Error::IndexNotFound { index: name.to_owned() };
        Ok(Index::from(index.ok_or_else(gone)?).into())
    }
}

/// Indexes to list.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentIndexListRequest")]
pub struct List {}

/// The indexes of a namespace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentIndexes", example = json!({"indexes": [example()]}))]
pub struct Indexes {
    /// By name; at most 16.
    indexes: Vec<Index>,
}

impl Unary for List {
    type Answer = Indexes;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Indexes>, CallError> {
        let views = permit.node().document_indexes(permit.namespace_id()?).await?;
        Ok(Indexes { indexes: views.into_iter().map(Index::from).collect() }.into())
    }
}

/// An index to delete.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentIndexDeleteRequest")]
pub struct Delete {}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().index_delete(permit.namespace_id()?, permit.name()).await?;
        Ok(Nothing {}.into())
    }
}

/// The terms that documents get with a write.
pub(crate) struct Indexing {
    indexes: Arc<[IndexView]>,
    /// Number of terms that may still be told.
    terms_left: usize,
    /// Bytes of contents that may still be read for them.
    bytes_left: usize,
}

impl Indexing {
    /// The indexes of a namespace. Where they cannot be asked for, no terms are told: the write tells why.
    pub(crate) async fn of(node: &Node, namespace: NamespaceId) -> Indexing {
        let indexes = node.known_indexes(namespace).await.unwrap_or_default();
        Indexing { indexes, terms_left: TRANSACTION_TERMS_MAX, bytes_left: CONTENT_BYTES_MAX }
    }

    /// The terms of a content; of indexes that are left out they are told later.
    pub(crate) fn terms(&mut self, content: &[u8]) -> Vec<DocumentTerms> {
        if self.indexes.is_empty() || content.len() > self.bytes_left || self.terms_left == 0 {
            return Vec::new();
        }
        self.bytes_left -= content.len();
        let content = json_of(content);
        let of_index = |index: &IndexView| {
            let pointer = Pointer::parse(&index.pointer)?;
            Some(DocumentTerms { index: index.number, terms: index_terms(content.as_ref(), &pointer) })
        };
        let mut all: Vec<DocumentTerms> = self.indexes.iter().filter_map(of_index).collect();
        let count = |all: &[DocumentTerms]| all.iter().map(|one| one.terms.len()).sum::<usize>();
        if count(&all) > DOCUMENT_TERMS_MAX {
            let is_long = |one: &&mut DocumentTerms| one.terms.len() > LIST_TERMS_CUT;
            all.iter_mut().filter(is_long).for_each(|one| one.terms = vec![IndexTerm::ANY.0]);
        }
        match self.terms_left.checked_sub(count(&all)) {
            Some(left) => self.terms_left = left,
            None => all.clear(),
        }
        all
    }
}

/// The JSON of a content, as far as it is some.
pub(crate) fn json_of(content: &[u8]) -> Option<Value> {
    serde_json::from_slice(content).ok()
}

/// The terms of a document that some lookup can find.
fn index_terms(content: Option<&Value>, pointer: &Pointer) -> Vec<u128> {
    let terms = content.map_or_else(Vec::new, |content| terms_of(content, pointer));
    terms.into_iter().filter(|term| *term != IndexTerm::NOTHING).map(|term| term.0).collect()
}
