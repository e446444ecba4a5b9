//! Rules of a namespace's limit: messages in flight and deliveries in time, overall and per limit key.
//!
//! Rates follow the generic cell rate algorithm (GCRA, ITU-T I.371): of each rate one time is kept, the
//! *theoretical arrival time* of the next delivery. A delivery is allowed as long as that time is less than
//! `burst` intervals ahead, and puts it off by as many intervals as its message costs. What a delivery costs
//! beyond what is left, and what its holder reports beyond that, is debt: it delays the next delivery, and is
//! never refused. So a cost that is larger than the burst does not wait for ever.

use crate::limits::DELAY_MS_MAX;
use crate::plant::{self, Plant};
use crate::wire::{Put, Reader};

/// Most messages in flight that a limit may name.
pub const IN_FLIGHT_MAX: u32 = 1_000_000_000;
/// Most that deliveries of a period may cost together, and largest burst.
pub const RATE_COUNT_MAX: u32 = 1_000_000_000;
/// Most of it in a millisecond: the time of one is whole nanoseconds, rounded up, which makes the fastest
/// rates up to a tenth slower.
pub const RATE_PER_MS_MAX: u64 = 100_000;
/// [`RATE_COUNT_MAX`] before behaviour version 14.
const RATE_COUNT_MAX_BEFORE: u32 = 1_000_000;
/// Highest cost of a message, and highest cost of one report.
pub const COST_MAX: u32 = 10_000_000;
/// Longest period of a rate, in milliseconds: 31 days.
pub const RATE_PERIOD_MS_MAX: u64 = 31 * 24 * 3600 * 1000;
/// Most queues that may share one limit.
pub const LIMIT_QUEUES_MAX: usize = 1_000;
/// Most limits of one shard.
pub const LIMITS_MAX: u32 = 100_000;
/// Most changes of a limit's rate per key that its keys have yet to follow.
pub const LIMIT_CHANGES_MAX: usize = 64;
/// Limit keys without messages of which a shard remembers how much of their rate is used up; of more it
/// forgets it.
pub const IDLE_LIMIT_KEYS_MAX: u32 = 1_000_000;

/// Maximum lead of an arrival time beyond the burst, in nanoseconds: debt that takes longer to pay off is
/// forgotten.
const DEBT_NS_MAX: u64 = DELAY_MS_MAX * 1_000_000;

/// Share of its limit's rates that one delivery of a message takes: 0 to [`COST_MAX`], 1 unless the sender
/// says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cost(pub u32);

impl Default for Cost {
    fn default() -> Cost {
        Cost(1)
    }
}

/// So many deliveries in a period, each counted as much as it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Cost of the deliveries in each period: 1 to 1,000,000,000.
    pub count: u32,
    /// The period in milliseconds: 1 to 31 days.
    pub period_ms: u64,
    /// Cost of deliveries at once after a time without any: 1 to 1,000,000,000.
    pub burst: u32,
}

/// Rules of a limit; `None`: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitRules {
    /// Leased messages of all queues that share the limit.
    pub in_flight: Option<u32>,
    /// Leased messages of each limit key.
    pub in_flight_per_key: Option<u32>,
    /// Deliveries of all queues that share the limit.
    pub rate: Option<Rate>,
    /// Deliveries of each limit key.
    pub rate_per_key: Option<Rate>,
}

/// A rate as it is reckoned with: worked out when the rate is set, since the division takes longer than all
/// the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// Time that a cost of one takes, in nanoseconds; rounded up, so that the rate is never exceeded.
    interval_ns: u64,
    /// Maximum lead of the theoretical arrival time for one more delivery, in nanoseconds.
    reach_ns: u64,
}

impl From<Rate> for Pace {
    fn from(rate: Rate) -> Pace {
        let interval_ns = (rate.period_ms * 1_000_000).div_ceil(u64::from(rate.count.max(1))).max(1);
        let reach_ns = interval_ns.saturating_mul(u64::from(rate.burst.max(1) - 1));
        Pace { interval_ns, reach_ns }
    }
}

impl Pace {
    /// Cost of deliveries that is allowed at once.
    pub(crate) fn allowed(&self, arrival_ns: u64, now_us: u64) -> u64 {
        let now_ns = now_us * 1_000;
        let last_ns = now_ns + self.reach_ns;
        last_ns.checked_sub(arrival_ns.max(now_ns)).map_or(0, |room_ns| room_ns / self.interval_ns + 1)
    }

