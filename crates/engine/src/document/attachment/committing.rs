//! Attachments: how an upload becomes one, and how it is deleted.

use crate::attachments::{AttachmentCommit, AttachmentDelete};
use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::core::tokens::none_left;
use crate::document::DocumentModule;
use crate::document::condition::holds;
use crate::document::state::DocumentSlot;
use crate::document::state::attachment::{Attachment, AttachmentSlot, Set, SetSlot, UploadSlot};
use crate::documents::{DocumentCondition, DocumentVersion};
use crate::error::Error;
use crate::limits::{ATTACHMENTS_MAX, DOCUMENT_ATTACHMENTS_MAX};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::store::key::Key;
use crate::store::slot::Slot;

/// New attachments that a transaction makes before one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Others {
    /// Number of those of the same document.
    pub(crate) of_document: u32,
    /// Number of those of all documents.
    pub(crate) all: u32,
}

impl DocumentModule {
    /// Makes an attachment from an upload.
    pub(crate) fn attachment_commit(
        &mut self,
        commit: &AttachmentCommit<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let (namespace, found) = self.look_up(commit.namespace, commit.key, core, out)?;
        let document = found.ok_or_else(|| Error::DocumentNotFound { key: commit.key.to_owned() })?;
        self.expect_to_commit((namespace, found), commit, Others::default(), core)?;
        let revision = core.tokens.give().ok_or_else(none_left)?;
        let version = self.attach((namespace, document), commit, revision, core)?;
        out.reply = Reply::DocumentWritten { version, created: version.version == 1 };
        Ok(())
    }

    /// The version that a commit of the same upload has made, as long as it is there.
    ///
    /// # Errors
    /// `upload_incomplete`, `digest_mismatch`: the upload had other bytes than this commit tells of.
    pub(crate) fn committed(
        &self,
        commit: &AttachmentCommit<'_>,
        core: &Core,
    ) -> Result<Option<DocumentVersion>, Error> {
        let document = self.live(commit.namespace, commit.key, core);
        let found = document.and_then(|document| self.attachment_of(document, commit.name));
        let Some(found) = found else { return Ok(None) };
        let attachment = self.attachments.slots.get(found);
        if attachment.upload != commit.upload.number {
            return Ok(None);
        }
        expect_content(commit, attachment.bytes, &attachment.sha256)?;
        Ok(Some(attachment.version))
    }

    /// Refuses a commit that cannot be done; `found`: the document, if there is one already. Tells whether
    /// the attachment is a new one.
    pub(crate) fn expect_to_commit(
        &self,
        (namespace, found): (NamespaceSlot, Option<DocumentSlot>),
        commit: &AttachmentCommit<'_>,
        others: Others,
        core: &Core,
    ) -> Result<bool, Error> {
        let upload = self.attachments.find_upload(namespace, commit.upload, core)?;
        let before = found.and_then(|document| self.attachment_of(document, commit.name));
        self.expect_upload(upload, commit)?;
        self.expect_attachment(&commit.when, (commit.key, commit.name), before)?;
        let set = found.map_or(Slot::NIL, |document| self.documents.slots.get(document).attached);
        let count = set.some().map_or(0, |set| self.attachments.sets.get(set).count);
        if before.is_none() && count + others.of_document >= DOCUMENT_ATTACHMENTS_MAX {
            let (what, limit) = ("attachments of a document", DOCUMENT_ATTACHMENTS_MAX.into());
            return Err(Error::LimitExceeded { what, limit });
        }
        if before.is_none() && self.attachments.slots.used() + others.all >= ATTACHMENTS_MAX {
            return Err(Error::LimitExceeded { what: "attachments", limit: ATTACHMENTS_MAX.into() });
        }
        Ok(before.is_none())
    }

    /// Refuses an upload that is not the one that a commit tells of.
    fn expect_upload(&self, upload: UploadSlot, commit: &AttachmentCommit<'_>) -> Result<(), Error> {
        let upload = self.attachments.uploads.get(upload);
        if !upload.is_for(commit.key, commit.name) {
            return Err(Error::UploadNotFound { upload: commit.upload.to_string() });
        }
        expect_content(commit, upload.progress.bytes, &upload.sha256)
    }

    /// Does a commit that was admitted; `revision`: its fencing token.
    ///
    /// # Errors
    /// `upload_not_found`: it was not.
    pub(crate) fn attach(
        &mut self,
        (namespace, document): (NamespaceSlot, DocumentSlot),
        commit: &AttachmentCommit<'_>,
        revision: u64,
        core: &mut Core,
    ) -> Result<DocumentVersion, Error> {
        let upload = self.attachments.find_upload(namespace, commit.upload, core)?;
        let before = self.attachment_of(document, commit.name);
        let version = before.map_or(0, |before| self.attachments.slots.get(before).version.version);
        let version = DocumentVersion { version: version + 1, revision, changed_at_us: core.now_us };
        if let Some(before) = before {
            self.detach(document, before, core);
        }
        let set = self.set_of(document);
        let upload = self.attachments.take_upload(upload);
        let of_set = self.attachments.sets.get_mut(set);
        of_set.count += 1;
        of_set.bytes += upload.progress.bytes;
        let slot = self.attachments.slots.insert(Attachment {
            set,
            name: Key::new(commit.name.as_bytes()),
            content_type: upload.content_type,
            chain: upload.chain,
            bytes: upload.progress.bytes,
            sha256: upload.sha256,
            version,
            upload: upload.number,
        });
        self.attachments.put_in_order(slot);
        Ok(version)
    }

