//! Messages as those see them who only look, and dead letters.

use serde_json::{Value, json};
use sluice_engine::limits::REDRIVE_PER_SECOND_MAX;

use super::fields::{checkpoint_fields, payload_fields, request_fields, result_views};
use super::parts::{either, integer, list, merged, number, object, one_of, reference, text};
use super::{AT_MS, ID, changing};
use crate::http::handlers::messages::STATES;
use crate::http::handlers::results::RESULT_STATES;

pub(super) fn all() -> Value {
    let stored = json!({
        "id": text(""), "queue": text(""), "state": one_of(STATES), "priority": number(""),
        "attempts": number("Begun"), "max_attempts": number(""), "deliveries": number(""), "sent_at_ms": number(""),
        "deadline_ms": number("Delayed: ready then. Leased: the lease ends then"),
        "receipt": text("Leased: proof of the running delivery, for operators"),
        "ordering_key": text("As sent"), "fair_key": text("As sent"), "limit_key": text("As sent"),
        "unique_key": text("As sent"), "expires_at_ms": number("It ends then if it still waits"),
        "holder": reference("Holder"), "blocked_by": one_of(&["ordering_key", "limit", "parents", "consumer"]),
        "cancelled": {"const": true, "description": "Leased: gone when the lease ends"},
        "version": text("Another one after each change"), "changes": changing::changes(),
        "reason": text("Why it is dead or held, or why it died in from_queue"), "reason_at_ms": number(""),
        "payload_damaged": {"const": true, "description": "Its payload was asked for and does not verify"},
        "from_queue": text("The queue in which it died, if that was another one"),
        "backoff": reference("Backoff"), "size_bytes": number("Content type, headers and payload"),
        "history": list(reference("Attempt")),
    });
    let fields = [
        "id",
        "queue",
        "state",
        "priority",
        "attempts",
        "max_attempts",
        "deliveries",
        "sent_at_ms",
        "version",
        "backoff",
        "size_bytes",
        "history",
    ];
    let attempt = json!({"attempt": 1, "end": "nacked", "started_at_ms": AT_MS, "ended_at_ms": AT_MS + 1_200, "error": "smtp: 451"});
    let example = json!({
        "id": ID, "queue": "mail", "state": "dead", "priority": 0, "attempts": 5, "max_attempts": 5, "deliveries": 5,
        "sent_at_ms": AT_MS, "reason": "max_attempts", "reason_at_ms": AT_MS + 9_000, "version": "00a3f19b2c4d5e6f", "backoff": {"kind": "none"},
        "payload": "hello", "size_bytes": 7, "history": [attempt],
    });
    json!({
        "Attempt": object(&["attempt", "end", "started_at_ms", "ended_at_ms"], json!({
            "attempt": number("From 1"), "end": one_of(&["nacked", "released", "rejected", "expired"]),
            "started_at_ms": number(""), "ended_at_ms": number(""), "error": text("As the consumer gave it"),
        }), attempt),
        "StoredMessage": object(&fields, merged(payload_fields(),
            merged(stored, merged(result_views(), merged(request_fields(), checkpoint_fields())))), example.clone()),
        "Progress": object(&["percent", "at_ms"], json!({
            "percent": integer(0, 100, ""), "note": text("As its holder gave it"), "at_ms": number(""),
        }), json!({"percent": 40, "note": "two of five", "at_ms": AT_MS})),
        "Awaited": object(&["state"], merged(result_views(), json!({
            "state": one_of(RESULT_STATES), "reason": text("Why it is dead"), "reason_at_ms": number(""),
        })), json!({"state": "done", "result": "42", "done_at_ms": AT_MS, "kept_until_ms": AT_MS + 60_000})),
        "MessageList": object(&["messages"], json!({"messages": list(reference("StoredMessage")), "next": text("Cursor of the next page")}),
            json!({"messages": [example], "next": "17"})),
        "PeekList": object(&["messages"], json!({"messages": list(reference("StoredMessage")), "truncated": {"type": "boolean", "description": "Whether there are fewer than asked for because they are large"}}),
            json!({"messages": [example]})),
        "DeadChoice": either(
            object(&["ids"], json!({"ids": list(text("Id"))}), json!({"ids": [ID]})),
            object(&["all"], json!({"all": {"const": true}}), json!({"all": true})),
            json!([{"ids": [ID]}, {"all": true}]),
        ),
        "RedriveRequest": either(
            object(&["ids"], json!({"ids": list(text("Id"))}), json!({"ids": [ID]})),
            object(&["all"], json!({
                "all": {"const": true},
                "per_second": integer(1, REDRIVE_PER_SECOND_MAX.into(), "How many per second; default: at once"),
            }), json!({"all": true, "per_second": 50})),
            json!([{"ids": [ID]}, {"all": true, "per_second": 50}]),
        ),
    })
}
