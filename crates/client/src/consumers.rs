//! Consumers: who holds messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A consumer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Consumer {
    /// Its id; opaque.
    pub id: String,
    /// As it gave it; need not be its alone.
    pub name: String,
    /// `attached`: messages are given to it; `detached`: it gets nothing more; `pulling`: it receives under
    /// its name.
    pub state: String,
    /// The queues that it is attached to; `None`: it pulls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<String>>,
    /// How many messages it may hold at a time; `None`: it pulls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u32>,
    /// How many it holds.
    pub in_flight: u32,
    /// Its lease in milliseconds; `None`: each queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Since when it is known, in milliseconds since the Unix epoch.
    pub since_at_ms: u64,
    /// Since when it has what it holds longest; `None`: it holds nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_leased_at_ms: Option<u64>,
    /// What it holds, longest first; empty in lists of consumers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Held>,
    /// What a newer server added.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A message in the hands of a consumer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Which.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Which attempt this is, from 1.
    pub attempt: u16,
    /// When it was given, in milliseconds since the Unix epoch.
    pub leased_at_ms: u64,
    /// When the lease ends, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
}

/// Who holds a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Id of the consumer.
    pub consumer: String,
    /// Its name; may be empty.
    pub name: String,
}
