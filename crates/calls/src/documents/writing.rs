//! Writing of documents: conditions, fields, and the digests by which repeats are known.

use sluice_engine::NamespaceId;
use sluice_engine::command::DocumentPut;
use sluice_engine::documents::{DocumentCondition, DocumentTerms, DocumentVersion};
use sluice_engine::locks::LockToken;

use super::indexes::Indexing;
use crate::digest::{Fields, request_digest};
use crate::error::CallError;
use crate::fault::{Fault, Read, clip};
use crate::permit::Permit;

/// Conditions of a write, as callers give them.
#[derive(Clone, Copy, Default, Debug)]
pub struct When<'a> {
    /// Version that it has.
    pub version: Option<u64>,
    /// ETag that it has, in decimal digits.
    pub etag: Option<&'a str>,
    /// True if there has to be a document.
    pub exists: bool,
    /// True if there may be none.
    pub absent: bool,
    /// Token of a lock of the key.
    pub token: Option<&'a str>,
    /// Names of the fields, for errors.
    pub names: Names,
}

/// The names of conditions in a request.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Name of the condition by version.
    pub version: &'static str,
    /// Name of the condition by ETag.
    pub etag: &'static str,
    /// Name of the condition that it exists.
    pub exists: &'static str,
    /// Name of the condition that it does not.
    pub absent: &'static str,
    /// Name of the token of a lock.
    pub token: &'static str,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            version: "if_version",
            etag: "if_etag",
            exists: "if_exists",
            absent: "if_absent",
            token: "token",
        }
    }
}

impl When<'_> {
    /// Adds the conditions to those fields that make a request what it is.
    pub(crate) fn put_fields(&self, fields: &mut Fields) {
        fields.number("version", self.version);
        fields.text("etag", self.etag);
        fields.flag("exists", self.exists);
        fields.flag("absent", self.absent);
        fields.text("token", self.token);
    }

    /// The condition.
    ///
    /// # Errors
    /// `conflicting_fields`; `invalid_argument` for what is no ETag or token.
    pub fn read(&self) -> Result<DocumentCondition, CallError> {
        let contradicts = [
            (self.names.version, self.version.is_some()),
            (self.names.etag, self.etag.is_some()),
            (self.names.exists, self.exists),
        ];
        if let Some((other, _)) = contradicts.into_iter().find(|(_, given)| *given && self.absent) {
            return Err(Fault::conflict(self.names.absent, other).into());
        }
        let revision = self.etag.map(etag).transpose().map_err(|fault| fault.inside(self.names.etag))?;
        let no_token = |token: &str| {
            let expected = "expected 32 characters of 0-9 a-v, as given with the grant";
            Fault::invalid(format!("{:?} is not the token of a lock: {expected}", clip(token)))
                .inside(self.names.token)
        };
        let token = self.token.map(|token| token.parse::<LockToken>().map_err(|_| no_token(token)));
        let token = token.transpose()?;
        let version = if self.absent { Some(0) } else { self.version };
        Ok(DocumentCondition { version, revision, exists: self.exists, token })
    }
}

fn etag(text: &str) -> Read<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(revision) if digits => Ok(revision),
        _ => {
            let text = clip(text);
            Err(Fault::invalid(format!("{text:?} is no ETag of a document: they are decimal digits")))
        }
    }
}

/// A document to write.
#[derive(Clone, Copy, Default, Debug)]
pub struct Writing<'a> {
    /// Conditions.
    pub when: When<'a>,
    /// Time after which it is gone, in milliseconds; 0: it stays; `None`: as before.
    pub ttl_ms: Option<u64>,
    /// Number of former versions to keep; `None`: as before.
    pub history: Option<u16>,
    /// Media type; empty: unstated.
    pub content_type: &'a str,
    /// Names and values.
    pub attributes: &'a [(&'a str, &'a str)],
    /// The content.
    pub content: &'a [u8],
}

impl Writing<'_> {
    /// Adds the document to those fields that make a request what it is.
    pub(crate) fn put_fields(&self, fields: &mut Fields) {
        self.when.put_fields(fields);
        fields.number("ttl_ms", self.ttl_ms);
        fields.number("history", self.history.map(u64::from));
        fields.text("content_type", Some(self.content_type));
        // Headers of HTTP come in any order.
        let mut attributes = self.attributes.to_vec();
        attributes.sort_unstable();
        attributes.iter().for_each(|(name, value)| fields.text(name, Some(value)));
        fields.octets("content", self.content);
    }

    /// The document of a key, for the engine, with its terms in indexes.
    pub(crate) fn put<'w>(
        &'w self,
        namespace: NamespaceId,
        key: &'w str,
        request: u64,
        terms: &'w [DocumentTerms],
    ) -> Result<DocumentPut<'w>, CallError> {
        Ok(DocumentPut {
            namespace,
            key,
            when: self.when.read()?,
            ttl_ms: self.ttl_ms,
            history: self.history,
            request,
            content_type: self.content_type,
            attributes: self.attributes,
            content: self.content,
            terms,
        })
    }
}

/// The digest by which a repeat of a write is known, by the text that its caller has given for it; 0: there
/// is none.
pub fn request_of(permit: &Permit<'_>, writing: &Writing<'_>, id: Option<&str>) -> u64 {
    digest_of(permit, id, |fields| writing.put_fields(fields))
}

/// The digest of a request about the document that a call names.
pub(super) fn digest_of(permit: &Permit<'_>, id: Option<&str>, put_fields: impl FnOnce(&mut Fields)) -> u64 {
    let Some(id) = id else { return 0 };
    let mut fields = Fields::default();
    put_fields(&mut fields);
    let of_key = [id, permit.namespace_name(), permit.name()].map(str::as_bytes);
    request_digest(permit.caller(), of_key.into_iter().chain([fields.bytes()]))[0].max(1)
}

/// Writes the document that a call names; its version, and whether it is new. `request` is the digest by
/// which a repeat is known; 0: there is none.
///
/// # Errors
/// Those of the operation.
pub async fn write(
    permit: &Permit<'_>,
    writing: &Writing<'_>,
    request: u64,
) -> Result<(DocumentVersion, bool), CallError> {
    let namespace = permit.namespace_id()?;
    let terms = Indexing::of(permit.node(), namespace).await.terms(writing.content);
    let put = writing.put(namespace, permit.name(), request, &terms)?;
    Ok(permit.node().document_put(&put).await?)
}
