//! Limits.

use serde_json::{Value, json};
use sluice_engine::limit::{IN_FLIGHT_MAX, RATE_COUNT_MAX, RATE_PERIOD_MS_MAX};

use super::AT_MS;
use super::parts::{integer, list, merged, number, object, reference, text};

pub(super) fn all() -> Value {
    let rules = json!({
        "in_flight": integer(1, IN_FLIGHT_MAX.into(), "Leased messages of all queues that follow the limit"),
        "in_flight_per_key": integer(1, IN_FLIGHT_MAX.into(), "Leased messages of each limit key"),
        "rate": reference("Rate"), "rate_per_key": reference("Rate"),
    });
    let example = json!({"in_flight": 100, "rate_per_key": {"count": 50, "period_ms": 1_000, "burst": 10}});
    let next = number("When its rate lets the next one begin; absent when it does now");
    let figures = json!({
        "in_flight": number("Leased messages"), "waiting": number("Messages that it holds back"), "next_at_ms": next,
    });
    let limit = merged(
        figures.clone(),
        json!({
            "name": text(""), "settings": reference("LimitSettings"), "queues": list(text("Queues that follow it")),
        }),
    );
    let limit_example =
        json!({"name": "shop", "settings": example, "queues": ["mail"], "in_flight": 100, "waiting": 12});
    let key = json!({"key": "ann", "in_flight": 2, "waiting": 12, "next_at_ms": AT_MS});
    let required = ["name", "settings", "queues", "in_flight", "waiting"];
    json!({
        "Rate": object(&["count", "period_ms"], json!({
            "count": integer(1, RATE_COUNT_MAX.into(), "Deliveries in each period"),
            "period_ms": integer(1, RATE_PERIOD_MS_MAX, "The period"),
            "burst": integer(1, RATE_COUNT_MAX.into(), "Deliveries at once after a time without any; default: count"),
        }), json!({"count": 50, "period_ms": 1_000, "burst": 10})),
        "LimitSettings": object(&[], rules, example),
        "Limit": object(&required, limit.clone(), limit_example.clone()),
        "LimitKey": object(&["key", "in_flight", "waiting"], merged(figures, json!({"key": text("As sent")})), key.clone()),
        "LimitWithKeys": object(&[&required[..], &["keys"]].concat(), merged(limit, json!({
            "keys": list(reference("LimitKey")), "next": text("Cursor of the next page"),
        })), merged(limit_example.clone(), json!({"keys": [key]}))),
        "LimitList": object(&["limits"], json!({"limits": list(reference("Limit")), "next": text("Go on after this name")}),
            json!({"limits": [limit_example]})),
    })
}
