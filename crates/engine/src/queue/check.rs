//! Checks of the rules of limits that do not look at the state.

use crate::error::Error;
use crate::limit::{IN_FLIGHT_MAX, LimitRules, RATE_COUNT_MAX, RATE_PER_MS_MAX, RATE_PERIOD_MS_MAX};
use crate::limits::{DELAY_MS_MAX, Limits};
use crate::rules::{at_most, between, invalid};

pub(crate) fn check_rules(rules: &LimitRules) -> Result<(), Error> {
    for (field, count) in [("in_flight", rules.in_flight), ("in_flight_per_key", rules.in_flight_per_key)] {
        if let Some(count) = count {
            none_refused(field, count.into(), IN_FLIGHT_MAX.into())?;
        }
    }
    for (field, rate) in [("rate", rules.rate), ("rate_per_key", rules.rate_per_key)] {
        let Some(rate) = rate else { continue };
        none_refused(&format!("{field}.count"), rate.count.into(), RATE_COUNT_MAX.into())?;
        none_refused(&format!("{field}.period_ms"), rate.period_ms, RATE_PERIOD_MS_MAX)?;
        none_refused(&format!("{field}.burst"), rate.burst.into(), RATE_COUNT_MAX.into())?;
        if u64::from(rate.count) > RATE_PER_MS_MAX * rate.period_ms {
            let reason = format!(
                "{} in {} ms is more than {RATE_PER_MS_MAX} in each millisecond: count in a larger unit",
                rate.count, rate.period_ms
            );
            return Err(invalid(format!("{field}.count"), reason));
        }
        if !rate.is_sound() {
            let reason = format!(
                "a burst of {} takes more than ten years at {} each {} ms",
                rate.burst, rate.count, rate.period_ms
            );
            return Err(invalid(format!("{field}.burst"), reason));
        }
    }
    Ok(())
}

/// Refuses a limit of 0: a queue that is to give nothing is paused instead.
fn none_refused(field: &str, value: u64, max: u64) -> Result<(), Error> {
    if value == 0 {
        let reason = "0 would let nothing through: use at least 1, or pause the queue".into();
        return Err(invalid(field, reason));
    }
    between(field, value, 1, max)
}

impl Limits {
    /// Refuses limits that the engine's layouts cannot carry, or with which nothing could be done.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the limit.
    pub fn check(&self) -> Result<(), Error> {
        between("limits.payload", u64::from(self.payload_bytes), 1, 1 << 30)?;
        at_most("limits.headers", u64::from(self.headers), 255)?;
        at_most("limits.headers_bytes", u64::from(self.headers_bytes), 60 << 10)?;
        between("limits.batch_items", u64::from(self.batch_items), 1, 10_000)?;
        between("limits.batch_bytes", u64::from(self.batch_bytes), 1, 1 << 30)?;
        between("limits.receive_messages", u64::from(self.receive_messages), 1, 10_000)?;
        between("limits.queues", u64::from(self.queues), 1, 10_000_000)?;
        between("limits.namespaces", u64::from(self.namespaces), 2, 1_000_000)?;
        between("limits.messages", self.messages, 1, 4_000_000_000)?;
        at_most("limits.idempotency_keys", u64::from(self.idempotency_keys), 1 << 30)?;
        at_most("limits.idempotency_window", self.idempotency_window_ms, DELAY_MS_MAX)?;
        if self.batch_bytes < self.payload_bytes {
            let reason = format!("{} is below limits.payload {}", self.batch_bytes, self.payload_bytes);
            return Err(invalid("limits.batch_bytes", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{TAG_BYTES_MAX, TAGS_MAX};

    #[test]
    fn the_defaults_pass_their_own_check() {
        assert_eq!(Limits::default().check(), Ok(()));
        // Even the largest heads fit the two bytes of their length.
        let largest = 2 + 1 + 255 + 1 + 255 * 4 + (60 << 10) + TAGS_MAX * (4 + TAG_BYTES_MAX);
        assert!(largest <= usize::from(u16::MAX));
    }
}
