//! Limits: how many messages may be in flight, and how fast they may be delivered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// So many deliveries in a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Deliveries in each period.
    pub count: u32,
    /// The period, in milliseconds.
    pub period_ms: u64,
    /// Deliveries at once after a time without any; `None`: `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// What a limit allows; `None`: as much as comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Leased messages of all queues that follow the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// Leased messages of each limit key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_per_key: Option<u32>,
    /// Deliveries of all queues that follow the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Deliveries of each limit key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_key: Option<Rate>,
}

/// A limit, and what it holds back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub settings: LimitSettings,
    /// The queues that follow it, by name.
    pub queues: Vec<String>,
    /// Leased messages of these queues.
    pub in_flight: u64,
    /// Messages that might be delivered but for the limit.
    pub waiting: u64,
    /// When the overall rate lets the next one begin, if it lets none now; in milliseconds since the Unix
    /// epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at_ms: Option<u64>,
    /// A page of its keys; empty in lists of limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<LimitKey>,
    /// Where the keys go on; `None`: there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What a newer server added.
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
    /// Messages that wait for it.
    pub waiting: u64,
    /// When its rate lets the next one begin, if it lets none now; in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at_ms: Option<u64>,
}
