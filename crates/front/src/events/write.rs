//! Events as JSON, and as server-sent events.

use sluice_calls::events::{Gap, Told, ToldDetail};

use crate::json::Object;

/// Appends the fields of an event.
pub(crate) fn write_told(o: &mut Object<'_>, told: &Told) {
    o.text("type", told.kind.name());
    o.number("at_ms", told.at_us / 1_000);
    o.text("queue", &told.queue);
    if let Some(id) = told.id {
        o.ascii("id", &id.to_text());
    }
    if told.attempt > 0 {
        o.number("attempt", told.attempt.into());
    }
    match &told.detail {
        ToldDetail::None => {}
        ToldDetail::Until(until_us) => o.number("ready_at_ms", until_us / 1_000),
        ToldDetail::Lease(until_us, consumer) => {
            o.number("lease_until_ms", until_us / 1_000);
            if let Some(consumer) = consumer {
                o.text("consumer", &consumer.0.to_string());
            }
        }
        ToldDetail::Why(why) => o.text("reason", why),
        ToldDetail::From(from) => o.text("from_queue", from),
        ToldDetail::Many(messages, why) => {
            o.text("reason", why);
            o.number("messages", *messages);
        }
    }
}

/// Appends the fields of a gap.
pub(crate) fn write_gap(o: &mut Object<'_>, gap: &Gap) {
    o.text("type", "gap");
    o.text("reason", gap.why.name());
    if let Some(lost) = gap.lost {
        o.number("lost", lost);
    }
}
