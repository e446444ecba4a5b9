//! Settings of queues and namespaces.

use std::sync::Arc;

use crate::error::Error;
use crate::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, KEY_BYTES_MAX, LEASE_MS_MAX, RETAIN_DONE_COUNT_MAX};
use crate::push::{PUSH_CONCURRENCY_MAX, PUSH_RATE_MAX, PUSH_TIMEOUT_MS, PushHeaders, PushSecrets, PushUrl};
use crate::rules::{at_most, at_most_of, between, invalid, name_rule};
use crate::search::SearchKinds;
use crate::setting::Setting;
use crate::wire::{Put, Reader};

/// Growth of the delay before the next attempt.
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

/// The delay before the next attempt: never above `cap_ms`, varied by up to ± `jitter_percent`, derived from
/// the id and the attempt so that replay agrees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// Growth of the delay.
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

impl Backoff {
    /// Checks a backoff; `field` names it in the error.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn check(&self, field: &str) -> Result<(), Error> {
        at_most(&format!("{field}.jitter_percent"), u64::from(self.jitter_percent), 100)?;
        at_most(&format!("{field}.base_ms"), self.base_ms, DELAY_MS_MAX)?;
        at_most(&format!("{field}.cap_ms"), self.cap_ms, DELAY_MS_MAX)?;
        if self.kind != BackoffKind::None && self.base_ms > self.cap_ms {
            let reason = format!("{} is above cap_ms {}", self.base_ms, self.cap_ms);
            return Err(invalid(format!("{field}.base_ms"), reason));
        }
        Ok(())
    }
}

