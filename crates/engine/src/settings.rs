//! What can be set on queues and namespaces.

/// How the delay before the next attempt grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackoffKind {
    /// No delay.
    None,
    /// Always `base_ms`.
    Fixed,
    /// `base_ms` × attempts so far.
    Linear,
    /// `base_ms` × 2^(attempts so far − 1).
    Exponential,
}

/// The delay before the next attempt: never above `cap_ms`, varied by up to ± `jitter_percent`, derived from the id
/// and the attempt so that replay agrees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// How it grows.
    pub kind: BackoffKind,
    /// The first delay, in milliseconds.
    pub base_ms: u64,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// 0 to 100.
    pub jitter_percent: u8,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { kind: BackoffKind::Exponential, base_ms: 1_000, cap_ms: 600_000, jitter_percent: 10 }
    }
}

/// The settings of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSettings {
    /// The lease of a receive that names none, in milliseconds (default 30,000; at most 12 h).
    pub lease_ms: u64,
    /// Attempts of a message that names none (default 5).
    pub max_attempts: u16,
    /// Deliveries in all, counted or released, after which a message becomes a dead letter (default 100).
    pub max_deliveries: u16,
    /// Backoff of a message that names none.
    pub backoff: Backoff,
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings { lease_ms: 30_000, max_attempts: 5, max_deliveries: 100, backoff: Backoff::default() }
    }
}

/// A change of queue settings: what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueuePatch {
    /// See [`QueueSettings::lease_ms`].
    pub lease_ms: Option<u64>,
    /// See [`QueueSettings::max_attempts`].
    pub max_attempts: Option<u16>,
    /// See [`QueueSettings::max_deliveries`].
    pub max_deliveries: Option<u16>,
    /// See [`QueueSettings::backoff`].
    pub backoff: Option<Backoff>,
}

/// What a namespace may hold; 0: no quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// Queues.
    pub queues: u64,
    /// Messages in any state.
    pub messages: u64,
    /// Bytes of payloads and headers, in any state.
    pub bytes: u64,
}
