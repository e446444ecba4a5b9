//! Settings of queues, as flags and as a table.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use sluice_client::{
    Backoff, BackoffKind, OnExpire, OrderingRetry, Overflow, Placement, QueueChange, QueueSettings,
};

use super::format::{length, size};
use super::output::Table;
use super::push::PushFlags;
use super::values::{self, backoff, fair_weight};
use super::{CliError, Result, duration};

macro_rules! setting_flags {
    ($($(#[$meta:meta])* $flag:ident: $type:ty => $setting:ident by $given:expr, $shown:expr;)*) => {
        /// Flags for the settings of a queue.
        #[derive(Debug, Args)]
        pub(super) struct QueueSettingFlags {
            $($(#[$meta])* $flag: Option<$type>,)*
            #[command(flatten)]
            weights: WeightFlags,
            #[command(flatten)]
            push: PushFlags,
        }

        impl QueueSettingFlags {
            /// The settings to change.
            ///
            /// # Errors
            /// A fair key has two weights, or a header two values; secrets that cannot be read.
            pub(super) fn change(self) -> Result<QueueChange> {
                let fair_weights = self.weights.given()?;
                let (push_secrets, push_headers) = (self.push.secrets()?, self.push.headers()?);
                let change = QueueChange { fair_weights, push_secrets, push_headers, ..QueueChange::default() };
                Ok(QueueChange { $($setting: self.$flag.map($given),)* ..change })
            }
        }

        /// The settings of a queue as a table, without empty ones.
        pub(super) fn settings_table(settings: &QueueSettings) -> Table {
            let mut table = Table::fields();
            $(if let Some(text) = shown(&settings.$setting, $shown) {
                table.field(&stringify!($flag).replace('_', " "), text);
            })*
            if !settings.fair_weights.is_empty() {
                table.field("fair weights", weights_text(&settings.fair_weights));
            }
            if !settings.push_secrets.is_empty() {
                table.field("push secrets", settings.push_secrets.join(", "));
            }
            if !settings.push_headers.is_empty() {
                table.field("push headers", headers_text(&settings.push_headers));
            }
            table
        }
    };
}

// Flag => setting by (how the setting comes from the flag, how it is shown).
setting_flags! {
    /// Lease of messages when the receive names none; at most 12h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    lease: Duration => lease_ms by millis, |ms| Some(length(*ms));
    /// Maximum number of attempts of messages that set none.
    #[arg(long, value_name = "N", value_parser = values::number(0u32..))]
    max_attempts: u32 => max_attempts by same, number;
    /// Deliveries, released ones included, before a message becomes a dead letter.
    #[arg(long, value_name = "N", value_parser = values::number(0u32..))]
    max_deliveries: u32 => max_deliveries by same, number;
    /// Delay between attempts: none; or fixed, linear or exponential with base, cap and jitter, such as
    /// exponential:1s:10m:10%.
    #[arg(long, value_name = "BACKOFF", value_parser = backoff)]
    backoff: Backoff => backoff by same, backoff_text;
    /// Time for which finished messages stay readable; 0s: no time limit. They are kept when this or
    /// --retain-done-count is set.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retain_done: Duration => retain_done_ms by millis, |ms| (*ms > 0).then(|| length(*ms));
    /// Maximum number of finished messages that stay readable, the oldest dropped first; 0: no maximum.
    #[arg(long, value_name = "N", value_parser = values::number(0u32..))]
    retain_done_count: u32 => retain_done_count by same, |count| (*count > 0).then(|| count.to_string());
    /// Effect of a delayed message on the other messages with its ordering key.
    #[arg(long, value_name = "HOW", value_parser = ["block", "step_aside"])]
    ordering_retry: String => ordering_retry by ordering_retry, ordering_retry_text;
    /// Which of several consumers with credit gets the next message.
    #[arg(long, value_name = "HOW", value_parser = ["fair", "least_loaded", "sticky"])]
    placement: String => placement by placement, placement_text;
    /// The limit that the queue follows; '': none.
    #[arg(long, value_name = "NAME")]
    limit: String => limit by same, |it| name(it);
    /// Treatment of a message that expires while it waits.
    #[arg(long, value_name = "HOW", value_parser = ["dead_letter", "drop"])]
    on_expire: String => on_expire by on_expire, |how| (*how == OnExpire::Drop).then(|| "drop".to_owned());
    /// Maximum number of messages that wait or are leased; 0: no limit.
    #[arg(long, value_name = "N", value_parser = values::number(0u64..))]
    max_messages: u64 => max_messages by same, |most| (*most > 0).then(|| most.to_string());
    /// Maximum bytes of these messages; 0: no limit.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    max_bytes: u64 => max_bytes by same, |most| (*most > 0).then(|| size(*most));
    /// Treatment of a send that exceeds the maximum: it is refused, or the oldest waiting messages become
    /// dead letters.
    #[arg(long, value_name = "HOW", value_parser = ["refuse_new", "dead_letter_oldest"])]
    overflow: String => overflow by overflow, overflow_text;
    /// Longest time for which a message may wait, from its arrival in the queue; then --on-expire applies.
    /// 0s: no limit.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_age: Duration => max_age_ms by millis, |ms| (*ms > 0).then(|| length(*ms));
    /// The queue that dead letters move to, where they are ready; '': they stay.
    #[arg(long, value_name = "QUEUE")]
    dead_letter_queue: String => dead_letter_queue by same, |it| name(it);
    /// Description of the queue for people; up to 255 bytes; '' for none.
    #[arg(long, value_name = "TEXT")]
    description: String => description by same, |it| name(it);
    /// Endpoint that messages are pushed to, https://...; '': none.
    #[arg(long, value_name = "URL")]
    push_url: String => push_url by same, |it| name(it);
    /// Time for a push until the head of its answer; 100ms to 5m.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    push_timeout: Duration => push_timeout_ms by short_millis, |ms| (*ms > 0).then(|| length(u64::from(*ms)));
    /// Maximum number of pushes at a time, 1 to 256.
    #[arg(long, value_name = "N", value_parser = values::number(0u32..))]
    push_concurrency: u32 => push_concurrency by same, |most| (*most > 0).then(|| most.to_string());
    /// Maximum number of pushes in a second; 0: no maximum.
    #[arg(long, value_name = "N", value_parser = values::number(0u32..))]
    push_rate: u32 => push_rate by same, |rate| (*rate > 0).then(|| rate.to_string());
    /// Push nothing until this is false again.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    push_paused: bool => push_paused by same, mark;
    /// Index by which searches find messages without a look at each of them.
    #[arg(long, value_name = "WHAT", value_parser = ["none", "tags", "errors", "tags_and_errors"])]
    search_index: String => search_index by same, |it| name(it);
    /// Stop deliveries until the queue is resumed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    paused: bool => paused by same, mark;
    /// Refuse sends until the queue is opened.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    closed: bool => closed by same, mark;
}

#[derive(Debug, Args)]
struct WeightFlags {
    /// Number of messages that a fair key may give in its turn; repeat the flag for several keys. Replaces
    /// all weights.
    #[arg(long, value_name = "KEY=WEIGHT", value_parser = fair_weight)]
    fair_weight: Vec<(String, u16)>,
    /// Remove all weights of fair keys.
    #[arg(long, conflicts_with = "fair_weight")]
    no_fair_weights: bool,
}

impl WeightFlags {
    fn given(self) -> Result<Option<BTreeMap<String, u16>>> {
        let given = self.no_fair_weights || !self.fair_weight.is_empty();
        let mut weights = BTreeMap::new();
        for (key, weight) in self.fair_weight {
            if weights.contains_key(&key) {
                return Err(CliError::usage(format!("--fair-weight: the key {key:?} is given twice")));
            }
            weights.insert(key, weight);
        }
        Ok(given.then_some(weights))
    }
}

fn shown<T>(value: &T, text: impl Fn(&T) -> Option<String>) -> Option<String> {
    text(value)
}

fn same<T>(value: T) -> T {
    value
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn short_millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn number(number: &u32) -> Option<String> {
    Some(number.to_string())
}

fn name(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

fn mark(is: &bool) -> Option<String> {
    is.then(|| "yes".to_owned())
}

fn backoff_text(b: &Backoff) -> Option<String> {
    if b.kind == BackoffKind::None {
        return Some("none".to_owned());
    }
    Some(format!("{}:{}:{}:{}%", b.kind, length(b.base_ms), length(b.cap_ms), b.jitter_percent))
}

fn ordering_retry(how: String) -> OrderingRetry {
    match how.as_str() {
        "step_aside" => OrderingRetry::StepAside,
        _ => OrderingRetry::Block,
    }
}

fn placement(how: String) -> Placement {
    match how.as_str() {
        "least_loaded" => Placement::LeastLoaded,
        "sticky" => Placement::Sticky,
        _ => Placement::Fair,
    }
}

fn on_expire(how: String) -> OnExpire {
    match how.as_str() {
        "drop" => OnExpire::Drop,
        _ => OnExpire::DeadLetter,
    }
}

fn overflow(how: String) -> Overflow {
    match how.as_str() {
        "dead_letter_oldest" => Overflow::DeadLetterOldest,
        _ => Overflow::RefuseNew,
    }
}

fn overflow_text(how: &Overflow) -> Option<String> {
    (*how == Overflow::DeadLetterOldest).then(|| "dead_letter_oldest".to_owned())
}

fn ordering_retry_text(how: &OrderingRetry) -> Option<String> {
    (*how == OrderingRetry::StepAside).then(|| "step_aside".to_owned())
}

fn placement_text(how: &Placement) -> Option<String> {
    let how = match how {
        Placement::Fair => return None,
        Placement::LeastLoaded => "least_loaded",
        Placement::Sticky => "sticky",
    };
    Some(how.to_owned())
}

fn weights_text(weights: &BTreeMap<String, u16>) -> String {
    let weights: Vec<String> = weights.iter().map(|(key, weight)| format!("{key}={weight}")).collect();
    weights.join(", ")
}

fn headers_text(headers: &BTreeMap<String, String>) -> String {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
    headers.join(", ")
}
