//! The fields of a message that a filter may name: a table.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sluice_engine::blob::MessageBlob;
use sluice_engine::error_fingerprint;
use sluice_engine::query::MessageView;

/// A field of messages.
#[derive(Debug)]
pub(super) struct Field {
    /// Name of the field.
    pub(super) name: &'static str,
    /// The source of its value.
    pub(super) of: Source,
}

/// The place where the value of a field lies, and the value; `None`: the message has none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The engine's index.
    Index(fn(&MessageView) -> Option<Value>),
    /// The bytes that the message was sent with.
    Blob(fn(&MessageBlob<'_>) -> Option<Value>),
    /// The tags in these bytes, or those that have replaced them.
    Tags,
    /// The errors of the attempts that the message remembers, oldest first; `None`: an attempt without error.
    Errors(fn(&[Option<Bytes>]) -> Option<Value>),
}

/// The bytes of a message in the log, as far as they were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Content type, headers, tags, payload.
    pub(super) blob: Option<Bytes>,
    /// Tags that replace those in `blob`.
    pub(super) tags: Option<Bytes>,
    /// See [`Source::Errors`]. `None` as a whole: they were not read, or one is damaged.
    pub(super) errors: Option<Vec<Option<Bytes>>>,
}

impl Content {
    /// The bytes with the tags of the message, if they were read.
    fn tagged(&self, view: &MessageView) -> Option<&Bytes> {
        if view.tags.is_some() { self.tags.as_ref() } else { self.blob.as_ref() }
    }
}

/// All fields. Times are in milliseconds since the Unix epoch.
pub(super) const FIELDS: &[Field] = &[
    index("id", |m| Some(m.id.to_string().into())),
    index("state", |m| Some(m.state.name().into())),
    index("priority", |m| Some(m.priority.into())),
    index("attempts", |m| Some(m.attempts.into())),
    index("max_attempts", |m| Some(m.max_attempts.into())),
    index("deliveries", |m| Some(m.deliveries.into())),
    index("sent_at_ms", |m| ms(Some(m.sent_at_us))),
    index("deadline_ms", |m| ms(m.deadline_us)),
    index("expires_at_ms", |m| ms(m.expires_at_us)),
    index("reason", |m| m.reason.map(Value::from)),
    index("reason_at_ms", |m| ms(m.reason_at_us)),
    index("done_at_ms", |m| ms(m.done_at_us)),
    index("blocked_by", |m| m.blocked_by.map(Value::from)),
    index("cancelled", |m| Some(m.cancelled.into())),
    index("ordering_key", |m| given(&m.ordering_key)),
    index("fair_key", |m| given(&m.fair_key)),
    index("limit_key", |m| given(&m.limit_key)),
    index("unique_key", |m| given(&m.unique_key)),
    index("cost", |m| Some(m.cost.0.into())),
    index("correlation_id", |m| given(&m.correlation_id)),
    index("reply_to", |m| given(m.reply_to.as_bytes())),
    index("from_queue", |m| given(m.from_queue.as_bytes())),
    index("size_bytes", |m| Some(m.blob.len.into())),
    index("holder", |m| {
        let holder = m.holder.as_ref()?;
        Some(json!({"consumer": holder.consumer.0.to_string(), "name": *holder.name}))
    }),
    index("progress", |m| m.progress.map(|progress| json!({"percent": progress.percent}))),
    Field { name: "tags", of: Source::Tags },
    blob("content_type", |blob| given(blob.content_type.as_bytes())),
    blob("headers", |blob| Some(headers(blob))),
    blob("payload", |blob| serde_json::from_slice(blob.payload).ok()),
    blob("payload_text", |blob| Some(text(blob.payload))),
    errors("error", |errors| last(errors).map(|error| text(error))),
    errors("error_fingerprint", |errors| {
        last(errors).map(|error| format!("{:016x}", error_fingerprint(error)).into())
    }),
    errors("errors", |errors| {
        let all: Vec<_> = errors.iter().flatten().map(|error| String::from_utf8_lossy(error)).collect();
        (!all.is_empty()).then(|| all.join("\n").into())
    }),
];

impl Field {
    /// The field of this name.
    pub(super) fn named(name: &str) -> Option<&'static Field> {
        FIELDS.iter().find(|field| field.name == name)
    }

    /// True if its value is known.
    pub(super) fn is_known(&self, view: &MessageView, content: &Content) -> bool {
        match self.of {
            Source::Index(_) => true,
            Source::Blob(_) => content.blob.is_some(),
            Source::Tags => content.tagged(view).is_some(),
            Source::Errors(_) => content.errors.is_some(),
        }
    }

    /// The value of the field; `None`: there is none, or it is not known.
    pub(super) fn value(&self, view: &MessageView, content: &Content) -> Option<Value> {
        match self.of {
            Source::Index(value) => value(view),
            Source::Blob(value) => value(&MessageBlob::parse(content.blob.as_deref()?)?),
            Source::Tags => Some(MessageBlob::parse(content.tagged(view)?)?.tags().collect()),
            Source::Errors(value) => value(content.errors.as_deref()?),
        }
    }
}

const fn index(name: &'static str, value: fn(&MessageView) -> Option<Value>) -> Field {
    Field { name, of: Source::Index(value) }
}

const fn blob(name: &'static str, value: fn(&MessageBlob<'_>) -> Option<Value>) -> Field {
    Field { name, of: Source::Blob(value) }
}

const fn errors(name: &'static str, value: fn(&[Option<Bytes>]) -> Option<Value>) -> Field {
    Field { name, of: Source::Errors(value) }
}

/// A time.
fn ms(at_us: Option<u64>) -> Option<Value> {
    at_us.map(|at_us| (at_us / 1_000).into())
}

/// Bytes as a text. What is no UTF-8 in them is replaced, so that the texts between can be found.
fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// The same of what may be empty, and then is not there.
fn given(bytes: &[u8]) -> Option<Value> {
    (!bytes.is_empty()).then(|| text(bytes))
}

/// The error of the last attempt that is over.
fn last(errors: &[Option<Bytes>]) -> Option<&Bytes> {
    errors.last()?.as_ref()
}

/// Headers by name; of a name that is given again and again a list of its values.
fn headers(blob: &MessageBlob<'_>) -> Value {
    let mut all = Map::new();
    for (name, value) in blob.headers() {
        match all.get_mut(name) {
            None => {
                all.insert(name.to_owned(), value.into());
            }
            Some(Value::Array(values)) => values.push(value.into()),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    all.into()
}
