//! Attachments of documents: uploads, chunk by chunk, and what they become; `hash` their SHA-256, `attaching`
//! by one request, `reading` of ranges.

pub mod attaching;
mod hash;
pub mod reading;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::attachments::{
    AttachmentCommit, AttachmentDelete, AttachmentView, UploadChunk, UploadId, UploadView,
};
use sluice_engine::limits::{ATTACHMENT_BYTES_MAX, UPLOAD_CHUNK_BYTES_MAX};
use sluice_engine::{Error, NamespaceId};
use sluice_node::AttachmentName;

use crate::call::{Body, Done, How, Unary};
use crate::digest::{Fields, content_digest};
use crate::documents::{VERSION_MAX, When, Written};
use crate::error::CallError;
use crate::fault::{Fault, Read, clip};
use crate::hot::AT_MS_EXAMPLE;
use crate::payload::Octets;
use crate::permit::Permit;
use crate::value::{Nothing, PageSize, Within, cut_page, given, page_size};
use hash::Sha256;

const UPLOAD_EXAMPLE: &str = "00000000800040000000";
const SHA256_EXAMPLE: &str = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";

/// An upload to begin, for an attachment of a document that need not be there yet.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "UploadBeginRequest")]
#[schemars(example = json!({"name": "invoice.pdf", "content_type": "application/pdf"}))]
pub struct Begin {
    /// Name of the attachment: 1 to 255 bytes.
    #[schemars(required)]
    name: Option<String>,
    /// Media type of the bytes.
    content_type: Option<String>,
}

/// An upload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(example = upload_example())]
pub struct Upload {
    /// Its id.
    upload: String,
    /// Name of the attachment.
    name: String,
    /// Number of the bytes that it has: the offset of the next chunk.
    bytes: u64,
    /// SHA-256 of these bytes, in hexadecimal digits.
    sha256: String,
    /// Largest chunk that it takes, in bytes.
    chunk_bytes_max: u64,
    /// When it ends unless a chunk comes, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
}

fn upload_example() -> Value {
    json!({
        "upload": UPLOAD_EXAMPLE, "name": "invoice.pdf", "bytes": 1_048_576, "sha256": SHA256_EXAMPLE,
        "chunk_bytes_max": UPLOAD_CHUNK_BYTES_MAX, "expires_at_ms": AT_MS_EXAMPLE,
    })
}

impl From<&UploadView> for Upload {
    fn from(view: &UploadView) -> Upload {
        Upload {
            upload: view.id.to_string(),
            name: view.name.clone(),
            bytes: view.progress.bytes,
            sha256: hex(&view.sha256),
            chunk_bytes_max: UPLOAD_CHUNK_BYTES_MAX as u64,
            expires_at_ms: view.expires_at_us / 1_000,
        }
    }
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// The attachment of the document that a call names.
pub(crate) fn target<'a>(
    permit: &Permit<'a>,
    name: Option<&'a str>,
) -> Result<AttachmentName<'a>, CallError> {
    let name = given(name).ok_or_else(no_name)?;
    Ok(AttachmentName { namespace: permit.namespace_id()?, key: permit.name(), name })
}

fn no_name() -> Box<Fault> {
    Fault::missing("name", "say which attachment it is")
}

pub(crate) fn upload_id(text: Option<&str>) -> Result<UploadId, CallError> {
    let text = given(text).ok_or_else(|| Fault::missing("upload", "give the id with which it was begun"))?;
    Ok(text.parse()?)
}

impl Unary for Begin {
    type Answer = Upload;
    const BODY: Body = Body::Small;
    const HOW: &'static [How] = &[How::Created];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Upload>, CallError> {
        let content_type = self.content_type.as_deref().unwrap_or_default();
        let target = target(permit, self.name.as_deref())?;
        let upload = permit.node().upload_begin(target, content_type).await?;
        let view = permit.node().upload(target.namespace, permit.name(), upload).await?;
        Ok(Done::made(Upload::from(&view), true))
    }
}

/// Uploads to show: one by its id, or those for an attachment.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "UploadListRequest")]
pub struct Uploads {
    /// Id of the upload.
    upload: Option<String>,
    /// Name of the attachment; one of the two is required.
    name: Option<String>,
}

