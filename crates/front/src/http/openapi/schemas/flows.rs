//! Messages that have to do with others: groups, chains, and how they hang together.

use serde_json::{Value, json};
use sluice_engine::chain::STEPS_MAX;
use sluice_engine::limits::PARENTS_MAX;
use sluice_engine::options::{KEY_BYTES_MAX, WINDOW_MS_MAX};

use super::ID;
use super::parts::{integer, list, merged, object, one_of, reference, text};
use crate::json::send_options::{DEPENDS_MODES, ON_DUPLICATE, ON_PARENT_FAILED, UNTIL};

/// With the fields of a message that stands for itself, and of one that may have to do with others.
pub(super) fn all(own: Value, message: Value) -> Value {
    let queue = json!({"queue": text("Where to")});
    json!({
        "GroupMessage": object(&["queue"], merged(message, queue.clone()),
            json!({"queue": "mail", "payload": "a"})),
        "GroupRequest": object(&["messages", "callback"], json!({
            "messages": list(reference("GroupMessage")), "callback": reference("GroupMessage"),
        }), json!({"messages": [{"queue": "mail", "payload": "a"}], "callback": {"queue": "reports", "payload": "all sent"}})),
        "GroupSent": object(&["group", "ids", "duplicate"], json!({
            "group": text("Id of the callback"), "ids": list(text("Id")), "duplicate": {"type": "boolean"},
        }), json!({"group": ID, "ids": [ID], "duplicate": false})),
        "Step": object(&["queue"], merged(own, queue),
            json!({"queue": "resize", "priority": 5})),
    })
}

/// What a message may have to do with others.
pub(super) fn relations() -> Value {
    let key = json!({"type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "description": "At most one message with this key"});
    json!({
        "unique": object(&["key"], json!({
            "key": key,
            "window_ms": integer(1, WINDOW_MS_MAX, "How long it counts at most; default one day"),
            "until": one_of(UNTIL),
            "on_duplicate": one_of(ON_DUPLICATE),
        }), json!({"key": "invoice-7", "window_ms": 60_000})),
        "depends_on": {
            "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": PARENTS_MAX,
            "description": "Ids of messages that it waits for; \"#0\" is the first one of this send",
        },
        "depends_mode": one_of(DEPENDS_MODES),
        "on_parent_failed": one_of(ON_PARENT_FAILED),
        "chain": {
            "type": "array", "items": reference("Step"), "minItems": 1, "maxItems": STEPS_MAX,
            "description": "What follows when it is done, step by step; a step without payload gets the result of the one before",
        },
        "on_failure": merged(reference("Step"), json!({"description": "What follows instead when a step fails"})),
    })
}
