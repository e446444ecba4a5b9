//! Reading of attachments, a chunk at a time.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::attachments::AttachmentView;
use sluice_engine::limits::{ATTACHMENT_BYTES_MAX, UPLOAD_CHUNK_BYTES_MAX};
use sluice_engine::{Error, NamespaceId};
use sluice_node::{AttachmentName, Node};
use tokio::sync::mpsc;

use super::{Attachment, attachment_example, target};
use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::documents::text_bytes;
use crate::error::CallError;
use crate::fault::Fault;
use crate::payload::Octets;
use crate::permit::Permit;
use crate::standing::{Standing, Waited};
use crate::value::{Within, given};

/// Pieces of a stream that wait for its reader, besides the one that is being read.
const PIECES_AHEAD: usize = 1;

/// The attachment of the document that a call names.
///
/// # Errors
/// Those of the operation.
pub async fn find(permit: &Permit<'_>, name: Option<&str>) -> Result<AttachmentView, CallError> {
    Ok(permit.node().attachment(target(permit, name)?).await?)
}

/// Memory that a stream of so many bytes takes at most, in bytes: three chunks.
pub fn memory(bytes: u64) -> usize {
    bytes.min(((PIECES_AHEAD + 2) * UPLOAD_CHUNK_BYTES_MAX) as u64) as usize
}

/// Bytes of an attachment to read as a stream.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// Its name.
    name: Option<String>,
    /// Number of the bytes before the first that is read.
    offset: Option<Within<0, ATTACHMENT_BYTES_MAX>>,
    /// Most bytes to read; `None`: all.
    bytes: Option<Within<1, ATTACHMENT_BYTES_MAX>>,
    /// ETag that the attachment must have.
    if_etag: Option<String>,
}

impl Wanted {
    /// The attachment, and which of its bytes are wanted: those from the first number up to the second, not
    /// included.
    ///
    /// # Errors
    /// `attachment_not_found`; `version_mismatch`: it has another ETag.
    pub async fn find(&self, permit: &Permit<'_>) -> Result<(AttachmentView, (u64, u64)), CallError> {
        let view = find(permit, self.name.as_deref()).await?;
        let version = view.version;
        if given(self.if_etag.as_deref()).is_some_and(|etag| *etag != version.revision.to_string()) {
            let (key, name, version) = (permit.name().to_owned(), view.name, version.version);
            return Err(Error::AttachmentChanged { key, name, version }.into());
        }
        let from = self.offset.map_or(0, Within::get).min(view.bytes);
        let to = self.bytes.map_or(view.bytes, |bytes| (from + bytes.get()).min(view.bytes));
        Ok((view, (from, to)))
    }
}

/// Bytes `from` to `to` (not included) of an attachment as they are read, a chunk at a time: see
/// [`memory`]. The stream ends with an error, as `told`, when the attachment is replaced or deleted
/// meanwhile, or the caller may not read it any more.
///
/// # Errors
/// `namespace_not_found`.
pub fn stream<E: Send + 'static>(
    permit: &Permit<'_>,
    view: AttachmentView,
    (from, to): (u64, u64),
    told: fn(CallError) -> E,
) -> Result<mpsc::Receiver<Result<Bytes, E>>, CallError> {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let key = permit.name().to_owned();
    let standing = permit.standing(Right::Read, || Waited::Keys([key.as_str().into()].into()));
    let source =
        Source { node: permit.node().clone(), namespace: permit.namespace_id()?, key, view, standing };
    tokio::spawn(async move {
        let mut at = from;
        while at < to {
            let piece = source.piece(at, to).await;
            let is_over = piece.is_err();
            at += piece.as_ref().map_or(0, |piece| piece.len() as u64);
            if sender.send(piece.map_err(told)).await.is_err() || is_over {
                return;
            }
        }
    });
    Ok(receiver)
}

/// An attachment that is read for a caller.
struct Source {
    node: Node,
    namespace: NamespaceId,
    key: String,
    view: AttachmentView,
    standing: Standing,
}

impl Source {
    /// Bytes from `at` on, of one chunk and before `to`.
    async fn piece(&self, at: u64, to: u64) -> Result<Bytes, CallError> {
        self.standing.check()?;
        let target = AttachmentName { namespace: self.namespace, key: &self.key, name: &self.view.name };
        let bytes = self.node.attachment_bytes(target, self.view.version.revision, at).await?;
        let piece = bytes.slice(..bytes.len().min((to - at) as usize));
        if piece.is_empty() { Err(ended(at).into()) } else { Ok(piece) }
    }
}

#[cold]
fn ended(at: u64) -> Error {
    Error::Internal { reason: format!("an attachment ends at byte {at}, before its end") }
}

/// Some bytes of an attachment.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "AttachmentReadRequest")]
pub struct Show {
    /// Its name.
    #[schemars(required)]
    name: Option<String>,
    /// Number of the bytes before the first that is read, at most that of the attachment; default: 0.
    offset: Option<Within<0, ATTACHMENT_BYTES_MAX>>,
}

/// Some bytes of an attachment, with what is known of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({"attachment": attachment_example(), "offset": 0, "content_base64": "aGVsbG8gd29ybGQ="}))]
pub struct AttachmentPart {
    /// The attachment.
    attachment: Attachment,
    /// Number of the bytes before the first.
    offset: u64,
    /// The bytes, as standard base64; none behind the last one.
    content_base64: Octets,
}

impl AttachmentPart {
    /// An attachment of which the bytes from `offset` on follow.
    pub fn without_bytes(view: &AttachmentView, offset: u64) -> AttachmentPart {
        let content_base64 = Octets::from(Bytes::new());
        AttachmentPart { attachment: Attachment::from(view), offset, content_base64 }
    }
}

impl Unary for Show {
    type Answer = AttachmentPart;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<AttachmentPart>, CallError> {
        let view = find(permit, self.name.as_deref()).await?;
        let offset = self.offset.map_or(0, Within::get);
        if offset > view.bytes {
            let reason = format!("the attachment has {} bytes: give an offset of at most that", view.bytes);
            return Err(Fault::invalid(reason).inside("offset").into());
        }
        permit.room().reserve(text_bytes(UPLOAD_CHUNK_BYTES_MAX))?;
        let target = target(permit, self.name.as_deref())?;
        let bytes = permit.node().attachment_bytes(target, view.version.revision, offset).await?;
        let content_base64 = Octets::from(bytes);
        Ok(AttachmentPart { attachment: Attachment::from(&view), offset, content_base64 }.into())
    }
}
