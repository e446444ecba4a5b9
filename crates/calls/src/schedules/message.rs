//! The message that a schedule sends, as an answer shows it.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use sluice_engine::command::Deliver;
use sluice_engine::item::{self as engine, Expires, KEY_BYTES_MAX, OnDuplicate, UniqueUntil, WINDOW_MS_MAX};
use sluice_engine::limit::COST_MAX;
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};
use sluice_engine::query::MessageTemplate;

use crate::payload::{Content, Headers, Octets, Tags, Text};
use crate::settings::Backoff;
use crate::value::{Word, other_cost, text};

/// The message that a schedule sends, with the fields of a send; those that were not given are absent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduledMessage {
    /// Its payload, if that is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Text>,
    /// Its payload as standard base64, if that is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<Octets>,
    /// Media type of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<Text>,
    /// Its headers, in the order given.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Headers>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Tags>,
    /// Its priority, 0 to 9: higher first; absent when it is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = PRIORITY_MAX))]
    priority: Option<u8>,
    /// Delay after which it becomes ready, in milliseconds since it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = DELAY_MS_MAX))]
    delay_ms: Option<u64>,
    /// Attempts before it becomes a dead letter; absent when the queue's `max_attempts` holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = ATTEMPTS_MAX))]
    max_attempts: Option<u16>,
    /// Backoff between its attempts; absent when the queue's holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<Backoff>,
    /// Its ordering key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
    ordering_key: Option<String>,
    /// Its fair key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
    fair_key: Option<String>,
    /// Its limit key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
    limit_key: Option<String>,
    /// Share of its limit's rates that each delivery takes; absent when it is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = COST_MAX))]
    cost: Option<u32>,
    /// The key that at most one message of its queue has.
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<Unique>,
    /// Time to live while it waits, in milliseconds since it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = DELAY_MS_MAX))]
    ttl_ms: Option<u64>,
    /// Time for which its result is kept after its ack, in milliseconds; absent when it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = WINDOW_MS_MAX))]
    result_ttl_ms: Option<u64>,
    /// Text by which a reply to it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
    correlation_id: Option<String>,
    /// Name of the queue that gets its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// True when it is held until a person approves it; absent when it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hold: bool,
}

/// A key that at most one message of a queue has at a time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScheduledUnique")]
pub struct Unique {
    /// The key.
    #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
    key: String,
    /// Maximum time for which the key counts, in milliseconds since the send.
    #[schemars(range(min = 1, max = WINDOW_MS_MAX))]
    window_ms: u64,
    /// End of the key: `gone` when the message leaves the queue, or `window` only at the end of the window.
    until: Word<UniqueUntil>,
    /// Action of a send with the same key on the waiting message: `keep` leaves it unchanged,
    /// `replace_payload` puts the new contents there, `debounce` sets its delay to that of the new send.
    on_duplicate: Word<OnDuplicate>,
}

impl From<&engine::Unique<'_>> for Unique {
    fn from(unique: &engine::Unique<'_>) -> Unique {
        Unique {
            key: String::from_utf8_lossy(unique.key).into_owned(),
            window_ms: unique.window_ms,
            until: Word(unique.until),
            on_duplicate: Word(unique.on_duplicate),
        }
    }
}

impl ScheduledMessage {
    /// The message with these fields and this blob: see [`sluice_engine::blob`].
    pub(super) fn new(template: &MessageTemplate, blob: &Bytes) -> ScheduledMessage {
        let (item, options) = template.fields();
        let content = Content::of(Some(blob));
        ScheduledMessage {
            payload: content.text,
            payload_base64: content.octets,
            content_type: content.content_type,
            headers: Headers::of(blob),
            tags: Tags::of(blob),
            priority: Some(item.priority).filter(|priority| *priority > 0),
            delay_ms: match item.deliver {
                Deliver::AfterMs(delay_ms) => Some(delay_ms),
                Deliver::Now | Deliver::AtUs(_) => None,
            },
            max_attempts: Some(item.max_attempts).filter(|attempts| *attempts > 0),
            backoff: item.backoff.map(Backoff::from),
            ordering_key: text(options.ordering_key),
            fair_key: text(options.fair_key),
            limit_key: text(options.limit_key),
            cost: other_cost(options.cost),
            unique: options.unique.as_ref().map(Unique::from),
            ttl_ms: match options.expires {
                Expires::AfterMs(ttl_ms) => Some(ttl_ms),
                Expires::Never | Expires::AtUs(_) => None,
            },
            result_ttl_ms: Some(options.result_ttl_ms).filter(|ttl_ms| *ttl_ms > 0),
            correlation_id: text(options.correlation_id),
            reply_to: text(options.reply_to.as_bytes()),
            hold: options.hold,
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::NamespaceId;
    use sluice_engine::command::SendItem;
    use sluice_engine::item::SendOptions;
    use sluice_engine::limit::Cost;
    use sluice_node::schedule::{Missed, ScheduleSpec, When};

    use super::super::Show;
    use super::*;
    use crate::call::Unary as _;
    use crate::operation::Operation;
    use crate::testing::Open;

    async fn shown(item: &SendItem<'_>) -> String {
        let server = Open::new();
        let spec = ScheduleSpec { when: When::Every { every_ms: 60_000 }, missed: Missed::Once };
        server.node().schedule_put(NamespaceId::DEFAULT, "tick", "q", &spec, item).await.unwrap();
        let permit = server.permit(Operation::ScheduleShow, "tick");
        let schedule = Show {}.run(&permit).await.unwrap().answer;
        serde_json::to_string(&schedule).unwrap()
    }

    #[tokio::test]
    async fn a_message_is_shown_as_it_was_given() {
        let unique = engine::Unique {
            key: b"u",
            window_ms: 9,
            until: UniqueUntil::Window,
            on_duplicate: OnDuplicate::Debounce,
        };
        let options = SendOptions {
            ordering_key: b"o",
            fair_key: b"f",
            limit_key: b"l",
            cost: Cost(4),
            unique: Some(unique),
            expires: Expires::AfterMs(7),
            result_ttl_ms: 8,
            correlation_id: b"c",
            reply_to: "r",
            hold: true,
            ..SendOptions::default()
        };
        let item = SendItem {
            payload: b"x",
            content_type: "text/plain",
            headers: &[("a", "1")],
            tags: &["t"],
            priority: 3,
            deliver: Deliver::AfterMs(5),
            max_attempts: 4,
            backoff: Some(sluice_engine::settings::Backoff::default()),
            options: Some(&options),
        };
        let expected = r#""message":{"payload":"x","content_type":"text/plain","headers":{"a":"1"},"tags":["t"],"priority":3,"delay_ms":5,"max_attempts":4,"backoff":{"kind":"exponential","base_ms":1000,"cap_ms":600000,"jitter_percent":10},"ordering_key":"o","fair_key":"f","limit_key":"l","cost":4,"unique":{"key":"u","window_ms":9,"until":"window","on_duplicate":"debounce"},"ttl_ms":7,"result_ttl_ms":8,"correlation_id":"c","reply_to":"r","hold":true}}"#;
        let full = shown(&item).await;
        assert!(full.ends_with(expected), "{full}");
        let plain = shown(&SendItem { payload: b"\xff\x00", ..SendItem::default() }).await;
        assert!(plain.ends_with(r#""message":{"payload_base64":"/wA="}}"#), "{plain}");
    }
}
