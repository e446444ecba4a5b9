//! Attachments of documents: what is told of them; how they are written (`uploading`) and read
//! (`downloading`), with memory for a piece or two whatever their length.

mod downloading;
mod uploading;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use downloading::Downloading;
pub use uploading::Uploading;
pub(crate) use uploading::longest_of;

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
    #[serde(default, skip_serializing_if = "String::is_empty")]
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

impl AttachmentCondition<'_> {
    /// True if there is one about the attachment itself.
    pub(crate) fn is_about_version(&self) -> bool {
        self.if_version.is_some() || self.if_etag.is_some() || self.if_absent
    }

    /// Refuses what the server would refuse where the attachment is as it was found.
    pub(crate) fn check(&self, key: &str, name: &str, found: Option<&Attachment>) -> Result<(), ClientError> {
        let version = found.map_or(0, |found| found.version);
        let etag = found.map(|found| &*found.etag);
        let holds = self.if_version.is_none_or(|expected| expected == version)
            && (self.if_etag.is_none() || self.if_etag == etag)
            && !(self.if_absent && found.is_some());
        if holds { Ok(()) } else { Err(changed(key, name, version)) }
    }

    /// The fields of a change of the attachment with this name.
    pub(crate) fn fields(&self, name: &str) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        field("name", name.into());
        self.if_version.map(|version| field("if_version", version.into()));
        self.if_etag.map(|etag| field("if_etag", etag.into()));
        self.token.map(|token| field("token", token.into()));
        self.if_absent.then(|| field("if_absent", true.into()));
        fields
    }
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// The refusal of a write that expects another version, as the server tells it.
fn changed(key: &str, name: &str, version: u64) -> ClientError {
    let is = match version {
        0 => "does not exist".to_owned(),
        version => format!("is there with version {version}"),
    };
    let message = format!(
        "attachment {name:?} of document {key:?} is not changed, since it {is}: look at it, and decide again"
    );
    ClientError::Server {
        status: 409,
        code: "version_mismatch".to_owned(),
        message,
        details: json!({ "key": key, "name": name, "version": version }),
        retry_after: None,
    }
}

/// The refusal of bytes that are others than were written.
fn other_bytes(message: String) -> ClientError {
    ClientError::refused(409, "digest_mismatch", message)
}

/// The error of a reader or writer of the caller's.
fn broken(what: &str, error: &std::io::Error) -> ClientError {
    ClientError::refused(400, "incomplete_body", format!("{what}: {error}"))
}
