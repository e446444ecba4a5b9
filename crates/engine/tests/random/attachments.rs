//! Attachments: an upload grows by the chunks that follow each other and by no other, a commit makes an
//! attachment of exactly its bytes, an attachment goes with its document, and chunks that nothing is made of
//! any more are let go of.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::attachments::{AttachmentCommit, AttachmentDelete, UploadBegin, UploadChunk, UploadId};
use sluice_engine::documents::{DocumentCondition, DocumentVersion};
use sluice_engine::id::{BlobRef, NamespaceId};
use sluice_engine::limits::UPLOAD_IDLE_MS;
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::{Command, Error};

use super::Run;
use super::documents::{Documents, KEYS};
use crate::common::Driver;

pub(super) const NAMES: [&str; 2] = ["scan", "scan.txt"];
/// Number of uploads of which chunks and commits are made, those that are over included.
const KNOWN_MAX: usize = 8;

/// Bytes and the chunks in which they came.
#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    chunks: Vec<BlobRef>,
}

/// An upload, by what its writer was told.
#[derive(Clone, Debug)]
struct Upload {
    key: String,
    name: String,
    content: Content,
    /// Place and digest of the last chunk.
    last: (u64, u64),
    until_us: u64,
}

#[derive(Clone, Debug)]
struct Attachment {
    upload: UploadId,
    version: DocumentVersion,
    content: Content,
}

/// A document, by its namespace and key.
type Place = (NamespaceId, String);

/// Every upload and attachment, by what their writers were told.
#[derive(Default)]
pub(super) struct Attachments {
    uploads: BTreeMap<(NamespaceId, UploadId), Upload>,
    of_documents: BTreeMap<Place, BTreeMap<String, Attachment>>,
    /// Uploads that were begun lately.
    known: Vec<(NamespaceId, UploadId, &'static str, &'static str)>,
    /// Every chunk that was ever taken.
    chunks: BTreeSet<BlobRef>,
    /// The last revision with which a document began.
    latest: u64,
}

