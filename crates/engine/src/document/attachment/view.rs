//! Reads of uploads and attachments.

use crate::attachments::{AttachmentChunk, AttachmentView, UploadView};
use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::document::DocumentModule;
use crate::document::attachment::Attachments;
use crate::document::state::attachment::{AttachmentSlot, UploadSlot};
use crate::documents::DocumentCondition;
use crate::error::Error;
use crate::id::{NamespaceId, UploadId};

impl DocumentModule {
    pub(crate) fn upload(&self, namespace: NamespaceId, id: UploadId, core: &Core) -> Option<UploadView> {
        let slot = self.attachments.find_upload(core.namespace_slot(namespace)?, id, core).ok()?;
        Some(self.attachments.upload_view(slot))
    }

    pub(crate) fn uploads_for(
        &self,
        namespace: NamespaceId,
        (key, name): (&str, &str),
        limit: usize,
        core: &Core,
    ) -> Vec<UploadView> {
        let Some(namespace) = core.namespace_slot(namespace) else { return Vec::new() };
        let limit = limit.min(PAGE_ITEMS_MAX);
        let found = self.attachments.uploads_for(namespace, key, name, limit, core.now_us);
        found.into_iter().map(|slot| self.attachments.upload_view(slot)).collect()
    }

    /// The attachment of a key with a name.
    fn attachment_slot(
        &self,
        namespace: NamespaceId,
        (key, name): (&str, &str),
        core: &Core,
    ) -> Option<AttachmentSlot> {
        self.attachment_of(self.live(namespace, key, core)?, name)
    }

    pub(crate) fn attachment(
        &self,
        namespace: NamespaceId,
        target: (&str, &str),
        core: &Core,
    ) -> Option<AttachmentView> {
        let slot = self.attachment_slot(namespace, target, core)?;
        Some(self.attachments.attachment_view(slot))
    }

    /// Refuses a write of an attachment whose document is not there, or whose condition does not hold.
    pub(crate) fn expect_to_attach(
        &self,
        namespace: NamespaceId,
        (key, name): (&str, &str),
        when: &DocumentCondition,
        core: &Core,
    ) -> Result<(), Error> {
        let document = self.live(namespace, key, core);
        let document = document.ok_or_else(|| Error::DocumentNotFound { key: key.to_owned() })?;
        self.expect_attachment(when, (key, name), self.attachment_of(document, name))
    }

    pub(crate) fn attachments_after(
        &self,
        namespace: NamespaceId,
        key: &str,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Option<Vec<AttachmentView>> {
        let document = self.live(namespace, key, core)?;
        let Some(set) = self.documents.slots.get(document).attached.some() else { return Some(Vec::new()) };
        let after = after.map(str::as_bytes);
        let found = self
            .attachments
            .of_set(set, after.unwrap_or_default())
            .skip_while(|slot| Some(&*self.attachments.slots.get(*slot).name) == after);
        let views = found.take(limit.min(PAGE_ITEMS_MAX)).map(|slot| self.attachments.attachment_view(slot));
        Some(views.collect())
    }

    /// Chunks of an attachment from the one on in which a byte lies, while it has this revision.
    pub(crate) fn attachment_chunks(
        &self,
        namespace: NamespaceId,
        target: (&str, &str),
        revision: u64,
        from: u64,
        limit: usize,
        core: &Core,
    ) -> Option<Vec<AttachmentChunk>> {
        let slot = self.attachment_slot(namespace, target, core)?;
        let attachment = self.attachments.slots.get(slot);
        let is_same = attachment.version.revision == revision;
        is_same.then(|| self.attachments.chunks_from(slot, from, limit))
    }
}

impl Attachments {
    /// Chunks from the one on in which a byte lies. Looks at whole extents before it.
    fn chunks_from(&self, slot: AttachmentSlot, from: u64, limit: usize) -> Vec<AttachmentChunk> {
        let (mut found, mut start) = (Vec::new(), 0);
        for extent in self.extents_of(self.slots.get(slot).chain) {
            let extent = self.extents.get(extent);
            for blob in &extent.chunks {
                let chunk = AttachmentChunk { start, blob: *blob };
                start += u64::from(blob.len);
                if start > from {
                    found.push(chunk);
                }
                if found.len() == limit {
                    return found;
                }
            }
        }
        found
    }

    fn upload_view(&self, slot: UploadSlot) -> UploadView {
        let upload = self.uploads.get(slot);
        let (key, name) = upload.target();
        UploadView {
            id: UploadId { number: upload.number, slot: slot.index() },
            key,
            name,
            content_type: upload.content_type.to_string(),
            progress: upload.progress,
            hash: upload.hash.to_vec(),
            sha256: upload.sha256,
            expires_at_us: upload.due_us,
        }
    }

    fn attachment_view(&self, slot: AttachmentSlot) -> AttachmentView {
        let attachment = self.slots.get(slot);
        AttachmentView {
            name: String::from_utf8_lossy(&attachment.name).into_owned(),
            content_type: attachment.content_type.to_string(),
            bytes: attachment.bytes,
            sha256: attachment.sha256,
            version: attachment.version,
        }
    }
}
