//! Firings of a schedule whose instant has come, and of the instants that were missed.

use super::{CAUGHT_UP_MAX, Missed, ON_TIME_US, Plan};

/// Number of instants that are caught up at once.
const AT_ONCE_MAX: usize = 16;

/// One firing to propose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Firing {
    pub(crate) instant_us: u64,
    /// True when the message is sent; else the instant is skipped.
    pub(crate) send: bool,
    /// The next instant, in microseconds since the Unix epoch; 0: none.
    pub(crate) next_at_us: u64,
}

/// The firings to propose now that `instant_us` has come, in order. `catching_up` is true when missed
/// instants were already cut to the latest [`CAUGHT_UP_MAX`]; it becomes true when some are left, else false.
pub(crate) fn firings(
    plan: &Plan,
    missed: Missed,
    instant_us: u64,
    now_us: u64,
    catching_up: &mut bool,
) -> Vec<Firing> {
    let next_after = |after_us: u64| plan.next_after(instant_us, after_us).unwrap_or(0);
    let following = next_after(instant_us);
    let caught_up = following == 0 || following > now_us;
    if missed == Missed::All && !caught_up {
        return catch_up(plan, instant_us, now_us, catching_up);
    }
    *catching_up = false;
    let latest_us =
        if caught_up { instant_us } else { plan.latest_until(instant_us, now_us).unwrap_or(instant_us) };
    let send = missed != Missed::Skip || now_us.saturating_sub(latest_us) <= ON_TIME_US;
    let next_at_us = if caught_up { following } else { next_after(now_us) };
    vec![Firing { instant_us, send, next_at_us }]
}

/// Part of the missed instants, one by one.
fn catch_up(plan: &Plan, instant_us: u64, now_us: u64, catching_up: &mut bool) -> Vec<Firing> {
    if !std::mem::replace(catching_up, true) {
        let first_us = first_of_latest(plan, instant_us, now_us);
        if first_us > instant_us {
            return vec![Firing { instant_us, send: false, next_at_us: first_us }];
        }
    }
    let mut found = Vec::new();
    let mut at_us = instant_us;
    while at_us != 0 && at_us <= now_us && found.len() < AT_ONCE_MAX {
        let next_at_us = plan.next_after(at_us, at_us).unwrap_or(0);
        found.push(Firing { instant_us: at_us, send: true, next_at_us });
        at_us = next_at_us;
    }
    *catching_up = at_us != 0 && at_us <= now_us;
    found
}

/// The first of the latest instants that are caught up.
fn first_of_latest(plan: &Plan, instant_us: u64, now_us: u64) -> u64 {
    let mut first_us = now_us + 1;
    for _ in 0..CAUGHT_UP_MAX {
        match plan.latest_until(instant_us, first_us - 1) {
            Some(earlier_us) if earlier_us > instant_us => first_us = earlier_us,
            _ => return instant_us,
        }
    }
    first_us
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn fired(missed: Missed, every_s: u64, instant_s: u64, now_s: u64) -> Vec<Firing> {
        let plan = Plan::Every(every_s * S);
        let (mut all, mut instant_us, mut catching_up) = (Vec::new(), instant_s * S, false);
        while instant_us <= now_s * S {
            let found = firings(&plan, missed, instant_us, now_s * S, &mut catching_up);
            assert!(found.len() <= AT_ONCE_MAX);
            for firing in found {
                assert_eq!(firing.instant_us, instant_us, "they follow each other");
                assert!(firing.next_at_us > instant_us);
                instant_us = firing.next_at_us;
                all.push(firing);
            }
        }
        assert!(!catching_up);
        all
    }

    fn sent(found: &[Firing]) -> Vec<u64> {
        found.iter().filter(|firing| firing.send).map(|firing| firing.instant_us / S).collect()
    }

    #[test]
    fn an_instant_that_has_just_come_is_sent() {
        for missed in [Missed::Once, Missed::All, Missed::Skip] {
            let found = fired(missed, 100, 500, 501);
            assert_eq!(found, [Firing { instant_us: 500 * S, send: true, next_at_us: 600 * S }]);
        }
    }

    #[test]
    fn missed_instants_are_caught_up_as_wanted() {
        assert_eq!(sent(&fired(Missed::Once, 100, 500, 1_090)), [500]);
        assert_eq!(sent(&fired(Missed::All, 100, 500, 890)), [500, 600, 700, 800]);
        assert!(sent(&fired(Missed::Skip, 100, 500, 1_090)).is_empty());
        assert_eq!(sent(&fired(Missed::Skip, 100, 500, 1_030)), [500], "the latest one is on time");
        assert!(sent(&fired(Missed::Skip, 1_000, 500, 600)).is_empty());
        assert_eq!(fired(Missed::Skip, 100, 500, 1_090).last().unwrap().next_at_us, 1_100 * S);
    }

    #[test]
    fn no_more_than_a_thousand_are_caught_up() {
        let all = sent(&fired(Missed::All, 1, 500, 5_000));
        assert_eq!((all.len(), all[0], all[999]), (CAUGHT_UP_MAX, 4_001, 5_000));
    }
}
