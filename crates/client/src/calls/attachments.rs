//! Attachments of documents.

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::attachments::{Attachment, AttachmentCondition, Downloading, Part, Upload, Uploading};
use crate::base64;
use crate::client::{Client, encoded};
use crate::documents::DocumentWritten;
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::parse;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;

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

    /// Goes on with the upload for an attachment to which most bytes have come: give all bytes from the first
    /// one on. `None`: there is none.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn upload_resume(&self, key: &str, name: &str) -> Result<Option<Uploading>, ClientError> {
        #[derive(Deserialize)]
        struct Uploads {
            uploads: Vec<Upload>,
        }
        let path = self.uploads_path(key, "") + &format!("?name={}", encoded(name));
        let found = self.get::<Uploads>(path).await?.uploads;
        let furthest = found.into_iter().max_by_key(|upload| upload.bytes);
        Ok(furthest.map(|upload| Uploading::new(self.clone(), key, name, upload)))
    }

    /// Writes an attachment of a document from a reader, in chunks, each of which is sent again when its
    /// answer is lost.
    ///
    /// # Errors
    /// Those of [`Uploading::add`] and [`Uploading::commit`]; `incomplete_body`: the reader has failed.
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
        let mut chunk = Vec::new();
        loop {
            let read = (&mut *reader).take(READ_BYTES as u64).read_to_end(&mut chunk).await;
            match read {
                Ok(0) => return uploading.commit(&AttachmentCondition::default()).await,
                Ok(_) => uploading.add(&chunk).await?,
                Err(error) => return Err(broken("the bytes to upload could not be read", &error)),
            }
            chunk.clear();
        }
    }

    /// Begins to read an attachment of a document.
    ///
    /// # Errors
    /// `attachment_not_found`.
    pub async fn download_begin(&self, key: &str, name: &str) -> Result<Downloading, ClientError> {
        let first = self.attachment_part(key, name, 0).await?;
        Ok(Downloading::new(self.clone(), key, first))
    }

    /// Reads an attachment of a document into a writer, and compares its SHA-256.
    ///
    /// # Errors
    /// `attachment_not_found`; those of [`Downloading::next`]; `incomplete_body`: the writer has failed.
    pub async fn download(
        &self,
        key: &str,
        name: &str,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Attachment, ClientError> {
        let mut downloading = self.download_begin(key, name).await?;
        while let Some(bytes) = downloading.next().await? {
            let written = writer.write_all(&bytes).await;
            written.map_err(|error| broken("what came could not be written", &error))?;
        }
        let flushed = writer.flush().await;
        flushed.map_err(|error| broken("what came could not be written", &error))?;
        Ok(downloading.attachment)
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

    pub(crate) async fn upload_chunk(
        &self,
        key: &str,
        upload: &str,
        offset: u64,
        chunk: &[u8],
    ) -> Result<(), ClientError> {
        let mut body = String::with_capacity(chunk.len() + chunk.len() / 3 + 128);
        body.push_str(&format!("{{\"upload\":{},\"offset\":{offset},\"content_base64\":\"", json!(upload)));
        base64::append(chunk, &mut body);
        body.push_str("\"}");
        let call = self.call(Method::POST, self.uploads_path(key, "/chunks"), body);
        self.run(call, Safety::Repeatable).await.map(|_| ())
    }

    pub(crate) async fn upload_commit(
        &self,
        uploading: &Uploading,
        (bytes, sha256): (u64, &str),
        when: &AttachmentCondition<'_>,
    ) -> Result<DocumentWritten, ClientError> {
        let Uploading { key, name, upload, .. } = uploading;
        let mut fields = Map::new();
        let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        field("name", name.as_str().into());
        field("upload", upload.upload.as_str().into());
        field("bytes", bytes.into());
        field("sha256", sha256.into());
        when.if_version.map(|version| field("if_version", version.into()));
        when.if_etag.map(|etag| field("if_etag", etag.into()));
        when.token.map(|token| field("token", token.into()));
        when.if_absent.then(|| field("if_absent", true.into()));
        let body = Value::Object(fields).to_string();
        let call = self.call(Method::POST, self.uploads_path(key, "/commit"), body);
        let answer = self.run(call, Safety::Repeatable).await?;
        Ok(DocumentWritten { created: answer.status == 201, ..parse(&answer.body)? })
    }

    pub(crate) async fn upload_end(&self, key: &str, upload: &str) -> Result<(), ClientError> {
        let path = self.uploads_path(key, "") + &format!("?upload={}", encoded(upload));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    /// Bytes of an attachment from `offset` to the end of the chunk in which that lies.
    pub(crate) async fn attachment_part(
        &self,
        key: &str,
        name: &str,
        offset: u64,
    ) -> Result<Part, ClientError> {
        self.get(self.attachments_path(key, "/read", name) + &format!("&offset={offset}")).await
    }

    fn uploads_path(&self, key: &str, rest: &str) -> String {
        self.path(&format!("/documents/{}/uploads{rest}", encoded(key)))
    }

    fn attachments_path(&self, key: &str, rest: &str, name: &str) -> String {
        self.path(&format!("/documents/{}/attachments{rest}?name={}", encoded(key), encoded(name)))
    }
}

fn broken(what: &str, error: &std::io::Error) -> ClientError {
    ClientError::refused(400, "incomplete_body", format!("{what}: {error}"))
}
