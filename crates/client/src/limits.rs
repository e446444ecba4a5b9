//! Limits: how many messages may be in flight, and how fast they may be delivered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A rate of deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Deliveries in each period.
    pub count: u32,
    /// The period, in milliseconds.
    pub period_ms: u64,
    /// Largest number of deliveries at once after a pause; `None`: `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// The bounds of a limit; `None`: not bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Largest number of leased messages of all queues with the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// Largest number of leased messages of each limit key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_per_key: Option<u32>,
    /// Rate of deliveries of all queues with the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Rate of deliveries of each limit key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_key: Option<Rate>,
}

/// A limit with the messages that count against it and wait for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// Bounds of the limit.
    pub settings: LimitSettings,
    /// Names of the queues with the limit, sorted.
    pub queues: Vec<String>,
    /// Leased messages of these queues.
    pub in_flight: u64,
    /// Messages that only this limit keeps from being delivered.
    pub waiting: u64,
    /// Earliest time of the next delivery by the overall rate, in milliseconds since the Unix epoch; `None`:
    /// the rate allows one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at_ms: Option<u64>,
    /// Cost under `rate` that is not made up for yet: what is more than its burst is debt; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<u64>,
    /// A page of its keys; empty in lists of limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<LimitKey>,
    /// Cursor of the next page of keys; `None`: this is the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One key of a limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitKey {
    /// The key.
    pub key: String,
    /// Leased messages that have it.
    pub in_flight: u64,
    /// Messages with the key that wait for it.
    pub waiting: u64,
    /// Earliest time of the next delivery by its rate, in milliseconds since the Unix epoch; `None`: the rate
    /// allows one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at_ms: Option<u64>,
    /// Cost under `rate_per_key` that is not made up for yet: what is more than its burst is debt; `None`:
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<u64>,
}
