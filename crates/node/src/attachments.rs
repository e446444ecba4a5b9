//! Caller's side of attachments and uploads.

use bytes::Bytes;
use sluice_engine::attachments::{
    AttachmentCommit, AttachmentDelete, AttachmentView, UploadBegin, UploadChunk, UploadId, UploadView,
};
use sluice_engine::command::Command;
use sluice_engine::documents::{DocumentCondition, DocumentVersion};
use sluice_engine::outcome::Reply;
use sluice_engine::{Error, NamespaceId};

use crate::blobs;
use crate::handle::{LOOK_ITEMS, Node};
use crate::shard::request::{ShardView, unexpected};
use crate::shard::store;

/// The name of an attachment: the key of its document, and its own.
#[derive(Clone, Copy, Debug)]
pub struct AttachmentName<'a> {
    /// Namespace of the document.
    pub namespace: NamespaceId,
    /// Key of the document.
    pub key: &'a str,
    /// Name of the attachment.
    pub name: &'a str,
}

impl AttachmentName<'_> {
    fn not_found(&self) -> Error {
        Error::AttachmentNotFound { key: self.key.to_owned(), name: self.name.to_owned() }
    }
}

impl Node {
    /// Begins an upload for an attachment, whose document need not be there yet.
    ///
    /// # Errors
    /// `limit_exceeded`; `invalid_argument` for what cannot be a name or a media type.
    pub async fn upload_begin(
        &self,
        target: AttachmentName<'_>,
        content_type: &str,
    ) -> Result<UploadId, Error> {
        let AttachmentName { namespace, key, name } = target;
        let begin = Command::UploadBegin(UploadBegin { namespace, key, name, content_type });
        match self.propose(namespace, &begin).await?.result? {
            Reply::UploadBegun { upload } => Ok(upload),
            other => Err(unexpected(&other)),
        }
    }

