//! Spans of the lives of messages (`opentelemetry/proto/trace/v1/trace.proto`), and where they are put.

use std::sync::Arc;

use sluice_proto::wire::{put_bytes, put_fixed64, put_number};

use crate::WAITING_BYTES_MAX;
use crate::held::Held;
use crate::queue::Queue;
use crate::trace::{Context, MessageKey, Parent, Phase, Sampler, SpanId, trace_of};
use crate::wire::{Value, put_attribute};

/// Longest text of an error or a name in a span, in characters.
const TEXT_CHARS_MAX: usize = 256;

/// The traces of a server.
#[derive(Debug)]
pub struct Traces {
    sampler: Sampler,
    queue: Arc<Queue>,
    held: Held,
}

impl Traces {
    /// Traces of messages that came in a trace that is recorded, and of this part of the others, in
    /// millionths.
    pub(crate) fn new(sampled_ppm: u32) -> Traces {
        let queue = Arc::new(Queue::new(WAITING_BYTES_MAX));
        Traces { sampler: Sampler::new(sampled_ppm), queue, held: Held::default() }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The deliveries whose work is being traced.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The context of a message, if it is recorded: as its own trace says, if it came with one.
    pub fn context(&self, message: MessageKey, parent: Option<Parent>) -> Option<Context> {
        match parent {
            Some(parent) => {
                parent.is_sampled.then_some(Context { trace: parent.trace, parent: Some(parent.span) })
            }
            None => self.sampler.takes(message).then(|| Context { trace: trace_of(message), parent: None }),
        }
    }

    /// True if messages that came without a trace may be recorded.
    pub fn begins(&self) -> bool {
        self.sampler.takes_some()
    }

    /// Puts a span among those that wait to be sent.
    pub fn record(&self, span: &Span<'_>) {
        self.queue.push(span.encode());
    }
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct Span<'s> {
    /// Its place.
    pub context: Context,
    /// The message.
    pub message: MessageKey,
    /// The part of its life.
    pub phase: Phase,
    /// Begin, in nanoseconds since the Unix epoch.
    pub from_ns: u64,
    /// End, in nanoseconds since the Unix epoch.
    pub until_ns: u64,
    /// Name of the queue.
    pub queue: &'s str,
    /// More about it.
    pub attributes: &'s [(&'s str, Value<'s>)],
    /// Why it failed; `None`: it went well.
    pub failure: Option<&'s str>,
}

/// Kinds of spans (`SpanKind`).
mod kind {
    pub(super) const INTERNAL: u64 = 1;
    pub(super) const PRODUCER: u64 = 4;
    pub(super) const CONSUMER: u64 = 5;
}

/// `Status.code` of a span that failed.
const ERROR: u64 = 2;

impl Span<'_> {
    fn encode(&self) -> Vec<u8> {
        let (word, kind) = match self.phase {
            Phase::Send => ("send", kind::PRODUCER),
            Phase::Wait(_) => ("wait", kind::INTERNAL),
            Phase::Work(_) => ("work", kind::CONSUMER),
            Phase::Settle(_) => ("settle", kind::INTERNAL),
        };
        let mut out = Vec::with_capacity(320);
        put_bytes(&mut out, 1, &self.context.trace);
        put_bytes(&mut out, 2, &self.phase.span_of(self.message));
        if let Some(parent) = self.parent() {
            put_bytes(&mut out, 4, &parent);
        }
        put_bytes(&mut out, 5, format!("{word} {}", clip(self.queue)).as_bytes());
        put_number(&mut out, 6, kind);
        put_fixed64(&mut out, 7, self.from_ns);
        // Clocks may be set back between the two.
        put_fixed64(&mut out, 8, self.until_ns.max(self.from_ns));
        put_attribute(&mut out, 9, "messaging.system", Value::Text("sluice"));
        put_attribute(&mut out, 9, "messaging.operation.name", Value::Text(word));
        put_attribute(&mut out, 9, "messaging.destination.name", Value::Text(self.queue));
        for (key, value) in self.attributes {
            put_attribute(&mut out, 9, key, *value);
        }
        if let Some(failure) = self.failure {
            let mut status = Vec::new();
            put_bytes(&mut status, 2, clip(failure).as_bytes());
            put_number(&mut status, 3, ERROR);
            put_bytes(&mut out, 15, &status);
        }
        out
    }

    /// The span around it: of a settlement the work; of the others the one that sent the message, here or
    /// elsewhere.
    fn parent(&self) -> Option<SpanId> {
        match self.phase {
            Phase::Settle(delivery) => Some(Phase::Work(delivery).span_of(self.message)),
            Phase::Send => self.context.parent,
            Phase::Wait(_) | Phase::Work(_) => {
                Some(self.context.parent.unwrap_or_else(|| Phase::Send.span_of(self.message)))
            }
        }
    }
}

/// The beginning of a text that may be long.
fn clip(text: &str) -> &str {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}
