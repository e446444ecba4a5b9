//! A message of a send, as its sender gives it: by itself, in a group, or as a step of a chain.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::json;
use sluice_engine::item::{
    DependsMode, KEY_BYTES_MAX, OnDuplicate, OnParentFailed, STEPS_MAX, UniqueUntil, WINDOW_MS_MAX,
};
use sluice_engine::limit::COST_MAX;
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PARENTS_MAX, PRIORITY_MAX};

use crate::payload::{self, Octets, Text};
use crate::settings::Backoff;
use crate::value::{Within, Word, words};

words! {
    UniqueUntil: "gone" = UniqueUntil::Gone, "window" = UniqueUntil::Window;
    OnDuplicate:
        "keep" = OnDuplicate::Keep,
        "replace_payload" = OnDuplicate::ReplacePayload,
        "debounce" = OnDuplicate::Debounce;
    DependsMode: "all" = DependsMode::All, "any" = DependsMode::Any;
    OnParentFailed:
        "cancel" = OnParentFailed::Cancel,
        "hold" = OnParentFailed::Hold,
        "run" = OnParentFailed::Run;
}

/// A point in time, in milliseconds since the Unix epoch.
pub type TimeMs = Within<0, { u64::MAX / 1_000 }>;

/// Declares a message: these fields, and those that every message has.
macro_rules! message {
    ($(#[$attribute:meta])* $name:ident { $($more:tt)* }) => {
        #[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
        $(#[$attribute])*
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($more)*
            /// The payload as UTF-8 text.
            pub payload: Option<Text>,
            /// The payload as standard base64 with padding; not together with `payload`.
            pub payload_base64: Option<Octets>,
            /// Media type of the payload: kept, not interpreted.
            pub content_type: Option<String>,
            /// Headers: kept in this order, and handed to the consumer.
            pub headers: Option<Headers>,
            /// Words to find the message by.
            #[schemars(with = "Option<payload::Tags>")]
            pub tags: Option<Vec<String>>,
            /// Higher first; default 0.
            pub priority: Option<Within<0, { PRIORITY_MAX as u64 }>>,
            /// Delay until it is ready, in milliseconds since the send.
            pub delay_ms: Option<Within<0, DELAY_MS_MAX>>,
            /// When it is ready, in milliseconds since the Unix epoch; not together with `delay_ms`.
            pub deliver_at_ms: Option<TimeMs>,
            /// Attempts before it becomes a dead letter; default: the queue's `max_attempts`.
            pub max_attempts: Option<Within<1, { ATTEMPTS_MAX as u64 }>>,
            /// Backoff between its attempts; default: the queue's.
            pub backoff: Option<Backoff>,
            /// Messages with the same ordering key are delivered in the order sent, one at a time.
            #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
            pub ordering_key: Option<String>,
            /// Messages with different fair keys are delivered in turn.
            #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
            pub fair_key: Option<String>,
            /// The key under which it counts against the limits per key.
            #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
            pub limit_key: Option<String>,
            /// Share of the rates of its queue's limit that each of its deliveries takes; default 1.
            pub cost: Option<Within<0, { COST_MAX as u64 }>>,
            /// Time to live while it waits, in milliseconds since the send.
            pub ttl_ms: Option<Within<1, DELAY_MS_MAX>>,
            /// When it ends if it still waits, in milliseconds since the Unix epoch; not together with
            /// `ttl_ms`.
            pub expires_at_ms: Option<Within<1, { u64::MAX / 1_000 }>>,
            /// Time for which its result is kept after its ack, in milliseconds; default 0: not at all.
            pub result_ttl_ms: Option<Within<0, WINDOW_MS_MAX>>,
            /// Text by which a reply to it is known: handed through to the reply.
            #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
            pub correlation_id: Option<String>,
            /// Name of the queue that gets its result as a message.
            pub reply_to: Option<String>,
            /// True: the message is held until a person approves it; default false.
            #[serde(default)]
            pub hold: bool,
        }
    };
}

/// Declares a message that may relate to others: these fields, those of the relations, and those of every
/// message.
macro_rules! related_message {
    ($(#[$attribute:meta])* $name:ident { $($more:tt)* }) => {
        message! {
            $(#[$attribute])*
            $name {
                $($more)*
                /// A key that at most one message of its queue has at a time.
                pub unique: Option<Unique>,
                /// Ids of messages that it waits for; `#0` is the first one of this send.
                #[schemars(length(min = 1, max = PARENTS_MAX))]
                pub depends_on: Option<Vec<String>>,
                /// Condition on these messages: `all` of them, or `any` one; default `all`.
                pub depends_mode: Option<Word<DependsMode>>,
                /// Action when one that it waits for has failed: `cancel` it, `hold` it until a person
                /// approves it, or `run` it all the same; default `cancel`.
                pub on_parent_failed: Option<Word<OnParentFailed>>,
                /// The messages that follow when it is done, one after the other. A step without a payload
                /// gets the result of the one before.
                #[schemars(length(min = 1, max = STEPS_MAX))]
                pub chain: Option<Vec<Step>>,
                /// The message that follows instead when a step fails.
                pub on_failure: Option<Box<Step>>,
            }
        }
    };
}

related_message! {
    /// A message to send: its payload as text or as base64, and what applies to it.
    #[schemars(example = json!({
        "payload": "welcome", "headers": {"to": "ann"}, "priority": 5, "delay_ms": 60_000,
        "backoff": {"kind": "fixed", "base_ms": 5_000},
    }))]
    Message {}
}

