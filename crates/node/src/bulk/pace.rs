//! The rate of a bulk: how many messages its next record changes, and when.

use sluice_engine::pace::{next_due_us, portion};

/// The rate, and the time of the next record.
#[derive(Debug)]
pub(super) struct Pace {
    /// Messages per second; `None`: any number.
    per_second: Option<u32>,
    /// Time from which on the next record is due, in microseconds by the driver's clock; `None`: none was
    /// taken yet.
    next_us: Option<u64>,
}

impl Pace {
    pub(super) fn new(per_second: Option<u32>) -> Pace {
        Pace { per_second, next_us: None }
    }

    /// Time of the next record, if it is not due yet.
    pub(super) fn due_us(&self, now_us: u64) -> Option<u64> {
        self.next_us.filter(|next_us| *next_us > now_us)
    }

    /// Number of messages, of those that wait, that the record of this moment changes.
    pub(super) fn take(&mut self, now_us: u64, waiting: usize) -> usize {
        let Some(per_second) = self.per_second else { return waiting };
        let count = waiting.min(portion(per_second) as usize);
        let due_us = self.next_us.unwrap_or(now_us);
        self.next_us = Some(next_due_us(due_us, now_us, count as u32, per_second));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_the_rate() {
        for per_second in [1, 7, 99, 100, 1_234, 100_000] {
            let mut pace = Pace::new(Some(per_second));
            let (mut now_us, mut taken) = (0, 0);
            while now_us < 10_000_000 {
                taken += pace.take(now_us, 1_000_000);
                now_us = pace.due_us(now_us).unwrap();
            }
            let (due, slack) = (per_second as usize * 10, per_second as usize / 50 + 1);
            assert!(taken.abs_diff(due) <= slack, "{per_second}: {taken}");
        }
    }

    #[test]
    fn what_comes_very_late_is_no_burst() {
        let mut pace = Pace::new(Some(10));
        assert_eq!(pace.take(5_000_000, 3), 1);
        assert_eq!(pace.due_us(5_000_000), Some(5_100_000));
        assert_eq!(pace.take(5_250_000, 3), 1);
        assert_eq!(pace.due_us(5_150_000), Some(5_200_000), "a record is made up for");
        assert_eq!(pace.take(50_000_000, 3), 1);
        assert_eq!(pace.due_us(49_000_000), Some(49_100_000));
    }

    #[test]
    fn without_a_rate_all_are_due() {
        let mut pace = Pace::new(None);
        assert_eq!((pace.take(5, 128), pace.due_us(5)), (128, None));
    }
}