/// Uploads that are not over.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "UploadList", example = json!({"uploads": [upload_example()]}))]
pub struct UploadList {
    /// The first one first; at most 200.
    uploads: Vec<Upload>,
}

impl Unary for Uploads {
    type Answer = UploadList;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<UploadList>, CallError> {
        let views = match given(self.upload.as_deref()) {
            Some(_) if given(self.name.as_deref()).is_some() => {
                return Err(Fault::conflict("upload", "name").into());
            }
            Some(upload) => vec![show(permit, upload).await?],
            None if given(self.name.as_deref()).is_none() => {
                let reason = "give the name of the attachment, or upload: the id of an upload";
                return Err(Fault::missing("name", reason).into());
            }
            None => permit.node().uploads_for(target(permit, self.name.as_deref())?).await?,
        };
        Ok(UploadList { uploads: views.iter().map(Upload::from).collect() }.into())
    }
}

/// An upload for the document that a call names.
async fn show(permit: &Permit<'_>, upload: &str) -> Result<UploadView, CallError> {
    let id = upload_id(Some(upload))?;
    Ok(permit.node().upload(permit.namespace_id()?, permit.name(), id).await?)
}

/// Bytes that are hashed before another call has its turn: less than 100 µs.
const HASH_STEP_BYTES: usize = 64 << 10;

/// Adds bytes to an upload for the document that a call names; tells how many it has then.
///
/// # Errors
/// Those of the operation.
pub async fn append(
    permit: &Permit<'_>,
    upload: UploadId,
    offset: u64,
    content: &[u8],
) -> Result<u64, CallError> {
    let namespace = permit.namespace_id()?;
    let request = content_digest(content);
    let view = permit.node().upload(namespace, permit.name(), upload).await?;
    let bytes = offset + content.len() as u64;
    if !view.progress.is_next(offset, request)? {
        return Ok(bytes);
    }
    let no_state = || Error::Internal { reason: format!("upload {upload} has no state of its hash") };
    let mut hash = Sha256::resume(&view.hash, view.progress.bytes).ok_or_else(no_state)?;
    for step in content.chunks(HASH_STEP_BYTES) {
        hash.update(step);
        // Other calls wait for this thread.
        tokio::task::yield_now().await;
    }
    let (state, sha256) = (hash.state(), hash.digest());
    let chunk = UploadChunk { namespace, upload, offset, request, hash: &state, sha256, content };
    permit.node().upload_chunk(&chunk).await?;
    Ok(bytes)
}

/// A chunk of an upload.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "UploadChunkRequest")]
#[schemars(example = json!({"upload": UPLOAD_EXAMPLE, "offset": 0, "content_base64": "aGVsbG8="}))]
pub struct Chunk {
    /// Id of the upload.
    #[schemars(required)]
    upload: Option<String>,
    /// Number of the bytes before it, which is that of the bytes that the upload has.
    #[schemars(required)]
    offset: Option<Within<0, ATTACHMENT_BYTES_MAX>>,
    /// The bytes, as standard base64 with padding: at most 1 MiB.
    #[schemars(required)]
    content_base64: Option<Octets>,
}

/// The bytes of an upload after a chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "UploadProgress", example = json!({"bytes": 5}))]
pub struct Progress {
    /// Their number: the offset of the next chunk.
    bytes: u64,
}

impl Unary for Chunk {
    type Answer = Progress;
    const BODY: Body = Body::Document;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Progress>, CallError> {
        let upload = upload_id(self.upload.as_deref())?;
        let offset = self.offset.ok_or_else(|| Fault::missing("offset", "say where the chunk begins"))?;
        let content = self
            .content_base64
            .ok_or_else(|| Fault::missing("content_base64", "a chunk has a byte at least"))?;
        let overloaded = |_| Error::Overloaded { what: "chunks of uploads", retry_after_ms: 1_000 };
        let _turn = permit.calls().chunk_turns().try_acquire().map_err(overloaded)?;
        let bytes = append(permit, upload, offset.get(), content.as_bytes()).await;
        let bytes = bytes.map_err(|error| error.of_field("chunk", "content_base64"))?;
        Ok(Progress { bytes }.into())
    }
}

