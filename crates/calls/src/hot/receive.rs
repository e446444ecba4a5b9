//! Receiving: its requests and answer, its bounds, and the wait for messages.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::json;
use sluice_engine::limits::{LEASE_MS_MAX, NAME_BYTES_MAX, PRIORITY_MAX, RECEIVE_QUEUES_MAX};
use sluice_node::Delivered;
pub use sluice_node::api::Room;
use sluice_telemetry::spans::Traces;

use super::traced::delivered;
use super::{AT_MS_EXAMPLE, ID_EXAMPLE, RECEIPT_EXAMPLE};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::payload::{Headers, Octets, Tags, Text};
use crate::standing::Standing;
use crate::value::Within;

/// Longest wait for a first message, in milliseconds.
pub const WAIT_MS_MAX: u64 = 60_000;
/// Longest time for which a transaction is open, in milliseconds: 30 minutes.
pub const TRANSACTION_TTL_MS_MAX: u64 = 1_800_000;
/// Largest weight of a queue.
pub const WEIGHT_MAX: u16 = 1_000;

/// Declares the request of a receive: these fields, and those of every receive.
macro_rules! receive_request {
    ($(#[$attribute:meta])* $name:ident { $($more:tt)* }) => {
        #[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
        $(#[$attribute])*
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Maximum number of messages; default 1. The server may allow fewer than 1,000.
            pub max: Option<Within<1, 1_000>>,
            /// The longest wait for a first message, in milliseconds; default 0.
            pub wait_ms: Option<Within<0, WAIT_MS_MAX>>,
            /// The leases of the messages, in milliseconds; default: those of their queues. Not in a
            /// transaction: there they last as long as it is open.
            pub lease_ms: Option<Within<1, LEASE_MS_MAX>>,
            /// Name of the receiver, for those who look.
            #[schemars(length(max = NAME_BYTES_MAX))]
            pub consumer: Option<String>,
            /// Id of an open transaction, whose commit acks the messages. They go back when it ends
            /// otherwise.
            pub transaction: Option<String>,
            /// Begins a transaction for the messages, if there are any, which is open for so many
            /// milliseconds; not together with `transaction`.
            pub transaction_ttl_ms: Option<Within<1, TRANSACTION_TTL_MS_MAX>>,
            $($more)*
        }
    };
}

receive_request! {
    /// A receive from one queue.
    #[schemars(example = json!({"max": 10, "wait_ms": 20_000}))]
    ReceiveRequest {}
}

receive_request! {
    /// A receive from several queues.
    #[schemars(example = json!({"queues": ["a", {"name": "b", "weight": 3}], "wait_ms": 20_000}))]
    ReceiveManyRequest {
        /// The queues. Without weights, those that come first are served first; with a weight anywhere, each
        /// gets its share, and those without one weigh 1.
        #[schemars(length(min = 1, max = RECEIVE_QUEUES_MAX))]
        pub queues: Vec<ReceiveQueue>,
    }
}

/// A queue to receive from: its name, or its name and its share.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema)]
#[schemars(inline, untagged)]
pub enum ReceiveQueue {
    /// The name alone.
    Name(String),
    /// The name and the share.
    Weighted(WeightedQueue),
}

/// A queue and its share.
#[derive(Clone, PartialEq, Eq, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct WeightedQueue {
    /// Name of the queue.
    pub name: String,
    /// Its share of the messages, relative to the others; default 1.
    pub weight: Option<Within<1, { WEIGHT_MAX as u64 }>>,
}

// By hand: the untagged enums of serde cannot hold numbers with a range.
impl<'de> Deserialize<'de> for ReceiveQueue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReceiveQueue, D::Error> {
        deserializer.deserialize_any(ReceiveQueueVisitor)
    }
}

struct ReceiveQueueVisitor;

