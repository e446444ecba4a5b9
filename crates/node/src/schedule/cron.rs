//! Cron expressions in a time zone.
//!
//! An expression matches local times. Where the clock is set forward, matching times that it leaves out fire
//! at the change; where it is set back, matching times that occur twice fire the first time only. An
//! expression that matches every hour (`*` or `*/n`) follows the passing of time instead: it fires whenever
//! the clock shows a matching time, twice where that occurs twice, and nothing fires for times that are left
//! out.

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use sluice_engine::Error;

/// Longest expression, in bytes.
pub const CRON_BYTES_MAX: usize = 256;
/// Longest name of a time zone, in bytes.
pub const TIME_ZONE_BYTES_MAX: usize = 64;

/// A parsed expression and its time zone.
#[derive(Debug)]
pub(crate) struct Cron {
    cron: croner::Cron,
    zone: TimeZone,
    every_hour: bool,
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

impl Cron {
    /// # Errors
    /// `invalid_argument` for `cron` or `time_zone`, with the reason.
    pub(crate) fn parse(expression: &str, time_zone: &str) -> Result<Cron, Error> {
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let shown: String = expression.chars().take(CRON_BYTES_MAX).collect();
        let wrong = |reason: String| Err(invalid("cron", format!("{shown:?}: {reason}")));
        if expression.len() > CRON_BYTES_MAX {
            return wrong(format!("{} bytes are too many: use at most {CRON_BYTES_MAX}", expression.len()));
        }
        let word = expression.trim_start().starts_with('@');
        if !word && !matches!(fields.len(), 5 | 6) {
            let count = fields.len();
            return wrong(format!(
                "{count} fields: use five, six with seconds first, or a word such as @daily"
            ));
        }
        let known = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"];
        if word && !known.iter().any(|known| known.eq_ignore_ascii_case(expression.trim())) {
            return wrong(format!("no such word: use one of {}", known.join(", ")));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = match parser.parse(expression) {
            Ok(cron) => cron,
            Err(error) => return wrong(mistake(&parser, &fields).unwrap_or_else(|| error.to_string())),
        };
        let every_hour = if word {
            expression.trim().eq_ignore_ascii_case("@hourly")
        } else {
            fields[fields.len() - 4].starts_with('*')
        };
        Ok(Cron { cron, zone: zone(time_zone)?, every_hour })
    }

    /// The first instant after `after_us`, in microseconds since the Unix epoch.
    pub(crate) fn next_after(&self, after_us: u64) -> Option<u64> {
        let after = timestamp(after_us)?;
        micros(if self.every_hour { self.next_by_hours(after) } else { self.next_by_day(after) }?)
    }

    /// The latest instant at or before `until_us`, in microseconds since the Unix epoch.
    pub(crate) fn latest_until(&self, until_us: u64) -> Option<u64> {
        let until = timestamp(until_us)?;
        micros(if self.every_hour { self.latest_by_hours(until) } else { self.latest_by_day(until) }?)
    }

    fn next_by_day(&self, after: Timestamp) -> Option<Timestamp> {
        let mut civil = self.covered(after)?;
        loop {
            civil = self.cron.find_next_occurrence(&civil, false).ok()?;
            let at = self.instant(civil)?;
            if at > after {
                return Some(at);
            }
        }
    }

    fn latest_by_day(&self, until: Timestamp) -> Option<Timestamp> {
        let civil = self.cron.find_previous_occurrence(&self.covered(until)?, true).ok()?;
        self.instant(civil)
    }

    /// The latest local time such that all times up to it have their instants at or before `at`, and no later
    /// time has. While the clock shows times for the second time, this is the time at which it was set back.
    fn covered(&self, at: Timestamp) -> Option<DateTime> {
        let shown = self.zone.to_offset(at).to_datetime(at);
        let Some(change) = self.zone.preceding(at.checked_add(SECOND).ok()?).next() else {
            return Some(shown);
        };
        let before = change.timestamp().checked_sub(SECOND).ok()?;
        Some(shown.max(self.zone.to_offset(before).to_datetime(before)))
    }

    /// The instant at which the clock shows a local time: the first one, or for a time that is left out, the
    /// change of the clock.
    fn instant(&self, civil: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                let earlier = after.to_timestamp(civil).ok()?.checked_sub(SECOND).ok()?;
                Some(self.zone.following(earlier).next()?.timestamp())
            }
        }
    }

    fn next_by_hours(&self, after: Timestamp) -> Option<Timestamp> {
        let (mut from, mut inclusive) = (after, false);
        loop {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next().map(|change| change.timestamp());
            let civil = self.cron.find_next_occurrence(&offset.to_datetime(from), inclusive).ok()?;
            let at = offset.to_timestamp(civil).ok()?;
            match change {
                Some(change) if at >= change => (from, inclusive) = (change, true),
                _ => return Some(at),
            }
        }
    }

    fn latest_by_hours(&self, until: Timestamp) -> Option<Timestamp> {
        let mut until = until;
        loop {
            let offset: Offset = self.zone.to_offset(until);
            let change = self.zone.preceding(until.checked_add(SECOND).ok()?).next();
            let civil = self.cron.find_previous_occurrence(&offset.to_datetime(until), true).ok()?;
            let at = offset.to_timestamp(civil).ok()?;
            match change.map(|change| change.timestamp()) {
                Some(change) if at < change => until = change.checked_sub(SECOND).ok()?,
                _ => return Some(at),
            }
        }
    }
}

