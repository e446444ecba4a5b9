//! Consumers, and what they hold.

use serde_json::{Value, json};

use super::parts::{list, merged, number, object, one_of, reference, text};
use super::{AT_MS, ID};

pub(super) fn all() -> Value {
    let consumer = json!({
        "id": text("Opaque"), "name": text("As it gave it; not its alone"),
        "state": one_of(&["attached", "detached", "pulling"]),
        "queues": list(text("Its queues")), "credit": number("How many messages it may hold at a time"),
        "in_flight": number("How many it holds"), "lease_ms": number("Its lease; absent: each queue's"),
        "since_at_ms": number("Since when it is known"),
        "oldest_leased_at_ms": number("Since when it has what it holds longest; absent when it holds nothing"),
    });
    let example = json!({
        "id": "12", "name": "mailer-1", "state": "attached", "queues": ["mail"], "credit": 100,
        "in_flight": 1, "since_at_ms": AT_MS, "oldest_leased_at_ms": AT_MS,
    });
    let held = json!({"id": ID, "queue": "mail", "attempt": 1, "leased_at_ms": AT_MS, "lease_until_ms": AT_MS + 30_000});
    let required = ["id", "name", "state", "in_flight", "since_at_ms"];
    json!({
        "Consumer": object(&required, consumer.clone(), example.clone()),
        "Held": object(&["id", "queue", "attempt", "leased_at_ms", "lease_until_ms"], json!({
            "id": text("Of the message"), "queue": text(""), "attempt": number("Counted from 1"),
            "leased_at_ms": number(""), "lease_until_ms": number(""),
        }), held.clone()),
        "Holder": object(&["consumer", "name"], json!({
            "consumer": text("Its id"), "name": text("Its name"),
        }), json!({"consumer": "12", "name": "mailer-1"})),
        "ConsumerWithHeld": object(&[&required[..], &["holds"]].concat(),
            merged(consumer, json!({"holds": list(reference("Held"))})),
            merged(example.clone(), json!({"holds": [held]}))),
        "ConsumerList": object(&["consumers"], json!({
            "consumers": list(reference("Consumer")), "next": text("Go on after this one"),
        }), json!({"consumers": [example]})),
    })
}
