//! Random uploads, and attachments that are made of them.

use std::collections::VecDeque;

use sluice_engine::attachments::{AttachmentCommit, AttachmentDelete, UploadBegin, UploadChunk, UploadId};
use sluice_engine::command::Command;
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::NamespaceId;

use super::seen::Seen;
use super::{Generator, Lend, Op, SentBlob};
use crate::rng::Rng;

const CONTENT_TYPE: &str = "image/png";
/// Keys of documents.
const KEYS: [&str; 4] = ["a", "b", "orders/1", "orders/2"];
const NAMES: [&str; 2] = ["scan", "scan.txt"];
/// Number of uploads that are gone on with, those that have ended included.
const UPLOADS_MAX: usize = 6;

/// An operation on an upload or an attachment.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum AttachmentOp {
    Begin {
        namespace: NamespaceId,
        key: &'static str,
        name: &'static str,
    },
    Chunk {
        namespace: NamespaceId,
        upload: UploadId,
        offset: u64,
        request: u64,
        content: Vec<u8>,
    },
    End {
        namespace: NamespaceId,
        upload: UploadId,
    },
    Commit {
        namespace: NamespaceId,
        key: &'static str,
        name: &'static str,
        upload: UploadId,
        bytes: Option<u64>,
        when: DocumentCondition,
    },
    Delete {
        namespace: NamespaceId,
        key: &'static str,
        name: &'static str,
        when: DocumentCondition,
    },
}

impl Lend for AttachmentOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        f(&match self {
            AttachmentOp::Begin { namespace, key, name } => {
                let (namespace, content_type) = (*namespace, CONTENT_TYPE);
                Command::UploadBegin(UploadBegin { namespace, key, name, content_type })
            }
            AttachmentOp::Chunk { namespace, upload, offset, request, content } => {
                // Nobody computes a digest here: it tells how many bytes there are.
                let sha256 = [(*offset as usize + content.len()) as u8; 32];
                Command::UploadChunk(UploadChunk {
                    namespace: *namespace,
                    upload: *upload,
                    offset: *offset,
                    request: *request,
                    hash: b"state",
                    sha256,
                    content,
                })
            }
            AttachmentOp::End { namespace, upload } => {
                Command::UploadEnd { namespace: *namespace, upload: *upload }
            }
            AttachmentOp::Commit { namespace, key, name, upload, bytes, when } => {
                Command::AttachmentCommit(AttachmentCommit {
                    namespace: *namespace,
                    key,
                    name,
                    upload: *upload,
                    bytes: *bytes,
                    sha256: None,
                    when: *when,
                })
            }
            AttachmentOp::Delete { namespace, key, name, when } => {
                Command::AttachmentDelete(AttachmentDelete { namespace: *namespace, key, name, when: *when })
            }
        });
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        match self {
            AttachmentOp::Chunk { content, .. } if number == 0 => Some(SentBlob::Bytes(content)),
            AttachmentOp::Chunk { .. }
            | AttachmentOp::Begin { .. }
            | AttachmentOp::End { .. }
            | AttachmentOp::Commit { .. }
            | AttachmentOp::Delete { .. } => None,
        }
    }
}

/// An upload that a client was told of.
#[derive(Clone, Copy, Debug)]
struct Known {
    namespace: NamespaceId,
    upload: UploadId,
    key: &'static str,
    name: &'static str,
}

/// Uploads that clients were told of.
#[derive(Debug)]
pub(super) struct AttachmentsKnown {
    rng: Rng,
    uploads: VecDeque<Known>,
    /// The last chunk, which may be sent again.
    last: Option<AttachmentOp>,
    chunks: u64,
}

impl AttachmentsKnown {
    pub(super) fn new(rng: Rng) -> AttachmentsKnown {
        AttachmentsKnown { rng, uploads: VecDeque::new(), last: None, chunks: 0 }
    }

    fn some_upload(&mut self) -> Option<Known> {
        (!self.uploads.is_empty()).then(|| self.uploads[self.rng.index(self.uploads.len())])
    }