/// A digest that tells bytes apart; the engine compares it, and never computes it.
fn digest(bytes: &[u8]) -> [u8; 32] {
    let sum = bytes.iter().fold(bytes.len() as u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    let mut digest = [7; 32];
    digest[..8].copy_from_slice(&sum.to_le_bytes());
    digest
}

impl Attachments {
    /// Follows a command, behind the documents. Of a transaction, commits come behind its other operations.
    pub(super) fn follow(
        &mut self,
        now_us: u64,
        command: &Command<'_>,
        (index, out): (u64, &Outcome),
        documents: &Documents,
    ) {
        self.uploads.retain(|_, upload| upload.until_us > now_us);
        self.of_documents.retain(|(namespace, key), _| documents.is_live(*namespace, key));
        match command {
            Command::DocumentPut(put) => {
                // One that has ended in this moment may have had some; a repeat writes nothing.
                if let Reply::DocumentWritten { version, created: true } = out.reply
                    && version.revision > self.latest
                {
                    self.latest = version.revision;
                    self.of_documents.remove(&(put.namespace, put.key.to_owned()));
                }
            }
            Command::UploadBegin(begin) => self.begin(now_us, begin, out),
            Command::UploadChunk(chunk) => self.chunk(now_us, chunk, (index, out)),
            Command::UploadEnd { namespace, upload } => {
                let ended = self.uploads.remove(&(*namespace, *upload));
                assert_eq!(out.error.is_none(), ended.is_some(), "{upload}: {:?}", out.error);
            }
            Command::AttachmentCommit(commit) => self.commit(commit, out, documents),
            Command::AttachmentDelete(delete) => self.delete(delete, out),
            Command::NamespaceDelete { namespace, .. } if out.error.is_none() => {
                self.uploads.retain(|(of, _), _| of != namespace);
            }
            _ => {}
        }
    }

    fn begin(&mut self, now_us: u64, begin: &UploadBegin<'_>, out: &Outcome) {
        let Reply::UploadBegun { upload } = out.reply else {
            assert!(matches!(out.error, Some(Error::NamespaceNotFound { .. })), "{:?}", out.error);
            return;
        };
        let (key, name) = (begin.key.to_owned(), begin.name.to_owned());
        let until_us = now_us + UPLOAD_IDLE_MS * 1_000;
        let begun = Upload { key, name, content: Content::default(), last: (0, 0), until_us };
        assert!(self.uploads.insert((begin.namespace, upload), begun).is_none(), "an id is given once");
    }

    fn chunk(&mut self, now_us: u64, chunk: &UploadChunk<'_>, (index, out): (u64, &Outcome)) {
        let blob = BlobRef { index, item: 0, len: chunk.content.len() as u32 };
        let is_kept = !out.released.contains(&blob);
        let Some(upload) = self.uploads.get_mut(&(chunk.namespace, chunk.upload)) else {
            let codes = ["upload_not_found", "namespace_not_found"];
            assert!(out.error.as_ref().is_some_and(|error| codes.contains(&error.code())) && !is_kept);
            return;
        };
        let len = upload.content.bytes.len() as u64;
        let is_repeat = chunk.request != 0 && (chunk.offset, chunk.request) == upload.last;
        match &out.error {
            None if chunk.offset == len => {
                assert!(is_kept);
                self.chunks.insert(blob);
                upload.content.bytes.extend_from_slice(chunk.content);
                upload.content.chunks.push(blob);
                upload.last = (chunk.offset, chunk.request);
            }
            None => assert!(is_repeat && !is_kept, "{chunk:?} is taken for {upload:?}"),
            Some(Error::UploadOffset { expected, .. }) => {
                assert!(!is_kept && chunk.offset != len && *expected == len && !is_repeat);
                return;
            }
            Some(Error::QuotaExceeded { .. }) => return assert!(!is_kept),
            Some(error) => panic!("{chunk:?} of {upload:?}: {error}"),
        }
        upload.until_us = now_us + UPLOAD_IDLE_MS * 1_000;
    }

    fn commit(&mut self, commit: &AttachmentCommit<'_>, out: &Outcome, documents: &Documents) {
        let place = (commit.namespace, commit.key.to_owned());
        let found = self.of_documents.get(&place).and_then(|of| of.get(commit.name));
        let upload = self.uploads.get(&(commit.namespace, commit.upload));
        let upload = upload.filter(|upload| (&*upload.key, &*upload.name) == (commit.key, commit.name));
        if let Some(error) = &out.error {
            // A repeated commit is refused by the bytes that were committed.
            let committed = found.filter(|found| found.upload == commit.upload).map(|found| &found.content);
            let content = committed.or(upload.map(|upload| &upload.content));
            let is_right = match error {
                Error::UploadNotFound { .. } => upload.is_none(),
                Error::DocumentNotFound { .. } => !documents.is_live(commit.namespace, commit.key),
                Error::UploadIncomplete { bytes, .. } => {
                    content.is_some_and(|content| content.bytes.len() as u64 == *bytes)
                        && commit.bytes != Some(*bytes)
                }
                Error::DigestMismatch { .. } => {
                    content.is_some_and(|content| commit.sha256 != Some(digest(&content.bytes)))
                }
                _ => is_refused(&commit.when, found, error),
            };
            assert!(is_right, "{commit:?} of {upload:?} over {found:?}: {error}");
            return;
        }
        let Reply::DocumentWritten { version, created } = out.reply else { panic!("{:?}", out.reply) };
        assert_eq!(created, version.version == 1);
        if let Some(found) = found.filter(|found| found.upload == commit.upload) {
            assert_eq!(version, found.version, "a repeat");
            return;
        }
        let content = upload.expect("it was committed").content.clone();
        assert!(documents.is_live(commit.namespace, commit.key) && holds(&commit.when, found));
        assert!(commit.bytes.is_none_or(|bytes| bytes == content.bytes.len() as u64));
        assert!(commit.sha256.is_none_or(|expected| expected == digest(&content.bytes)));
        assert_eq!(version.version, found.map_or(0, |found| found.version.version) + 1);
        assert!(found.is_none_or(|found| found.version.revision < version.revision));
        self.uploads.remove(&(commit.namespace, commit.upload));
        let made = Attachment { upload: commit.upload, version, content };
        self.of_documents.entry(place).or_default().insert(commit.name.to_owned(), made);
    }

    fn delete(&mut self, delete: &AttachmentDelete<'_>, out: &Outcome) {
        let of_document = self.of_documents.entry((delete.namespace, delete.key.to_owned())).or_default();
        let found = of_document.get(delete.name);
        match &out.error {
            None => {
                assert!(found.is_some() && holds(&delete.when, found), "{delete:?} of {found:?}");
                of_document.remove(delete.name);
            }
            Some(Error::AttachmentNotFound { .. }) => assert!(found.is_none(), "{delete:?} of {found:?}"),
            Some(error) => {
                assert!(is_refused(&delete.when, found, error), "{delete:?} of {found:?}: {error}")
            }
        }
    }

    /// Compares what can be read with what was committed, and with what is under way.
    pub(super) fn check(&self, driver: &Driver) {
        for ((namespace, key), of_document) in &self.of_documents {
            let listed = driver.engine.attachments_after(*namespace, key, None, 1_000).unwrap_or_default();
            let names: Vec<_> = listed.iter().map(|view| &*view.name).collect();
            let committed: Vec<_> = of_document.keys().map(|name| &**name).collect();
            assert_eq!(names, committed, "attachments of {key}");
            for (view, attachment) in listed.iter().zip(of_document.values()) {
                let bytes = &attachment.content.bytes;
                assert_eq!((view.version, view.bytes), (attachment.version, bytes.len() as u64));
                assert_eq!(view.sha256 == digest(bytes), !bytes.is_empty(), "that of nothing is another");
                for from in [0, bytes.len() / 2] {
                    let read = read_from(driver, (*namespace, key, &view.name), view.version.revision, from);
                    assert_eq!(read, bytes[from..]);
                }
            }
        }
        for ((namespace, id), upload) in &self.uploads {
            let view = driver.engine.upload(*namespace, *id).unwrap();
            assert_eq!((&view.key, &view.name), (&upload.key, &upload.name));
            assert_eq!(view.progress.bytes, upload.content.bytes.len() as u64);
            assert_eq!(view.expires_at_us, upload.until_us);
            let listed = driver.engine.uploads_for(*namespace, &upload.key, &upload.name, 1_000);
            assert!(listed.contains(&view));
        }
    }

    /// When nothing is left to be done, the chunks that are held are those of uploads and attachments.
    pub(super) fn check_chunks(&self, now_us: u64, documents: &Documents, driver: &Driver) {
        let uploads = self.uploads.values().filter(|upload| upload.until_us > now_us);
        let live = |((namespace, key), _): &(&Place, _)| documents.is_live(*namespace, key);
        let attachments = self.of_documents.iter().filter(live).flat_map(|(_, of)| of.values());
        let contents = uploads.map(|upload| &upload.content).chain(attachments.map(|it| &it.content));
        let needed: BTreeSet<BlobRef> = contents.flat_map(|content| content.chunks.iter().copied()).collect();
        let held = self.chunks.iter().copied().filter(|chunk| driver.blobs.contains_key(chunk));
        assert_eq!(held.collect::<BTreeSet<_>>(), needed, "chunks that are held, and those that are needed");
    }
}

/// The bytes of an attachment from this one on, as a reader puts them together.
fn read_from(
    driver: &Driver,
    (namespace, key, name): (NamespaceId, &str, &str),
    revision: u64,
    from: usize,
) -> Vec<u8> {
    let mut read = Vec::new();
    loop {
        let at = from + read.len();
        let found = driver.engine.attachment_chunks(namespace, (key, name), revision, at as u64, 2).unwrap();
        if found.is_empty() {
            return read;
        }
        for chunk in found {
            let skipped = (from + read.len()) - chunk.start as usize;
            read.extend_from_slice(&driver.blobs[&chunk.blob][skipped..]);
        }
    }
}

fn holds(when: &DocumentCondition, found: Option<&Attachment>) -> bool {
    let version = found.map(|attachment| attachment.version);
    when.version.is_none_or(|expected| version.map_or(0, |version| version.version) == expected)
        && when.revision.is_none_or(|expected| version.is_some_and(|version| version.revision == expected))
        && (version.is_some() || !when.exists)
}

fn is_refused(when: &DocumentCondition, found: Option<&Attachment>, error: &Error) -> bool {
    match error {
        Error::AttachmentChanged { version, .. } => {
            !holds(when, found) && *version == found.map_or(0, |attachment| attachment.version.version)
        }
        Error::LockLost { .. } | Error::LockOfOther { .. } => when.token.is_some(),
        Error::NamespaceNotFound { .. } => true,
        _ => false,
    }
}

impl Run {
    pub(super) fn attachment(&mut self) {
        match self.numbers.below(10) {
            0..=1 => self.begin_upload(),
            2..=5 => self.chunk(),
            6 if self.numbers.one_in(3) => {
                if let Some((namespace, upload, ..)) = self.some_upload() {
                    self.apply(&Command::UploadEnd { namespace, upload });
                }
            }
            6 => {
                let (namespace, key, name) =
                    (NamespaceId::DEFAULT, self.numbers.pick(&KEYS), self.numbers.pick(&NAMES));
                let when = self.condition_of_attachment(namespace, key, name);
                self.apply(&Command::AttachmentDelete(AttachmentDelete { namespace, key, name, when }));
            }
            _ => {
                let Some(commit) = self.commit() else { return };
                self.apply(&Command::AttachmentCommit(commit));
            }
        }
    }

    fn begin_upload(&mut self) {
        let namespaces = self.namespaces.clone();
        let is_default = !self.numbers.one_in(4);
        let namespace = if is_default { NamespaceId::DEFAULT } else { self.numbers.pick(&namespaces) };
        let (key, name) = (self.numbers.pick(&KEYS), self.numbers.pick(&NAMES));
        let content_type = self.numbers.pick(&["", "image/png"]);
        self.apply(&Command::UploadBegin(UploadBegin { namespace, key, name, content_type }));
        if let Reply::UploadBegun { upload } = self.driver.out.reply {
            let known = &mut self.attachments.known;
            known.push((namespace, upload, key, name));
            if known.len() > KNOWN_MAX {
                known.remove(0);
            }
        }
    }

    fn some_upload(&mut self) -> Option<(NamespaceId, UploadId, &'static str, &'static str)> {
        let known = self.attachments.known.clone();
        (!known.is_empty()).then(|| self.numbers.pick(&known))
    }

    fn chunk(&mut self) {
        let Some((namespace, upload, ..)) = self.some_upload() else { return };
        let found = self.attachments.uploads.get(&(namespace, upload));
        let (mut bytes, last) =
            found.map_or_else(Default::default, |upload| (upload.content.bytes.clone(), upload.last));
        let (mut offset, mut request) = (bytes.len() as u64, self.numbers.below(3));
        match self.numbers.below(8) {
            0 => (offset, request) = last,
            1 => offset = self.numbers.below(200),
            _ => {}
        }
        let mark = self.numbers.below(250) as u8;
        let content = vec![mark; self.numbers.pick(&[1, 10, 100])];
        bytes.extend_from_slice(&content);
        let (hash, sha256) = (&b"state"[..], digest(&bytes));
        let chunk = UploadChunk { namespace, upload, offset, request, hash, sha256, content: &content };
        self.apply(&Command::UploadChunk(chunk));
    }

    /// A commit that is mostly as it should be.
    pub(super) fn commit(&mut self) -> Option<AttachmentCommit<'static>> {
        let (namespace, upload, key, name) = self.some_upload()?;
        let found = self.attachments.uploads.get(&(namespace, upload));
        let bytes = found.map_or_else(Vec::new, |upload| upload.content.bytes.clone());
        let when = self.condition_of_attachment(namespace, key, name);
        let mut commit = AttachmentCommit { namespace, key, name, upload, bytes: None, sha256: None, when };
        match self.numbers.below(10) {
            0 => commit.bytes = Some(self.numbers.below(200)),
            1 => commit.sha256 = Some([1; 32]),
            2 => commit.name = self.numbers.pick(&NAMES),
            3..=5 => commit.bytes = Some(bytes.len() as u64),
            6 if !bytes.is_empty() => commit.sha256 = Some(digest(&bytes)),
            _ => {}
        }
        Some(commit)
    }

    /// A condition that mostly holds.
    pub(super) fn condition_of_attachment(
        &mut self,
        namespace: NamespaceId,
        key: &str,
        name: &str,
    ) -> DocumentCondition {
        let found = self.driver.engine.attachment(namespace, key, name).map(|view| view.version);
        self.condition_on(found.unwrap_or_default())
    }
}