/// The fields of an expression, and the values that each may have beside `*`.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day", "1 to 31, or L"),
    ("month", "1 to 12, or JAN to DEC"),
    ("weekday", "0 to 7, or SUN to SAT"),
];

/// The first field that cannot be parsed by itself, with its valid values.
fn mistake(parser: &CronParser, fields: &[&str]) -> Option<String> {
    let named = FIELDS.iter().skip(FIELDS.len().saturating_sub(fields.len()));
    let wrong = |at: usize| {
        let mut alone = vec!["*"; fields.len()];
        alone[at] = fields[at];
        parser.parse(&alone.join(" ")).is_err()
    };
    let (at, (name, range)) = named.enumerate().take(fields.len()).find(|(at, _)| wrong(*at))?;
    let given = fields[at];
    Some(format!(
        "the {name} {given:?} is not valid: use {range}, or lists, ranges and steps of them, such as */2"
    ))
}

fn zone(name: &str) -> Result<TimeZone, Error> {
    let shown: String = name.chars().take(TIME_ZONE_BYTES_MAX).collect();
    let known = name.len() <= TIME_ZONE_BYTES_MAX && !name.contains(char::is_whitespace);
    known.then(|| TimeZone::get(name).ok()).flatten().ok_or_else(|| {
        let reason = format!("unknown time zone {shown:?}: use a name such as Europe/Berlin, or UTC");
        invalid("time_zone", reason)
    })
}

/// The instant in whole seconds of a time in microseconds.
fn timestamp(us: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(us / 1_000_000).ok()?).ok()
}

fn micros(at: Timestamp) -> Option<u64> {
    u64::try_from(at.as_second()).ok()?.checked_mul(1_000_000)
}

/// The error for a field of a schedule.
pub(crate) fn invalid(field: &str, reason: String) -> Error {
    Error::InvalidArgument { field: field.into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_microsecond() as u64
    }

    fn next(expression: &str, after: &str, count: usize) -> Vec<String> {
        let cron = Cron::parse(expression, "Europe/Berlin").unwrap();
        let mut instant = at(after);
        let mut all = Vec::new();
        for _ in 0..count {
            let before = instant;
            instant = cron.next_after(instant).unwrap();
            assert_eq!(cron.latest_until(instant), Some(instant), "{expression}");
            assert_eq!(cron.latest_until(instant + 999_999), Some(instant), "{expression}");
            assert!(cron.latest_until(instant - 1).unwrap() <= before, "{expression}: nothing lies between");
            all.push(timestamp(instant).unwrap().to_string());
        }
        all
    }

    #[test]
    fn expressions_name_times_of_the_zone() {
        assert_eq!(
            next("0 9 * * MON-FRI", "2026-01-02T08:00:00Z", 3),
            ["2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z", "2026-01-07T08:00:00Z"]
        );
        assert_eq!(next("30 0 0 1 * *", "2026-06-30T21:00:00Z", 1), ["2026-06-30T22:00:30Z"]);
        assert_eq!(next("@daily", "2026-07-01T00:00:00Z", 1), ["2026-07-01T22:00:00Z"]);
        assert_eq!(next("0 0 29 2 *", "2026-01-01T00:00:00Z", 1), ["2028-02-28T23:00:00Z"]);
    }

    /// On 29 March 2026 the clocks of Berlin go from 2:00 to 3:00, at 1:00 UTC.
    #[test]
    fn what_summer_time_leaves_out_fires_at_the_change() {
        assert_eq!(
            next("30 2 * * *", "2026-03-28T00:00:00Z", 3),
            ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
        );
        assert_eq!(
            next("*/20 2,3 * * *", "2026-03-29T00:00:00Z", 3),
            ["2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z", "2026-03-29T01:40:00Z"]
        );
        assert_eq!(
            next("30 * * * *", "2026-03-29T00:00:00Z", 3),
            ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"]
        );
    }

    /// On 25 October 2026 the clocks of Berlin go from 3:00 back to 2:00, at 1:00 UTC.
    #[test]
    fn what_comes_twice_fires_the_first_time() {
        assert_eq!(
            next("30 2 * * *", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        assert_eq!(
            next("*/30 1-3 * * *", "2026-10-24T23:30:00Z", 4),
            ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"]
        );
        assert_eq!(next("45 2 * * *", "2026-10-25T01:15:00Z", 1), ["2026-10-26T01:45:00Z"]);
        assert_eq!(
            next("30 * * * *", "2026-10-25T00:00:00Z", 3),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"]
        );
    }

    #[test]
    fn mistakes_are_told() {
        let told = |expression: &str, zone: &str| Cron::parse(expression, zone).unwrap_err().to_string();
        assert!(told("* * * *", "UTC").contains("4 fields"), "{}", told("* * * *", "UTC"));
        assert!(
            told("61 * * * *", "UTC")
                .starts_with("cron: \"61 * * * *\": the minute \"61\" is not valid: use 0 to 59")
        );
        assert!(told("0 0 9 * * MOO", "UTC").contains("the weekday \"MOO\""));
        assert!(told("@reboot", "UTC").contains("@daily"));
        assert!(told("* * * * * * 2030", "UTC").contains("7 fields"));
        assert!(told("0 9 * * *", "Europe/Berln").contains("\"Europe/Berln\""));
        assert!(told("0 9 * * *", "").contains("time_zone"));
        let never = Cron::parse("0 0 30 2 *", "UTC").unwrap();
        assert_eq!(never.next_after(at("2026-01-01T00:00:00Z")), None);
    }
}
