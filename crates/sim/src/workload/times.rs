//! Times of schedules, in the few forms that the workload uses.

/// Expressions with the same interval between all instants, in UTC, so that the model can compute them.
const EXPRESSIONS: [(&str, u64); 4] =
    [("*/10 * * * * *", 10), ("* * * * *", 60), ("*/15 * * * *", 900), ("@hourly", 3_600)];

/// Treatment of instants that the server has missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missed {
    /// One message for all of them.
    Once,
    /// One message for each.
    All,
    /// No message, except for the latest if it is only a little late.
    Skip,
}

/// Times at which a schedule fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Interval in microseconds.
    pub step_us: u64,
    /// True when instants are multiples of the interval since the Unix epoch; else they count from the time
    /// of the setting.
    pub aligned: bool,
    /// See [`Missed`].
    pub missed: Missed,
}

impl Times {
    /// The first instant after this time, counted from this time.
    pub fn first_after(&self, us: u64) -> u64 {
        self.next_after(us, us)
    }

    /// The first instant after `us`, counted from an earlier one. `instant_us` may belong to times that the
    /// schedule had before.
    pub fn next_after(&self, instant_us: u64, us: u64) -> u64 {
        let from_us = if self.aligned { 0 } else { instant_us };
        from_us + ((us - from_us) / self.step_us + 1) * self.step_us
    }

    /// The encoding in the log, as the node writes it.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let missed = match self.missed {
            Missed::Once => "once",
            Missed::All => "all",
            Missed::Skip => "skip",
        };
        let seconds = self.step_us / 1_000_000;
        let expression = EXPRESSIONS.iter().find(|(_, step)| self.aligned && *step == seconds);
        match expression {
            Some((expression, _)) => format!("1 {missed} cron UTC {expression}"),
            None => format!("1 {missed} every {}", self.step_us / 1_000),
        }
        .into_bytes()
    }

    /// Decodes the times.
    pub fn of(spec: &[u8]) -> Option<Times> {
        let text = std::str::from_utf8(spec).ok()?;
        let missed = match text.split(' ').nth(1)? {
            "once" => Missed::Once,
            "all" => Missed::All,
            "skip" => Missed::Skip,
            _ => return None,
        };
        let expression = text.split_once("UTC ").map(|(_, expression)| expression);
        let step_us = match expression {
            Some(expression) => EXPRESSIONS.iter().find(|(known, _)| *known == expression)?.1 * 1_000_000,
            None => text.rsplit(' ').next()?.parse::<u64>().ok()? * 1_000,
        };
        Some(Times { step_us, aligned: expression.is_some(), missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_as_they_were_written() {
        for missed in [Missed::Once, Missed::All, Missed::Skip] {
            for (seconds, aligned) in [(1, false), (10, false), (10, true), (3_600, true)] {
                let times = Times { step_us: seconds * 1_000_000, aligned, missed };
                assert_eq!(Times::of(&times.to_bytes()), Some(times));
            }
        }
    }
}