/// Declares the commit of an upload: these fields, and the conditions.
macro_rules! commit_request {
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            $($own)*
            /// Name of the attachment, with which the upload was begun.
            #[schemars(required)]
            name: Option<String>,
            /// Id of the upload.
            #[schemars(required)]
            upload: Option<String>,
            /// Number of bytes that were sent: refused if the upload has another.
            bytes: Option<Within<0, ATTACHMENT_BYTES_MAX>>,
            /// SHA-256 of these bytes, in hexadecimal digits: refused if the upload has another.
            sha256: Option<String>,
            /// Attach only if the attachment has this version.
            if_version: Option<Within<1, VERSION_MAX>>,
            /// Attach only if the attachment has this ETag.
            if_etag: Option<String>,
            /// Attach only if there is an attachment with this name.
            if_exists: Option<bool>,
            /// Attach only if there is no attachment with this name.
            if_absent: Option<bool>,
            /// Token of a lock of the document's key: attach only while it is held.
            token: Option<String>,
        }

        impl $name {
            fn when(&self) -> When<'_> {
                When {
                    version: self.if_version.map(Within::get),
                    etag: self.if_etag.as_deref(),
                    exists: self.if_exists.unwrap_or_default(),
                    absent: self.if_absent.unwrap_or_default(),
                    token: self.token.as_deref(),
                    ..When::default()
                }
            }

            /// The commit of an upload for an attachment of a key.
            pub(crate) fn commit<'a>(
                &'a self,
                namespace: NamespaceId,
                key: &'a str,
            ) -> Result<AttachmentCommit<'a>, CallError> {
                let name = given(self.name.as_deref());
                Ok(AttachmentCommit {
                    namespace,
                    key,
                    name: name.ok_or_else(no_name)?,
                    upload: upload_id(self.upload.as_deref())?,
                    bytes: self.bytes.map(Within::get),
                    sha256: given(self.sha256.as_deref()).map(digest).transpose()?,
                    when: self.when().read()?,
                })
            }
        }
    };
}

commit_request! {
    /// An upload to commit, under the conditions that are given.
    #[schemars(rename = "UploadCommitRequest")]
    #[schemars(example = json!({"name": "invoice.pdf", "upload": UPLOAD_EXAMPLE, "sha256": SHA256_EXAMPLE}))]
    Commit {}
}

commit_request! {
    /// An upload to commit with a transaction, under the conditions that are given.
    #[schemars(rename = "TransactionAttach")]
    #[schemars(example = json!({"key": "orders/17", "name": "invoice.pdf", "upload": UPLOAD_EXAMPLE}))]
    KeyedAttach {
        /// Key of the document, which is there or put by the transaction.
        #[schemars(required)]
        pub(crate) key: Option<String>,
    }
}

impl KeyedAttach {
    /// Adds the commit to those fields that make a request what it is.
    pub(crate) fn put_fields(&self, fields: &mut Fields) {
        fields.text("name", self.name.as_deref());
        fields.text("upload", self.upload.as_deref());
        fields.number("bytes", self.bytes.map(Within::get));
        fields.text("sha256", self.sha256.as_deref());
        self.when().put_fields(fields);
    }
}

/// Reads a SHA-256 in hexadecimal digits.
fn digest(text: &str) -> Read<[u8; 32]> {
    let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).unwrap_or_default();
    bytes.try_into().map_err(|_| {
        let text = clip(text);
        Fault::invalid(format!("{text:?} is no SHA-256: expected 64 hexadecimal digits")).inside("sha256")
    })
}

impl Unary for Commit {
    type Answer = Written;
    const BODY: Body = Body::Small;
    const HOW: &'static [How] = &[How::Done, How::Created];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Written>, CallError> {
        let commit = self.commit(permit.namespace_id()?, permit.name())?;
        let (version, created) = permit.node().attachment_commit(&commit).await?;
        Ok(Done::made(Written::from(version), created))
    }
}

/// An upload to end without a commit.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "UploadEndRequest")]
pub struct End {
    /// Id of the upload.
    #[schemars(required)]
    upload: Option<String>,
}

impl Unary for End {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        let (namespace, upload) = (permit.namespace_id()?, upload_id(self.upload.as_deref())?);
        permit.node().upload(namespace, permit.name(), upload).await?;
        permit.node().upload_end(namespace, upload).await?;
        Ok(Nothing {}.into())
    }
}

