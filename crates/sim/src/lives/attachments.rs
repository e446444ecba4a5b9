//! Attachments, as clients see them: an upload grows by chunks that follow each other, an attachment has the
//! chunks of the upload that it was made of, and goes with its document. What nobody can read any more is let
//! go of, once.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Error;
use sluice_engine::attachments::{AttachmentCommit, AttachmentDelete, UploadBegin, UploadChunk, UploadId};
use sluice_engine::command::Command;
use sluice_engine::documents::{DocumentCondition, DocumentVersion};
use sluice_engine::id::{BlobRef, NamespaceId};
use sluice_engine::limits::UPLOAD_IDLE_MS;
use sluice_engine::outcome::Reply;

use super::Record;
use super::documents::Documents;
use crate::model::{Checked, ensure};

/// Time that a timer may be late, in microseconds.
const LATE_US: u64 = 2_000;

/// An upload, as its client was told.
#[derive(Clone, Debug)]
struct Upload {
    key: String,
    name: String,
    chunks: Vec<BlobRef>,
    /// Place and digest of the last chunk.
    last: (u64, u64),
    /// When it ends, in microseconds since the Unix epoch.
    until_us: u64,
}

#[derive(Clone, Debug)]
struct Attachment {
    upload: UploadId,
    version: DocumentVersion,
    chunks: Vec<BlobRef>,
}

/// A document, by its namespace and key.
type Place = (NamespaceId, String);

/// Everything that was told of uploads and attachments up to some record.
#[derive(Clone, Debug, Default)]
pub(super) struct Attachments {
    uploads: BTreeMap<(NamespaceId, UploadId), Upload>,
    of_documents: BTreeMap<Place, BTreeMap<String, Attachment>>,
    /// Chunks that nobody can read any more, and are not let go of, with the time since which that is so, in
    /// microseconds since the Unix epoch.
    leaving: BTreeMap<BlobRef, u64>,
    /// The last revision with which a document began.
    latest: u64,
}

