//! The operations that are staged in an open transaction, and the documents as it sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::blob::{BlobHead, MessageBlob};
use sluice_engine::command::DocumentPut;
use sluice_engine::documents::{DocumentCondition, DocumentVersion};
use sluice_engine::id::{NamespaceId, Receipt};

use super::enlisted::Enlisted;
use super::named::Name;
use crate::error::CallError;
use crate::fault::{Fault, Read};

/// Bytes that an operation takes besides its texts and contents.
pub(super) const EACH_BYTES: usize = 128;

/// Operations that are staged, and messages that are enlisted. A copy is cheap: contents are shared.
#[derive(Clone, Default, Debug)]
pub(crate) struct Staged {
    /// Requests as they came, of which operations are read again for the commit.
    requests: Vec<(Protocol, Bytes)>,
    /// The operations, in the order in which they came.
    pub(crate) operations: Vec<Place>,
    /// The documents that it has looked at, or changes, by key.
    pub(crate) documents: BTreeMap<String, Seen>,
    /// The messages that it has received, as the receives have given them.
    enlisted: Vec<Arc<Enlisted>>,
    /// Names in operations of requests, which no other one may name.
    named: BTreeSet<Name>,
}

/// A request as it came.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'b> {
    /// The protocol in which it is written.
    pub protocol: Protocol,
    /// All of it.
    pub bytes: &'b [u8],
}

/// The protocol of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// A body of HTTP: JSON.
    Json,
    /// A message of gRPC: protobuf.
    Protobuf,
}

impl<'b> Kept<'b> {
    /// The bytes of a request of this protocol.
    ///
    /// # Errors
    /// `invalid_argument`: it is of another.
    pub fn expect(self, protocol: Protocol) -> Read<&'b [u8]> {
        if self.protocol == protocol {
            return Ok(self.bytes);
        }
        let reason = "a transaction is staged and committed over one protocol: over HTTP, or over gRPC";
        Err(Fault::invalid(reason))
    }
}

/// The place of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// An operation of a request.
    Request {
        /// The number of the request.
        request: usize,
        /// The place of the operation in it.
        at: usize,
        /// The operation, for those who look.
        shown: Shown,
    },
    /// The change of the document with this key.
    Document(String),
}

/// An operation for those who look: its subject, without what it carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shown {
    /// Its name in requests.
    pub(crate) name: &'static str,
    /// The queue, the message, or the keys.
    pub(crate) about: Vec<String>,
}

impl Shown {
    fn bytes(&self) -> usize {
        self.about.iter().map(String::len).sum()
    }
}

/// A document as a transaction sees it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Seen {
    /// Conditions at the commit: what was read, and what callers have said.
    pub(crate) when: DocumentCondition,
    /// The version that was read; `None` inside: there was no document.
    pub(crate) read: Option<Option<DocumentVersion>>,
    /// The change that is staged.
    pub(crate) change: Option<Change>,
}

/// The change of a document.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A write.
    Put {
        /// As in [`DocumentPut`].
        ttl_ms: Option<u64>,
        /// As in [`DocumentPut`].
        history: Option<u16>,
        /// Content type, attributes and content: see [`sluice_engine::blob`].
        blob: Bytes,
    },
    /// A deletion.
    Delete,
}

