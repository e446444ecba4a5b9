//! Bodies of sends, and their answers.

use serde_json::{Value, json};
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PARENTS_MAX, PRIORITY_MAX};
use sluice_engine::options::{KEY_BYTES_MAX, WINDOW_MS_MAX};

use super::ID;
use super::fields::payload_fields;
use super::parts::{either, integer, list, merged, number, object, one_of, reference, text};
use crate::http::messages::STATES;
use crate::http::send_options::{DEPENDS_MODES, ON_DUPLICATE, ON_PARENT_FAILED, UNTIL};
use crate::http::settings::BACKOFF_KINDS;

pub(super) fn sending() -> Value {
    let message = json!({
        "priority": integer(0, u64::from(PRIORITY_MAX), "Higher first; default 0"),
        "delay_ms": integer(0, DELAY_MS_MAX, "Ready after so long"),
        "deliver_at_ms": number("Ready at this time; not together with delay_ms"),
        "max_attempts": integer(1, u64::from(ATTEMPTS_MAX), "Attempts before it is a dead letter; default: the queue's"),
        "backoff": reference("Backoff"),
    });
    let message = merged(message, send_options());
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
    json!({
        "Message": object(&[], merged(payload_fields(), message.clone()), json!({
            "payload": "welcome", "headers": {"to": "ann"}, "priority": 5, "delay_ms": 60_000,
            "backoff": {"kind": "fixed", "base_ms": 5_000},
        })),
        "GroupMessage": object(&["queue"], merged(merged(payload_fields(), message), json!({"queue": text("Where to")})),
            json!({"queue": "mail", "payload": "a"})),
        "GroupRequest": object(&["messages", "callback"], json!({
            "messages": list(reference("GroupMessage")), "callback": reference("GroupMessage"),
        }), json!({"messages": [{"queue": "mail", "payload": "a"}], "callback": {"queue": "reports", "payload": "all sent"}})),
        "GroupSent": object(&["group", "ids", "duplicate"], json!({
            "group": text("Id of the callback"), "ids": list(text("Id")), "duplicate": {"type": "boolean"},
        }), json!({"group": ID, "ids": [ID], "duplicate": false})),
        "Group": object(&["group", "pending", "done", "dead", "callback"], json!({
            "group": text("Id of the callback"), "pending": number("Messages that have not ended"), "done": number(""),
            "dead": number("Dead, or gone without being done"), "callback": one_of(STATES),
        }), json!({"group": ID, "pending": 0, "done": 2, "dead": 1, "callback": "ready"})),
        "SendRequest": either(reference("Message"), messages, json!([{"payload": "hello"}, {"messages": [{"payload": "a"}]}])),
        "Sent": either(sent, sent_many, json!([{"id": ID, "duplicate": false}])),
        "Backoff": object(&[], json!({
            "kind": one_of(BACKOFF_KINDS),
            "base_ms": number("The first delay; default 1000"),
            "cap_ms": number("The longest delay; default 600000"),
            "jitter_percent": integer(0, 100, "Variation up and down; default 10"),
        }), json!({"kind": "exponential", "base_ms": 1_000, "cap_ms": 600_000, "jitter_percent": 10})),
    })
}

/// Optional fields of a message to send.
fn send_options() -> Value {
    let key = |means: &str| json!({"type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "description": means});
    json!({
        "ordering_key": key("First in, first out among messages with this key, and one in flight"),
        "fair_key": key("Messages of different keys are served in turn"),
        "limit_key": key("Counts against the queue's limit per key"),
        "unique": object(&["key"], json!({
            "key": key("At most one message with this key"),
            "window_ms": integer(1, WINDOW_MS_MAX, "How long it counts at most; default one day"),
            "until": one_of(UNTIL),
            "on_duplicate": one_of(ON_DUPLICATE),
        }), json!({"key": "invoice-7", "window_ms": 60_000})),
        "ttl_ms": integer(1, DELAY_MS_MAX, "Ends after so long if it still waits"),
        "expires_at_ms": number("Ends at this time if it still waits; not together with ttl_ms"),
        "result_ttl_ms": integer(0, WINDOW_MS_MAX, "How long the result of its ack is kept; default: not at all"),
        "correlation_id": key("Handed through to the reply"),
        "reply_to": text("Queue that gets its result as a message"),
        "hold": {"type": "boolean", "description": "Wait for approval first"},
        "depends_on": {
            "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": PARENTS_MAX,
            "description": "Ids of messages that it waits for; \"#0\" is the first one of this send",
        },
        "depends_mode": one_of(DEPENDS_MODES),
        "on_parent_failed": one_of(ON_PARENT_FAILED),
    })
}
