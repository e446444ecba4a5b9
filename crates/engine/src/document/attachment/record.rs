//! Layouts of records about attachments.

use crate::attachments::{AttachmentCommit, AttachmentDelete, UploadBegin, UploadChunk};
use crate::command::RecordSink;
use crate::core::field::{ReadField, WriteField};
use crate::documents::DocumentCondition;
use crate::id::{BlobRef, NamespaceId, UploadId};
use crate::limits::{ATTACHMENT_BYTES_MAX, UPLOAD_CHUNK_BYTES_MAX};
use crate::wire::{Put, Reader};

/// A chunk; its bytes are the record's one blob.
#[derive(Clone, Copy)]
pub(crate) struct ChunkRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) upload: UploadId,
    pub(crate) offset: u64,
    pub(crate) request: u64,
    pub(crate) hash: &'a [u8],
    pub(crate) sha256: [u8; 32],
    blob_bytes: u32,
}

impl ChunkRecord<'_> {
    /// The blob, in the record with this index.
    pub(crate) fn blob(&self, index: u64) -> BlobRef {
        BlobRef { index, item: 0, len: self.blob_bytes }
    }
}

pub(crate) fn encode_chunk(first: [u8; 2], chunk: &UploadChunk<'_>, sink: &mut impl RecordSink) {
    let mut out = Vec::with_capacity(192);
    out.raw(&first);
    out.u32(chunk.namespace.0);
    chunk.upload.write(&mut out);
    out.u64(chunk.offset);
    out.u64(chunk.request);
    out.bytes16(chunk.hash);
    out.raw(&chunk.sha256);
    out.u32(chunk.content.len() as u32);
    sink.body(&out);
    sink.blob(&[chunk.content]);
}

/// Reads what [`encode_chunk`] wrote; `None` also for what a check before the proposal refuses.
pub(crate) fn decode_chunk<'a>(reader: &mut Reader<'a>) -> Option<ChunkRecord<'a>> {
    Some(ChunkRecord {
        namespace: NamespaceId(reader.u32()?),
        upload: UploadId::read(reader)?,
        offset: reader.u64().filter(|offset| *offset <= ATTACHMENT_BYTES_MAX)?,
        request: reader.u64()?,
        hash: reader.bytes16()?,
        sha256: *reader.array()?,
        blob_bytes: reader.u32().filter(|bytes| (1..=UPLOAD_CHUNK_BYTES_MAX as u32).contains(bytes))?,
    })
}

impl WriteField for UploadBegin<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.namespace.0);
        [self.key, self.name, self.content_type].into_iter().for_each(|text| out.name(text));
    }
}

impl<'a> ReadField<'a> for UploadBegin<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(UploadBegin {
            namespace: NamespaceId(reader.u32()?),
            key: reader.name()?,
            name: reader.name()?,
            content_type: reader.name()?,
        })
    }
}

impl WriteField for UploadId {
    fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.number);
        out.u32(self.slot);
    }
}

impl<'a> ReadField<'a> for UploadId {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(UploadId { number: reader.u64()?, slot: reader.u32()? })
    }
}

impl WriteField for AttachmentCommit<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.namespace.0);
        out.name(self.key);
        out.name(self.name);
        self.upload.write(out);
        out.bool(self.bytes.is_some());
        out.u64(self.bytes.unwrap_or(0));
        out.bool(self.sha256.is_some());
        out.raw(&self.sha256.unwrap_or_default());
        self.when.write(out);
    }
}

impl<'a> ReadField<'a> for AttachmentCommit<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let (namespace, key, name) = (NamespaceId(reader.u32()?), reader.name()?, reader.name()?);
        let upload = UploadId::read(reader)?;
        let (has_bytes, bytes) = (reader.bool()?, reader.u64()?);
        let (has_sha256, sha256) = (reader.bool()?, *reader.array()?);
        Some(AttachmentCommit {
            namespace,
            key,
            name,
            upload,
            bytes: has_bytes.then_some(bytes),
            sha256: has_sha256.then_some(sha256),
            when: DocumentCondition::read(reader)?,
        })
    }
}

impl WriteField for AttachmentDelete<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.namespace.0);
        out.name(self.key);
        out.name(self.name);
        self.when.write(out);
    }
}

impl<'a> ReadField<'a> for AttachmentDelete<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(AttachmentDelete {
            namespace: NamespaceId(reader.u32()?),
            key: reader.name()?,
            name: reader.name()?,
            when: DocumentCondition::read(reader)?,
        })
    }
}