related_message! {
    /// A message of a group.
    #[schemars(example = json!({"queue": "mail", "payload": "a"}))]
    GroupMessage {
        /// Name of the queue that it is sent to.
        pub queue: String,
    }
}

message! {
    /// A message that follows another one.
    #[schemars(example = json!({"queue": "resize", "priority": 5}))]
    Step {
        /// Name of the queue that it is sent to.
        pub queue: String,
    }
}

/// A key that at most one message of a queue has at a time.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"key": "invoice-7", "window_ms": 60_000}))]
pub struct Unique {
    /// The key.
    #[schemars(length(min = 1, max = KEY_BYTES_MAX))]
    pub key: String,
    /// Maximum time for which the key counts, in milliseconds since the send; default one day.
    pub window_ms: Option<Within<1, WINDOW_MS_MAX>>,
    /// End of the key: `gone` when the message leaves the queue, or `window` only at the end of the window;
    /// default `gone`.
    pub until: Option<Word<UniqueUntil>>,
    /// Action of a send with the same key on the waiting message: `keep` leaves it unchanged,
    /// `replace_payload` puts the new contents there, `debounce` sets its delay to that of the new send;
    /// default `keep`.
    pub on_duplicate: Option<Word<OnDuplicate>>,
}

/// Headers of a message, in the order given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Headers(pub Vec<(String, String)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Headers, D::Error> {
        deserializer.deserialize_map(HeadersVisitor).map(Headers)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut headers = Vec::new();
        while let Some(header) = map.next_entry()? {
            headers.push(header);
        }
        Ok(headers)
    }
}

impl JsonSchema for Headers {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        payload::Headers::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        payload::Headers::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_order() {
        let message: Message = serde_json::from_str(r#"{"headers":{"b":"1","a":"2"}}"#).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(message.headers, Some(Headers(vec![pair("b", "1"), pair("a", "2")])));
    }

    #[test]
    fn a_step_has_no_relations_of_its_own() {
        let fields = |schema: Schema| schema.get("properties").unwrap().as_object().unwrap().clone();
        let step = fields(schemars::schema_for!(Step));
        assert!(step.contains_key("queue") && !step.contains_key("chain"));
        let key = &step["ordering_key"];
        assert_eq!((&key["minLength"], &key["maxLength"]), (&json!(1), &json!(KEY_BYTES_MAX)));
        assert!(!fields(schemars::schema_for!(Message)).contains_key("queue"));
    }
}
