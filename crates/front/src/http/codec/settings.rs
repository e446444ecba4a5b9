//! Settings of queues and quotas of namespaces, as JSON.

use serde_json::{Map, Value};
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, LEASE_MS_MAX, RETAIN_DONE_COUNT_MAX};
use sluice_engine::settings::{Backoff, QueuePatch, QueueSettings, Quotas};

use super::setting_kinds::{JsonSetting, Range};
use crate::json::{Fault, Object, Read, Reader, object};

/// Fields of a backoff.
pub(crate) const BACKOFF_FIELDS: &[&str] = &["kind", "base_ms", "cap_ms", "jitter_percent"];
/// Fields of a namespace's quotas.
pub(crate) const QUOTA_FIELDS: &[&str] = &["queues", "messages", "bytes"];
/// Names of the kinds of backoff.
pub(crate) const BACKOFF_KINDS: &[&str] = &["none", "fixed", "linear", "exponential"];

/// The range of what is no number.
const ANY: Range = (0, u64::MAX);

macro_rules! queue_settings {
    ($($name:ident $range:expr, $about:literal;)*) => {
        /// Fields of a queue's settings.
        pub(crate) const SETTINGS_FIELDS: &[&str] = &[$(stringify!($name)),*];

        fn read_setting(reader: &mut Reader<'_>, name: &str, patch: &mut QueuePatch) -> Read<()> {
            match name {
                $(stringify!($name) => patch.$name = Some(JsonSetting::read(reader, $range)?),)*
                other => return Err(Fault::unknown("field", other, SETTINGS_FIELDS)),
            }
            Ok(())
        }

        /// Appends the settings of a queue.
        pub(crate) fn write_settings(o: &mut Object<'_>, settings: &QueueSettings) {
            o.object("settings", |o| {
                $(if !JsonSetting::is_empty(&settings.$name) {
                    settings.$name.write(o, stringify!($name));
                })*
            });
        }

        /// Appends those settings that a change names.
        pub(crate) fn write_patch(o: &mut Object<'_>, patch: &QueuePatch) {
            o.object("settings", |o| {
                $(if let Some(value) = &patch.$name {
                    value.write(o, stringify!($name));
                })*
            });
        }

        /// The schema of each setting in the API description, by name.
        pub(crate) fn settings_schemas() -> Map<String, Value> {
            let settings = QueueSettings::default();
            let mut schemas = Map::new();
            $(schemas.insert(stringify!($name).to_owned(), schema_of(&settings.$name, $range, $about));)*
            schemas
        }

        /// The settings that every queue shows.
        pub(crate) fn settings_always_shown() -> Vec<&'static str> {
            let settings = QueueSettings::default();
            let shown = [$((is_always_shown(&settings.$name), stringify!($name))),*];
            shown.into_iter().filter(|(always, _)| *always).map(|(_, name)| name).collect()
        }
    };
}

fn schema_of<T: JsonSetting>(_: &T, range: Range, about: &str) -> Value {
    T::schema(range, about)
}

fn is_always_shown<T: JsonSetting>(_: &T) -> bool {
    T::ALWAYS
}

// Name, range of a number, and what it is; how a type is spelt stands in `setting_kinds`.
queue_settings! {
    lease_ms (1, LEASE_MS_MAX), "The lease of a receive that names none";
    max_attempts (1, ATTEMPTS_MAX.into()), "Attempts of a message that names none";
    max_deliveries (1, u16::MAX.into()), "Deliveries in all before it is a dead letter";
    backoff ANY, "Backoff of a message that names none";
    fair_weights ANY, "By fair key, at most 1000; others give one message in their turn";
    ordering_retry ANY, "What a delayed message does to the others with its ordering key";
    placement ANY, "Which of several consumers with credit gets the next message";
    limit ANY, "The limit that the queue follows; empty: none";
    retain_done_ms (0, DELAY_MS_MAX), "How long a finished message stays readable; 0: not for time alone";
    retain_done_count (0, RETAIN_DONE_COUNT_MAX.into()), "How many finished messages stay readable; 0: no number";
    on_expire ANY, "What becomes of a message that still waits at its end";
    max_messages ANY, "Messages that may wait or be leased; 0: no number";
    max_bytes ANY, "Their bytes; 0: no number";
    overflow ANY, "What a send does that would make the queue longer than that";
    max_age_ms (0, DELAY_MS_MAX), "How long a message may wait, from its coming to the queue; 0: no time";
    dead_letter_queue ANY, "The queue that dead letters move to; empty: they stay";
    paused ANY, "Whether it delivers nothing";
    closed ANY, "Whether it refuses sends";
}

