//! Changes of messages, one or many.

use serde_json::{Value, json};
use sluice_engine::change::{BY_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX, WHY_BYTES_MAX};
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};

use super::AT_MS;
use super::parts::{integer, list, merged, number, object, one_of, reference, text};
use crate::http::handlers::bulk::ACTIONS;
use crate::http::handlers::messages::STATES;

const BULK: &str = "0006475d6a9f8000";

/// Tags, going in or out.
pub(super) fn tags() -> Value {
    json!({
        "type": "array", "maxItems": TAGS_MAX, "uniqueItems": true,
        "items": {"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX},
        "description": "Words to find it by",
    })
}

/// What a message remembers of its changes.
pub(super) fn changes() -> Value {
    list(object(
        &["change", "at_ms"],
        json!({"change": one_of(ACTIONS), "at_ms": number(""), "by": text("Who"), "why": text("Why")}),
        json!({"change": "hold", "at_ms": AT_MS, "by": "ann", "why": "the sum looks wrong"}),
    ))
}

pub(super) fn all() -> Value {
    let said = json!({
        "by": {"type": "string", "maxLength": BY_BYTES_MAX, "description": "Who, for the history"},
        "why": {"type": "string", "maxLength": WHY_BYTES_MAX, "description": "Why, for the history"},
    });
    let version = json!({"version": text("Only if the message still has this version")});
    let one = merged(said.clone(), version);
    let to = json!({"to": text("Queue that exists")});
    let fields = json!({
        "priority": integer(0, u64::from(PRIORITY_MAX), "It goes behind its equals"),
        "delay_ms": integer(0, DELAY_MS_MAX, "Ready so long from now"),
        "deliver_at_ms": number("Ready at this time; not together with delay_ms"),
        "max_attempts": integer(1, u64::from(ATTEMPTS_MAX), "Attempts before it is a dead letter"),
        "tags": tags(),
    });
    let bulk_request = json!({
        "action": one_of(ACTIONS), "filter": reference("BulkFilter"),
        "dry_run": {"type": "boolean", "description": "Count only, and change nothing"},
    });
    let bulk_request = merged(merged(bulk_request, said.clone()), merged(to.clone(), fields.clone()));
    let figures = json!({
        "bulk": text("Its id"), "state": one_of(&["running", "done", "cancelled", "failed"]),
        "action": one_of(ACTIONS), "to": text("Queue that messages move to"), "filter": reference("BulkFilter"),
        "dry_run": {"type": "boolean"},
        "total": number("Messages in the queue when it began, in the state of the filter"),
        "scanned": number("Looked at"), "matched": number("Of those: match the filter"),
        "changed": number("Of those: changed; of a dry run: would be"),
        "skipped": number("Of those: not, since their state does not allow it, or they have changed meanwhile"),
        "started_at_ms": number(""), "ended_at_ms": number(""), "error": reference("ErrorBody"),
    });
    let required = [
        "bulk",
        "state",
        "action",
        "filter",
        "dry_run",
        "total",
        "scanned",
        "matched",
        "changed",
        "skipped",
        "started_at_ms",
    ];
    let example = json!({
        "bulk": BULK, "state": "running", "action": "move", "to": "b", "filter": {"queue": "a", "state": "dead"},
        "dry_run": false, "total": 12_000, "scanned": 1_280, "matched": 1_280, "changed": 1_279, "skipped": 1,
        "started_at_ms": AT_MS,
    });
    json!({
        "ChangeRequest": object(&[], one.clone(), json!({"by": "ann", "why": "sent by mistake"})),
        "MoveRequest": object(&["to"], merged(one.clone(), to), json!({"to": "b", "by": "ann"})),
        "FieldsRequest": object(&[], merged(one, fields), json!({"priority": 9, "tags": ["urgent"]})),
        "BulkFilter": object(&["queue"], json!({
            "queue": text("Queue of the messages"), "state": one_of(STATES), "tag": text("One of its tags"),
            "header": object(&["name", "value"], json!({"name": text(""), "value": text("The whole value")}),
                json!({"name": "to", "value": "ann"})),
            "sent_before_ms": number(""), "sent_after_ms": number("At this time or later"),
            "attempts_min": integer(0, u64::from(u16::MAX), "Attempts begun, at least"),
            "error_contains": text("In the error of an attempt"),
        }), json!({"queue": "a", "state": "dead", "error_contains": "451"})),
        "BulkRequest": object(&["action", "filter"], bulk_request,
            json!({"action": "retry", "filter": {"queue": "a", "state": "dead"}, "dry_run": true})),
        "BulkStarted": object(&["bulk"], json!({"bulk": text("Its id")}), json!({"bulk": BULK})),
        "Bulk": object(&required, merged(figures, said), example.clone()),
        "BulkList": object(&["bulks"], json!({"bulks": list(reference("Bulk"))}), json!({"bulks": [example]})),
    })
}
