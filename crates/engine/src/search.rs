//! Indexes of messages for searches: each finds the messages of a queue by their tags, and by the last error
//! that they met.
//!
//! The engine does not read contents. A *term* stands for a tag or for an error; it is made by the caller, by
//! a function that is here so that all callers make the same. What an index finds is a little more than what
//! has a term: whoever asks looks at the contents.

use crate::error::Error;
use crate::hash::hash;
use crate::id::{BlobRef, MessageId, NamespaceId, QueueId};
use crate::rules::invalid;
use crate::setting::Setting;
use crate::wire::{Put, Reader};

/// Kind of terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SearchKind {
    /// Tags of messages.
    Tags = 1,
    /// Fingerprints of the errors of their last attempts that are over.
    Errors = 2,
}

impl SearchKind {
    /// All kinds.
    pub const ALL: [SearchKind; 2] = [SearchKind::Tags, SearchKind::Errors];

    /// The word used in every API.
    pub fn name(self) -> &'static str {
        match self {
            SearchKind::Tags => "tags",
            SearchKind::Errors => "errors",
        }
    }
}

/// Kinds of terms that a queue has an index of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SearchKinds(u8);

impl SearchKinds {
    /// No kind.
    pub const NONE: SearchKinds = SearchKinds(0);
    /// Tags alone.
    pub const TAGS: SearchKinds = SearchKinds(SearchKind::Tags as u8);
    /// Errors alone.
    pub const ERRORS: SearchKinds = SearchKinds(SearchKind::Errors as u8);
    /// Tags and errors.
    pub const ALL: SearchKinds = SearchKinds(SearchKind::Tags as u8 | SearchKind::Errors as u8);

    /// These kinds.
    pub fn of(kinds: impl IntoIterator<Item = SearchKind>) -> SearchKinds {
        SearchKinds(kinds.into_iter().fold(0, |bits, kind| bits | kind as u8))
    }

    /// True if this kind is among them.
    pub fn has(self, kind: SearchKind) -> bool {
        self.0 & kind as u8 != 0
    }

    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds, in their order.
    pub fn iter(self) -> impl Iterator<Item = SearchKind> {
        SearchKind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if *self == SearchKinds::of(self.iter()) {
            return Ok(());
        }
        Err(invalid("search_index", "expected some of tags, errors".to_owned()))
    }
}

impl Setting for SearchKinds {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(SearchKinds(reader.u8()?)).filter(|kinds| kinds.check().is_ok())
    }
}

/// A term: 31 bits of a hash, and the kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SearchTerm(pub(crate) u32);

impl SearchTerm {
    /// The term of a tag.
    pub fn of_tag(tag: &str) -> SearchTerm {
        SearchTerm::of(hash(0, tag.as_bytes()), SearchKind::Tags)
    }

    /// The term of the errors with this fingerprint: see [`crate::error_fingerprint`].
    pub fn of_error(fingerprint: u64) -> SearchTerm {
        SearchTerm::of(fingerprint, SearchKind::Errors)
    }

    /// The term of a message of which the tags, or the error, cannot be read: every search finds it.
    pub fn any(kind: SearchKind) -> SearchTerm {
        SearchTerm::of(0, kind)
    }

    fn of(hash: u64, kind: SearchKind) -> SearchTerm {
        SearchTerm(hash as u32 & !1 | u32::from(kind == SearchKind::Errors))
    }
}

/// Tells terms of messages of a queue. One that has changed since is to be read again, one that is gone is
/// left out, and nothing happens if the index has begun anew.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SearchFill<'a> {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// The queue.
    pub queue: QueueId,
    /// See [`SearchWork::began`].
    pub began: u64,
    /// See [`SearchWork::from`].
    pub from: u64,
    /// See [`SearchWork::until`].
    pub until: u64,
    /// Messages by id, each once; those without terms that were not [dirty](SearchMessage::is_dirty) may be
    /// left out. At most [`crate::limits::FILLED_MESSAGES_MAX`].
    pub messages: &'a [FilledMessage],
}

/// A message with its terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilledMessage {
    /// Sequence of its id.
    pub sequence: u64,
    /// See [`SearchMessage::source`].
    pub source: u64,
    /// Its terms; at most [`crate::limits::MESSAGE_TERMS_MAX`].
    pub terms: Vec<SearchTerm>,
}

/// Messages of which an index does not know the terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchWork {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// The queue.
    pub queue: QueueId,
    /// Number of this beginning of the index.
    pub began: u64,
    /// Kinds of terms that it has.
    pub kinds: SearchKinds,
    /// Sequence up to which the terms of all messages were known, but for dirty ones.
    pub from: u64,
    /// Sequence up to which they are when the terms of these messages were told.
    pub until: u64,
    /// The messages, by id.
    pub messages: Vec<SearchMessage>,
}

/// A message, with the places that its terms are read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchMessage {
    /// Its id.
    pub id: MessageId,
    /// True if other terms of it may be known.
    pub is_dirty: bool,
    /// The blob that has its tags; `None`: the index has none.
    pub tags: Option<BlobRef>,
    /// The error of its last attempt that is over; `None`: there is none, or the index has none.
    pub error: Option<BlobRef>,
    /// A number of these two places.
    pub source: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure here loses what indexes have found so far: do not adapt the values.
    #[test]
    fn a_term_never_changes_and_tells_its_kind() {
        assert_eq!(SearchTerm::of_error(0xe339_7e7f_23c5_0cb4), SearchTerm(0x23c5_0cb5));
        assert_eq!(SearchTerm::of_tag("vip"), SearchTerm::of_tag("vip"));
        assert_eq!(SearchTerm::of_tag("vip").0 & 1, 0);
        assert_ne!(SearchTerm::of_tag("vip"), SearchTerm::of_tag("vip2"));
    }

    #[test]
    fn kinds_that_there_are_not_are_refused() {
        assert!(SearchKinds(4).check().is_err());
        assert!(SearchKinds::of(SearchKind::ALL).check().is_ok());
        assert_eq!(SearchKinds::of([SearchKind::Errors]).iter().collect::<Vec<_>>(), [SearchKind::Errors]);
    }
}
