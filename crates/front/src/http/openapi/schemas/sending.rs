//! Bodies of sends, and their answers.

use serde_json::{Value, json};
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};
use sluice_engine::options::{KEY_BYTES_MAX, WINDOW_MS_MAX};

use super::fields::payload_fields;
use super::parts::{either, integer, list, merged, number, object, reference, text};
use super::{ID, flows};

pub(super) fn sending() -> Value {
    let message = json!({
        "priority": integer(0, u64::from(PRIORITY_MAX), "Higher first; default 0"),
        "delay_ms": integer(0, DELAY_MS_MAX, "Ready after so long"),
        "deliver_at_ms": number("Ready at this time; not together with delay_ms"),
        "max_attempts": integer(1, u64::from(ATTEMPTS_MAX), "Attempts before it is a dead letter; default: the queue's"),
        "backoff": reference("Backoff"),
    });
    let own = merged(payload_fields(), merged(message, send_options()));
    let message = merged(own.clone(), flows::relations());
    let messages = object(
        &["messages"],
        json!({"messages": list(reference("Message"))}),
        json!({"messages": [{"payload": "a"}, {"payload_base64": "/wA="}]}),
    );
    let sent = object(
        &["id", "duplicate"],
        json!({"id": text("Id of the message"), "duplicate": {"type": "boolean"}}),
        json!({"id": ID, "duplicate": false}),
    );
    let sent_many = object(
        &["ids", "duplicate"],
        json!({
            "ids": list(text("Id")),
            "duplicate": {"type": "boolean"},
            "duplicates": list(number("Which messages, from 0, are duplicates by their unique key; absent: none")),
        }),
        json!({"ids": [ID], "duplicate": true}),
    );
    let sending = json!({
        "Message": object(&[], message.clone(), json!({
            "payload": "welcome", "headers": {"to": "ann"}, "priority": 5, "delay_ms": 60_000,
            "backoff": {"kind": "fixed", "base_ms": 5_000},
        })),
        "SendRequest": either(reference("Message"), messages, json!([{"payload": "hello"}, {"messages": [{"payload": "a"}]}])),
        "Sent": either(sent, sent_many, json!([{"id": ID, "duplicate": false}])),
    });
    merged(sending, flows::all(own, message))
}

/// Optional fields of a message to send.
fn send_options() -> Value {
    let key = |means: &str| json!({"type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "description": means});
    json!({
        "ordering_key": key("First in, first out among messages with this key, and one in flight"),
        "fair_key": key("Messages of different keys are served in turn"),
        "limit_key": key("Counts against the queue's limit per key"),
        "ttl_ms": integer(1, DELAY_MS_MAX, "Ends after so long if it still waits"),
        "expires_at_ms": number("Ends at this time if it still waits; not together with ttl_ms"),
        "result_ttl_ms": integer(0, WINDOW_MS_MAX, "How long the result of its ack is kept; default: not at all"),
        "correlation_id": key("Handed through to the reply"),
        "reply_to": text("Queue that gets its result as a message"),
        "hold": {"type": "boolean", "description": "Wait for approval first"},
    })
}