/// An attachment of a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(example = attachment_example())]
pub struct Attachment {
    /// Its name.
    name: String,
    /// Number of the version: 1, and one more each time it is replaced.
    version: u64,
    /// ETag, in decimal digits: no other version of the attachment ever has it.
    etag: String,
    /// When it was attached, in milliseconds since the Unix epoch.
    changed_at_ms: u64,
    /// Number of its bytes.
    bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    sha256: String,
    /// Media type, if one was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    content_type: String,
}

fn attachment_example() -> Value {
    json!({
        "name": "invoice.pdf", "version": 1, "etag": "7340032000001", "changed_at_ms": AT_MS_EXAMPLE,
        "bytes": 11, "sha256": SHA256_EXAMPLE, "content_type": "application/pdf",
    })
}

impl From<&AttachmentView> for Attachment {
    fn from(view: &AttachmentView) -> Attachment {
        Attachment {
            name: view.name.clone(),
            version: view.version.version,
            etag: view.version.revision.to_string(),
            changed_at_ms: view.version.changed_at_us / 1_000,
            bytes: view.bytes,
            sha256: hex(&view.sha256),
            content_type: view.content_type.clone(),
        }
    }
}

/// Attachments to list.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "AttachmentListRequest")]
pub struct List {
    /// `next` of the page before.
    after: Option<String>,
    /// Most attachments of the page.
    limit: Option<PageSize>,
}

/// A page of attachments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "AttachmentList", example = json!({"attachments": [attachment_example()]}))]
pub struct Attachments {
    /// By name.
    attachments: Vec<Attachment>,
    /// Name after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Attachments;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Attachments>, CallError> {
        let (size, namespace) = (page_size(self.limit), permit.namespace_id()?);
        let after = given(self.after.as_deref());
        let mut found = permit.node().attachments(namespace, permit.name(), after, size + 1).await?;
        let next = cut_page(&mut found, size, |attachment| &attachment.name);
        Ok(Attachments { attachments: found.iter().map(Attachment::from).collect(), next }.into())
    }
}

/// Declares an attachment to delete: these fields, and the conditions.
macro_rules! delete_request {
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            $($own)*
            /// Its name.
            #[schemars(required)]
            name: Option<String>,
            /// Delete only if the attachment has this version.
            if_version: Option<Within<1, VERSION_MAX>>,
            /// Delete only if the attachment has this ETag.
            if_etag: Option<String>,
            /// Token of a lock of the document's key: delete only while it is held.
            token: Option<String>,
        }

        impl $name {
            fn when(&self) -> When<'_> {
                When {
                    version: self.if_version.map(Within::get),
                    etag: self.if_etag.as_deref(),
                    token: self.token.as_deref(),
                    ..When::default()
                }
            }

            /// The deletion of an attachment of a key.
            pub(crate) fn deletion<'a>(
                &'a self,
                namespace: NamespaceId,
                key: &'a str,
            ) -> Result<AttachmentDelete<'a>, CallError> {
                let (name, when) = (given(self.name.as_deref()), self.when().read()?);
                Ok(AttachmentDelete { namespace, key, name: name.ok_or_else(no_name)?, when })
            }
        }
    };
}

delete_request! {
    /// An attachment to delete, under the conditions that are given.
    #[schemars(rename = "AttachmentDeleteRequest")]
    Delete {}
}

delete_request! {
    /// An attachment to delete with a transaction, under the conditions that are given.
    #[schemars(rename = "TransactionDeleteAttachment")]
    #[schemars(example = json!({"key": "orders/17", "name": "invoice.pdf"}))]
    KeyedDetach {
        /// Key of the document.
        #[schemars(required)]
        pub(crate) key: Option<String>,
    }
}

impl KeyedDetach {
    /// Adds the deletion to those fields that make a request what it is.
    pub(crate) fn put_fields(&self, fields: &mut Fields) {
        fields.text("name", self.name.as_deref());
        self.when().put_fields(fields);
    }
}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        let delete = self.deletion(permit.namespace_id()?, permit.name())?;
        permit.node().attachment_delete(&delete).await?;
        Ok(Nothing {}.into())
    }
}