impl Attachments {
    /// Takes in a command, behind the documents. Of a transaction, commits come behind its other operations.
    pub(super) fn follow(&mut self, record: &Record<'_>, documents: &Documents) -> Checked {
        self.end_due(record, documents);
        let done = record.outcome.error.is_none();
        match record.command {
            Command::DocumentPut(put) => {
                // One that has ended in this moment may have had some; a repeat writes nothing.
                if let Reply::DocumentWritten { version, created: true } = record.outcome.reply
                    && version.revision > self.latest
                {
                    self.latest = version.revision;
                    let before = self.of_documents.remove(&(put.namespace, put.key.to_owned()));
                    self.leave(chunks_of(before), record.now_us);
                }
                Ok(())
            }
            Command::UploadBegin(begin) => self.begin(begin, record),
            Command::UploadChunk(chunk) => self.chunk(chunk, record),
            Command::UploadEnd { namespace, upload } => {
                let ended = self.uploads.remove(&(*namespace, *upload));
                ensure!(ended.is_some() == done, "{ended:?} is ended: {:?}", record.outcome.error);
                self.leave(ended.map_or_else(Vec::new, |ended| ended.chunks), record.now_us);
                Ok(())
            }
            Command::AttachmentCommit(commit) => self.commit(commit, record, documents),
            Command::AttachmentDelete(delete) => self.delete(delete, record),
            Command::NamespaceDelete { namespace, .. } if done => {
                let ended = self.uploads.extract_if(.., |(of, _), _| of == namespace);
                let chunks: Vec<_> = ended.flat_map(|(_, upload)| upload.chunks).collect();
                self.leave(chunks, record.now_us);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends uploads whose time has come, and attachments whose documents are gone.
    fn end_due(&mut self, record: &Record<'_>, documents: &Documents) {
        let now_us = record.now_us;
        let over = self.uploads.extract_if(.., |_, upload| upload.until_us <= now_us);
        let mut chunks: Vec<_> = over.flat_map(|(_, upload)| upload.chunks).collect();
        let gone = self.of_documents.extract_if(.., |place, _| !documents.live.contains_key(place));
        chunks.extend(gone.flat_map(|(_, of_document)| chunks_of(Some(of_document))));
        self.leave(chunks, now_us);
    }

    fn leave(&mut self, chunks: Vec<BlobRef>, now_us: u64) {
        self.leaving.extend(chunks.into_iter().map(|chunk| (chunk, now_us)));
    }

    fn begin(&mut self, begin: &UploadBegin<'_>, record: &Record<'_>) -> Checked {
        let Reply::UploadBegun { upload } = record.outcome.reply else {
            ensure!(
                matches!(record.outcome.error, Some(Error::NamespaceNotFound { .. })),
                "an upload is refused: {:?}",
                record.outcome.error
            );
            return Ok(());
        };
        let (key, name) = (begin.key.to_owned(), begin.name.to_owned());
        let until_us = record.now_us + UPLOAD_IDLE_MS * 1_000;
        let begun = Upload { key, name, chunks: Vec::new(), last: (0, 0), until_us };
        let before = self.uploads.insert((begin.namespace, upload), begun);
        ensure!(before.is_none(), "{before:?} has the id of an upload that begins");
        Ok(())
    }

    fn chunk(&mut self, chunk: &UploadChunk<'_>, record: &Record<'_>) -> Checked {
        let blob = BlobRef { index: record.index, item: 0, len: chunk.content.len() as u32 };
        let is_kept = !record.outcome.released.contains(&blob);
        let error = &record.outcome.error;
        let Some(upload) = self.uploads.get_mut(&(chunk.namespace, chunk.upload)) else {
            let is_right =
                matches!(error, Some(Error::UploadNotFound { .. } | Error::NamespaceNotFound { .. }));
            ensure!(is_right && !is_kept, "a chunk of no upload: {error:?}");
            return Ok(());
        };
        let bytes = bytes_of(&upload.chunks);
        let is_repeat = chunk.request != 0 && (chunk.offset, chunk.request) == upload.last;
        match error {
            None if chunk.offset == bytes => {
                ensure!(is_kept, "a chunk of {upload:?} is let go of");
                upload.chunks.push(blob);
                upload.last = (chunk.offset, chunk.request);
            }
            None => ensure!(is_repeat && !is_kept, "a chunk at {} is taken by {upload:?}", chunk.offset),
            Some(Error::UploadOffset { expected, .. }) => {
                let is_right = *expected == bytes && chunk.offset != bytes && !is_repeat && !is_kept;
                ensure!(is_right, "a chunk at {} is refused by {upload:?}: {error:?}", chunk.offset);
                return Ok(());
            }
            Some(Error::QuotaExceeded { .. }) => {
                ensure!(!is_kept, "a chunk that is refused is kept");
                return Ok(());
            }
            Some(error) => return Err(format!("a chunk of {upload:?} is refused: {error:?}")),
        }
        upload.until_us = record.now_us + UPLOAD_IDLE_MS * 1_000;
        Ok(())
    }

    fn commit(
        &mut self,
        commit: &AttachmentCommit<'_>,
        record: &Record<'_>,
        documents: &Documents,
    ) -> Checked {
        let place = (commit.namespace, commit.key.to_owned());
        let found = self.of_documents.get(&place).and_then(|of| of.get(commit.name));
        let id = (commit.namespace, commit.upload);
        let upload = self.uploads.get(&id);
        let upload = upload.filter(|upload| (&*upload.key, &*upload.name) == (commit.key, commit.name));
        // A repeated commit is refused by the bytes that were committed.
        let committed = found.filter(|found| found.upload == commit.upload).map(|found| &found.chunks);
        let bytes = committed.or(upload.map(|upload| &upload.chunks)).map(|chunks| bytes_of(chunks));
        if let Some(error) = &record.outcome.error {
            let is_right = match error {
                Error::UploadNotFound { .. } => upload.is_none(),
                Error::DocumentNotFound { .. } => !documents.live.contains_key(&place),
                Error::UploadIncomplete { bytes: told, .. } => {
                    bytes == Some(*told) && commit.bytes.is_some() && commit.bytes != bytes
                }
                _ => is_refused(&commit.when, found, error),
            };
            ensure!(is_right, "{commit:?} of {upload:?} over {found:?} is refused: {error:?}");
            return Ok(());
        }
        let Reply::DocumentWritten { version, created } = record.outcome.reply else {
            return Err(format!("a commit is answered with {:?}", record.outcome.reply));
        };
        if let Some(found) = found.filter(|found| found.upload == commit.upload) {
            ensure!(version == found.version, "a repeat of {found:?} has become {version:?}");
            return Ok(());
        }
        let is_sound = documents.live.contains_key(&place)
            && holds(&commit.when, found)
            && bytes.is_some_and(|bytes| commit.bytes.is_none_or(|expected| expected == bytes));
        ensure!(is_sound, "{commit:?} of {upload:?} is done over {found:?}");
        let before = found.map_or(0, |found| found.version.version);
        ensure!(version.version == before + 1 && created == (before == 0), "{version:?} after {found:?}");
        let Some(Upload { chunks, .. }) = self.uploads.remove(&id) else { return Ok(()) };
        let made = Attachment { upload: commit.upload, version, chunks };
        let replaced = self.of_documents.entry(place).or_default().insert(commit.name.to_owned(), made);
        self.leave(replaced.map_or_else(Vec::new, |replaced| replaced.chunks), record.now_us);
        Ok(())
    }

    fn delete(&mut self, delete: &AttachmentDelete<'_>, record: &Record<'_>) -> Checked {
        let place = (delete.namespace, delete.key.to_owned());
        let found = self.of_documents.get(&place).and_then(|of| of.get(delete.name));
        match &record.outcome.error {
            None => {
                ensure!(found.is_some() && holds(&delete.when, found), "{delete:?} deletes {found:?}");
                let of_document = self.of_documents.get_mut(&place);
                let deleted = of_document.and_then(|of_document| of_document.remove(delete.name));
                self.leave(deleted.map_or_else(Vec::new, |deleted| deleted.chunks), record.now_us);
            }
            Some(Error::AttachmentNotFound { .. }) => {
                ensure!(found.is_none(), "{delete:?} does not find {found:?}");
            }
            Some(error) => {
                ensure!(is_refused(&delete.when, found, error), "{delete:?} of {found:?}: {error:?}");
            }
        }
        Ok(())
    }

    /// Notes what the record has let go of, and compares what can be read with what was told.
    pub(super) fn are_as_told(&mut self, record: &Record<'_>) -> Checked {
        let needed = self.needed();
        for chunk in &record.outcome.released {
            ensure!(!needed.contains(chunk), "{chunk:?} is let go of, and can be read");
            self.leaving.remove(chunk);
        }
        if record.outcome.error.is_some() {
            return Ok(());
        }
        for ((namespace, key), of_document) in &self.of_documents {
            let listed = record.engine.attachments_after(*namespace, key, None, 1_000).unwrap_or_default();
            let names: Vec<_> = listed.iter().map(|view| (&*view.name, view.version, view.bytes)).collect();
            let told = of_document.iter().map(|(name, of)| (&**name, of.version, bytes_of(&of.chunks)));
            ensure!(told.eq(names.iter().copied()), "{key:?} has {names:?}, and not {of_document:?}");
            for (name, attachment) in of_document {
                let revision = attachment.version.revision;
                let found = record.engine.attachment_chunks(*namespace, (key, name), revision, 0, usize::MAX);
                let found: Vec<BlobRef> = found.into_iter().flatten().map(|chunk| chunk.blob).collect();
                ensure!(found == attachment.chunks, "{name:?} of {key:?} is {found:?}, not {attachment:?}");
            }
        }
        for ((namespace, id), upload) in &self.uploads {
            let found = record.engine.upload(*namespace, *id).map(|view| view.progress.bytes);
            ensure!(found == Some(bytes_of(&upload.chunks)), "{upload:?} has {found:?} bytes");
        }
        self.are_let_go_of(record)
    }

    /// When nothing is left to do, only what has just ended is not let go of.
    fn are_let_go_of(&self, record: &Record<'_>) -> Checked {
        if !matches!(record.command, Command::Tick) || record.goes_on() {
            return Ok(());
        }
        let late = self.leaving.iter().find(|(_, since_us)| *since_us + LATE_US <= record.now_us);
        ensure!(late.is_none(), "nobody can read a chunk, and it is not let go of: {late:?}");
        Ok(())
    }

    /// Chunks that can be read, which no record may let go of.
    fn needed(&self) -> BTreeSet<BlobRef> {
        let of_uploads = self.uploads.values().flat_map(|upload| &upload.chunks);
        let attachments = self.of_documents.values().flat_map(BTreeMap::values);
        of_uploads.chain(attachments.flat_map(|attachment| &attachment.chunks)).copied().collect()
    }
}

fn chunks_of(of_document: Option<BTreeMap<String, Attachment>>) -> Vec<BlobRef> {
    let attachments = of_document.into_iter().flat_map(BTreeMap::into_values);
    attachments.flat_map(|attachment| attachment.chunks).collect()
}

fn bytes_of(chunks: &[BlobRef]) -> u64 {
    chunks.iter().map(|chunk| u64::from(chunk.len)).sum()
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
        Error::NamespaceNotFound { .. } | Error::InDoubt { .. } => true,
        _ => false,
    }
}
