//! The moments of a message's life that are spans of a trace: its send, its wait, the work, the settlement.
//!
//! Nothing is noted while the server tells no traces. While it does, a send or a settlement that is not
//! recorded allocates nothing: of a send it is known before by what its messages say themselves, and of those
//! without a trace by their ids; of a settlement by what was recorded when its messages were delivered.

use std::sync::Arc;

use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{SendItem, SettleItem, Settlement};
use sluice_engine::id::Receipt;
use sluice_engine::{Error, MessageId};
use sluice_node::{Delivered, Sent};
use sluice_telemetry::held::Work;
use sluice_telemetry::spans::{Span, Traces};
use sluice_telemetry::trace::{MessageKey, Parent, Phase, TRACEPARENT, now_ns};
use sluice_telemetry::wire::Value;

/// Bytes of a queue's name that are kept without an allocation.
const SHORT_BYTES_MAX: usize = 47;

/// A send in flight.
#[derive(Debug)]
pub struct Sending {
    of_node: sluice_node::Sending,
    traced: Option<TracedSend>,
}

impl Sending {
    /// A send of these items to a queue.
    pub(super) fn new(
        of_node: sluice_node::Sending,
        traces: Option<&Arc<Traces>>,
        queue: &str,
        items: &[SendItem<'_>],
    ) -> Sending {
        Sending { of_node, traced: traces.and_then(|traces| TracedSend::of(traces, queue, items)) }
    }

    /// Waits for the result. Dropping this does not undo the send.
    ///
    /// # Errors
    /// What the engine says of quotas, limits and idempotency.
    pub async fn done(self) -> Result<Sent, Error> {
        let sent = self.of_node.done().await?;
        if let Some(traced) = &self.traced {
            traced.done(&sent);
        }
        Ok(sent)
    }
}

/// A send of which messages may be recorded.
#[derive(Debug)]
struct TracedSend {
    traces: Arc<Traces>,
    from_ns: u64,
    queue: QueueName,
    /// The contexts that messages came with, by their places; empty: none came with one.
    parents: Vec<(u32, Parent)>,
}

impl TracedSend {
    /// `None`: none of the messages is recorded.
    fn of(traces: &Arc<Traces>, queue: &str, items: &[SendItem<'_>]) -> Option<TracedSend> {
        let parent = |item: &SendItem<'_>| parent_in(item.headers.iter().copied());
        let recorded = |item: &SendItem<'_>| match parent(item) {
            Some(parent) => parent.is_sampled,
            None => traces.begins(),
        };
        if !items.iter().any(recorded) {
            return None;
        }
        let parents = (0..).zip(items).filter_map(|(at, item)| Some((at, parent(item)?)));
        Some(TracedSend {
            traces: Arc::clone(traces),
            from_ns: now_ns(),
            queue: QueueName::new(queue),
            parents: parents.collect(),
        })
    }

    fn done(&self, sent: &Sent) {
        // A repeat has sent nothing.
        if sent.duplicate {
            return;
        }
        let mut parents = self.parents.iter().peekable();
        for (at, id) in (0..).zip(sent.ids()) {
            let parent = parents.next_if(|(place, _)| *place == at).map(|(_, parent)| *parent);
            let message = key_of(id);
            let Some(context) = self.traces.context(message, parent) else { continue };
            if sent.duplicates.as_deref().is_some_and(|duplicates| duplicates.items.contains(&at)) {
                continue;
            }
            let (from_ns, until_ns, text) = (self.from_ns, now_ns(), id.to_string());
            let attributes = [("messaging.message.id", Value::Text(&text))];
            let (queue, phase) = (self.queue.get(), Phase::Send);
            let span = Span {
                context,
                message,
                phase,
                from_ns,
                until_ns,
                queue,
                attributes: &attributes,
                failure: None,
            };
            self.traces.record(&span);
        }
    }
}

/// The name of a queue, which most have short.
#[derive(Debug)]
enum QueueName {
    Short(u8, [u8; SHORT_BYTES_MAX]),
    Long(Box<str>),
}

impl QueueName {
    fn new(name: &str) -> QueueName {
        let mut bytes = [0; SHORT_BYTES_MAX];
        match bytes.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name.as_bytes());
                QueueName::Short(name.len() as u8, bytes)
            }
            None => QueueName::Long(name.into()),
        }
    }

    fn get(&self) -> &str {
        match self {
            QueueName::Short(length, bytes) => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default()
            }
            QueueName::Long(name) => name,
        }
    }
}

