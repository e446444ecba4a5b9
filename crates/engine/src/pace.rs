//! Pace of work that goes on at a rate: in portions, each at its time.

/// Portions per second at a fast rate; at a slow one they are of one message.
const PORTIONS_PER_SECOND: u32 = 100;
/// Longest time by which portions may be late and are made up for, in microseconds. More would be a burst.
const BEHIND_US_MAX: u64 = 1_000_000;

/// Messages of one portion at a rate; at least 1.
pub fn portion(per_second: u32) -> u32 {
    (per_second / PORTIONS_PER_SECOND).max(1)
}

/// Time at which the next portion is due, in microseconds, behind one of so many messages that was due at
/// `due_us` and comes at `now_us`.
pub fn next_due_us(due_us: u64, now_us: u64, messages: u32, per_second: u32) -> u64 {
    let pause_us = (u64::from(messages) * 1_000_000).div_ceil(u64::from(per_second.max(1)));
    due_us.max(now_us.saturating_sub(BEHIND_US_MAX)) + pause_us
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of ten seconds, looked at so often.
    fn given(per_second: u32, every_us: usize) -> u32 {
        let (mut due_us, mut given) = (0, 0);
        for now_us in (0..10_000_000).step_by(every_us) {
            while due_us <= now_us {
                given += portion(per_second);
                due_us = next_due_us(due_us, now_us, portion(per_second), per_second);
            }
        }
        given
    }

    #[test]
    fn portions_keep_the_rate() {
        for per_second in [1, 7, 99, 100, 1_234, 100_000] {
            let slack = portion(per_second) + per_second / 100;
            assert!(given(per_second, 100).abs_diff(per_second * 10) <= slack, "{per_second}");
        }
    }

    #[test]
    fn portions_that_come_late_keep_the_rate() {
        for per_second in [50, 1_000, 10_000] {
            let given = given(per_second, 25_000);
            assert!(given.abs_diff(per_second * 10) <= per_second / 20, "{per_second}: {given}");
        }
    }

    #[test]
    fn what_comes_very_late_is_no_burst() {
        assert_eq!(next_due_us(1_000, 5_000_000, 1, 10), 4_100_000);
    }
}
