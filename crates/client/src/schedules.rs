//! Schedules: messages that the server sends at times of day or at intervals.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;

/// The settings of a schedule: its times, and the message that it sends. Exactly one of `cron` and `every_ms`
/// is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleSettings<'a> {
    /// Cron expression: five fields, six with seconds first, or a word such as `@daily`.
    pub cron: Option<String>,
    /// Time zone of `cron`, such as `Europe/Berlin`; `None`: UTC.
    pub time_zone: Option<String>,
    /// Interval in milliseconds, at least 1,000.
    pub every_ms: Option<u64>,
    /// Treatment of instants that passed while the server was down: `once` (one message for all of them, the
    /// default), `all` (one for each), `skip`.
    pub missed: Option<String>,
    /// The queue that it sends to.
    pub queue: String,
    /// Message that it sends.
    pub message: Message<'a>,
}

/// The answer to a trigger of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Triggered {
    /// Id of the message.
    pub id: String,
    /// True when a message with the same unique key was there already; then `id` is its id.
    pub duplicate: bool,
}

/// A schedule with its counters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// See [`ScheduleSettings::cron`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// See [`ScheduleSettings::time_zone`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// See [`ScheduleSettings::every_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// See [`ScheduleSettings::missed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// The queue that it sends to.
    pub queue: String,
    /// True when it is paused.
    pub paused: bool,
    /// Next instant, in milliseconds since the Unix epoch; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at_ms: Option<u64>,
    /// Instants at which it sent its message.
    pub fired: u64,
    /// Instants at which a message with its unique key was there already.
    pub duplicates: u64,
    /// Instants at which its message was refused.
    pub refused: u64,
    /// The latest instant, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at_ms: Option<u64>,
    /// Id of the latest message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_id: Option<String>,
    /// Code of the error with which the latest message was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Time of its creation, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Message that it sends, with the fields of a send; `None` in lists of schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
