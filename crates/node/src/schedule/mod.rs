//! Schedules: their settings, the encoding in the log, and the firings when an instant has come.

mod cron;
mod firing;

use sluice_engine::Error;
use sluice_engine::limits::DELAY_MS_MAX;

use cron::Cron;
pub(crate) use cron::invalid;
pub use cron::{CRON_BYTES_MAX, TIME_ZONE_BYTES_MAX};
pub(crate) use firing::{Firing, firings};

/// Shortest interval, in milliseconds.
pub const EVERY_MS_MIN: u64 = 1_000;
/// Maximum number of instants that are caught up one by one.
pub const CAUGHT_UP_MAX: usize = 1_000;
/// Delay up to which an instant counts as on time, in microseconds.
pub const ON_TIME_US: u64 = 60_000_000;

/// The names of [`Missed`], in its order.
pub const MISSED: [&str; 3] = ["once", "all", "skip"];

/// Treatment of instants at which the server was down or too busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Missed {
    /// One message for all of them.
    #[default]
    Once,
    /// One message for each, up to the latest [`CAUGHT_UP_MAX`].
    All,
    /// No message: only an instant that is at most [`ON_TIME_US`] late fires.
    Skip,
}

/// Times at which a schedule fires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum When {
    /// At the times that match an expression.
    Cron {
        /// Five fields, six with seconds first, or a word such as `@daily`.
        expression: String,
        /// A name of the IANA time zone database.
        time_zone: String,
    },
    /// At equal intervals.
    Every {
        /// Interval in milliseconds; at least [`EVERY_MS_MIN`].
        every_ms: u64,
    },
}

/// Times at which a schedule fires, and the treatment of missed instants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleSpec {
    /// Times.
    pub when: When,
    /// Treatment of missed instants.
    pub missed: Missed,
}

impl ScheduleSpec {
    /// Encoding in the log: version of the layout, name of the treatment of missed instants, then `every MS`
    /// or `cron ZONE EXPRESSION`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let missed = MISSED[self.missed as usize];
        match &self.when {
            When::Every { every_ms } => format!("1 {missed} every {every_ms}"),
            When::Cron { expression, time_zone } => format!("1 {missed} cron {time_zone} {expression}"),
        }
        .into_bytes()
    }

    /// Decodes what [`ScheduleSpec::to_bytes`] has encoded; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<ScheduleSpec> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix("1 ")?;
        let (missed, text) = text.split_once(' ')?;
        let missed = match missed {
            "once" => Missed::Once,
            "all" => Missed::All,
            "skip" => Missed::Skip,
            _ => return None,
        };
        let when = match text.split_once(' ')? {
            ("every", every_ms) => When::Every { every_ms: every_ms.parse().ok()? },
            ("cron", text) => {
                let (time_zone, expression) = text.split_once(' ')?;
                When::Cron { expression: expression.into(), time_zone: time_zone.into() }
            }
            _ => return None,
        };
        Some(ScheduleSpec { when, missed })
    }

    /// Parses and checks the schedule.
    ///
    /// # Errors
    /// `invalid_argument` with the name of the field: an interval out of range, an expression that cannot be
    /// parsed, an unknown time zone.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        match &self.when {
            When::Every { every_ms } if (EVERY_MS_MIN..=DELAY_MS_MAX).contains(every_ms) => {
                Ok(Plan::Every(every_ms * 1_000))
            }
            When::Every { every_ms } => {
                let reason = format!("{every_ms} is out of range: use {EVERY_MS_MIN} to {DELAY_MS_MAX}");
                Err(invalid("every_ms", reason))
            }
            When::Cron { expression, time_zone } => {
                Ok(Plan::Cron(Cron::parse(expression, time_zone)?.into()))
            }
        }
    }

    /// The first instant after `after_us`, for a schedule that begins then.
    ///
    /// # Errors
    /// Those of [`ScheduleSpec::plan`]; an expression that never fires.
    pub(crate) fn first_after(&self, after_us: u64) -> Result<u64, Error> {
        self.plan()?.next_after(after_us, after_us).ok_or_else(|| {
            let When::Cron { expression, .. } = &self.when else {
                return invalid("every_ms", "the next time is out of range".into());
            };
            let reason = format!("{expression:?} never fires: no such date comes");
            invalid("cron", reason)
        })
    }
}

/// A way to compute instants, all in microseconds since the Unix epoch.
#[derive(Debug)]
pub(crate) enum Plan {
    Cron(Box<Cron>),
    /// Interval in microseconds.
    Every(u64),
}

impl Plan {
    /// The first instant after `after_us`. `instant_us`: an instant from which intervals are counted.
    pub(crate) fn next_after(&self, instant_us: u64, after_us: u64) -> Option<u64> {
        match self {
            Plan::Cron(cron) => cron.next_after(after_us),
            Plan::Every(every_us) => {
                let passed = after_us.saturating_sub(instant_us) / every_us;
                instant_us.checked_add((passed + 1).checked_mul(*every_us)?)
            }
        }
    }

    /// The latest instant at or before `until_us`, which is at or after `instant_us`.
    pub(crate) fn latest_until(&self, instant_us: u64, until_us: u64) -> Option<u64> {
        match self {
            Plan::Cron(cron) => cron.latest_until(until_us),
            Plan::Every(every_us) => {
                let passed = until_us.checked_sub(instant_us)? / every_us;
                Some(instant_us + passed * every_us)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_come_back_as_they_were_written() {
        let cron = When::Cron { expression: "0 9 * * MON-FRI".into(), time_zone: "Europe/Berlin".into() };
        for when in [cron, When::Every { every_ms: 60_000 }] {
            for missed in [Missed::Once, Missed::All, Missed::Skip] {
                let spec = ScheduleSpec { when: when.clone(), missed };
                assert_eq!(ScheduleSpec::from_bytes(&spec.to_bytes()), Some(spec));
            }
        }
        for bad in ["", "1", "2 once every 5", "1 never every 5", "1 once every x", "1 once cron UTC"] {
            assert_eq!(ScheduleSpec::from_bytes(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn intervals_keep_their_step() {
        let plan = Plan::Every(10);
        assert_eq!(plan.next_after(100, 100), Some(110));
        assert_eq!(plan.next_after(100, 109), Some(110));
        assert_eq!(plan.next_after(100, 110), Some(120));
        assert_eq!(plan.latest_until(100, 119), Some(110));
        assert_eq!(plan.latest_until(100, 100), Some(100));
    }
}