    /// Does a commit of a transaction, which was admitted; its version, and whether it is new.
    pub(crate) fn attach_admitted(
        &mut self,
        namespace: NamespaceSlot,
        commit: &AttachmentCommit<'_>,
        core: &mut Core,
    ) -> (DocumentVersion, bool) {
        let revision = core.tokens.give().unwrap_or_default();
        let document = self.documents.find(namespace, commit.key);
        let attached = document.map(|document| self.attach((namespace, document), commit, revision, core));
        let version = attached.and_then(Result::ok).unwrap_or_default();
        (version, version.version == 1)
    }

    /// Does a deletion of a transaction, which was admitted; the version that it had.
    pub(crate) fn detach_admitted(
        &mut self,
        namespace: NamespaceSlot,
        delete: &AttachmentDelete<'_>,
        core: &mut Core,
    ) -> DocumentVersion {
        let place = self.expect_to_detach(self.documents.find(namespace, delete.key), delete);
        place
            .map_or_else(|_| DocumentVersion::default(), |(document, slot)| self.detach(document, slot, core))
    }

    /// Deletes an attachment.
    pub(crate) fn attachment_delete(
        &mut self,
        delete: &AttachmentDelete<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let (_, found) = self.look_up(delete.namespace, delete.key, core, out)?;
        let (document, slot) = self.expect_to_detach(found, delete)?;
        out.reply = Reply::DocumentWritten { version: self.detach(document, slot, core), created: false };
        Ok(())
    }

    /// The attachment to delete, `found` its document, if it is there.
    pub(crate) fn expect_to_detach(
        &self,
        found: Option<DocumentSlot>,
        delete: &AttachmentDelete<'_>,
    ) -> Result<(DocumentSlot, AttachmentSlot), Error> {
        let place = found.and_then(|document| Some((document, self.attachment_of(document, delete.name)?)));
        let target = (delete.key, delete.name);
        self.expect_attachment(&delete.when, target, place.map(|(_, slot)| slot))?;
        place.ok_or_else(|| Error::AttachmentNotFound {
            key: delete.key.to_owned(),
            name: delete.name.to_owned(),
        })
    }

    /// Deletes an attachment of a document; the version that it had.
    pub(crate) fn detach(
        &mut self,
        document: DocumentSlot,
        slot: AttachmentSlot,
        core: &mut Core,
    ) -> DocumentVersion {
        let namespace = self.documents.slots.get(document).namespace;
        let attachment = self.attachments.remove(slot);
        let set = self.attachments.sets.get_mut(attachment.set);
        set.bytes -= attachment.bytes;
        core.namespaces.get_mut(namespace).bytes -= attachment.bytes;
        attachment.version
    }

    /// The attachment of a document with a name.
    pub(crate) fn attachment_of(&self, document: DocumentSlot, name: &str) -> Option<AttachmentSlot> {
        let set = self.documents.slots.get(document).attached.some()?;
        self.attachments.find(set, name)
    }

    fn set_of(&mut self, document: DocumentSlot) -> SetSlot {
        let attached = self.documents.slots.get(document).attached.some();
        attached.unwrap_or_else(|| {
            let set = self.attachments.sets.insert(Set::EMPTY);
            self.documents.slots.get_mut(document).attached = set;
            set
        })
    }

    /// Refuses a condition that does not hold of an attachment, `found` if it is there.
    pub(super) fn expect_attachment(
        &self,
        when: &DocumentCondition,
        (key, name): (&str, &str),
        found: Option<AttachmentSlot>,
    ) -> Result<(), Error> {
        let found = found.map(|slot| self.attachments.slots.get(slot).version);
        if holds(when, found) {
            return Ok(());
        }
        let version = found.map_or(0, |found| found.version);
        Err(Error::AttachmentChanged { key: key.to_owned(), name: name.to_owned(), version })
    }
}

/// Refuses bytes that are not those that a commit tells of.
fn expect_content(commit: &AttachmentCommit<'_>, bytes: u64, sha256: &[u8; 32]) -> Result<(), Error> {
    let is_planted = plant::is(Plant::CommitIncompleteUpload);
    if let Some(expected) = commit.bytes.filter(|expected| *expected != bytes && !is_planted) {
        return Err(Error::UploadIncomplete { bytes, expected });
    }
    if let Some(expected) = commit.sha256.filter(|expected| expected != sha256) {
        return Err(Error::DigestMismatch { found: hex(sha256), expected: hex(&expected) });
    }
    Ok(())
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
