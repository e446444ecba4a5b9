//! Clocks of the replicas of a shard: how a follower keeps the time of the log, and where a new leader takes
//! it from.
//!
//! A leader tells its time with each message. A follower goes on by its own monotonic clock from the message
//! that came fastest, less what the clocks may have drifted apart since. So it is behind the leader by that
//! message's delay, never ahead of it, whatever wall clocks say and however late it gets and applies batches.

use std::collections::BTreeMap;

use sluice_replica::{Clocks, LogTime, NodeId};

use super::store::Heard;
use crate::clock::START_AHEAD_US_MAX;

/// Divisor of the time since a message: by that much two clocks may have drifted apart, one of which is
/// slewed by half of it at most.
const DRIFT_DIVISOR: u64 = 1_000;

/// Time by which a log begins behind the wall clocks, when nobody knows its time any more, in microseconds:
/// it may have been behind them before, by what messages took to followers that led next.
const BEHIND_US: u64 = 1_000_000;

/// Time for which the clocks of a replica count that is not heard of, in microseconds: it may have been
/// removed, and may be here under another number.
const HEARD_US_MAX: u64 = 3_600_000_000;

/// Lead of the time of one leadership over the monotonic clock here, by the message that tells most.
#[derive(Debug)]
struct Followed {
    term: u64,
    /// The lead that the message told, in microseconds.
    told_us: i64,
    /// Monotonic time at which it came.
    at_us: u64,
}

impl Followed {
    fn new(time: LogTime, monotonic_us: u64) -> Followed {
        let told_us = time.now_us as i64 - monotonic_us as i64;
        Followed { term: time.term, told_us, at_us: monotonic_us }
    }

    /// Takes in a message: it counts if it came faster than the one before, whose lead wears off.
    fn hear(&mut self, time: LogTime, monotonic_us: u64) {
        let heard = Followed::new(time, monotonic_us);
        if heard.told_us >= self.lead_us(monotonic_us) {
            *self = heard;
        }
    }

    /// The lead that is left, in microseconds.
    fn lead_us(&self, monotonic_us: u64) -> i64 {
        self.told_us - (monotonic_us.saturating_sub(self.at_us) / DRIFT_DIVISOR) as i64
    }

    fn time(&self, monotonic_us: u64) -> LogTime {
        let now_us = monotonic_us.saturating_add_signed(self.lead_us(monotonic_us));
        LogTime { term: self.term, now_us }
    }
}

/// Clocks of this replica and of the others.
#[derive(Debug, Default)]
pub(super) struct ReplicaClocks {
    followed: Option<Followed>,
    /// Clocks of each other replica, and the monotonic time at which they were heard.
    others: BTreeMap<NodeId, (Clocks, u64)>,
}

impl ReplicaClocks {
    /// Takes in the clocks of another replica. `monotonic_us` was read after its message had come.
    pub(super) fn hear(&mut self, heard: &Heard, monotonic_us: u64) {
        self.others.retain(|_, (_, at_us)| monotonic_us.saturating_sub(*at_us) <= HEARD_US_MAX);
        self.others.insert(heard.from, (heard.clocks, monotonic_us));
        if let Some(time) = heard.clocks.log.filter(|_| heard.is_of_leader) {
            self.follow(time, monotonic_us);
        }
    }

    fn follow(&mut self, time: LogTime, monotonic_us: u64) {
        match &mut self.followed {
            Some(followed) if followed.term == time.term => {
                followed.hear(time, monotonic_us);
            }
            _ => self.lead(time, monotonic_us),
        }
    }

    /// Takes the time of the leadership of this replica.
    pub(super) fn lead(&mut self, time: LogTime, monotonic_us: u64) {
        self.followed = Some(Followed::new(time, monotonic_us));
    }

    /// Time of the log, as far as this replica has heard it.
    pub(super) fn time(&self, monotonic_us: u64) -> Option<LogTime> {
        self.followed.as_ref().map(|followed| followed.time(monotonic_us))
    }

    /// Time with which a leader begins, in microseconds since the Unix epoch: the time of the log that this
    /// replica or one that has voted for it knows; if none does, since all have started anew, a second
    /// before the median of their wall clocks. `None`: the median is more than a year ahead of the last
    /// logged time.
    pub(super) fn begin(&self, wall_us: u64, monotonic_us: u64, last_us: u64) -> Option<u64> {
        let told = self.others.values().filter_map(|(clocks, at_us)| {
            clocks.log.map(|log| Followed::new(log, *at_us).time(monotonic_us))
        });
        if let Some(time) = told.chain(self.time(monotonic_us)).max() {
            return Some(time.now_us);
        }
        let median_us = self.wall(wall_us, monotonic_us);
        let is_near = last_us == 0 || median_us <= last_us.saturating_add(START_AHEAD_US_MAX);
        is_near.then(|| median_us.saturating_sub(BEHIND_US))
    }

