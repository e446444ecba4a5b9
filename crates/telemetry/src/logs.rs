//! Events of the log (`opentelemetry/proto/logs/v1/logs.proto`).

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use sluice_proto::wire::{put_bytes, put_fixed64, put_number};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::Context;

use crate::queue::Queue;
use crate::trace::now_ns;
use crate::wire::{Value, put_attribute, put_value};

/// Longest text of an event, or of one of its fields, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Most fields of an event.
const FIELDS_MAX: usize = 32;
/// Beginning of the targets whose events are not exported: those about exports.
const OWN: &str = "sluice_telemetry";

/// The layer that puts events of the log into a queue, from which they are sent.
#[derive(Clone, Debug)]
pub struct Layer(pub Arc<Queue>);

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !event.metadata().target().starts_with(OWN) {
            self.0.push(encode(event));
        }
    }
}

/// `LogRecord`.
fn encode(event: &Event<'_>) -> Vec<u8> {
    let metadata = event.metadata();
    let mut out = Vec::with_capacity(256);
    let now = now_ns();
    put_fixed64(&mut out, 1, now);
    put_number(&mut out, 2, severity(*metadata.level()));
    put_bytes(&mut out, 3, metadata.level().as_str().as_bytes());
    let mut fields = Fields { out: &mut out, message: String::new(), count: 0 };
    event.record(&mut fields);
    let message = std::mem::take(&mut fields.message);
    put_value(&mut out, 5, Value::Text(&message));
    put_attribute(&mut out, 6, "target", Value::Text(metadata.target()));
    put_fixed64(&mut out, 11, now);
    out
}

/// `SeverityNumber`.
fn severity(level: Level) -> u64 {
    match level {
        Level::TRACE => 1,
        Level::DEBUG => 5,
        Level::INFO => 9,
        Level::WARN => 13,
        Level::ERROR => 17,
    }
}

/// The fields of an event, each an attribute; `message` is its text.
struct Fields<'o> {
    out: &'o mut Vec<u8>,
    message: String,
    count: usize,
}

impl Fields<'_> {
    fn add(&mut self, field: &Field, value: Value<'_>) {
        if self.count < FIELDS_MAX {
            self.count += 1;
            put_attribute(self.out, 6, field.name(), value);
        }
    }
}

impl Visit for Fields<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Value::Number(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text = clip(value);
        match field.name() {
            "message" => text.clone_into(&mut self.message),
            _ => self.add(field, Value::Text(text)),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

/// The beginning of a text that may be long.
fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
