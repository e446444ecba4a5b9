//! When a schedule fires: what a caller says, how it lies in the log, and what is to be done when an instant
//! has come.

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
/// Most instants that are caught up one by one.
pub const CAUGHT_UP_MAX: usize = 1_000;
/// How late an instant may be and yet count as on time, in microseconds.
pub const ON_TIME_US: u64 = 60_000_000;

/// The words for [`Missed`], in its order.
pub const MISSED: [&str; 3] = ["once", "all", "skip"];

/// What becomes of instants at which the server was down, or too busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Missed {
    /// One message for all of them.
    #[default]
    Once,
    /// One message for each, for the latest [`CAUGHT_UP_MAX`].
    All,
    /// None: only an instant that is not later than [`ON_TIME_US`] counts.
    Skip,
}

/// When a schedule fires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum When {
    /// At the times that an expression names.
    Cron {
        /// Five fields, six with seconds first, or a word such as `@daily`.
        expression: String,
        /// A name of the IANA time zone database.
        time_zone: String,
    },
    /// Each time that so many milliseconds have passed.
    Every {
        /// At least [`EVERY_MS_MIN`].
        every_ms: u64,
    },
}

/// When a schedule fires, and what becomes of instants that were missed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleSpec {
    /// When.
    pub when: When,
    /// What becomes of instants that were missed.
    pub missed: Missed,
}

impl ScheduleSpec {
    /// As it lies in the log: the layout's version, the word for what is missed, then `every MS` or `cron
    /// ZONE EXPRESSION`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let missed = MISSED[self.missed as usize];
        match &self.when {
            When::Every { every_ms } => format!("1 {missed} every {every_ms}"),
            When::Cron { expression, time_zone } => format!("1 {missed} cron {time_zone} {expression}"),
        }
        .into_bytes()
    }

    /// Reads what [`ScheduleSpec::to_bytes`] gave; `None` for anything else.
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

    /// Reads the expression, and sees that it is sound.
    ///
    /// # Errors
    /// `invalid_argument` names the field: an interval out of range, an expression that cannot be read, an
    /// unknown time zone.
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
    /// As [`ScheduleSpec::plan`]; an expression that never fires.
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
    /// Each so many microseconds.
    Every(u64),
}

impl Plan {
    /// The first instant after `after_us`. `instant_us`: one from which intervals are counted.
    pub(crate) fn next_after(&self, instant_us: u64, after_us: u64) -> Option<u64> {
        match self {
            Plan::Cron(cron) => cron.next_after(after_us),
            Plan::Every(every_us) => {
                let passed = after_us.saturating_sub(instant_us) / every_us;
                instant_us.checked_add((passed + 1).checked_mul(*every_us)?)
            }
        }
    }

    /// The latest instant that is not after `until_us`, which is at or after `instant_us`.
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
