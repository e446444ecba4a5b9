//! Layouts of records about documents.

use crate::blob::BlobHead;
use crate::command::RecordSink;
use crate::core::field::{ReadField, WriteField};
use crate::document::index::record::TermsByIndex;
use crate::documents::{DocumentCheck, DocumentCondition, DocumentDelete, DocumentPut};
use crate::id::{BlobRef, NamespaceId};
use crate::limits::{DOCUMENT_HISTORY_MAX, DOCUMENT_TTL_MS_MAX};
use crate::locks::LockToken;
use crate::wire::{Put, Reader};

/// In the place of a time to live: the document ends when it did before.
const TTL_AS_BEFORE: u64 = u64::MAX;

/// A document that is put; its content is the record's one blob.
#[derive(Clone, Copy)]
pub(crate) struct PutRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) key: &'a str,
    pub(crate) when: DocumentCondition,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) history: Option<u16>,
    pub(crate) request: u64,
    /// Length of what lies in the blob before the content.
    pub(crate) head_bytes: u16,
    pub(crate) terms: TermsByIndex<'a>,
    /// Number of the blob in its record.
    item: u32,
    blob_bytes: u32,
}

impl<'a> PutRecord<'a> {
    /// The same with another number of its blob in its record.
    pub(crate) fn with_blob(self, item: u32) -> PutRecord<'a> {
        PutRecord { item, ..self }
    }

    /// Length of the content, in bytes.
    pub(crate) fn content_bytes(&self) -> u64 {
        u64::from(self.blob_bytes) - u64::from(self.head_bytes)
    }

    /// The blob, in the record with this index.
    pub(crate) fn blob(&self, index: u64) -> BlobRef {
        BlobRef { index, item: self.item, len: self.blob_bytes }
    }
}

pub(crate) fn encode_put(first: [u8; 2], put: &DocumentPut<'_>, sink: &mut impl RecordSink) {
    let head_bytes = BlobHead::len(put.content_type, put.attributes);
    let mut out = Vec::with_capacity(192);
    out.raw(&first);
    out.u32(put.namespace.0);
    out.name(put.key);
    put.when.write(&mut out);
    out.u64(put.ttl_ms.unwrap_or(TTL_AS_BEFORE));
    out.u16(put.history.map_or(0, |history| history + 1));
    out.u64(put.request);
    out.u16(head_bytes as u16);
    out.u32((head_bytes + put.content.len()) as u32);
    TermsByIndex::write(put.terms, &mut out);
    sink.body(&out);
    BlobHead::with(put.content_type, put.attributes, &[], |head| sink.blob(&[head, put.content]));
}

/// Reads what [`encode_put`] wrote; `None` also for what a check before the proposal refuses.
pub(crate) fn decode_put<'a>(reader: &mut Reader<'a>) -> Option<PutRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let key = reader.name().filter(|key| !key.is_empty())?;
    let when = ReadField::read(reader)?;
    let ttl_ms = match reader.u64()? {
        TTL_AS_BEFORE => None,
        ttl_ms => Some(ttl_ms).filter(|ttl_ms| *ttl_ms <= DOCUMENT_TTL_MS_MAX).map(Some)?,
    };
    let history = reader.u16().filter(|history| *history <= DOCUMENT_HISTORY_MAX + 1)?.checked_sub(1);
    let (request, head_bytes, blob_bytes) = (reader.u64()?, reader.u16()?, reader.u32()?);
    let terms = TermsByIndex::read(reader)?;
    (u32::from(head_bytes) <= blob_bytes && head_bytes < u16::MAX).then_some(PutRecord {
        namespace,
        key,
        when,
        ttl_ms,
        history,
        request,
        head_bytes,
        terms,
        item: 0,
        blob_bytes,
    })
}

/// Declares the layout of a command that has a key and a condition.
macro_rules! key_and_condition {
    ($($command:ident)*) => {$(
        impl WriteField for $command<'_> {
            fn write(&self, out: &mut Vec<u8>) {
                out.u32(self.namespace.0);
                out.name(self.key);
                self.when.write(out);
            }
        }

        impl<'a> ReadField<'a> for $command<'a> {
            fn read(reader: &mut Reader<'a>) -> Option<Self> {
                Some($command {
                    namespace: NamespaceId(reader.u32()?),
                    key: reader.name()?,
                    when: DocumentCondition::read(reader)?,
                })
            }
        }
    )*};
}

key_and_condition!(DocumentCheck DocumentDelete);

impl WriteField for DocumentCondition {
    fn write(&self, out: &mut Vec<u8>) {
        let flags = [self.version.is_some(), self.revision.is_some(), self.exists, self.token.is_some()];
        out.u8(flags.iter().rev().fold(0, |all, flag| all << 1 | u8::from(*flag)));
        [self.version, self.revision].into_iter().flatten().for_each(|number| out.u64(number));
        if let Some(token) = &self.token {
            token.write(out);
        }
    }
}

impl<'a> ReadField<'a> for DocumentCondition {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let flags = reader.u8().filter(|flags| *flags < 1 << 4)?;
        let has = |at: u8| flags >> at & 1 == 1;
        let version = if has(0) { Some(reader.u64()?) } else { None };
        let revision = if has(1) { Some(reader.u64()?) } else { None };
        let token = if has(3) { Some(LockToken::read(reader)?) } else { None };
        Some(DocumentCondition { version, revision, exists: has(2), token })
    }
}