macro_rules! queue_settings {
    ($($tag:literal $(#[$doc:meta])* $name:ident: $type:ty = $default:expr $(, $check:expr)?;)*) => {
        /// The settings of a queue.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct QueueSettings {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for QueueSettings {
            fn default() -> Self {
                QueueSettings { $($name: $default,)* }
            }
        }

        /// A change of queue settings: what is `None` stays.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct QueuePatch {
            $(#[doc = concat!("See [`QueueSettings::", stringify!($name), "`].")] pub $name: Option<$type>,)*
        }

        impl QueueSettings {
            /// Takes over what a patch names.
            pub fn change(&mut self, patch: &QueuePatch) {
                $(if let Some(value) = &patch.$name {
                    self.$name = value.clone();
                })*
            }

            /// Appends all settings, in the layout of a patch.
            pub(crate) fn write(&self, out: &mut Vec<u8>) {
                let new = QueueSettings::default();
                $(if $tag < SPARSE_TAGS || self.$name != new.$name {
                    write_setting(out, $tag, &self.$name);
                })*
                out.u8(LAST_TAG);
            }
        }

        impl QueuePatch {
            /// Checks the values that are named.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`] names the setting.
            pub(crate) fn check(&self) -> Result<(), Error> {
                $($(if let Some(value) = &self.$name {
                    let check: fn(&$type) -> Result<(), Error> = $check;
                    check(value)?;
                })?)*
                Ok(())
            }

            /// Appends what is named: a tag and its value each, and an end.
            pub(crate) fn write(&self, out: &mut Vec<u8>) {
                $(if let Some(value) = &self.$name {
                    write_setting(out, $tag, value);
                })*
                out.u8(LAST_TAG);
            }

            /// Reads what [`QueuePatch::write`] wrote.
            pub(crate) fn read(reader: &mut Reader<'_>) -> Option<QueuePatch> {
                let mut patch = QueuePatch::default();
                loop {
                    match reader.u8()? {
                        $($tag => patch.$name = Some(Setting::read(reader)?),)*
                        LAST_TAG => return Some(patch),
                        _ => return None,
                    }
                }
            }
        }
    };
}

/// Longest description of a queue, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 255;

fn check_description(text: &str) -> Result<(), Error> {
    if text.len() <= DESCRIPTION_BYTES_MAX {
        return Ok(());
    }
    let reason = format!("{} bytes are too much: use at most {DESCRIPTION_BYTES_MAX}", text.len());
    Err(invalid("description", reason))
}

/// Checks a name that may be empty: none.
fn name_or_none(field: &'static str, name: &str) -> Result<(), Error> {
    if name.is_empty() { Ok(()) } else { name_rule(field, name) }
}

/// Tag behind the last setting.
const LAST_TAG: u8 = 0;
/// Tags from here on are written of a queue only where the value is not that of a new one. So a setting that
/// came with a later behaviour version is not written as long as an older one is in force.
const SPARSE_TAGS: u8 = 40;
/// The behaviour version since which queues push.
const PUSH_SINCE: u16 = 16;
/// The behaviour version since which queues have indexes of their messages.
pub(crate) const SEARCH_SINCE: u16 = 18;

fn write_setting(out: &mut Vec<u8>, tag: u8, value: &impl Setting) {
    out.u8(tag);
    value.write(out);
}

// The number before each is its tag in records and snapshots: never changed, never given again. What follows
// the default value checks one that is set.
queue_settings! {
    1 /// The lease of a receive that names none, in milliseconds (default 30,000; at most 12 h).
    lease_ms: u64 = 30_000,
        |ms| between("lease_ms", *ms, 1, LEASE_MS_MAX);
    2 /// Attempts of a message that names none (default 5).
    max_attempts: u16 = 5,
        |most| between("max_attempts", (*most).into(), 1, ATTEMPTS_MAX.into());
    3 /// Deliveries in all, counted or released, after which a message becomes a dead letter (default 100).
    max_deliveries: u16 = 100,
        |most| between("max_deliveries", (*most).into(), 1, u16::MAX.into());
    4 /// Backoff of a message that names none.
    backoff: Backoff = Backoff::default(),
        |backoff| backoff.check("backoff");
    10 /// How many messages a fair key gives in its turn; those that are not named, and the empty key, give one.
    fair_weights: FairWeights = FairWeights::default(),
        FairWeights::check;
    11 /// What a message does to its ordering key while it waits for its time.
    ordering_retry: OrderingRetry = OrderingRetry::Block;
    37 /// Rule by which one of several consumers with credit gets the next message.
    placement: Placement = Placement::Fair;
    12 /// Name of the limit that the queue follows; empty: none.
    limit: Box<str> = Box::default(),
        |name| name_or_none("limit", name);
    15 /// What becomes of a message that still waits at its end.
    on_expire: OnExpire = OnExpire::DeadLetter;
    16 /// Messages that may wait or be leased (default 0: no number).
    max_messages: u64 = 0;
    17 /// Bytes of messages that wait or are leased (default 0: no number).
    max_bytes: u64 = 0;
    18 /// What a send does that would make the queue longer than that.
    overflow: Overflow = Overflow::RefuseNew;
    19 /// How long a message may wait at most, in milliseconds from its coming to the queue (default 0: no time). It holds for
    /// what comes from then on.
    max_age_ms: u64 = 0,
        |ms| at_most("max_age_ms", *ms, DELAY_MS_MAX);
    23 /// How long a finished message stays readable, in milliseconds from its ack (default 0: not for time alone).
    retain_done_ms: u64 = 0,
        |ms| at_most("retain_done_ms", *ms, DELAY_MS_MAX);
    24 /// How many finished messages stay readable, the oldest goes first (default 0: no number).
    retain_done_count: u32 = 0,
        |count| at_most("retain_done_count", (*count).into(), RETAIN_DONE_COUNT_MAX.into());
    30 /// Whether it delivers nothing: sends go on, and leases run (default false).
    paused: bool = false;
    31 /// Whether it refuses sends; what it holds is delivered, and what comes back to it is taken (default false).
    closed: bool = false;
    32 /// Name of the queue that its dead letters move to, where they are ready again; empty: they stay.
    dead_letter_queue: Box<str> = Box::default(),
        |name| name_or_none("dead_letter_queue", name);
    33 /// What the queue is for, for people who look at it: up to [`DESCRIPTION_BYTES_MAX`] bytes; empty: nothing is said.
    description: Box<str> = Box::default(),
        |text| check_description(text);
    40 /// Endpoint that its messages are pushed to; empty: none.
    push_url: PushUrl = PushUrl::default(),
        PushUrl::check;
    41 /// Secrets that pushes are signed with; none: they are not signed.
    push_secrets: PushSecrets = PushSecrets::default(),
        PushSecrets::check;
    42 /// Longest time for a push, its connection included, in milliseconds (default 15,000).
    push_timeout_ms: u32 = 15_000,
        |ms| between("push_timeout_ms", (*ms).into(), PUSH_TIMEOUT_MS.0.into(), PUSH_TIMEOUT_MS.1.into());
    43 /// Pushes at a time, each over a connection of its own (default 16).
    push_concurrency: u16 = 16,
        |most| between("push_concurrency", (*most).into(), 1, PUSH_CONCURRENCY_MAX.into());
    44 /// Pushes that may begin in a second (default 0: any number).
    push_rate: u32 = 0,
        |rate| at_most("push_rate", (*rate).into(), PUSH_RATE_MAX.into());
    45 /// Headers that pushes get.
    push_headers: PushHeaders = PushHeaders::default(),
        PushHeaders::check;
    46 /// Whether nothing is pushed (default false).
    push_paused: bool = false;
    50 /// Kinds of terms by which searches find its messages without a look at each of them (default: none).
    search_index: SearchKinds = SearchKinds::default(),
        SearchKinds::check;
}

impl QueuePatch {
    /// The behaviour version that has to be in force for what it names.
    pub(crate) fn since(&self) -> u16 {
        let QueuePatch {
            push_url,
            push_secrets,
            push_timeout_ms,
            push_concurrency,
            push_rate,
            push_headers,
            push_paused,
            search_index,
            ..
        } = self;
        if search_index.is_some() {
            return SEARCH_SINCE;
        }
        let numbers = push_timeout_ms.is_some() || push_concurrency.is_some() || push_rate.is_some();
        let others = push_url.is_some() || push_secrets.is_some() || push_headers.is_some();
        if numbers || others || push_paused.is_some() { PUSH_SINCE } else { 0 }
    }
}

impl QueueSettings {
    /// True if how much waits, or how long, is bounded.
    #[inline]
    pub fn is_bounded(&self) -> bool {
        self.max_messages | self.max_bytes | self.max_age_ms != 0
    }

    /// True if finished messages stay for the queue's sake.
    #[inline]
    pub fn retains_done(&self) -> bool {
        self.retain_done_ms > 0 || self.retain_done_count > 0
    }
}

/// Rule by which one of several consumers with credit gets the next message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Each in turn.
    #[default]
    Fair,
    /// The one that holds the fewest messages, of all its queues together; among equals each in turn.
    LeastLoaded,
    /// The one that had the last message with the same ordering key, as long as it is attached; without a key
    /// each in turn.
    Sticky,
}

