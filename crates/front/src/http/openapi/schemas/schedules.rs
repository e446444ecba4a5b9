//! Schedules.

use serde_json::{Value, json};
use sluice_engine::limits::DELAY_MS_MAX;
use sluice_node::schedule::{EVERY_MS_MIN, MISSED};

use super::parts::{integer, list, merged, number, object, one_of, reference, text};
use super::{AT_MS, ID};

pub(super) fn all() -> Value {
    let when = json!({
        "cron": text("Five fields, six with seconds first, or a word such as @daily"),
        "time_zone": text("Of cron; default UTC"),
        "every_ms": integer(EVERY_MS_MIN, DELAY_MS_MAX, "Each time that so long has passed"),
        "missed": one_of(&MISSED), "queue": text("Where it sends to"),
    });
    let figures = json!({
        "name": text(""), "paused": {"type": "boolean"},
        "next_at_ms": number("When it fires next; absent when it does not"),
        "fired": number("Times at which it sent"), "duplicates": number("Times at which its unique key was taken"),
        "refused": number("Times at which its message was refused"), "last_at_ms": number("The latest time"),
        "last_id": text("Id of the latest message"), "last_error": text("Code of the latest refusal"),
        "created_at_ms": number(""),
    });
    let schedule = merged(when.clone(), figures);
    let example = json!({
        "name": "nightly", "cron": "0 3 * * *", "time_zone": "Europe/Berlin", "missed": "once", "queue": "reports",
        "paused": false, "next_at_ms": AT_MS, "fired": 12, "duplicates": 0, "refused": 0, "created_at_ms": AT_MS - 9_000,
    });
    let put = json!({"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "queue": "reports", "message": {"payload": "{}"}});
    let message = json!({"message": reference("Message")});
    let required = ["name", "queue", "paused", "fired", "duplicates", "refused", "created_at_ms"];
    json!({
        "SchedulePut": object(&["queue", "message"], merged(when, message.clone()), put),
        "Schedule": object(&required, schedule.clone(), example.clone()),
        "ScheduleWithMessage": object(&[&required[..], &["message"]].concat(), merged(schedule, message),
            merged(example.clone(), json!({"message": {"payload": "{}"}}))),
        "ScheduleList": object(&["schedules"], json!({"schedules": list(reference("Schedule")), "next": text("Go on after this name")}),
            json!({"schedules": [example]})),
        "ScheduleNext": object(&["next_at_ms"], json!({"next_at_ms": list(number(""))}), json!({"next_at_ms": [AT_MS]})),
        "ScheduleSent": object(&["id", "duplicate"], json!({
            "id": text("Of the message"), "duplicate": {"type": "boolean", "description": "Whether it was there with the same unique key"},
        }), json!({"id": ID, "duplicate": false})),
    })
}