    /// True if one more delivery is allowed at once, after others that cost so much together: without a
    /// division for that.
    #[inline]
    pub(crate) fn allows_after(&self, others: u64, arrival_ns: u64, now_us: u64) -> bool {
        let now_ns = now_us * 1_000;
        let room_ns = (now_ns + self.reach_ns).checked_sub(arrival_ns.max(now_ns));
        room_ns.is_some_and(|room_ns| room_ns >= self.interval_ns.saturating_mul(others))
    }

    /// The arrival time after something that costs so much.
    #[inline]
    pub(crate) fn spend(&self, cost: u32, arrival_ns: u64, now_us: u64) -> u64 {
        let now_ns = now_us * 1_000;
        let after_ns = arrival_ns.max(now_ns).saturating_add(self.interval_ns.saturating_mul(cost.into()));
        after_ns.min(now_ns + self.reach_ns + DEBT_NS_MAX)
    }

    /// Cost that is not made up for.
    pub(crate) fn spent(&self, arrival_ns: u64, now_us: u64) -> Spent {
        Spent { arrival_ns, interval_ns: self.interval_ns, told_at_us: now_us }
    }

    /// When the next delivery is allowed, in microseconds.
    pub(crate) fn next_us(&self, arrival_ns: u64) -> u64 {
        arrival_ns.saturating_sub(self.reach_ns).div_ceil(1_000)
    }

    /// The arrival time under this rate, when `before` was in force until `now_us`: what was spent and is not
    /// made up for stays so, up to the burst; debt is forgiven.
    pub(crate) fn take_over(&self, before: Pace, arrival_ns: u64, now_us: u64) -> u64 {
        if plant::is(Plant::SpendTime) {
            return self.forgive(arrival_ns, now_us);
        }
        let now_ns = now_us * 1_000;
        let ahead_ns = u128::from(arrival_ns.saturating_sub(now_ns));
        // Rounded up, as what is told of it, which stays the same so.
        let ahead_ns = (ahead_ns * u128::from(self.interval_ns)).div_ceil(u128::from(before.interval_ns));
        self.forgive(now_ns.saturating_add(u64::try_from(ahead_ns).unwrap_or(u64::MAX)), now_us)
    }

    /// The arrival time when at most all of the burst is used up, and debt is forgiven.
    pub(crate) fn forgive(&self, arrival_ns: u64, now_us: u64) -> u64 {
        arrival_ns.min(now_us * 1_000 + self.reach_ns + self.interval_ns)
    }
}

/// Cost under a rate that is not made up for yet: it becomes less as time goes by. More than the burst is
/// debt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spent {
    arrival_ns: u64,
    interval_ns: u64,
    told_at_us: u64,
}

impl Spent {
    /// The cost at this time, in microseconds since the Unix epoch; before the time of the engine's latest
    /// record, that at this one.
    pub fn at(&self, now_us: u64) -> u64 {
        let now_ns = self.told_at_us.max(now_us).saturating_mul(1_000);
        self.arrival_ns.saturating_sub(now_ns).div_ceil(self.interval_ns)
    }
}

impl Rate {
    /// True if its numbers can be reckoned with.
    pub(crate) fn is_sound(&self) -> bool {
        (1..=RATE_COUNT_MAX).contains(&self.count)
            && (1..=RATE_PERIOD_MS_MAX).contains(&self.period_ms)
            && (1..=RATE_COUNT_MAX).contains(&self.burst)
            && Pace::from(*self).reach_ns / 1_000_000 <= DELAY_MS_MAX
    }

    /// Writes a rate, or that there is none.
    pub(crate) fn write(rate: Option<Rate>, out: &mut Vec<u8>) {
        out.bool(rate.is_some());
        if let Some(rate) = rate {
            out.u32(rate.count);
            out.u64(rate.period_ms);
            out.u32(rate.burst);
        }
    }

    /// Reads what [`Rate::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Option<Rate>> {
        if !reader.bool()? {
            return Some(None);
        }
        let rate = Rate { count: reader.u32()?, period_ms: reader.u64()?, burst: reader.u32()? };
        rate.is_sound().then_some(Some(rate))
    }
}