impl Setting for Placement {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(*self as u8);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.u8()? {
            0 => Some(Placement::Fair),
            1 => Some(Placement::LeastLoaded),
            2 => Some(Placement::Sticky),
            _ => None,
        }
    }
}

/// Effect of a message that is delayed, from the start or before another attempt, on the others with its
/// ordering key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OrderingRetry {
    /// The later messages wait for it.
    #[default]
    Block,
    /// The later messages go on; it comes back before those that were sent later.
    StepAside,
}

/// Treatment of a message that still waits when its time to live is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnExpire {
    /// The message becomes a dead letter.
    #[default]
    DeadLetter,
    /// The message is removed.
    Drop,
}

/// Treatment of a send that would make its queue exceed its maximum length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overflow {
    /// The send is refused.
    #[default]
    RefuseNew,
    /// The messages that wait longest, by the order of sending, become dead letters.
    DeadLetterOldest,
}

impl Setting for Overflow {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(*self as u8);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.u8()? {
            0 => Some(Overflow::RefuseNew),
            1 => Some(Overflow::DeadLetterOldest),
            _ => None,
        }
    }
}

impl Setting for OnExpire {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(*self as u8);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.u8()? {
            0 => Some(OnExpire::DeadLetter),
            1 => Some(OnExpire::Drop),
            _ => None,
        }
    }
}

impl Setting for OrderingRetry {
    fn write(&self, out: &mut Vec<u8>) {
        out.u8(*self as u8);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.u8()? {
            0 => Some(OrderingRetry::Block),
            1 => Some(OrderingRetry::StepAside),
            _ => None,
        }
    }
}

