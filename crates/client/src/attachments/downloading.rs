//! An attachment on its way from the server.

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_MATCH, RANGE};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::{Attachment, broken, hex, other_bytes};
use crate::base64;
use crate::client::Client;
use crate::error::{ClientError, TransportKind};
use crate::retry::Safety;
use crate::transport::{Call, Download};

/// Status of an answer that has a part of the attachment (RFC 9110 §15.3.7).
const PARTIAL_CONTENT: u16 = 206;
/// Media type of an answer whose attachment has none.
const NO_TYPE: &str = "application/octet-stream";

/// An attachment on its way from the server, of one version. When the connection breaks, the bytes that are
/// missing are asked for, of this version or not at all.
#[derive(Debug)]
pub struct Downloading {
    client: Client,
    path: String,
    attachment: Attachment,
    /// The answer that brings the bytes behind those that were given; `None`: it is still to be asked for.
    body: Option<Download>,
    hash: Sha256,
    given: u64,
}

impl Downloading {
    /// Asks for an attachment by the path of its bytes.
    pub(crate) async fn begin(client: Client, path: String, name: &str) -> Result<Downloading, ClientError> {
        let body = client.open_again(&client.call(Method::GET, path.clone(), "")).await?;
        let attachment = attachment(&body, name)?;
        Ok(Downloading { client, path, attachment, body: Some(body), hash: Sha256::new(), given: 0 })
    }

    /// The attachment. Its media type is empty also if it is `application/octet-stream`, which the answer has
    /// where none was given.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Skips bytes that are there already, from a download that was interrupted: give those from the first
    /// one on, before the first [`Downloading::next`], which then gives those behind them.
    pub fn skip(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.body = None;
            self.take(bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.given += bytes.len() as u64;
    }

    /// The next bytes as they come; `None`: these were all, and their SHA-256 is that of the attachment.
    ///
    /// # Errors
    /// `version_mismatch`, `attachment_not_found`: it was replaced or deleted meanwhile. `digest_mismatch`:
    /// what came is not what was written.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.given >= self.attachment.bytes {
            return self.verified();
        }
        let mut tries = self.client.tries();
        loop {
            tries.count += 1;
            let mut body = match self.body.take() {
                Some(body) => body,
                None => self.rest().await?,
            };
            let limit = self.client.options().request_timeout;
            let error = match timeout(limit, body.next()).await {
                Ok(Ok(Some(bytes))) => {
                    self.body = Some(body);
                    self.take(&bytes);
                    return Ok(Some(bytes));
                }
                Ok(Ok(None)) => stopped(&body, TransportKind::Broken, "the answer ended before its end"),
                Ok(Err(error)) => error,
                Err(_) => stopped(&body, TransportKind::Timeout, "the answer does not go on"),
            };
            self.client.before_next(&mut tries, &body.address, error, Safety::Repeatable).await?;
        }
    }

    /// Writes the bytes that are missing into a writer.
    ///
    /// # Errors
    /// Those of [`Downloading::next`]; `incomplete_body`: the writer has failed.
    pub async fn write_all(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), ClientError> {
        let unwritten = |error| broken("what came could not be written", &error);
        while let Some(bytes) = self.next().await? {
            writer.write_all(&bytes).await.map_err(unwritten)?;
        }
        writer.flush().await.map_err(unwritten)
    }

    /// Asks for the bytes behind those that were given.
    async fn rest(&self) -> Result<Download, ClientError> {
        let download = self.client.open_again(&self.rest_call()?).await?;
        if self.given > 0 && download.status != PARTIAL_CONTENT {
            let reason = "a part of the attachment was asked for, and another answer came".to_owned();
            return Err(ClientError::Protocol { status: download.status, reason });
        }
        Ok(download)
    }

    fn rest_call(&self) -> Result<Call, ClientError> {
        let mut call = self.client.call(Method::GET, self.path.clone(), "");
        let tag = format!("\"{}\"", self.attachment.etag);
        for (name, value) in [(RANGE, format!("bytes={}-", self.given)), (IF_MATCH, tag)] {
            let value = HeaderValue::try_from(value);
            call.headers.insert(name, value.map_err(|_| not_told(0, "ETag"))?);
        }
        Ok(call)
    }

    fn verified(&self) -> Result<Option<Bytes>, ClientError> {
        if hex(&self.hash.clone().finalize()) == self.attachment.sha256 {
            return Ok(None);
        }
        Err(other_bytes(format!("attachment {:?}: the bytes that came are others", self.attachment.name)))
    }
}

fn stopped(body: &Download, kind: TransportKind, reason: &str) -> ClientError {
    ClientError::Transport { kind, server: body.address.clone(), tried: 1, reason: reason.to_owned() }
}

/// The attachment that an answer with all of its bytes tells of.
fn attachment(answer: &Download, name: &str) -> Result<Attachment, ClientError> {
    let headers = &answer.headers;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &'static str| {
        text(name).and_then(|text| text.parse().ok()).ok_or_else(|| not_told(answer.status, name))
    };
    let etag = text(ETAG.as_str()).and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
    Ok(Attachment {
        name: name.to_owned(),
        version: number("sluice-version")?,
        etag: etag.ok_or_else(|| not_told(answer.status, "ETag"))?.to_owned(),
        changed_at_ms: number("sluice-changed-at-ms")?,
        bytes: number(CONTENT_LENGTH.as_str())?,
        sha256: sha256(headers).ok_or_else(|| not_told(answer.status, "Repr-Digest"))?,
        content_type: text(CONTENT_TYPE.as_str()).filter(|it| *it != NO_TYPE).unwrap_or_default().to_owned(),
    })
}

/// The SHA-256 of the whole attachment in hexadecimal digits (RFC 9530 §3).
fn sha256(headers: &HeaderMap) -> Option<String> {
    let digests = headers.get("repr-digest")?.to_str().ok()?;
    let found = digests.split(',').find_map(|one| one.trim().strip_prefix("sha-256=:")?.strip_suffix(':'));
    base64::decode(found?).ok().map(|bytes| hex(&bytes))
}

#[cold]
fn not_told(status: u16, header: &str) -> ClientError {
    ClientError::Protocol { status, reason: format!("an attachment without {header}") }
}
