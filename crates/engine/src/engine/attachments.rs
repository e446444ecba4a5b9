//! Uploads and attachments: those who write may prove that they hold the lock of the document's key.

use crate::attachments::{AttachmentChunk, AttachmentCommit, AttachmentDelete, AttachmentView, UploadView};
use crate::document::attachment::record::ChunkRecord;
use crate::documents::DocumentCondition;
use crate::engine::Engine;
use crate::error::Error;
use crate::id::{NamespaceId, UploadId};
use crate::outcome::{Outcome, Reply};

impl Engine {
    pub(super) fn upload_chunk(&mut self, chunk: &ChunkRecord<'_>, out: &mut Outcome) -> Result<(), Error> {
        let done = self.documents.upload_chunk(chunk, &mut self.core, out);
        if done.is_err() {
            out.released.push(chunk.blob(self.core.applied_index));
        }
        done
    }

    pub(super) fn attachment_commit(
        &mut self,
        commit: &AttachmentCommit<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        // A repeat needs the lock no more, which may have been released since.
        if let Some(version) = self.documents.committed(commit, &self.core)? {
            out.reply = Reply::DocumentWritten { version, created: version.version == 1 };
            return Ok(());
        }
        self.expect_lock(commit.namespace, &commit.when, commit.key)?;
        self.documents.attachment_commit(commit, &mut self.core, out)
    }

    pub(super) fn attachment_delete(
        &mut self,
        delete: &AttachmentDelete<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        self.expect_lock(delete.namespace, &delete.when, delete.key)?;
        self.documents.attachment_delete(delete, &mut self.core, out)
    }

    /// An upload that is not over.
    pub fn upload(&self, namespace: NamespaceId, upload: UploadId) -> Option<UploadView> {
        self.documents.upload(namespace, upload, &self.core)
    }

    /// Uploads for the attachment of a key with a name, the first one first; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn uploads_for(
        &self,
        namespace: NamespaceId,
        key: &str,
        name: &str,
        limit: usize,
    ) -> Vec<UploadView> {
        self.documents.uploads_for(namespace, (key, name), limit, &self.core)
    }

    /// The attachment of a key with a name.
    pub fn attachment(&self, namespace: NamespaceId, key: &str, name: &str) -> Option<AttachmentView> {
        self.documents.attachment(namespace, (key, name), &self.core)
    }

    /// Refuses a write of an attachment, as its commit would be refused now, by its document and by its
    /// condition on the attachment; not by its lock.
    ///
    /// # Errors
    /// `document_not_found`, `version_mismatch`.
    pub fn expect_to_attach(
        &self,
        namespace: NamespaceId,
        target: (&str, &str),
        when: &DocumentCondition,
    ) -> Result<(), Error> {
        self.documents.expect_to_attach(namespace, target, when, &self.core)
    }

    /// Attachments of a key in the order of their names after `after`, at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX); `None`: there is no document.
    pub fn attachments_after(
        &self,
        namespace: NamespaceId,
        key: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Option<Vec<AttachmentView>> {
        self.documents.attachments_after(namespace, key, after, limit, &self.core)
    }

    /// Chunks of an attachment, at most `limit`, from the one on in which byte `from` lies; `None`: it has
    /// not this revision any more.
    pub fn attachment_chunks(
        &self,
        namespace: NamespaceId,
        (key, name): (&str, &str),
        revision: u64,
        from: u64,
        limit: usize,
    ) -> Option<Vec<AttachmentChunk>> {
        self.documents.attachment_chunks(namespace, (key, name), revision, from, limit, &self.core)
    }
}