    /// The chunk that comes next, or a mistake.
    fn chunk(&mut self, seen: &Seen<'_>) -> Option<AttachmentOp> {
        if self.rng.chance(1, 8) {
            return self.last.clone();
        }
        let Known { namespace, upload, .. } = self.some_upload()?;
        let mut offset = seen.0.upload(namespace, upload).map_or(0, |view| view.progress.bytes);
        if self.rng.chance(1, 12) {
            offset = self.rng.below(100);
        }
        self.chunks += 1;
        let content = format!("{}:{}", self.chunks, "c".repeat(self.rng.index(200))).into_bytes();
        let request = if self.rng.chance(1, 3) { 0 } else { self.chunks };
        let chunk = AttachmentOp::Chunk { namespace, upload, offset, request, content };
        self.last = Some(chunk.clone());
        Some(chunk)
    }

    fn commit(&mut self, seen: &Seen<'_>) -> Option<AttachmentOp> {
        let Known { namespace, upload, key, name } = self.some_upload()?;
        let found = seen.0.upload(namespace, upload).map_or(0, |view| view.progress.bytes);
        let bytes = *self.rng.pick(&[None, Some(found), Some(found), Some(found + 1)]);
        let when = self.condition();
        Some(AttachmentOp::Commit { namespace, key, name, upload, bytes, when })
    }

    fn condition(&mut self) -> DocumentCondition {
        let mut when = DocumentCondition::default();
        match self.rng.below(8) {
            0 => when.version = Some(self.rng.below(3)),
            1 => when.exists = true,
            _ => {}
        }
        when
    }
}

impl Generator {
    /// Notes an upload that was begun.
    pub fn begun(&mut self, namespace: NamespaceId, key: &'static str, name: &'static str, upload: UploadId) {
        if let Some(attachments) = &mut self.attachments {
            attachments.uploads.push_back(Known { namespace, upload, key, name });
            if attachments.uploads.len() > UPLOADS_MAX {
                attachments.uploads.pop_front();
            }
        }
    }

    /// Draws an operation on an upload or an attachment, at times; by numbers of its own, so that the other
    /// draws of a seed do not change.
    pub(super) fn attachment(&mut self, seen: &Seen<'_>) -> Option<Op> {
        let (shard, attachments) = (self.shard, self.attachments.as_mut()?);
        if !attachments.rng.chance(1, 8) {
            return None;
        }
        let known = seen.namespaces(shard);
        let rng = &mut attachments.rng;
        let namespace = match shard == 0 && rng.chance(3, 4) {
            true => NamespaceId::DEFAULT,
            false if known.is_empty() => NamespaceId(77),
            false => *rng.pick(&known),
        };
        let (key, name) = (*rng.pick(&KEYS), *rng.pick(&NAMES));
        let op = match rng.below(12) {
            0..2 => Some(AttachmentOp::Begin { namespace, key, name }),
            2..8 => attachments.chunk(seen),
            8 if attachments.rng.chance(1, 2) => {
                let ended = attachments.some_upload();
                ended.map(|known| AttachmentOp::End { namespace: known.namespace, upload: known.upload })
            }
            8 => {
                let when = attachments.condition();
                Some(AttachmentOp::Delete { namespace, key, name, when })
            }
            _ => attachments.commit(seen),
        };
        op.map(Op::Attachment)
    }

    /// Draws a commit or a deletion for a transaction, at times.
    pub(super) fn attachment_together(&mut self, namespace: NamespaceId) -> Option<Op> {
        let attachments = self.attachments.as_mut()?;
        if !attachments.rng.chance(1, 5) {
            return None;
        }
        let Known { namespace: of, upload, key, name } = attachments.some_upload()?;
        let when = attachments.condition();
        let op = match attachments.rng.chance(1, 4) {
            true => AttachmentOp::Delete { namespace, key, name, when },
            false => AttachmentOp::Commit { namespace, key, name, upload, bytes: None, when },
        };
        (of == namespace).then_some(Op::Attachment(op))
    }
}
