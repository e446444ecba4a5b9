//! Fields that several bodies share.

use serde_json::{Value, json};

use sluice_engine::change::{TAG_BYTES_MAX, TAGS_MAX};

use super::parts::text;

/// The fields of a payload, going in or out.
pub(super) fn payload_fields() -> Value {
    json!({
        "payload": text("UTF-8 text"),
        "payload_base64": text("Any octets, as standard base64 with padding"),
        "content_type": text("Kept, not interpreted"),
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "tags": tags(),
    })
}

pub(super) fn result_fields() -> Value {
    json!({
        "result": text("What the work gave, up to 256 KiB"),
        "result_base64": text("The same as standard base64; one of the two"),
        "result_content_type": text("Kept with the result"),
    })
}

pub(super) fn checkpoint_fields() -> Value {
    json!({
        "checkpoint": text("What the next attempt can go on from, up to 256 KiB"),
        "checkpoint_base64": text("The same as standard base64; one of the two"),
    })
}

/// What a sender gave for the reply.
pub(super) fn request_fields() -> Value {
    json!({"correlation_id": text("As sent"), "reply_to": text("Queue that gets the result")})
}

/// Tags, going in or out.
fn tags() -> Value {
    json!({
        "type": "array", "maxItems": TAGS_MAX, "uniqueItems": true,
        "items": {"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX},
        "description": "Words to find it by",
    })
}
