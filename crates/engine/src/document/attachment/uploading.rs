//! Uploads: how bytes come in.

use std::collections::btree_map::Entry;

use crate::attachments::UploadBegin;
use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::core::tokens::none_left;
use crate::core::wheel::FIRE_COST;
use crate::document::attachment::Attachments;
use crate::document::attachment::record::ChunkRecord;
use crate::document::state::attachment::{Upload, UploadSlot};
use crate::document::{DOCUMENTS_SINCE, DocumentModule};
use crate::error::{Error, FieldPath};
use crate::id::{NamespaceId, UploadId};
use crate::limits::{
    ATTACHMENT_BYTES_MAX, CHUNKS_MAX, NAMESPACE_UPLOADS_MAX, UPLOAD_CHUNKS_MAX, UPLOAD_IDLE_MS, UPLOADS_MAX,
};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::store::slot::Slot;

impl DocumentModule {
    /// Begins an upload.
    pub(crate) fn upload_begin(
        &mut self,
        begin: &UploadBegin<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        core.expect_behaviour(DOCUMENTS_SINCE)?;
        let namespace = core.find_namespace(begin.namespace)?;
        if self.attachments.uploads.used() >= UPLOADS_MAX {
            return Err(Error::LimitExceeded { what: "uploads", limit: UPLOADS_MAX.into() });
        }
        if self.attachments.uploads_of.get(&namespace).is_some_and(|count| *count >= NAMESPACE_UPLOADS_MAX) {
            let (what, limit) = ("uploads of a namespace", NAMESPACE_UPLOADS_MAX.into());
            return Err(Error::LimitExceeded { what, limit });
        }
        let number = core.tokens.give().ok_or_else(none_left)?;
        let upload = Upload::new(namespace, (begin.key, begin.name), number, begin.content_type);
        let slot = self.attachments.enter_upload(upload, core.now_us);
        out.reply = Reply::UploadBegun { upload: UploadId { number, slot: slot.index() } };
        Ok(())
    }

    /// Adds a chunk to an upload. When it is refused, its blob is the caller's to release.
    pub(crate) fn upload_chunk(
        &mut self,
        chunk: &ChunkRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace = core.find_namespace(chunk.namespace)?;
        let slot = self.attachments.find_upload(namespace, chunk.upload, core)?;
        let blob = chunk.blob(core.applied_index);
        let upload = self.attachments.uploads.get(slot);
        let is_next = upload.progress.is_next(chunk.offset, chunk.request)?;
        if !is_next && !plant::is(Plant::AppendChunkTwice) {
            core.release_blob(blob, out);
            self.attachments.put_off_end(slot, core.now_us);
            return Ok(());
        }
        let bytes = u64::from(blob.len);
        self.attachments.admit_chunk(upload, bytes)?;
        core.admit_growth(namespace, 0, bytes)?;
        core.namespaces.get_mut(namespace).bytes += bytes;
        let mut chain = upload.chain;
        self.attachments.append(&mut chain, blob);
        let upload = self.attachments.uploads.get_mut(slot);
        upload.chain = chain;
        upload.progress.bytes += bytes;
        upload.progress.last_offset = chunk.offset;
        upload.progress.last_request = chunk.request;
        upload.hash = chunk.hash.into();
        upload.sha256 = chunk.sha256;
        self.attachments.put_off_end(slot, core.now_us);
        Ok(())
    }

    /// Ends an upload without a commit.
    pub(crate) fn upload_end(
        &mut self,
        namespace: NamespaceId,
        upload: UploadId,
        core: &mut Core,
    ) -> Result<(), Error> {
        let namespace = core.find_namespace(namespace)?;
        let slot = self.attachments.find_upload(namespace, upload, core)?;
        self.attachments.end_upload(slot, core);
        Ok(())
    }
}

impl Attachments {
    fn enter_upload(&mut self, upload: Upload, now_us: u64) -> UploadSlot {
        *self.uploads_of.entry(upload.namespace).or_default() += 1;
        let slot = self.uploads.insert(upload);
        self.order_of_uploads.insert(slot, &self.uploads);
        self.put_off_end(slot, now_us);
        slot
    }

