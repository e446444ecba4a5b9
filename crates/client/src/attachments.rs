//! Attachments of documents: what is told of them, and how they are written and read in pieces.

use serde::{Deserialize, Deserializer, Serialize, de};
use sha2::{Digest as _, Sha256};

use crate::base64;
use crate::client::Client;
use crate::documents::DocumentWritten;
use crate::error::ClientError;

/// An attachment of a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Number of the version: 1, and one more each time it is replaced.
    pub version: u64,
    /// ETag: no other version of the attachment ever has it.
    pub etag: String,
    /// When it was attached, in milliseconds since the Unix epoch.
    pub changed_at_ms: u64,
    /// Number of its bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Media type; empty: none was given.
    #[serde(default)]
    pub content_type: String,
}

/// An upload for an attachment, as the server knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Upload {
    /// Its id.
    pub upload: String,
    /// Number of the bytes that came.
    pub bytes: u64,
    /// SHA-256 of these bytes, in hexadecimal digits.
    pub sha256: String,
    /// Largest chunk that it takes, in bytes.
    pub chunk_bytes_max: u64,
    /// When it ends unless a chunk comes, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// Conditions under which an attachment is written or deleted; all that are given have to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AttachmentCondition<'a> {
    /// Version that the attachment must have.
    pub if_version: Option<u64>,
    /// ETag that the attachment must have.
    pub if_etag: Option<&'a str>,
    /// True if there must be none; for a write.
    pub if_absent: bool,
    /// Token of a lock of the document's key, which must be held.
    pub token: Option<&'a str>,
}

/// Some bytes of an attachment.
#[derive(Deserialize)]
pub(crate) struct Part {
    pub(crate) attachment: Attachment,
    #[serde(rename = "content_base64", deserialize_with = "octets")]
    pub(crate) content: Vec<u8>,
}

fn octets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    base64::decode(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// An attachment on its way to the server. It becomes one by [`Uploading::commit`]; an upload that is left
/// ends by itself after an hour, and can be gone on with until then.
#[derive(Debug)]
pub struct Uploading {
    pub(crate) client: Client,
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) upload: Upload,
    hash: Sha256,
    /// Number of bytes that were given.
    given: u64,
}

impl Uploading {
    pub(crate) fn new(client: Client, key: &str, name: &str, upload: Upload) -> Uploading {
        let (key, name) = (key.to_owned(), name.to_owned());
        Uploading { client, key, name, upload, hash: Sha256::new(), given: 0 }
    }

    /// The upload as the server knew it when it was begun, or gone on with.
    pub fn upload(&self) -> &Upload {
        &self.upload
    }

    /// Adds bytes. Those that the server has already, of an upload that is gone on with, are compared and not
    /// sent.
    ///
    /// # Errors
    /// `digest_mismatch`: they are not those that the server has. `upload_not_found`, `quota_exceeded`,
    /// `payload_too_large`.
    pub async fn add(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let known = self.upload.bytes.saturating_sub(self.given).min(bytes.len() as u64) as usize;
        let (known, new) = bytes.split_at(known);
        self.hash.update(known);
        self.given += known.len() as u64;
        if !known.is_empty() && self.given == self.upload.bytes {
            self.expect_known()?;
        }
        for chunk in new.chunks(self.upload.chunk_bytes_max.max(1) as usize) {
            self.client.upload_chunk(&self.key, &self.upload.upload, self.given, chunk).await?;
            self.hash.update(chunk);
            self.given += chunk.len() as u64;
        }
        Ok(())
    }

    fn expect_known(&self) -> Result<(), ClientError> {
        if hex(&self.hash.clone().finalize()) == self.upload.sha256 {
            return Ok(());
        }
        let message =
            format!("the first {} bytes are not those that the server has: upload anew", self.given);
        Err(ClientError::refused(409, "digest_mismatch", message))
    }

    /// Makes an attachment of the bytes that were given, in the place of one with this name; the server
    /// compares their number and SHA-256 with what has come. The document has to be there.
    ///
    /// # Errors
    /// `document_not_found`, `upload_incomplete`, `digest_mismatch`, `version_mismatch`, `lease_lost`.
    pub async fn commit(self, when: &AttachmentCondition<'_>) -> Result<DocumentWritten, ClientError> {
        let sha256 = hex(&self.hash.clone().finalize());
        self.client.upload_commit(&self, (self.given, &sha256), when).await
    }

    /// Ends the upload: nothing is attached.
    ///
    /// # Errors
    /// `upload_not_found`: it has ended before.
    pub async fn abort(self) -> Result<(), ClientError> {
        self.client.upload_end(&self.key, &self.upload.upload).await
    }
}

/// An attachment on its way from the server.
#[derive(Debug)]
pub struct Downloading {
    pub(crate) client: Client,
    pub(crate) key: String,
    pub(crate) attachment: Attachment,
    /// Bytes that are here and not given yet.
    pub(crate) begun: Vec<u8>,
    hash: Sha256,
    given: u64,
}

impl Downloading {
    pub(crate) fn new(client: Client, key: &str, first: Part) -> Downloading {
        let Part { attachment, content } = first;
        Downloading { client, key: key.to_owned(), attachment, begun: content, hash: Sha256::new(), given: 0 }
    }

    /// The attachment.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// The next bytes, 1 MiB at most; `None`: these were all, and their SHA-256 is that of the attachment.
    ///
    /// # Errors
    /// `version_mismatch`: it was replaced meanwhile. `digest_mismatch`: what came is not what was written.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        let mut bytes = std::mem::take(&mut self.begun);
        if bytes.is_empty() && self.given < self.attachment.bytes {
            let part = self.client.attachment_part(&self.key, &self.attachment.name, self.given).await?;
            if part.attachment.etag != self.attachment.etag {
                let message = format!("attachment {:?} was replaced while it was read", self.attachment.name);
                return Err(ClientError::refused(409, "version_mismatch", message));
            }
            bytes = part.content;
        }
        self.hash.update(&bytes);
        self.given += bytes.len() as u64;
        if !bytes.is_empty() {
            return Ok(Some(bytes));
        }
        if hex(&self.hash.clone().finalize()) == self.attachment.sha256 {
            return Ok(None);
        }
        let message = format!("attachment {:?}: the bytes that came are others", self.attachment.name);
        Err(ClientError::refused(409, "digest_mismatch", message))
    }
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