impl LimitRules {
    /// True if a program that knows only behaviour versions before 14 can read them.
    pub(crate) fn are_small(&self) -> bool {
        let is_small =
            |rate: &Rate| rate.count <= RATE_COUNT_MAX_BEFORE && rate.burst <= RATE_COUNT_MAX_BEFORE;
        [self.rate, self.rate_per_key].iter().flatten().all(is_small)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for count in [self.in_flight, self.in_flight_per_key] {
            out.u32(count.unwrap_or(0));
        }
        Rate::write(self.rate, out);
        Rate::write(self.rate_per_key, out);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<LimitRules> {
        let count = |reader: &mut Reader<'_>| Some(Some(reader.u32()?).filter(|&count| count > 0));
        Some(LimitRules {
            in_flight: count(reader)?,
            in_flight_per_key: count(reader)?,
            rate: Rate::read(reader)?,
            rate_per_key: Rate::read(reader)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_then_one_each_interval() {
        let rate = Pace::from(Rate { count: 3, period_ms: 1_000, burst: 2 });
        let (mut arrival, now) = (0, 5_000_000);
        assert_eq!(rate.allowed(arrival, now), 2);
        for left in [1, 0] {
            arrival = rate.spend(1, arrival, now);
            assert_eq!((rate.allowed(arrival, now), rate.spent(arrival, now).at(0)), (left, 2 - left));
            assert!((0..4).all(|others| rate.allows_after(others, arrival, now) == (others < left)));
        }
        let next = rate.next_us(arrival);
        assert_eq!(next, now + 333_334);
        assert_eq!((rate.allowed(arrival, next - 1), rate.allowed(arrival, next)), (0, 1));
        assert_eq!(rate.allowed(arrival, now + 10_000_000), 2);
    }

    #[test]
    fn a_cost_beyond_what_is_left_is_debt_that_delays_the_next() {
        let rate = Pace::from(Rate { count: 10, period_ms: 1_000, burst: 10 });
        let now = 5_000_000;
        assert_eq!(rate.spend(0, 0, now), now * 1_000);
        let arrival = rate.spend(25, 0, now);
        assert_eq!((rate.allowed(arrival, now), rate.spent(arrival, now).at(0)), (0, 25));
        let next = rate.next_us(arrival);
        assert_eq!(next, now + 1_600_000);
        assert_eq!((rate.allowed(arrival, next), rate.spent(arrival, next).at(now)), (1, 9));
        assert_eq!(rate.spent(arrival, now).at(now + 2_500_000), 0);
    }

    #[test]
    fn the_largest_debt_under_the_slowest_rate_ends_some_time() {
        let rate = Pace::from(Rate { count: 1, period_ms: RATE_PERIOD_MS_MAX, burst: 1 });
        let now = 1_700_000_000_000_000;
        let arrival = (0..1_000).fold(0, |arrival, _| rate.spend(COST_MAX, arrival, now));
        assert_eq!(rate.next_us(arrival), now + DELAY_MS_MAX * 1_000);
        assert!(rate.allows_after(0, arrival, now + DELAY_MS_MAX * 1_000));
    }

    #[test]
    fn a_long_time_under_a_slow_rate_does_not_outlast_it() {
        let slow = Pace::from(Rate { count: 1, period_ms: RATE_PERIOD_MS_MAX, burst: 1 });
        let fast = Pace::from(Rate { count: 10, period_ms: 1_000, burst: 1 });
        let arrival = slow.spend(1, 0, 1_000_000);
        let arrival = fast.take_over(slow, arrival, 1_000_000);
        assert_eq!(fast.next_us(arrival), 1_100_000);
    }

    #[test]
    fn what_was_spent_is_the_same_under_another_rate_up_to_its_burst() {
        let now = 1_700_000_000_000_000;
        let rates = [(1, RATE_PERIOD_MS_MAX), (7, 86_400_000), (3, 1_000), (1_000_000, 7), (100_000, 1)];
        let paces = rates.map(|(count, period_ms)| Pace::from(Rate { count, period_ms, burst: 100 }));
        for (before, after) in paces.iter().flat_map(|before| paces.iter().map(move |after| (before, after)))
        {
            for cost in [0, 1, 2, 99, 100, 101, COST_MAX] {
                let arrival = before.spend(cost, 0, now);
                // A part of one is made up for.
                for later in [now, now + 1, now + 333_333, now + 3_000_000_001] {
                    let spent = before.spent(arrival, later).at(0);
                    let over = after.take_over(*before, arrival, later);
                    assert_eq!(after.spent(over, later).at(0), spent.min(100), "{before:?} {after:?} {cost}");
                }
            }
        }
    }

    #[test]
    fn rates_that_cannot_be_reckoned_with_are_told() {
        let sound = Rate { count: RATE_COUNT_MAX, period_ms: 1, burst: RATE_COUNT_MAX };
        assert!(sound.is_sound());
        assert!(!Rate { count: 0, ..sound }.is_sound());
        assert!(!Rate { burst: 0, ..sound }.is_sound());
        assert!(!Rate { count: 1, period_ms: RATE_PERIOD_MS_MAX, ..sound }.is_sound());
    }
}