impl Staged {
    /// The requests of which operations are read again.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Kept<'_>> {
        self.requests.iter().map(|(protocol, bytes)| Kept { protocol: *protocol, bytes })
    }

    /// True if there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.documents.is_empty() && self.enlisted.is_empty()
    }

    /// Enlists messages that were received.
    pub(crate) fn enlist(&mut self, enlisted: Enlisted) {
        self.enlisted.push(Arc::new(enlisted));
    }

    /// The messages that it has received, as the receives have given them.
    pub(crate) fn enlisted(&self) -> &[Arc<Enlisted>] {
        &self.enlisted
    }

    /// Receipts of the messages that its commit acks: those that it has received, and settles by no staged
    /// operation.
    pub(crate) fn acks(&self) -> impl Iterator<Item = Receipt> + '_ {
        let receipts = self.enlisted.iter().flat_map(|enlisted| enlisted.receipts());
        receipts.copied().filter(|receipt| !self.named.contains(&Name::delivery(*receipt)))
    }

    /// Memory of all of it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let requests: usize = self.requests.iter().map(|(_, bytes)| bytes.len()).sum();
        let documents = self.documents.iter().map(|(key, seen)| match &seen.change {
            Some(Change::Put { blob, .. }) => key.len() + blob.len() + EACH_BYTES,
            Some(Change::Delete) | None => key.len() + EACH_BYTES,
        });
        let operations = self.operations.iter().map(|place| match place {
            Place::Request { shown, .. } => shown.bytes() + EACH_BYTES,
            Place::Document(_) => EACH_BYTES,
        });
        let messages: usize = self.enlisted.iter().map(|enlisted| enlisted.receipts().len()).sum();
        let named: usize = self.named.iter().map(Name::bytes).sum();
        requests + documents.sum::<usize>() + operations.sum::<usize>() + messages * EACH_BYTES + named
    }

    /// Number of operations that its commit has: also those that check what was only read, and acks of
    /// messages that it has received.
    pub(crate) fn count(&self) -> usize {
        let is_given = |place: &&Place| matches!(place, Place::Request { .. });
        self.operations.iter().filter(is_given).count() + self.documents.len() + self.acks().count()
    }

    /// The places that operations of requests have among those of the commit: documents that it changes are
    /// between them.
    pub(crate) fn request_places(&self) -> impl Iterator<Item = usize> + '_ {
        let is_given = |place: &&Place| match place {
            Place::Request { .. } => true,
            Place::Document(key) => self.is_changed(key),
        };
        let given = self.operations.iter().filter(is_given).enumerate();
        given.filter(|(_, place)| matches!(place, Place::Request { .. })).map(|(at, _)| at)
    }

    /// Keeps a request, of which operations were staged as the next one.
    ///
    /// # Errors
    /// `invalid_argument`: those before came over another protocol.
    pub(crate) fn keep(&mut self, request: Kept<'_>) -> Read<()> {
        if let Some(first) = self.requests().next() {
            request.expect(first.protocol)?;
        }
        self.requests.push((request.protocol, Bytes::copy_from_slice(request.bytes)));
        Ok(())
    }

    /// Stages an operation of the request that is kept next.
    pub(crate) fn stage(&mut self, at: usize, shown: Shown) {
        self.operations.push(Place::Request { request: self.requests.len(), at, shown });
    }

    /// Notes what an operation of a request names.
    ///
    /// # Errors
    /// `invalid_argument`: another one names it, or its document is deleted.
    pub(crate) fn name(&mut self, name: Name) -> Read<()> {
        if self.named.contains(&name) {
            return Err(name.named_twice());
        }
        let change = name.document().and_then(|key| self.documents.get(key)?.change.as_ref());
        if let Some(Change::Delete) = change {
            return Err(name.of_deleted());
        }
        self.named.insert(name);
        Ok(())
    }

    /// Refuses the deletion of a document of which an operation attaches or deletes an attachment.
    ///
    /// # Errors
    /// `invalid_argument`.
    pub(crate) fn expect_no_attachments(&self, key: &str) -> Read<()> {
        if self.named.iter().all(|name| name.document() != Some(key)) {
            return Ok(());
        }
        let reason = "the transaction changes attachments of the document: leave that out, or the deletion";
        Err(Fault::invalid(reason).inside("key"))
    }

    /// Number of messages that are sent.
    pub(crate) fn sends(&self) -> usize {
        let is_send = |place: &&Place| matches!(place, Place::Request { shown, .. } if shown.name == "send");
        self.operations.iter().filter(is_send).count()
    }

    /// The operations in their order, for those who look, and how many bytes a document that they write has.
    /// Behind them are those that check what was only read, and the messages that it has received.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (Shown, Option<usize>)> + '_ {
        let of_document = |key: &String| {
            let change = self.documents.get(key).and_then(|seen| seen.change.as_ref());
            let (name, bytes) = match change {
                Some(put @ Change::Put { .. }) => ("put", put.content().map(|content| content.payload.len())),
                Some(Change::Delete) => ("delete", None),
                None => ("check", None),
            };
            (Shown { name, about: vec![key.clone()] }, bytes)
        };
        let staged = self.operations.iter().map(move |place| match place {
            Place::Request { shown, .. } => (shown.clone(), None),
            Place::Document(key) => of_document(key),
        });
        let is_read = |key: &&String| {
            !self.operations.iter().any(|place| matches!(place, Place::Document(of) if of == *key))
        };
        let received =
            |receipt: Receipt| (Shown { name: "receive", about: vec![receipt.id.to_string()] }, None);
        let read = self.documents.keys().filter(is_read).map(of_document);
        staged.chain(read).chain(self.acks().map(received))
    }

    /// True if the commit writes or deletes the document of a key.
    pub(crate) fn is_changed(&self, key: &str) -> bool {
        self.documents.get(key).is_some_and(|seen| seen.change.is_some())
    }

    /// The document of a key, as it is seen.
    pub(crate) fn see(&mut self, key: &str) -> &mut Seen {
        self.documents.entry(key.to_owned()).or_default()
    }

    /// Stages the change of a document, in the place of a former one.
    pub(crate) fn change(&mut self, key: &str, change: Option<Change>) {
        self.see(key).change = change;
        let is_of_key = |place: &Place| matches!(place, Place::Document(of) if of == key);
        if !self.operations.iter().any(is_of_key) {
            self.operations.push(Place::Document(key.to_owned()));
        }
    }
}

