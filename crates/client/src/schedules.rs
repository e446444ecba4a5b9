//! Schedules: messages that are sent at times of day, or again and again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;

/// When a schedule fires, and what it sends. One of `cron` and `every_ms`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleSettings<'a> {
    /// Five fields, six with seconds first, or a word such as `@daily`.
    pub cron: Option<String>,
    /// The time zone of `cron`; `None`: UTC.
    pub time_zone: Option<String>,
    /// Each time that so many milliseconds have passed; at least 1,000.
    pub every_ms: Option<u64>,
    /// What becomes of instants at which the server was down: `once` (default), `all`, `skip`.
    pub missed: Option<String>,
    /// The queue that it sends to.
    pub queue: String,
    /// What it sends.
    pub message: Message<'a>,
}

/// A schedule, and what it has done.
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
    /// Whether it is paused.
    pub paused: bool,
    /// When it fires next, in milliseconds since the Unix epoch.
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
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// What it sends, with the fields of a send; only where one schedule is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
    /// What a newer server added.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