impl<'de> Visitor<'de> for ReceiveQueueVisitor {
    type Value = ReceiveQueue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a queue's name, or an object with name and weight")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<ReceiveQueue, E> {
        Ok(ReceiveQueue::Name(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReceiveQueue, A::Error> {
        WeightedQueue::deserialize(MapAccessDeserializer::new(map)).map(ReceiveQueue::Weighted)
    }
}

/// The messages of a receive.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(rename = "Received", example = json!({"messages": [delivered_example()]}))]
pub struct ReceiveAnswer {
    /// None, when the wait ended without any.
    pub messages: Vec<DeliveredMessage>,
    /// Id of the transaction that was begun for them, which is not to be shown to others.
    pub transaction: Option<String>,
    /// When that transaction is rolled back unless it has ended, in milliseconds since the Unix epoch.
    pub expires_at_ms: Option<u64>,
}

/// A message that was received. Fields that do not apply are absent.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(rename = "Delivered", example = delivered_example())]
pub struct DeliveredMessage {
    /// Its id.
    pub id: String,
    /// Proof of this delivery: settling and extending need it.
    pub receipt: String,
    /// Name of the queue that it comes from.
    pub queue: String,
    /// The payload, if that is UTF-8 text.
    pub payload: Option<Text>,
    /// The payload as standard base64, if that is not UTF-8 text.
    pub payload_base64: Option<Octets>,
    /// Media type of the payload, as sent.
    pub content_type: Option<Text>,
    /// Its headers, in the order sent, and those that the server adds.
    pub headers: Option<Headers>,
    /// Its tags.
    pub tags: Option<Tags>,
    /// Its priority: higher first.
    pub priority: Within<0, { PRIORITY_MAX as u64 }>,
    /// Number of the attempt that begins, from 1.
    pub attempt: u16,
    /// Attempts before it becomes a dead letter.
    pub max_attempts: u16,
    /// Deliveries so far with this one, counted as attempts or not.
    pub deliveries: u16,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// When the lease ends, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
    /// Text by which a reply to it is known, as sent.
    pub correlation_id: Option<String>,
    /// Name of the queue that gets its result.
    pub reply_to: Option<String>,
    /// Checkpoint of an earlier attempt, if it is UTF-8 text.
    pub checkpoint: Option<Text>,
    /// Checkpoint of an earlier attempt, as standard base64, if it is not UTF-8 text.
    pub checkpoint_base64: Option<Octets>,
    /// Media type of the checkpoint.
    pub checkpoint_content_type: Option<Text>,
    /// Name of the queue in which it died before it came to this one.
    pub from_queue: Option<String>,
    /// Why it died there.
    pub reason: Option<String>,
}

fn delivered_example() -> serde_json::Value {
    json!({
        "id": ID_EXAMPLE, "receipt": RECEIPT_EXAMPLE, "queue": "mail", "payload": "hello", "priority": 0,
        "attempt": 1, "max_attempts": 5, "deliveries": 1, "sent_at_ms": AT_MS_EXAMPLE,
        "lease_until_ms": AT_MS_EXAMPLE + 30_000,
    })
}

/// A receive.
#[derive(Debug)]
pub struct Receive<'a> {
    /// The queues, each with its weight; 0: in the order given.
    pub queues: &'a [(&'a str, u16)],
    /// Most messages.
    pub max_messages: u32,
    /// Their leases, in milliseconds; 0: those of each queue.
    pub lease_ms: u64,
    /// The wait for a first message.
    pub wait: Duration,
    /// The receiver's name, for those who look.
    pub consumer: &'a str,
    /// The memory for the answer.
    pub room: Option<Arc<dyn Room>>,
}

/// A receive that has begun.
pub struct Receiving {
    of_node: sluice_node::Receiving,
    /// Name of the namespace that may be deleted during the wait.
    namespace: Option<Box<str>>,
    traces: Option<Arc<Traces>>,
}

impl Receiving {
    /// A receive that waits, in the namespace with this name unless it is the default one.
    pub(super) fn new(
        of_node: sluice_node::Receiving,
        namespace: Option<&str>,
        traces: Option<Arc<Traces>>,
    ) -> Receiving {
        Receiving { of_node, namespace: namespace.map(Box::from), traces }
    }

    /// Waits for the messages.
    pub(crate) async fn done(self) -> Result<Vec<Delivered>, CallError> {
        let done = self.of_node.done().await.map_err(CallError::from);
        let done = done.map_err(|error| match &self.namespace {
            Some(name) => error.naming(name),
            None => error,
        })?;
        if let Some(traces) = &self.traces {
            delivered(traces, &done);
        }
        Ok(done)
    }
}

/// Waits for the messages of a receive. The standing of one that waits is looked at again before it is given
/// anything; its wait ends empty when `stopping` resolves: the server stops.
///
/// # Errors
/// Those of the node; why the caller may not have messages any more.
pub async fn done(
    receiving: Receiving,
    waiting: Option<Standing>,
    stopping: impl Future<Output = ()>,
) -> Result<Vec<Delivered>, CallError> {
    let Some(standing) = waiting else { return receiving.done().await };
    tokio::select! {
        biased;
        denied = standing.lost() => Err(denied.into()),
        delivered = receiving.done() => delivered,
        () = stopping => Ok(Vec::new()),
    }
}

/// Refuses the name of a consumer that is too long to keep.
///
/// # Errors
/// `invalid_argument`.
pub fn check_consumer(name: &str) -> Read<()> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Fault::invalid(format!("at most {NAME_BYTES_MAX} bytes, got {}", name.len())));
    }
    Ok(())
}

/// The headers of a message, with those that the server adds in place of the message's own of the same names,
/// whatever the case of their letters: HTTP does not tell them apart.
pub fn with_added<'m>(
    own: impl Iterator<Item = (&'m str, &'m str)>,
    added: &'m [(Box<str>, Box<str>)],
) -> impl Iterator<Item = (&'m str, &'m str)> {
    own.filter(|(name, _)| !added.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)))
        .chain(added.iter().map(|(name, value)| (&**name, &**value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_the_server_adds_replace_those_of_their_names_in_any_case() {
        let own = [("Sluice-Done", "7"), ("a", "1"), ("sluice-done", "8")];
        let added = [("sluice-done".into(), "0".into())];
        let all: Vec<_> = with_added(own.into_iter(), &added).collect();
        assert_eq!(all, [("a", "1"), ("sluice-done", "0")]);
    }
}