/// Notes the deliveries whose messages are recorded, and tells how long they have waited.
pub(super) fn delivered(traces: &Traces, messages: &[Delivered]) {
    for Delivered { delivery, queue, blob, .. } in messages {
        let message = key_of(delivery.receipt.id);
        let parent = MessageBlob::parse(blob).and_then(|blob| parent_in(blob.headers()));
        let Some(context) = traces.context(message, parent) else { continue };
        let now = now_ns();
        let (attempt, number) = (delivery.attempt, delivery.deliveries);
        // When the wait for a later delivery began is not known here.
        if number <= 1 {
            let text = delivery.receipt.id.to_string();
            traces.record(&Span {
                context,
                message,
                phase: Phase::Wait(number),
                from_ns: delivery.sent_at_us.saturating_mul(1_000),
                until_ns: now,
                queue,
                attributes: &[("messaging.message.id", Value::Text(&text))],
                failure: None,
            });
        }
        let work = Work { context, queue: Arc::clone(queue), from_ns: now, attempt, delivery: number };
        traces.held().begin((message, delivery.receipt.token), work);
    }
}

/// Items in flight that settle deliveries.
#[derive(Debug)]
pub struct Settling {
    of_node: sluice_node::Settling,
    traced: Option<Box<TracedSettlement>>,
}

impl Settling {
    /// A settlement of these items.
    pub(super) fn new(
        of_node: sluice_node::Settling,
        traces: Option<&Arc<Traces>>,
        items: &[SettleItem<'_>],
    ) -> Settling {
        Settling { of_node, traced: traces.and_then(|traces| TracedSettlement::of(traces, items)) }
    }

    /// Waits for one result per item, in order. The error of a record is the result of each of its items.
    /// Dropping this does not undo anything.
    ///
    /// # Errors
    /// The error of the whole, when every record failed.
    pub async fn done(self) -> Result<Vec<Result<(), Error>>, Error> {
        let results = self.of_node.done().await?;
        if let Some(traced) = &self.traced {
            traced.done(&results);
        }
        Ok(results)
    }
}

/// A settlement of deliveries that may be recorded.
#[derive(Debug)]
struct TracedSettlement {
    traces: Arc<Traces>,
    from_ns: u64,
    items: Vec<TracedItem>,
}

#[derive(Debug)]
struct TracedItem {
    /// Its place in the request.
    at: usize,
    receipt: Receipt,
    outcome: &'static str,
    /// Why the work failed; `None`: it did not.
    failure: Option<Box<str>>,
}

impl TracedSettlement {
    /// `None`: none of the deliveries is recorded.
    fn of(traces: &Arc<Traces>, items: &[SettleItem<'_>]) -> Option<Box<TracedSettlement>> {
        let may_have = |item: &SettleItem<'_>| traces.held().may_have(delivery_of(item.receipt));
        let items: Vec<TracedItem> = items
            .iter()
            .enumerate()
            .filter(|(_, item)| may_have(item))
            .map(|(at, item)| TracedItem::of(at, item))
            .collect();
        let some = !items.is_empty();
        some.then(|| Box::new(TracedSettlement { traces: Arc::clone(traces), from_ns: now_ns(), items }))
    }

    fn done(&self, results: &[Result<(), Error>]) {
        let now = now_ns();
        for TracedItem { at, receipt, outcome, failure } in &self.items {
            if !matches!(results.get(*at), Some(Ok(()))) {
                continue;
            }
            let Some(work) = self.traces.held().end(delivery_of(*receipt)) else { continue };
            let Work { context, queue, from_ns, attempt, delivery } = &work;
            let text = receipt.id.to_string();
            let attributes = [
                ("messaging.message.id", Value::Text(&text)),
                ("sluice.attempt", Value::Number((*attempt).into())),
                ("sluice.outcome", Value::Text(outcome)),
            ];
            let span = Span {
                context: *context,
                message: key_of(receipt.id),
                phase: Phase::Work(*delivery),
                from_ns: *from_ns,
                until_ns: self.from_ns,
                queue,
                attributes: &attributes,
                failure: failure.as_deref(),
            };
            self.traces.record(&span);
            let phase = Phase::Settle(*delivery);
            self.traces.record(&Span { phase, from_ns: self.from_ns, until_ns: now, failure: None, ..span });
        }
    }
}

impl TracedItem {
    fn of(at: usize, item: &SettleItem<'_>) -> TracedItem {
        let (outcome, failed) = match item.settlement {
            Settlement::Ack => ("ack", false),
            Settlement::Nack { .. } => ("nack", true),
            Settlement::Release { .. } | Settlement::GiveBack { .. } => ("release", false),
            Settlement::Reject => ("reject", true),
        };
        TracedItem { at, receipt: item.receipt, outcome, failure: failed.then(|| item.error.into()) }
    }
}

/// The context that headers carry, if it can be read.
fn parent_in<'h>(mut headers: impl Iterator<Item = (&'h str, &'h str)>) -> Option<Parent> {
    let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT))?;
    Parent::parse(value)
}

fn key_of(id: MessageId) -> MessageKey {
    MessageKey { namespace: id.namespace.0, sequence: id.sequence }
}

fn delivery_of(receipt: Receipt) -> (MessageKey, u64) {
    (key_of(receipt.id), receipt.token)
}
