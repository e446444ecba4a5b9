//! Queues, their settings and figures.

use serde_json::{Value, json};

use super::AT_MS;
use super::parts::{list, number, numbers, object, reference, text};
use crate::http::codec::settings::{default_settings, settings_always_shown, settings_schemas};
use crate::http::handlers::messages::STATES;

pub(super) fn all() -> Value {
    let totals = [
        "sent",
        "delivered",
        "acked",
        "nacked",
        "released",
        "rejected",
        "expired",
        "died",
        "redriven",
        "dropped",
        "replies_lost",
        "cancelled",
        "moved_in",
        "moved_out",
    ];
    let zeros = |names: &[&str]| numbers(names)["examples"][0].clone();
    let fields = Value::Object(settings_schemas());
    let settings = default_settings();
    let example = json!({
        "name": "mail", "namespace": "default", "settings": settings, "counts": zeros(STATES),
        "totals": zeros(&totals), "bytes": 0, "created_at_ms": AT_MS,
    });
    let count = |name: &str| object(&[name], json!({name: number("Messages")}), json!({name: 13}));
    json!({
        "QueueSettings": object(&settings_always_shown(), fields.clone(), settings.clone()),
        "QueueSettingsPatch": object(&[], fields, json!({"lease_ms": 60_000})),
        "Counts": numbers(STATES),
        "Totals": numbers(&totals),
        "Queue": object(&["name", "namespace", "settings", "counts", "totals", "bytes", "created_at_ms"], json!({
            "name": text(""), "namespace": text(""), "settings": reference("QueueSettings"),
            "counts": reference("Counts"),
            "blocked_by": object(&[], json!({"ordering_key": number(""), "limit": number(""), "parents": number(""), "consumer": number("")}), json!({"ordering_key": 3, "limit": 0})),
            "totals": reference("Totals"),
            "bytes": number("Content types, headers and payloads"), "created_at_ms": number(""),
            "redriving": object(&["left", "per_second"], json!({"left": number("Dead letters yet to be redriven"), "per_second": number("")}), json!({"left": 120, "per_second": 50})),
            "oldest_ready_age_ms": number("Since the message next in line was sent; absent when none is ready"),
        }), example.clone()),
        "QueueList": object(&["queues"], json!({"queues": list(reference("Queue")), "next": text("Go on after this name")}),
            json!({"queues": [example], "next": "mail"})),
        "Deleted": count("deleted"),
        "Purged": count("purged"),
        "Redriven": count("redriven"),
        "Left": count("left"),
        "QueueDefaults": object(&["pattern", "settings"], json!({"pattern": text("A name in which * stands for any number of characters"), "settings": reference("QueueSettingsPatch")}),
            json!({"pattern": "mail.*", "settings": {"lease_ms": 60_000}})),
        "QueueDefaultsList": object(&["defaults"], json!({"defaults": list(reference("QueueDefaults")), "next": text("Go on after this pattern")}),
            json!({"defaults": [{"pattern": "mail.*", "settings": {"lease_ms": 60_000}}]})),
    })
}
