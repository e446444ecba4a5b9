//! The parts of a message as JSON: contents, tags, what is reported of it.

use sluice_engine::blob::MessageBlob;

use crate::hot::receive::with_added;
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

/// Appends content type, headers and payload: as text when it is UTF-8, else as base64.
pub(crate) fn write_payload(o: &mut Object<'_>, blob: &[u8]) {
    write_payload_and(o, blob, &[]);
}

/// The same with headers that the server adds.
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

/// Appends when a message was done, and until when that is kept at least.
pub(crate) fn write_times(o: &mut Object<'_>, done_at_us: Option<u64>, kept_until_us: Option<u64>) {
    if let Some(at_us) = done_at_us {
        o.number("done_at_ms", at_us / 1_000);
    }
    if let Some(until_us) = kept_until_us {
        o.number("kept_until_ms", until_us / 1_000);
    }
}

/// Appends a progress.
pub(crate) fn write_progress(o: &mut Object<'_>, percent: u8, note: Option<&str>, at_us: u64) {
    o.object("progress", |o| {
        o.number("percent", u64::from(percent));
        if let Some(note) = note {
            o.text("note", note);
        }
        o.number("at_ms", at_us / 1_000);
    });
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