    /// An upload for an attachment of this key.
    ///
    /// # Errors
    /// `upload_not_found`.
    pub async fn upload(
        &self,
        namespace: NamespaceId,
        key: &str,
        upload: UploadId,
    ) -> Result<UploadView, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let found = self.look(shard, move |at| at.engine.upload(namespace, upload)).await?;
        let of_key = found.filter(|view| view.key == key);
        of_key.ok_or_else(|| Error::UploadNotFound { upload: upload.to_string() })
    }

    /// Uploads for an attachment, the first one first, as many as a shard shows at a time.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn uploads_for(&self, target: AttachmentName<'_>) -> Result<Vec<UploadView>, Error> {
        let (namespace, key, name) = (target.namespace, target.key.to_owned(), target.name.to_owned());
        let shard = self.inner.placement.shard_of(namespace)?;
        self.look(shard, move |at| at.engine.uploads_for(namespace, &key, &name, LOOK_ITEMS)).await
    }

    /// Adds a chunk to an upload, when it is its turn: uploads take a quarter of the log's bandwidth, and
    /// more while nobody else writes.
    ///
    /// # Errors
    /// `upload_not_found`, `upload_offset`, `payload_too_large`, `quota_exceeded`, `limit_exceeded`.
    pub async fn upload_chunk(&self, chunk: &UploadChunk<'_>) -> Result<(), Error> {
        let shard = self.inner.placement.shard_of(chunk.namespace)?;
        let command = Command::UploadChunk(*chunk);
        let pace = &self.inner.paces[shard as usize];
        let answer = pace.take(self.records_written(), self.propose_on(shard, &command)).await?;
        answer.result.map(drop)
    }

    /// Number of the records that all shards of this node have written: they share its disks. One that does
    /// not answer counts as one that writes nothing.
    async fn records_written(&self) -> u64 {
        let (node, mut records) = (self.stale(), 0u64);
        for shard in 0..self.inner.mailboxes.len() as u32 {
            let written = node.look(shard, |at: &mut ShardView<'_>| at.figures.records).await;
            records = records.wrapping_add(written.unwrap_or_default());
        }
        records
    }

    /// Ends an upload without a commit.
    ///
    /// # Errors
    /// `upload_not_found`.
    pub async fn upload_end(&self, namespace: NamespaceId, upload: UploadId) -> Result<(), Error> {
        let end = Command::UploadEnd { namespace, upload };
        self.propose(namespace, &end).await?.result.map(drop)
    }

    /// Makes an attachment from an upload. Tells its version, and whether it is new.
    ///
    /// # Errors
    /// `document_not_found`, `upload_not_found`, `upload_incomplete`, `digest_mismatch`, `version_mismatch`,
    /// `lease_lost`, `limit_exceeded`.
    pub async fn attachment_commit(
        &self,
        commit: &AttachmentCommit<'_>,
    ) -> Result<(DocumentVersion, bool), Error> {
        match self.propose(commit.namespace, &Command::AttachmentCommit(*commit)).await?.result? {
            Reply::DocumentWritten { version, created } => Ok((version, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes an attachment.
    ///
    /// # Errors
    /// `attachment_not_found`; `version_mismatch` and `lease_lost` when the condition does not hold.
    pub async fn attachment_delete(&self, delete: &AttachmentDelete<'_>) -> Result<(), Error> {
        self.propose(delete.namespace, &Command::AttachmentDelete(*delete)).await?.result.map(drop)
    }

    /// Refuses a write of an attachment before its bytes come, as its commit would be refused now; its lock
    /// is left to the commit.
    ///
    /// # Errors
    /// `document_not_found`, `version_mismatch`.
    pub async fn expect_to_attach(
        &self,
        target: AttachmentName<'_>,
        when: DocumentCondition,
    ) -> Result<(), Error> {
        let (namespace, key, name) = (target.namespace, target.key.to_owned(), target.name.to_owned());
        let shard = self.inner.placement.shard_of(namespace)?;
        let look = move |at: &mut ShardView<'_>| {
            at.engine.expect_decided(namespace, &key)?;
            at.engine.expect_to_attach(namespace, (&key, &name), &when)
        };
        self.look(shard, look).await?
    }

    /// An attachment.
    ///
    /// # Errors
    /// `document_not_found`, `attachment_not_found`.
    pub async fn attachment(&self, target: AttachmentName<'_>) -> Result<AttachmentView, Error> {
        let (namespace, key, name) = (target.namespace, target.key.to_owned(), target.name.to_owned());
        let shard = self.inner.placement.shard_of(namespace)?;
        let look = move |at: &mut ShardView<'_>| {
            at.engine.expect_decided(namespace, &key)?;
            let found = at.engine.attachment(namespace, &key, &name);
            if found.is_none() && at.engine.document(namespace, &key).is_none() {
                return Err(Error::DocumentNotFound { key });
            }
            Ok(found)
        };
        let found = self.look(shard, look).await??;
        found.ok_or_else(|| target.not_found())
    }

    /// Attachments of a key by name after `after`, at most `limit`, of which a shard shows some at a time.
    ///
    /// # Errors
    /// `document_not_found`.
    pub async fn attachments(
        &self,
        namespace: NamespaceId,
        key: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<AttachmentView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (mut attachments, mut after) = (Vec::new(), after.map(str::to_owned));
        while attachments.len() < limit {
            let (from, name, most) =
                (after.clone(), key.to_owned(), LOOK_ITEMS.min(limit - attachments.len()));
            let page = self
                .look(shard, move |at| {
                    at.engine.expect_decided(namespace, &name)?;
                    Ok(at.engine.attachments_after(namespace, &name, from.as_deref(), most))
                })
                .await??;
            let page = page.ok_or_else(|| Error::DocumentNotFound { key: key.to_owned() })?;
            let is_full = page.len() == most;
            after = page.last().map(|last| last.name.clone());
            attachments.extend(page);
            if !is_full {
                break;
            }
        }
        Ok(attachments)
    }

    /// Bytes of an attachment from `from` on, to the end of the chunk in which that lies; none: it ends
    /// there.
    ///
    /// # Errors
    /// `attachment_not_found`: it has another revision by now, or is gone; `overloaded` and `payload_damaged`
    /// when the bytes cannot be read.
    pub async fn attachment_bytes(
        &self,
        target: AttachmentName<'_>,
        revision: u64,
        from: u64,
    ) -> Result<Bytes, Error> {
        let (namespace, key, name) = (target.namespace, target.key.to_owned(), target.name.to_owned());
        let shard = self.inner.placement.shard_of(namespace)?;
        let found = self
            .look(shard, move |at| {
                let chunks = at.engine.attachment_chunks(namespace, (&key, &name), revision, from, 1)?;
                let first = chunks.first().map(|chunk| (chunk.start, store::read(at.journal, chunk.blob)));
                Some(first)
            })
            .await?;
        let Some((start, blob)) = found.ok_or_else(|| target.not_found())? else { return Ok(Bytes::new()) };
        match blobs::load(vec![blob]).await.pop() {
            Some(Ok(bytes)) => Ok(bytes.slice(((from - start) as usize).min(bytes.len())..)),
            Some(Err(blobs::ReadFailure::Later)) => {
                Err(Error::Overloaded { what: "reads from the disk", retry_after_ms: 1_000 })
            }
            _ => Err(Error::AttachmentDamaged { key: target.key.to_owned(), name: target.name.to_owned() }),
        }
    }
}