    /// The upload with an id, if it is not over.
    pub(crate) fn find_upload(
        &self,
        namespace: NamespaceSlot,
        id: UploadId,
        core: &Core,
    ) -> Result<UploadSlot, Error> {
        let slot = UploadSlot::new(id.slot);
        let is_it = |upload: &Upload| {
            id.number != 0
                && (upload.number, upload.namespace) == (id.number, namespace)
                && upload.due_us > core.now_us
        };
        if id.slot < self.uploads.slots() && is_it(self.uploads.get(slot)) {
            return Ok(slot);
        }
        Err(Error::UploadNotFound { upload: id.to_string() })
    }

    /// Refuses a chunk for which there is no room.
    fn admit_chunk(&self, upload: &Upload, bytes: u64) -> Result<(), Error> {
        let (size, limit) = (upload.progress.bytes + bytes, ATTACHMENT_BYTES_MAX);
        if size > limit {
            return Err(Error::PayloadTooLarge { field: FieldPath("attachment".into()), size, limit });
        }
        if upload.chain.chunks >= UPLOAD_CHUNKS_MAX {
            let (what, limit) = ("chunks of an upload", UPLOAD_CHUNKS_MAX.into());
            return Err(Error::LimitExceeded { what, limit });
        }
        if self.chunks >= CHUNKS_MAX {
            return Err(Error::LimitExceeded { what: "chunks of attachments", limit: CHUNKS_MAX.into() });
        }
        Ok(())
    }

    /// Gives an upload its whole time again.
    fn put_off_end(&mut self, slot: UploadSlot, now_us: u64) {
        if self.uploads.get(slot).due_us != 0 {
            self.wheel.remove(&mut self.uploads, slot);
        }
        self.uploads.get_mut(slot).due_us = now_us + UPLOAD_IDLE_MS * 1_000;
        self.wheel.insert(&mut self.uploads, slot, now_us);
    }

    /// Forgets an upload, and leaves its chunks.
    pub(super) fn take_upload(&mut self, slot: UploadSlot) -> Upload {
        self.wheel.remove(&mut self.uploads, slot);
        self.order_of_uploads.remove(slot, &self.uploads);
        let upload = self.uploads.remove(slot);
        if let Entry::Occupied(mut count) = self.uploads_of.entry(upload.namespace) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        upload
    }

    /// Ends an upload; its chunks go in slices.
    pub(crate) fn end_upload(&mut self, slot: UploadSlot, core: &mut Core) {
        let upload = self.take_upload(slot);
        core.namespaces.get_mut(upload.namespace).bytes -= upload.progress.bytes;
        self.free(upload.chain);
    }

    /// Ends the uploads whose time has come, as many as `budget` allows.
    pub(crate) fn end_due(&mut self, budget: &mut usize, core: &mut Core) {
        let mut left = *budget * FIRE_COST;
        while let Some(slot) = self.wheel.due(&mut self.uploads, core.now_us, &mut left) {
            self.end_upload(slot, core);
        }
        *budget = left / FIRE_COST;
    }

    /// When an upload ends next, in microseconds.
    pub(crate) fn next_end_us(&self) -> Option<u64> {
        self.wheel.next_us(&self.uploads)
    }

    /// The first upload of a namespace.
    pub(crate) fn first_upload(&self, namespace: NamespaceSlot) -> Option<UploadSlot> {
        self.order_of_uploads.from(namespace.index(), &[], &self.uploads).next()
    }

    /// Uploads for an attachment that are not over, the first one first; at most `limit`.
    pub(super) fn uploads_for(
        &self,
        namespace: NamespaceSlot,
        key: &str,
        name: &str,
        limit: usize,
        now_us: u64,
    ) -> Vec<UploadSlot> {
        self.order_of_uploads
            .from(namespace.index(), &Upload::places_of(key, name), &self.uploads)
            .take_while(|slot| self.uploads.get(*slot).is_for(key, name))
            .filter(|slot| self.uploads.get(*slot).due_us > now_us)
            .take(limit)
            .collect()
    }

    /// Timers that are set, for a recount.
    pub(super) fn timers(&self) -> impl Iterator<Item = (usize, Slot<Upload>)> + '_ {
        self.wheel.iter(&self.uploads)
    }
}
