//! Sending: its request and answer, and the key by which a repeat is told.

use schemars::JsonSchema;
use serde_json::json;
use sluice_engine::limits::IDEMPOTENCY_KEY_BYTES_MAX;

use super::ID_EXAMPLE;
use super::message::Message;
use crate::fault::{Fault, Read};

/// A message, or a list of them.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(
    untagged,
    deny_unknown_fields,
    example = json!({"payload": "hello"}),
    example = json!({"messages": [{"payload": "a"}, {"payload_base64": "/wA="}]}),
)]
pub enum SendRequest {
    /// One message.
    One(Box<Message>),
    /// Many messages: all of them are stored, or none.
    Many {
        /// At least one.
        messages: Vec<Message>,
    },
}

/// The message that is stored, or all of them.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(
    untagged,
    rename = "Sent",
    example = json!({"id": ID_EXAMPLE, "duplicate": false}),
    example = json!({"ids": [ID_EXAMPLE], "duplicate": true}),
)]
pub enum SendAnswer {
    /// One message.
    One {
        /// Id of the message.
        id: String,
        /// True when a message with this unique key, or with the request's idempotency key, was there
        /// already; then `id` is that of the first.
        duplicate: bool,
    },
    /// Many messages.
    Many {
        /// Ids of the messages, in the order of the request.
        ids: Vec<String>,
        /// True when the request repeats one with the same idempotency key.
        duplicate: bool,
        /// Places, from 0, of the messages that were there already by their unique keys; absent when none
        /// was.
        duplicates: Option<Vec<u32>>,
    },
}

/// Checks an idempotency key; an empty one is none.
///
/// # Errors
/// `invalid_argument`.
pub fn check_idempotency_key(key: &[u8]) -> Read<()> {
    let printable = key.iter().all(|byte| (0x20..0x7f).contains(byte));
    if key.len() > IDEMPOTENCY_KEY_BYTES_MAX || !printable {
        let reason = format!("expected up to {IDEMPOTENCY_KEY_BYTES_MAX} characters of printable ASCII");
        return Err(Fault::invalid(reason));
    }
    Ok(())
}
