//! An attachment on its way to the server.

use std::io::SeekFrom;

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncSeek, AsyncSeekExt as _};

use super::{AttachmentCondition, Upload, broken, hex};
use crate::client::Client;
use crate::documents::DocumentWritten;
use crate::error::ClientError;

/// Message of a reader that has failed.
const UNREAD: &str = "the bytes to upload could not be read";
/// Bytes that are read at a time to compare them.
const READ_BYTES: usize = 1 << 16;

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
    /// True if another call has begun it.
    is_resumed: bool,
}

impl Uploading {
    pub(crate) fn new(client: Client, key: &str, name: &str, upload: Upload) -> Uploading {
        let (key, name) = (key.to_owned(), name.to_owned());
        Uploading { client, key, name, upload, hash: Sha256::new(), given: 0, is_resumed: false }
    }

    /// The same behind the bytes that the server has, which have this hash.
    pub(crate) fn behind(self, hash: Sha256) -> Uploading {
        Uploading { given: self.upload.bytes, hash, is_resumed: true, ..self }
    }

    /// The upload as the server knew it when it was begun, or gone on with.
    pub fn upload(&self) -> &Upload {
        &self.upload
    }

    /// Number of bytes that the server has for certain: those that were added, and those behind which it was
    /// gone on with.
    pub fn bytes(&self) -> u64 {
        self.given
    }

    /// True if it was begun by a call before: another one may fill it, too.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// `upload_not_found`, `quota_exceeded`, `payload_too_large`; `upload_offset`: another writer fills it.
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

    async fn add_chunk(&mut self, chunk: Bytes) -> Result<(), ClientError> {
        let mut hash = self.hash.clone();
        let sending = self.client.upload_chunk(&self.key, &self.upload.upload, self.given, chunk.clone());
        // Their digest is taken while they are on their way.
        let (sent, ()) = tokio::join!(sending, async { hash.update(&chunk) });
        sent?;
        self.hash = hash;
        self.given += chunk.len() as u64;
        Ok(())
    }

    /// SHA-256 of the bytes that were given.
    fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Makes an attachment of the bytes that were given, in the place of one with this name; the server
    /// compares their number and SHA-256 with what has come. The document has to be there. If it is refused
    /// the upload stays, and its bytes count, until [`Uploading::abort`] or for an hour.
    ///
    /// # Errors
    /// `document_not_found`, `upload_incomplete`, `digest_mismatch`, `version_mismatch`, `lease_lost`.
    pub async fn commit(&self, when: &AttachmentCondition<'_>) -> Result<DocumentWritten, ClientError> {
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

/// The upload that has most bytes, among those whose bytes are the first ones of a reader but not all of
/// them, and the hash of these bytes, behind which the reader is then; `None`: there is none with any bytes,
/// and the reader is at its beginning. One that has all bytes may be staged in a transaction.
pub(crate) async fn longest_of(
    mut uploads: Vec<Upload>,
    reader: &mut (impl AsyncRead + AsyncSeek + Unpin),
) -> Result<Option<(Upload, Sha256)>, ClientError> {
    let unread = |e| broken(UNREAD, &e);
    let total = reader.seek(SeekFrom::End(0)).await.map_err(unread)?;
    reader.rewind().await.map_err(unread)?;
    uploads.retain(|upload| (1..total).contains(&upload.bytes));
    uploads.sort_by_key(|upload| upload.bytes);
    let (mut hash, mut at, mut found) = (Sha256::new(), 0, None);
    for upload in uploads {
        let missing = upload.bytes - at;
        if take(reader, missing, &mut hash).await? < missing {
            break;
        }
        at = upload.bytes;
        if hex(&hash.clone().finalize()) == upload.sha256 {
            found = Some((upload, hash.clone()));
        }
    }
    let behind = found.as_ref().map_or(0, |(upload, _)| upload.bytes);
    reader.seek(SeekFrom::Start(behind)).await.map_err(unread)?;
    Ok(found)
}

/// Takes so many bytes of a reader, or all that it has, into a hash; their number.
async fn take(
    reader: &mut (impl AsyncRead + Unpin),
    most: u64,
    hash: &mut Sha256,
) -> Result<u64, ClientError> {
    let (mut rest, mut taken, mut bytes) = (reader.take(most), 0, BytesMut::with_capacity(READ_BYTES));
    while rest.read_buf(&mut bytes).await.map_err(|e| broken(UNREAD, &e))? > 0 {
        taken += bytes.len() as u64;
        hash.update(&bytes);
        bytes.clear();
    }
    Ok(taken)
}

/// Reads a chunk of this length; of fewer bytes when the reader ends.
async fn read_chunk(reader: &mut (impl AsyncRead + Unpin), length: usize) -> Result<Bytes, ClientError> {
    let mut chunk = BytesMut::with_capacity(length);
    let mut rest = reader.take(length as u64);
    loop {
        match rest.read_buf(&mut chunk).await {
            Ok(0) => return Ok(chunk.freeze()),
            Ok(_) => {}
            Err(error) => return Err(broken(UNREAD, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// An upload with some bytes, whose id is their number.
    fn upload(bytes: &[u8]) -> Upload {
        Upload {
            upload: bytes.len().to_string(),
            bytes: bytes.len() as u64,
            sha256: hex(&Sha256::digest(bytes)),
            chunk_bytes_max: 4,
            expires_at_ms: 9,
        }
    }

    #[tokio::test]
    async fn the_longest_upload_of_these_bytes_is_found_and_the_reader_is_behind_it() {
        for (uploads, expected) in [
            (&["abc", "a", "abX", "abcdefgh", ""][..], "abc"),
            (&["abcdef", "abcdXf"], ""),
            (&["abcde", "abcdef", "abc"], "abcde"),
            (&["X", "abX", ""], ""),
            (&[], ""),
        ] {
            let mut reader = Cursor::new(b"abcdef");
            let all = uploads.iter().map(|bytes| upload(bytes.as_bytes())).collect();
            let found = longest_of(all, &mut reader).await.unwrap();
            assert_eq!(found.as_ref().map_or(0, |(upload, _)| upload.bytes), expected.len() as u64);
            if let Some((upload, hash)) = found {
                assert_eq!(hex(&hash.finalize()), upload.sha256);
            }
            let mut rest = String::new();
            reader.read_to_string(&mut rest).await.unwrap();
            assert_eq!(format!("{expected}{rest}"), "abcdef", "{uploads:?}");
        }
    }
}
