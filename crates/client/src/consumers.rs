//! Consumers, which hold messages under leases.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A consumer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Consumer {
    /// Id of the consumer; opaque.
    pub id: String,
    /// Name that the consumer gave; several consumers may share one.
    pub name: String,
    /// State: `attached` (messages are delivered to it over a session), `detached` (it gets no more
    /// messages), or `pulling` (it sends receives that carry its name).
    pub state: String,
    /// Queues that it is attached to; `None`: it is `pulling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<String>>,
    /// Credit: the number of messages that it may hold at a time; `None`: it is `pulling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u32>,
    /// Number of messages that it holds.
    pub in_flight: u32,
    /// Lease of its messages in milliseconds; `None`: the setting of each queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Time at which the server first saw it, in milliseconds since the Unix epoch.
    pub since_at_ms: u64,
    /// Time at which its oldest held message was delivered, in milliseconds since the Unix epoch; `None`: it
    /// holds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_leased_at_ms: Option<u64>,
    /// Messages that it holds, oldest delivery first; empty in lists of consumers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Held>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A message that a consumer holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Id of the message.
    pub id: String,
    /// Name of its queue.
    pub queue: String,
    /// Number of the attempt, from 1.
    pub attempt: u16,
    /// Time of the delivery, in milliseconds since the Unix epoch.
    pub leased_at_ms: u64,
    /// End of the lease, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
}

/// The consumer that holds a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Id of the consumer.
    pub consumer: String,
    /// Name of the consumer; may be empty.
    pub name: String,
}
