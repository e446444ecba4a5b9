//! Documents: keys with a content of any type, which has a version.

use crate::id::{BlobRef, NamespaceId};
use crate::locks::LockToken;

/// Replaces the document of a key, or creates it, if `when` holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DocumentPut<'a> {
    /// Namespace of the key.
    pub namespace: NamespaceId,
    /// The key: 1 to [`crate::limits::DOCUMENT_KEY_BYTES_MAX`] bytes of text without control characters.
    pub key: &'a str,
    /// Condition of the write; else nothing is done.
    pub when: DocumentCondition,
    /// Time after which the document is gone, in milliseconds; 0: it stays; `None`: as before.
    pub ttl_ms: Option<u64>,
    /// Number of former versions that are kept; `None`: as before, and none of a new document.
    pub history: Option<u16>,
    /// Digest of the request: one with the digest that made the current version is a repeat. 0: none is.
    pub request: u64,
    /// Media type; empty: unstated.
    pub content_type: &'a str,
    /// Names and values, which are kept with the content.
    pub attributes: &'a [(&'a str, &'a str)],
    /// The content.
    pub content: &'a [u8],
    /// Its terms in the indexes of the namespace; one that is left out gets them later.
    pub terms: &'a [DocumentTerms],
}

/// The terms of a document in one index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentTerms {
    /// Number of the index.
    pub index: u64,
    /// The terms, each once, at most [`crate::limits::DOCUMENT_TERMS_MAX`] in all indexes together.
    pub terms: Vec<u128>,
}

/// Deletes a document with its former versions, if `when` holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DocumentDelete<'a> {
    /// Namespace of the key.
    pub namespace: NamespaceId,
    /// The key.
    pub key: &'a str,
    /// Condition of the deletion; else nothing is done.
    pub when: DocumentCondition,
}

/// Does nothing if `when` holds, and is refused otherwise: so a transaction depends on what decided it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DocumentCheck<'a> {
    /// Namespace of the key.
    pub namespace: NamespaceId,
    /// The key.
    pub key: &'a str,
    /// The condition.
    pub when: DocumentCondition,
}

/// Conditions under which a document is written or deleted; by default none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DocumentCondition {
    /// Version that the document has; 0: there is none.
    pub version: Option<u64>,
    /// Revision that the document has.
    pub revision: Option<u64>,
    /// True if there has to be a document.
    pub exists: bool,
    /// Token of a lock of the key, which is held.
    pub token: Option<LockToken>,
}

/// A version of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DocumentVersion {
    /// Number of the version: 1, and one more with each change, until the document is deleted.
    pub version: u64,
    /// Number of the change among those of all documents: later changes have larger ones, for ever. It is of
    /// the same sequence as fencing tokens.
    pub revision: u64,
    /// When it was written, in microseconds since the Unix epoch.
    pub changed_at_us: u64,
}

/// A document, or a former version of one, as those see it who look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentView {
    /// Its key.
    pub key: String,
    /// Its version.
    pub version: DocumentVersion,
    /// Length of the content in bytes.
    pub content_bytes: u64,
    /// Where content type, attributes and content lie: see [`crate::blob`].
    pub blob: BlobRef,
    /// When it is gone, in microseconds since the Unix epoch; `None`: it stays. Former versions: `None`.
    pub expires_at_us: Option<u64>,
    /// Number of former versions that are kept at most.
    pub history: u16,
}

/// A change of a namespace's documents: the last one of a key, or one of its ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentChange {
    /// The document as it is.
    Written(DocumentView),
    /// End of the document: it was deleted, or its time was over.
    Gone {
        /// Its key.
        key: String,
        /// Revision and time of its end; the version is 0.
        at: DocumentVersion,
    },
}

impl DocumentChange {
    /// The key.
    pub fn key(&self) -> &str {
        match self {
            DocumentChange::Written(view) => &view.key,
            DocumentChange::Gone { key, .. } => key,
        }
    }

    /// Its revision.
    pub fn revision(&self) -> u64 {
        match self {
            DocumentChange::Written(view) => view.version.revision,
            DocumentChange::Gone { at, .. } => at.revision,
        }
    }
}

/// The place among the changes of documents up to which somebody knows them; the default is before all of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChangePosition {
    /// Revision up to which all changes are told.
    pub after: u64,
    /// Revision at which the reading of all documents began, as long as it goes on: ends up to there are of
    /// documents that were not told.
    pub begun: u64,
}

/// Changes of documents, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentChanges {
    /// The changes.
    pub changes: Vec<DocumentChange>,
    /// The place behind them.
    pub until: ChangePosition,
    /// True if there are no more at present.
    pub is_last: bool,
}
