//! Reading of attachments, a chunk at a time.

use std::io;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::Error;
use sluice_engine::attachments::AttachmentView;
use sluice_engine::limits::{ATTACHMENT_BYTES_MAX, UPLOAD_CHUNK_BYTES_MAX};
use sluice_node::AttachmentName;
use tokio::sync::mpsc;

use super::{Attachment, attachment_example, target};
use crate::call::{Body, Done, Unary};
use crate::documents::text_bytes;
use crate::error::CallError;
use crate::payload::Octets;
use crate::permit::Permit;
use crate::value::Within;

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

/// Bytes `from` to `to` (not included) of an attachment as they are read, a chunk at a time: see
/// [`memory`]. The stream breaks off when the attachment is replaced or deleted meanwhile.
///
/// # Errors
/// `namespace_not_found`.
pub fn stream(
    permit: &Permit<'_>,
    view: AttachmentView,
    from: u64,
    to: u64,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let (node, namespace, key) = (permit.node().clone(), permit.namespace_id()?, permit.name().to_owned());
    tokio::spawn(async move {
        let target = AttachmentName { namespace, key: &key, name: &view.name };
        let mut at = from;
        while at < to {
            let read = node.attachment_bytes(target, view.version.revision, at).await;
            let piece = read.map(|bytes| bytes.slice(..bytes.len().min((to - at) as usize)));
            let piece = piece.and_then(|piece| if piece.is_empty() { Err(ended(at)) } else { Ok(piece) });
            let is_over = piece.is_err();
            at += piece.as_ref().map_or(0, |piece| piece.len() as u64);
            if sender.send(piece.map_err(io::Error::other)).await.is_err() || is_over {
                return;
            }
        }
    });
    Ok(receiver)
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
    /// Number of the bytes before the first that is read; default: 0.
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

impl Unary for Show {
    type Answer = AttachmentPart;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<AttachmentPart>, CallError> {
        let view = find(permit, self.name.as_deref()).await?;
        let offset = self.offset.map_or(0, Within::get);
        permit.room().reserve(text_bytes(UPLOAD_CHUNK_BYTES_MAX))?;
        let target = target(permit, self.name.as_deref())?;
        let bytes = permit.node().attachment_bytes(target, view.version.revision, offset).await?;
        let content_base64 = Octets::from(bytes);
        Ok(AttachmentPart { attachment: Attachment::from(&view), offset, content_base64 }.into())
    }
}
