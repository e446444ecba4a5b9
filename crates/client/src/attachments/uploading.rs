//! An attachment on its way to the server.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{AttachmentCondition, Upload, broken, hex, other_bytes};
use crate::client::Client;
use crate::documents::DocumentWritten;
use crate::error::ClientError;

/// An attachment on its way to the server. It becomes one by [`Uploading::commit`]; an upload that is left
/// ends by itself after an hour, and can be gone on with until then.
///
/// Each chunk is sent again when its connection breaks or its answer is lost.
#[derive(Debug)]
pub struct Uploading {
    client: Client,
    key: String,
    name: String,
    upload: Upload,
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
        for chunk in bytes.chunks(self.chunk_bytes()) {
            self.add_chunk(Bytes::copy_from_slice(chunk)).await?;
        }
        Ok(())
    }

    /// Adds all bytes of a reader. The next chunk is read while one is sent, so that two are in memory.
    ///
    /// # Errors
    /// Those of [`Uploading::add`]; `incomplete_body`: the reader has failed.
    pub async fn add_all(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<(), ClientError> {
        let length = self.chunk_bytes();
        let mut chunk = read_chunk(reader, length).await?;
        while !chunk.is_empty() {
            let (sent, next) = tokio::join!(self.add_chunk(chunk), read_chunk(reader, length));
            sent?;
            chunk = next?;
        }
        Ok(())
    }

    fn chunk_bytes(&self) -> usize {
        usize::try_from(self.upload.chunk_bytes_max).unwrap_or(usize::MAX).max(1)
    }

    /// Adds a chunk: sends what the server has not.
    async fn add_chunk(&mut self, mut chunk: Bytes) -> Result<(), ClientError> {
        let missing = self.upload.bytes.saturating_sub(self.given);
        let known = chunk.split_to(chunk.len().min(usize::try_from(missing).unwrap_or(usize::MAX)));
        self.hash.update(&known);
        self.given += known.len() as u64;
        if !known.is_empty() && self.given == self.upload.bytes {
            self.expect_known()?;
        }
        if chunk.is_empty() {
            return Ok(());
        }
        let mut hash = self.hash.clone();
        let sending = self.client.upload_chunk(&self.key, &self.upload.upload, self.given, chunk.clone());
        // Their digest is taken while they are on their way.
        let (sent, ()) = tokio::join!(sending, async { hash.update(&chunk) });
        sent?;
        self.hash = hash;
        self.given += chunk.len() as u64;
        Ok(())
    }

    fn expect_known(&self) -> Result<(), ClientError> {
        match self.sha256() == self.upload.sha256 {
            true => Ok(()),
            false => Err(other_bytes(format!(
                "the first {} bytes are not those that the server has: upload anew",
                self.given
            ))),
        }
    }

    /// SHA-256 of the bytes that were given.
    fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Makes an attachment of the bytes that were given, in the place of one with this name; the server
    /// compares their number and SHA-256 with what has come. The document has to be there.
    ///
    /// # Errors
    /// `document_not_found`, `upload_incomplete`, `digest_mismatch`, `version_mismatch`, `lease_lost`.
    pub async fn commit(self, when: &AttachmentCondition<'_>) -> Result<DocumentWritten, ClientError> {
        self.client.upload_commit(&self.key, &self.operation(when)).await
    }

    /// Key of the document.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The fields of a commit.
    pub(crate) fn operation(&self, when: &AttachmentCondition<'_>) -> Map<String, Value> {
        let mut fields = when.fields(&self.name);
        let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        field("upload", self.upload.upload.as_str().into());
        field("bytes", self.given.into());
        field("sha256", self.sha256().into());
        fields
    }

    /// Ends the upload: nothing is attached.
    ///
    /// # Errors
    /// `upload_not_found`: it has ended before.
    pub async fn abort(self) -> Result<(), ClientError> {
        self.client.upload_end(&self.key, &self.upload.upload).await
    }
}

/// Reads a chunk of this length; of fewer bytes when the reader ends.
async fn read_chunk(reader: &mut (impl AsyncRead + Unpin), length: usize) -> Result<Bytes, ClientError> {
    let mut chunk = BytesMut::with_capacity(length);
    let mut rest = reader.take(length as u64);
    loop {
        match rest.read_buf(&mut chunk).await {
            Ok(0) => return Ok(chunk.freeze()),
            Ok(_) => {}
            Err(error) => return Err(broken("the bytes to upload could not be read", &error)),
        }
    }
}
