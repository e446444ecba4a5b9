//! Attachments of documents.

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncSeek, AsyncWrite};

use crate::attachments::{Attachment, AttachmentCondition, Downloading, Upload, Uploading, longest_of};
use crate::client::{Client, encoded};
use crate::documents::DocumentWritten;
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::parse;

const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");

impl Client {
    /// Begins to write an attachment of a document, which need not be there before the commit.
    ///
    /// # Errors
    /// `limit_exceeded`, `invalid_argument`.
    pub async fn upload_begin(
        &self,
        key: &str,
        name: &str,
        content_type: Option<&str>,
    ) -> Result<Uploading, ClientError> {
        let body = json!({ "name": name, "content_type": content_type.unwrap_or_default() }).to_string();
        let call = self.call(Method::POST, self.uploads_path(key, ""), body);
        // One that is begun twice ends by itself.
        let upload = parse(&self.run(call, Safety::Repeatable).await?.body)?;
        Ok(Uploading::new(self.clone(), key, name, upload))
    }

    /// Looks whether an attachment could be written now, so that no bytes are sent in vain: whether its
    /// document is there, and the conditions hold, except that of a lock. The commit looks again.
    ///
    /// # Errors
    /// `document_not_found`, `version_mismatch`.
    pub async fn upload_check(
        &self,
        key: &str,
        name: &str,
        when: &AttachmentCondition<'_>,
    ) -> Result<(), ClientError> {
        if when.is_about_version() {
            let found = self.attachments(key).await?;
            return when.check(key, name, found.iter().find(|one| one.name == name));
        }
        // One of them tells that the document is there.
        let path = self.path(&format!("/documents/{}/attachments?limit=1", encoded(key)));
        self.look::<IgnoredAny>(path).await.map(|_| ())
    }

    /// Goes on with an upload for an attachment: of those whose bytes are the first ones of the reader, but
    /// not all of them, with the one that has most. The reader is then behind these bytes; give the upload
    /// the rest. `None`: there is none, and the reader is at its beginning. The media type is the one with
    /// which it was begun. If its writer has not ended yet, one of the two is refused with `upload_offset`.
    ///
    /// # Errors
    /// `namespace_not_found`; `incomplete_body`: the reader has failed.
    pub async fn upload_resume(
        &self,
        key: &str,
        name: &str,
        reader: &mut (impl AsyncRead + AsyncSeek + Unpin),
    ) -> Result<Option<Uploading>, ClientError> {
        #[derive(Deserialize)]
        struct Uploads {
            uploads: Vec<Upload>,
        }
        let path = self.uploads_path(key, "") + &format!("?name={}", encoded(name));
        let found = self.get::<Uploads>(path).await?.uploads;
        let longest = longest_of(found, reader).await?;
        Ok(longest.map(|(upload, hash)| Uploading::new(self.clone(), key, name, upload).behind(hash)))
    }

    /// Writes an attachment of a document from a reader, in chunks, each of which is sent again when its
    /// connection breaks. If that fails, nothing is left of it, unless another writer has gone on with it.
    ///
    /// # Errors
    /// Those of [`Uploading::add_all`] and [`Uploading::commit`].
    ///
    /// ```no_run
    /// # async fn example(client: sluice_client::Client) -> Result<(), sluice_client::ClientError> {
    /// let mut report = &b"a long report"[..];
    /// client.upload("orders/17", "report.txt", Some("text/plain"), &mut report).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload(
        &self,
        key: &str,
        name: &str,
        content_type: Option<&str>,
        reader: &mut (impl AsyncRead + Unpin),
    ) -> Result<DocumentWritten, ClientError> {
        let mut uploading = self.upload_begin(key, name, content_type).await?;
        let written = match uploading.add_all(reader).await {
            Ok(()) => uploading.commit(&AttachmentCondition::default()).await,
            Err(error) => Err(error),
        };
        if written.as_ref().is_err_and(|error| error.code() != Some("upload_offset")) {
            // Nobody goes on with it, and until it ends its bytes count.
            let _ = uploading.abort().await;
        }
        written
    }

    /// Begins to read an attachment of a document.
    ///
    /// # Errors
    /// `attachment_not_found`.
    pub async fn download_begin(&self, key: &str, name: &str) -> Result<Downloading, ClientError> {
        Downloading::begin(self.clone(), self.attachments_path(key, "/raw", name), name).await
    }

    /// Reads an attachment of a document into a writer, and compares its SHA-256. After a broken connection
    /// it goes on where it was.
    ///
    /// # Errors
    /// `attachment_not_found`; those of [`Downloading::write_all`].
    pub async fn download(
        &self,
        key: &str,
        name: &str,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Attachment, ClientError> {
        let mut downloading = self.download_begin(key, name).await?;
        downloading.write_all(writer).await?;
        Ok(downloading.attachment().clone())
    }

    /// All attachments of a document, by name.
    ///
    /// # Errors
    /// `document_not_found`.
    pub async fn attachments(&self, key: &str) -> Result<Vec<Attachment>, ClientError> {
        self.all_of(&format!("documents/{}/attachments", encoded(key)), "").await
    }

    /// Deletes an attachment of a document.
    ///
    /// # Errors
    /// `attachment_not_found`, `version_mismatch`, `lease_lost`.
    pub async fn attachment_delete(
        &self,
        key: &str,
        name: &str,
        when: &AttachmentCondition<'_>,
    ) -> Result<(), ClientError> {
        let mut path = self.attachments_path(key, "", name);
        let version = when.if_version.map(|version| version.to_string());
        let conditions =
            [("if_version", version.as_deref()), ("if_etag", when.if_etag), ("token", when.token)];
        for (condition, value) in conditions.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
            path.push_str(&format!("&{condition}={}", encoded(value)));
        }
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    /// Adds a chunk to an upload, again when the connection breaks.
    pub(crate) async fn upload_chunk(
        &self,
        key: &str,
        upload: &str,
        offset: u64,
        chunk: Bytes,
    ) -> Result<(), ClientError> {
        let path = self.uploads_path(key, "/raw") + &format!("?upload={}", encoded(upload));
        let mut call = self.call(Method::PATCH, path, chunk);
        call.headers.insert(UPLOAD_OFFSET, offset.into());
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        self.run(call, Safety::Repeatable).await.map(|_| ())
    }

    pub(crate) async fn upload_commit(
        &self,
        key: &str,
        fields: &Map<String, Value>,
    ) -> Result<DocumentWritten, ClientError> {
        let call = self.call(Method::POST, self.uploads_path(key, "/commit"), json!(fields).to_string());
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    pub(crate) async fn upload_end(&self, key: &str, upload: &str) -> Result<(), ClientError> {
        let path = self.uploads_path(key, "") + &format!("?upload={}", encoded(upload));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    fn uploads_path(&self, key: &str, rest: &str) -> String {
        self.path(&format!("/documents/{}/uploads{rest}", encoded(key)))
    }

    fn attachments_path(&self, key: &str, rest: &str, name: &str) -> String {
        self.path(&format!("/documents/{}/attachments{rest}?name={}", encoded(key), encoded(name)))
    }
}
