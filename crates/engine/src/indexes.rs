//! Indexes of documents: each finds the documents of a namespace by what is at one place in their JSON.
//!
//! The engine does not read contents. A *term* is 16 bytes that stand for a value, made by the caller; an
//! index holds the terms of each document in their order.

use std::ops::RangeInclusive;

use crate::documents::DocumentView;
use crate::id::NamespaceId;

/// A term of documents whose terms are not known yet: each lookup finds them. Callers give no such term.
pub const TERM_UNKNOWN: u128 = 254 << 120;

/// Adds the terms of documents that were written without them; proposed by the node. Nothing happens if there
/// is no such index any more.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IndexFill<'a> {
    /// Namespace of the index.
    pub namespace: NamespaceId,
    /// Number of the index.
    pub index: u64,
    /// The documents; one that has changed since is left out.
    pub documents: &'a [FilledDocument<'a>],
    /// Key up to which all documents that are older than the index are in it now; `None`: as before.
    pub until: Option<&'a str>,
    /// True if there are none behind.
    pub is_last: bool,
}

/// A document with its terms.
#[derive(Clone, PartialEq, Debug)]
pub struct FilledDocument<'a> {
    /// Its key.
    pub key: &'a str,
    /// Revision of the version that has these terms.
    pub revision: u64,
    /// The terms, each once.
    pub terms: Vec<u128>,
}

/// A search in an index.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IndexLookup<'a> {
    /// Number of the index.
    pub index: u64,
    /// Ranges of terms that are looked for.
    pub ranges: &'a [RangeInclusive<u128>],
    /// Beginning of the keys.
    pub prefix: &'a str,
    /// Key behind which documents are looked for; `None`: all.
    pub after: Option<&'a str>,
}

/// An index as those see it who look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexView {
    /// Its number: never that of another one.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// JSON pointer (RFC 6901) of the values.
    pub pointer: String,
    /// True if it finds all documents.
    pub is_built: bool,
    /// Number of terms.
    pub terms: u64,
}

/// Documents that an index does not know the terms of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexWork {
    /// Namespace of the index.
    pub namespace: NamespaceId,
    /// Number of the index.
    pub index: u64,
    /// JSON pointer of the values.
    pub pointer: String,
    /// The documents.
    pub documents: Vec<DocumentView>,
    /// As in [`IndexFill`].
    pub until: Option<String>,
    /// As in [`IndexFill`].
    pub is_last: bool,
}
