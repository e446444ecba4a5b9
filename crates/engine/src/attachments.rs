//! Attachments: named bytes of a document, which come in as an upload, chunk by chunk, and are committed as a
//! whole.

use crate::documents::{DocumentCondition, DocumentVersion};
use crate::error::Error;
pub use crate::id::UploadId;
use crate::id::{BlobRef, NamespaceId};

/// SHA-256 of no bytes.
pub const SHA256_OF_NOTHING: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Begins an upload for an attachment of a document, which need not be there yet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UploadBegin<'a> {
    /// Namespace of the document.
    pub namespace: NamespaceId,
    /// Key of the document.
    pub key: &'a str,
    /// Name of the attachment: 1 to [`crate::limits::ATTACHMENT_NAME_BYTES_MAX`] bytes.
    pub name: &'a str,
    /// Media type; empty: unstated.
    pub content_type: &'a str,
}

/// Adds bytes to an upload, behind those that it has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UploadChunk<'a> {
    /// Namespace of the upload.
    pub namespace: NamespaceId,
    /// The upload.
    pub upload: UploadId,
    /// Number of the bytes before the chunk.
    pub offset: u64,
    /// Digest of the request: a chunk with the digest and the place of the last one is a repeat. 0: none is.
    pub request: u64,
    /// State of the hash after the chunk, from which the next chunk goes on; opaque here, and at most
    /// [`crate::limits::UPLOAD_HASH_BYTES_MAX`] bytes.
    pub hash: &'a [u8],
    /// SHA-256 of all bytes up to the end of the chunk.
    pub sha256: [u8; 32],
    /// The bytes: 1 to [`crate::limits::UPLOAD_CHUNK_BYTES_MAX`].
    pub content: &'a [u8],
}

/// Makes the attachment of a document from the bytes of an upload, in the place of one with this name, if
/// `when` holds of that. A repeat gets the first outcome, as long as the attachment is the one it has made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttachmentCommit<'a> {
    /// Namespace of the document.
    pub namespace: NamespaceId,
    /// Key of the document, with which the upload was begun.
    pub key: &'a str,
    /// Name of the attachment, with which the upload was begun.
    pub name: &'a str,
    /// The upload.
    pub upload: UploadId,
    /// Number of bytes that the upload has; `None`: any.
    pub bytes: Option<u64>,
    /// SHA-256 of all of them; `None`: any.
    pub sha256: Option<[u8; 32]>,
    /// Condition on the attachment; its token is one of a lock of the document's key.
    pub when: DocumentCondition,
}

/// Deletes an attachment, if `when` holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttachmentDelete<'a> {
    /// Namespace of the document.
    pub namespace: NamespaceId,
    /// Key of the document.
    pub key: &'a str,
    /// Name of the attachment.
    pub name: &'a str,
    /// Condition on the attachment; its token is one of a lock of the document's key.
    pub when: DocumentCondition,
}

/// The bytes that an upload has, and what its next chunk may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UploadProgress {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of bytes before the last chunk.
    pub last_offset: u64,
    /// Digest of the request of the last chunk; 0: a repeat is not known.
    pub last_request: u64,
}

impl UploadProgress {
    /// True if a chunk is the next one; false if it is the last one again.
    ///
    /// # Errors
    /// `upload_offset`: it is neither.
    pub fn is_next(&self, offset: u64, request: u64) -> Result<bool, Error> {
        let is_repeat = request != 0 && (offset, request) == (self.last_offset, self.last_request);
        if offset == self.bytes || is_repeat {
            return Ok(offset == self.bytes);
        }
        Err(Error::UploadOffset { offset, expected: self.bytes })
    }
}

/// An upload as those see it who go on with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadView {
    /// Its id.
    pub id: UploadId,
    /// Key of the document.
    pub key: String,
    /// Name of the attachment.
    pub name: String,
    /// Media type; empty: unstated.
    pub content_type: String,
    /// The bytes that it has.
    pub progress: UploadProgress,
    /// State of the hash, as the last chunk told it; empty: there was none.
    pub hash: Vec<u8>,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// When it ends unless a chunk comes, in microseconds since the Unix epoch.
    pub expires_at_us: u64,
}

/// An attachment as those see it who look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachmentView {
    /// Its name.
    pub name: String,
    /// Media type; empty: unstated.
    pub content_type: String,
    /// Number of bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// Its version, which counts like that of a document.
    pub version: DocumentVersion,
}

/// Bytes of an attachment that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttachmentChunk {
    /// Number of bytes of the attachment before it.
    pub start: u64,
    /// Where they lie.
    pub blob: BlobRef,
}