    /// Median of all wall clocks, of two the earlier one, in microseconds since the Unix epoch.
    pub(super) fn wall(&self, wall_us: u64, monotonic_us: u64) -> u64 {
        let others = self.others.values();
        let others = others.map(|(clocks, at_us)| clocks.wall_us + monotonic_us.saturating_sub(*at_us));
        let mut walls: Vec<u64> = others.chain([wall_us]).collect();
        walls.sort_unstable();
        walls[(walls.len() - 1) / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn heard(from: u64, wall_us: u64, log: Option<(u64, u64)>, is_of_leader: bool) -> Heard {
        let log = log.map(|(term, now_us)| LogTime { term, now_us });
        Heard { from: NodeId::new(from).unwrap(), is_of_leader, clocks: Clocks { wall_us, log } }
    }

    #[test]
    fn the_fastest_message_counts_and_those_of_a_former_leader_do_not() {
        let mut clocks = ReplicaClocks::default();
        let mut at = |monotonic_us, term, now_us| {
            clocks.hear(&heard(2, 0, Some((term, now_us)), true), monotonic_us);
            clocks.time(monotonic_us).unwrap().now_us
        };
        assert_eq!(at(0, 1, 1_000), 1_000);
        assert_eq!(at(100, 1, 1_090), 1_100, "it came later than the one before");
        assert_eq!(at(200, 1, 1_210), 1_210, "it came sooner");
        let passed = 500_200;
        assert_eq!(at(passed, 1, passed + 500), passed + 510, "the lead wears off");
        assert_eq!(at(passed, 1, passed + 520), passed + 520, "until a message tells more");
        assert_eq!(at(passed + 1, 2, passed), passed, "another leader's time");
    }

    #[test]
    fn a_leader_begins_with_the_latest_time_that_any_voter_knows() {
        let mut clocks = ReplicaClocks::default();
        clocks.hear(&heard(2, 0, Some((7, 500)), false), 10);
        clocks.hear(&heard(3, 0, Some((6, 900)), false), 10);
        assert_eq!(clocks.time(30), None, "others that follow are not followed");
        assert_eq!(clocks.begin(0, 30, 1), Some(520));
        clocks.lead(LogTime { term: 7, now_us: 505 }, 10);
        assert_eq!(clocks.begin(0, 30, 1), Some(525));
    }

    #[test]
    fn what_a_voter_told_long_ago_wears_off() {
        let mut clocks = ReplicaClocks::default();
        clocks.hear(&heard(2, 0, Some((7, 500)), false), 0);
        let passed = 60 * SECOND_US;
        assert_eq!(clocks.begin(0, passed, 1), Some(500 + passed - passed / DRIFT_DIVISOR));
        clocks.lead(LogTime { term: 7, now_us: passed }, passed);
        assert_eq!(clocks.begin(0, passed, 1), Some(passed), "it does not come before what is known here");
    }

    #[test]
    fn clocks_of_nodes_that_are_heard_no_more_do_not_count_for_ever() {
        let mut clocks = ReplicaClocks::default();
        for renewed in 3..6 {
            clocks.hear(&heard(renewed, 0, None, false), 0);
        }
        clocks.hear(&heard(2, 100 * SECOND_US, None, false), HEARD_US_MAX);
        assert_eq!(clocks.wall(100 * SECOND_US, HEARD_US_MAX), HEARD_US_MAX);
        clocks.hear(&heard(2, 101 * SECOND_US, None, false), HEARD_US_MAX + SECOND_US);
        assert_eq!(clocks.wall(101 * SECOND_US, HEARD_US_MAX + SECOND_US), 101 * SECOND_US);
    }

    #[test]
    fn without_any_time_the_median_of_the_wall_clocks_counts() {
        let year_us = START_AHEAD_US_MAX;
        let mut clocks = ReplicaClocks::default();
        clocks.hear(&heard(2, 3_600 * SECOND_US, None, false), 0);
        assert_eq!(clocks.begin(SECOND_US + 20, 10, 1), Some(20), "the earlier of two");
        clocks.hear(&heard(3, SECOND_US + 30, None, false), 0);
        assert_eq!(clocks.begin(SECOND_US + 20, 10, 1), Some(40));
        assert_eq!(clocks.begin(SECOND_US + 20, 10, 0), Some(40));
        clocks.hear(&heard(3, 3 * year_us, None, false), 0);
        clocks.hear(&heard(2, 3 * year_us, None, false), 0);
        assert_eq!(clocks.begin(20, 10, 1), None, "more than a year ahead of the log");
    }
}
