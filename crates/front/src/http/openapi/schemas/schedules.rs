//! Schedules.

use serde_json::{Value, json};
use sluice_calls::schedules::{EVERY_MS_MIN, MISSED};
use sluice_engine::limits::DELAY_MS_MAX;

use super::parts::{integer, merged, object, one_of, reference, text};

pub(super) fn all() -> Value {
    let when = json!({
        "cron": text("Five fields, six with seconds first, or a word such as @daily"),
        "time_zone": text("Of cron; default UTC"),
        "every_ms": integer(EVERY_MS_MIN, DELAY_MS_MAX, "Each time that so long has passed"),
        "missed": one_of(&MISSED), "queue": text("Where it sends to"),
    });
    let put = json!({"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "queue": "reports", "message": {"payload": "{}"}});
    let message = json!({"message": reference("Message")});
    json!({
        "SchedulePut": object(&["queue", "message"], merged(when, message), put),
    })
}