/// Most keys with a weight of their own.
pub const FAIR_WEIGHTS_MAX: usize = 1_000;
/// Largest weight of a fair key; the smallest is 1.
pub const FAIR_WEIGHT_MAX: u16 = 1_000;

/// Weights of fair keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FairWeights {
    /// By key, each once.
    weights: Arc<[(Box<[u8]>, u16)]>,
}

impl FairWeights {
    fn check(&self) -> Result<(), Error> {
        at_most_of("entries", "fair_weights", self.len() as u64, FAIR_WEIGHTS_MAX as u64)?;
        for (key, weight) in self.iter() {
            at_most_of("bytes of a key", "fair_weights", key.len() as u64, KEY_BYTES_MAX as u64)?;
            let field = format!("fair_weights.{}", String::from_utf8_lossy(key));
            between(&field, u64::from(weight), 1, u64::from(FAIR_WEIGHT_MAX))?;
        }
        Ok(())
    }

    /// Weights by key; of a key that is given twice the first counts.
    pub fn new(mut weights: Vec<(Box<[u8]>, u16)>) -> FairWeights {
        weights.sort_by(|(one, _), (other, _)| one.cmp(other));
        weights.dedup_by(|(later, _), (earlier, _)| later == earlier);
        FairWeights { weights: weights.into() }
    }

    /// Number of messages of this key in its turn.
    pub fn of(&self, key: &[u8]) -> u16 {
        let found = self.weights.binary_search_by(|(known, _)| (**known).cmp(key));
        found.map_or(1, |at| self.weights[at].1)
    }

    /// Keys and their weights, by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u16)> {
        self.weights.iter().map(|(key, weight)| (&**key, *weight))
    }

    /// Number of keys with a weight of their own.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// True if all keys weigh the same.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }
}

impl Setting for FairWeights {
    fn write(&self, out: &mut Vec<u8>) {
        out.u16(self.len() as u16);
        for (key, weight) in self.iter() {
            out.bytes16(key);
            out.u16(weight);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u16()?;
        let read = |_| {
            let key = reader.bytes16()?.into();
            // A weight of 0, which no writer writes, would end no turn.
            Some((key, reader.u16()?.max(1)))
        };
        Some(FairWeights::new((0..count).map(read).collect::<Option<_>>()?))
    }
}

impl Setting for Backoff {
    fn write(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Backoff::read(reader)
    }
}

/// Quotas of a namespace; 0: no quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// Queues.
    pub queues: u64,
    /// Messages in any state.
    pub messages: u64,
    /// Bytes of payloads and headers, in any state.
    pub bytes: u64,
}

impl Backoff {
    /// Bytes that a backoff takes in records and snapshots.
    pub(crate) const BYTES: usize = 18;

    pub(crate) fn bytes(&self) -> [u8; Backoff::BYTES] {
        let mut bytes = [0; Backoff::BYTES];
        bytes[0] = match self.kind {
            BackoffKind::None => 0,
            BackoffKind::Fixed => 1,
            BackoffKind::Linear => 2,
            BackoffKind::Exponential => 3,
        };
        bytes[1] = self.jitter_percent;
        bytes[2..10].copy_from_slice(&self.base_ms.to_le_bytes());
        bytes[10..].copy_from_slice(&self.cap_ms.to_le_bytes());
        bytes
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.raw(&self.bytes());
    }

    /// Reads what [`Backoff::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Backoff> {
        let kind = match reader.u8()? {
            0 => BackoffKind::None,
            1 => BackoffKind::Fixed,
            2 => BackoffKind::Linear,
            3 => BackoffKind::Exponential,
            _ => return None,
        };
        Some(Backoff { jitter_percent: reader.u8()?, kind, base_ms: reader.u64()?, cap_ms: reader.u64()? })
    }
}

impl Quotas {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.queues);
        out.u64(self.messages);
        out.u64(self.bytes);
    }

    /// Reads what [`Quotas::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Quotas> {
        Some(Quotas { queues: reader.u64()?, messages: reader.u64()?, bytes: reader.u64()? })
    }
}