/// The settings of a new queue, as they are shown.
pub(crate) fn default_settings() -> Value {
    let mut out = Vec::new();
    object(&mut out, |o| write_settings(o, &QueueSettings::default()));
    let shown: Value = serde_json::from_slice(&out).unwrap_or_default();
    shown["settings"].clone()
}

/// Reads a backoff; what is left out takes its default.
pub(crate) fn read_backoff(reader: &mut Reader<'_>) -> Read<Backoff> {
    JsonSetting::read(reader, ANY)
}

/// Appends a backoff.
pub(crate) fn write_backoff(o: &mut Object<'_>, backoff: &Backoff) {
    backoff.write(o, "backoff");
}

/// Reads the settings of a queue that are to change; an empty body changes none.
pub(crate) fn read_patch(body: &[u8]) -> Read<QueuePatch> {
    let mut reader = Reader::new(body)?;
    let mut patch = QueuePatch::default();
    if reader.is_blank() {
        return Ok(patch);
    }
    reader.object(SETTINGS_FIELDS, |reader, name| read_setting(reader, name, &mut patch))?;
    reader.finish()?;
    Ok(patch)
}

/// Reads quotas into `quotas`; what is left out keeps its value.
pub(crate) fn read_quotas(reader: &mut Reader<'_>, quotas: &mut QuotaPatch) -> Read<()> {
    reader.object(QUOTA_FIELDS, |reader, name| {
        let value = Some(reader.integer(0, u64::MAX)?);
        match name {
            "queues" => quotas.queues = value,
            "messages" => quotas.messages = value,
            "bytes" => quotas.bytes = value,
            other => return Err(Fault::unknown("field", other, QUOTA_FIELDS)),
        }
        Ok(())
    })
}

/// A change of quotas: what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct QuotaPatch {
    queues: Option<u64>,
    messages: Option<u64>,
    bytes: Option<u64>,
}

impl QuotaPatch {
    /// The quotas `old` with the change made.
    pub(crate) fn apply(self, old: Quotas) -> Quotas {
        Quotas {
            queues: self.queues.unwrap_or(old.queues),
            messages: self.messages.unwrap_or(old.messages),
            bytes: self.bytes.unwrap_or(old.bytes),
        }
    }
}

/// Appends quotas.
pub(crate) fn write_quotas(o: &mut Object<'_>, quotas: &Quotas) {
    o.object("quotas", |o| {
        o.number("queues", quotas.queues);
        o.number("messages", quotas.messages);
        o.number("bytes", quotas.bytes);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        let mut out = Vec::new();
        object(&mut out, |o| write_settings(o, &QueueSettings::default()));
        let body = &out[br#"{"settings":"#.len()..out.len() - 1];
        let patch = read_patch(body).unwrap();
        let default = QueueSettings::default();
        assert_eq!(patch.lease_ms, Some(default.lease_ms));
        assert_eq!(patch.max_attempts, Some(default.max_attempts));
        assert_eq!(patch.max_deliveries, Some(default.max_deliveries));
        assert_eq!(patch.backoff, Some(default.backoff));
        assert_eq!(patch.ordering_retry, Some(default.ordering_retry));
        assert_eq!(read_patch(b" ").unwrap(), QueuePatch::default());
    }

    #[test]
    fn weights_and_limits_come_back_as_they_were_read() {
        let body = br#"{"fair_weights":{"b":2,"a \"":7},"ordering_retry":"step_aside","limit":"shop","on_expire":"drop","max_messages":7,"max_bytes":8,"overflow":"dead_letter_oldest","max_age_ms":9}"#;
        let mut settings = QueueSettings::default();
        settings.change(&read_patch(body).unwrap());
        assert_eq!((settings.fair_weights.of(b"a \""), settings.fair_weights.of(b"c")), (7, 1));
        let mut out = Vec::new();
        object(&mut out, |o| write_settings(o, &settings));
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains(r#""fair_weights":{"a \"":7,"b":2},"ordering_retry":"step_aside","limit":"shop","retain_done_ms":0,"retain_done_count":0,"on_expire":"drop","max_messages":7,"max_bytes":8,"overflow":"dead_letter_oldest","max_age_ms":9"#),
            "{text}"
        );
        let fault = read_patch(br#"{"fair_weights":{"a":0}}"#).unwrap_err();
        assert_eq!(fault.field, "fair_weights.a");
    }

    #[test]
    fn bad_settings_are_named() {
        let fault = read_patch(br#"{"backoff":{"kind":"cubic"}}"#).unwrap_err();
        assert_eq!(fault.field, "backoff.kind");
        assert_eq!(fault.reason, "expected one of none, fixed, linear, exponential, got \"cubic\"");
        let fault = read_patch(br#"{"lease_ms":0}"#).unwrap_err();
        assert_eq!(fault.reason, "expected a number from 1 to 43200000, got 0");
    }
}
