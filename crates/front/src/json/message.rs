//! The parts of a message as JSON: contents, tags, what is reported of it.

use sluice_calls::hot::receive::with_added;
use sluice_engine::blob::MessageBlob;

use crate::json::{Object, push_text};

/// Appends what the sender gave for the reply.
pub(crate) fn write_request(o: &mut Object<'_>, correlation_id: &[u8], reply_to: &str) {
    if !correlation_id.is_empty() {
        o.text("correlation_id", &String::from_utf8_lossy(correlation_id));
    }
    if !reply_to.is_empty() {
        o.text("reply_to", reply_to);
    }
}

/// Appends what an earlier attempt has left to go on from.
pub(crate) fn write_checkpoint(o: &mut Object<'_>, checkpoint: &[u8]) {
    write_content(o, ["checkpoint", "checkpoint_base64", "checkpoint_content_type"], checkpoint);
}

/// Writes the payload and its headers, with headers that the server adds.
pub(crate) fn write_payload_and(o: &mut Object<'_>, blob: &[u8], added: &[(Box<str>, Box<str>)]) {
    // What the node hands out was verified and was written by the engine's own encoder.
    let Some(blob) = MessageBlob::parse(blob) else { return };
    match std::str::from_utf8(blob.payload) {
        Ok(text) => o.text("payload", text),
        Err(_) => o.base64("payload_base64", blob.payload),
    }
    if !blob.content_type.is_empty() {
        o.text("content_type", blob.content_type);
    }
    let mut headers = with_added(blob.headers(), added).peekable();
    if headers.peek().is_some() {
        o.object("headers", |o| headers.for_each(|(name, value)| o.foreign(name, value)));
    }
}

/// Appends tags, if there are any.
pub(crate) fn write_tags<'t>(o: &mut Object<'_>, tags: impl Iterator<Item = &'t str>) {
    let mut tags = tags.peekable();
    if tags.peek().is_some() {
        o.list("tags", tags, push_text);
    }
}

/// Appends octets under the name for text or that for base64, and their content type under the third.
pub(crate) fn write_content(
    o: &mut Object<'_>,
    [text, base64, content_type]: [&'static str; 3],
    blob: &[u8],
) {
    let Some(blob) = MessageBlob::parse(blob) else { return };
    match std::str::from_utf8(blob.payload) {
        Ok(payload) => o.text(text, payload),
        Err(_) => o.base64(base64, blob.payload),
    }
    if !blob.content_type.is_empty() {
        o.text(content_type, blob.content_type);
    }
}
