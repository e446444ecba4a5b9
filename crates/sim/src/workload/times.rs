//! When schedules fire, in the few ways that the workload asks for.

/// Expressions of the same length of time from instant to instant, in UTC, so that the model can tell them by
/// counting.
const EXPRESSIONS: [(&str, u64); 4] =
    [("*/10 * * * * *", 10), ("* * * * *", 60), ("*/15 * * * *", 900), ("@hourly", 3_600)];

/// What becomes of instants at which the server was down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missed {
    /// One message for all of them.
    Once,
    /// One message each.
    All,
    /// None, but for the latest if that is hardly late.
    Skip,
}

/// When a schedule fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// From instant to instant.
    pub step_us: u64,
    /// Whether instants are multiples of that since the Unix epoch; else they count from when they were set.
    pub aligned: bool,
    /// See [`Missed`].
    pub missed: Missed,
}

impl Times {
    /// The first instant after this time, counted from that time.
    pub fn first_after(&self, us: u64) -> u64 {
        self.next_after(us, us)
    }

    /// The first instant after `us`, counted from an earlier instant. One that was set by older times, just
    /// before others were put, need not be one of these.
    pub fn next_after(&self, instant_us: u64, us: u64) -> u64 {
        let from_us = if self.aligned { 0 } else { instant_us };
        from_us + ((us - from_us) / self.step_us + 1) * self.step_us
    }

    /// As the node lays them down in the log.
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

    /// Reads them again.
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
