//! An attachment that one request brings as a whole. Nobody else knows of its upload: whatever ends the
//! request before the commit ends the upload, too.

use serde::Deserialize;
use sluice_engine::Error;
use sluice_engine::attachments::AttachmentCommit;
use sluice_engine::documents::{DocumentCondition, DocumentVersion};
use sluice_engine::error::FieldPath;
use sluice_engine::limits::ATTACHMENT_BYTES_MAX;
use sluice_node::HeldUpload;

use super::{append, digest, no_name, target};
use crate::access::Right;
use crate::documents::{VERSION_MAX, When};
use crate::error::CallError;
use crate::fault::Read;
use crate::permit::Permit;
use crate::standing::{Standing, Waited};
use crate::value::{Within, given};

/// An attachment to make of the bytes that follow, under the conditions that are given.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    name: Option<String>,
    content_type: Option<String>,
    sha256: Option<String>,
    if_version: Option<Within<1, VERSION_MAX>>,
    if_etag: Option<String>,
    if_exists: Option<bool>,
    if_absent: Option<bool>,
    token: Option<String>,
}

impl Asked {
    /// Its name.
    ///
    /// # Errors
    /// `missing_field`.
    pub fn name(&self) -> Read<&str> {
        given(self.name.as_deref()).ok_or_else(no_name)
    }

    /// Media type of the bytes; empty: none.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or_default()
    }

    /// SHA-256 that the bytes must have.
    ///
    /// # Errors
    /// `invalid_argument`.
    pub fn sha256(&self) -> Read<Option<[u8; 32]>> {
        given(self.sha256.as_deref()).map(digest).transpose()
    }

    /// The conditions.
    ///
    /// # Errors
    /// `invalid_argument`, `conflicting_fields`.
    pub fn when(&self) -> Result<DocumentCondition, CallError> {
        let when = When {
            version: self.if_version.map(Within::get),
            etag: self.if_etag.as_deref(),
            exists: self.if_exists.unwrap_or_default(),
            absent: self.if_absent.unwrap_or_default(),
            token: self.token.as_deref(),
            ..When::default()
        };
        when.read()
    }
}

/// An attachment on its way in.
pub struct Attaching<'p> {
    permit: Permit<'p>,
    name: &'p str,
    upload: HeldUpload,
    standing: Standing,
    bytes: u64,
}

impl<'p> Attaching<'p> {
    /// Begins an attachment with this name. Looks before whether the document is there and the condition on
    /// the attachment holds, which the commit checks again.
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn begin(
        permit: &Permit<'p>,
        name: &'p str,
        content_type: &str,
        when: &DocumentCondition,
    ) -> Result<Attaching<'p>, CallError> {
        let target = target(permit, Some(name))?;
        permit.node().expect_to_attach(target, *when).await?;
        let upload = permit.node().upload_hold(target, content_type).await?;
        let standing = permit.standing(Right::Coordinate, || Waited::Keys([permit.name().into()].into()));
        Ok(Attaching { permit: *permit, name, upload, standing, bytes: 0 })
    }

    /// Adds bytes, at most 1 MiB, if the caller still may.
    ///
    /// # Errors
    /// `payload_too_large`; `forbidden`, `unauthenticated`; those of a chunk.
    pub async fn add(&mut self, content: &[u8]) -> Result<(), CallError> {
        check_size(self.bytes + content.len() as u64)?;
        self.standing.check()?;
        self.bytes = append(&self.permit, self.upload.id(), self.bytes, content).await?;
        Ok(())
    }

    /// Makes the attachment of the bytes that were added: its version, and whether it is new.
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn commit(
        &mut self,
        sha256: Option<[u8; 32]>,
        when: DocumentCondition,
    ) -> Result<(DocumentVersion, bool), CallError> {
        self.standing.check()?;
        let (namespace, key, name) = (self.permit.namespace_id()?, self.permit.name(), self.name);
        let (upload, bytes) = (self.upload.id(), Some(self.bytes));
        let commit = AttachmentCommit { namespace, key, name, upload, bytes, sha256, when };
        let written = self.permit.node().attachment_commit(&commit).await?;
        self.upload.committed();
        Ok(written)
    }

    /// Lets go of what was added, before the caller is told why.
    pub async fn abandon(self) {
        self.upload.end().await;
    }
}

/// Checks the size of an attachment that is announced, or has come.
///
/// # Errors
/// `payload_too_large`.
pub fn check_size(size: u64) -> Result<(), Error> {
    match size <= ATTACHMENT_BYTES_MAX {
        true => Ok(()),
        false => {
            let field = FieldPath("attachment".into());
            Err(Error::PayloadTooLarge { field, size, limit: ATTACHMENT_BYTES_MAX })
        }
    }
}
