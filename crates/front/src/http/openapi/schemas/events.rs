//! Events.

use serde_json::{Value, json};
use sluice_engine::event::EventKind;

use super::parts::{number, object, one_of, text};
use super::{AT_MS, ID};

pub(super) fn all() -> Value {
    let types: Vec<&str> = EventKind::NAMES.iter().copied().chain(["gap"]).collect();
    let example = json!({
        "type": "delivered", "at_ms": AT_MS, "queue": "mail", "id": ID, "attempt": 1, "lease_until_ms": AT_MS + 30_000,
    });
    json!({
        "Event": object(&["type"], json!({
            "type": one_of(&types), "at_ms": number("When; not of a gap"),
            "queue": text("The queue that the message is in afterwards, or was in; not of a gap"),
            "id": text("The message; absent of many at once"), "attempt": number("That begins, ends or has ended, from 1"),
            "lease_until_ms": number("delivered"), "consumer": text("delivered: the consumer's id, if it has a name"),
            "ready_at_ms": number("delayed"), "reason": text("died, held, dropped, gap: why"),
            "from_queue": text("moved"), "messages": number("dropped: how many at once"),
            "lost": number("gap: how many events, if that is known"),
        }), example),
    })
}