impl Seen {
    /// Notes what was read.
    ///
    /// # Errors
    /// `version_mismatch`: the transaction has read another version before, or a caller has said another.
    pub(crate) fn note(&mut self, key: &str, found: Option<DocumentVersion>) -> Result<(), Error> {
        let revision = |version: Option<DocumentVersion>| version.map(|version| version.revision);
        let is_other = |before| revision(before) != revision(found);
        if self.read.map_or_else(|| !holds(&self.when, found), is_other) {
            return Err(changed(key, found));
        }
        self.read = Some(found);
        match found {
            Some(version) => self.when.revision = Some(version.revision),
            None => self.when.version = Some(0),
        }
        Ok(())
    }

    /// Adds a caller's conditions.
    ///
    /// # Errors
    /// `version_mismatch`: they do not hold of what was read or staged; `invalid_argument`: they are about
    /// the version of what the transaction writes itself, or name another lock than those before.
    pub(crate) fn expect(&mut self, key: &str, when: DocumentCondition) -> Result<(), CallError> {
        if let (Some(first), Some(token)) = (self.when.token, when.token)
            && first != token
        {
            let reason = "the transaction writes the document with another token: use one for each document";
            return Err(Fault::invalid(reason).into());
        }
        let is_so = match (&self.change, self.read) {
            (Some(Change::Put { .. }), _) => {
                if when.revision.is_some() || when.version.is_some_and(|version| version > 0) {
                    let reason =
                        "the transaction has written the document itself: leave version and ETag out";
                    return Err(Fault::invalid(reason).into());
                }
                if when.version.is_some() {
                    return Err(of_own(key, "has written"));
                }
                true
            }
            (Some(Change::Delete), _) => {
                if when.revision.is_some() || when.exists || when.version.is_some_and(|version| version > 0) {
                    return Err(of_own(key, "deletes"));
                }
                true
            }
            (None, Some(found)) => holds(&when, found),
            (None, None) => {
                self.when = DocumentCondition { token: self.when.token, ..when };
                true
            }
        };
        if !is_so {
            return Err(changed(key, self.read.flatten()).into());
        }
        self.when.token = when.token.or(self.when.token);
        Ok(())
    }

    /// True if there is a document, as far as the transaction has looked.
    pub(crate) fn exists(&self) -> bool {
        match &self.change {
            Some(Change::Put { .. }) => true,
            Some(Change::Delete) => false,
            None => self.read.flatten().is_some(),
        }
    }
}

/// True if conditions hold of what was read; tokens are not looked at.
fn holds(when: &DocumentCondition, found: Option<DocumentVersion>) -> bool {
    let (version, revision) = found.map_or((0, 0), |found| (found.version, found.revision));
    when.version.is_none_or(|expected| expected == version)
        && when.revision.is_none_or(|expected| expected == revision)
        && (found.is_some() || !when.exists)
}

/// The error for a document that is not as it has to be by what the transaction itself does.
#[cold]
fn of_own(key: &str, does: &str) -> CallError {
    let message = format!("document {key:?} is not as expected: the transaction {does} it itself");
    CallError::new("version_mismatch", message).with(|details| details.text("key", key))
}

/// The error for a document that is not as it has to be.
fn changed(key: &str, found: Option<DocumentVersion>) -> Error {
    let version = found.map_or(0, |found| found.version);
    Error::DocumentChanged { key: key.to_owned(), version }
}

impl Change {
    /// The write of a document.
    pub(crate) fn of(put: &DocumentPut<'_>) -> Change {
        let mut head = BlobHead::default();
        let blob = [head.build(put.content_type, put.attributes), put.content].concat().into();
        Change::Put { ttl_ms: put.ttl_ms, history: put.history, blob }
    }

    /// The content, its type and its attributes; `None` of a deletion.
    pub(crate) fn content(&self) -> Option<MessageBlob<'_>> {
        match self {
            Change::Put { blob, .. } => MessageBlob::parse(blob),
            Change::Delete => None,
        }
    }

    /// The write for the engine, with the content that [`Change::content`] gives.
    pub(crate) fn put<'a>(
        &self,
        (namespace, key, when): (NamespaceId, &'a str, DocumentCondition),
        content: &MessageBlob<'a>,
        attributes: &'a [(&'a str, &'a str)],
    ) -> Option<DocumentPut<'a>> {
        let Change::Put { ttl_ms, history, .. } = *self else { return None };
        Some(DocumentPut {
            namespace,
            key,
            when,
            ttl_ms,
            history,
            request: 0,
            content_type: content.content_type,
            attributes,
            content: content.payload,
            terms: &[],
        })
    }
}

#[cfg(test)]
impl Staged {
    /// Operations that take so many bytes.
    pub(crate) fn of_bytes(bytes: usize) -> Staged {
        Staged { requests: vec![(Protocol::Json, vec![0; bytes].into())], ..Staged::default() }
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::locks::LockToken;

    use super::*;

    const FOUND: DocumentVersion = DocumentVersion { version: 3, revision: 40, changed_at_us: 0 };

    fn when(version: Option<u64>, revision: Option<u64>, exists: bool) -> DocumentCondition {
        DocumentCondition { version, revision, exists, token: None }
    }

    #[test]
    fn conditions_of_what_was_not_read_hold_of_what_is_read_later() {
        let held = [when(Some(3), None, false), when(None, Some(40), false), when(None, None, true)];
        for (condition, found, is_so) in held
            .map(|condition| (condition, Some(FOUND), true))
            .into_iter()
            .chain(
                [when(Some(2), None, false), when(None, Some(39), false)].map(|it| (it, Some(FOUND), false)),
            )
            .chain([(when(None, None, true), None, false), (when(Some(0), None, false), None, true)])
            .chain([
                (when(Some(0), None, false), Some(FOUND), false),
                (when(Some(3), None, false), None, false),
            ])
        {
            let mut seen = Seen::default();
            seen.expect("k", condition).unwrap();
            let noted = seen.note("k", found).map_err(|error| error.code());
            assert_eq!(
                noted,
                if is_so { Ok(()) } else { Err("version_mismatch") },
                "{condition:?} {found:?}"
            );
        }
    }

    #[test]
    fn short_names_take_more_memory_than_their_texts() {
        let mut staged = Staged::default();
        for number in 0..64 {
            staged.name(Name::Lock(number.to_string())).unwrap();
        }
        // A place in the set, and two short texts.
        let each = 2 * size_of::<Name>() + 2 * size_of::<String>() + 2 * 8;
        assert!(staged.bytes() >= 64 * each, "{}", staged.bytes());
    }

    #[test]
    fn a_document_is_written_with_one_token() {
        let mut seen = Seen::default();
        let token = |first: &str| format!("{first:0<32}").parse::<LockToken>().unwrap();
        let with = |first| DocumentCondition { token: Some(token(first)), ..DocumentCondition::default() };
        seen.expect("k", with("1")).unwrap();
        seen.expect("k", DocumentCondition::default()).unwrap();
        seen.expect("k", with("1")).unwrap();
        assert_eq!(seen.expect("k", with("2")).unwrap_err().code(), "invalid_argument");
        assert_eq!(seen.when.token, Some(token("1")));
    }
}
