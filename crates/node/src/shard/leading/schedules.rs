//! Schedules: when an instant has come, its firing is proposed, with the next instant. Until that is applied
//! the schedule is left alone. A firing that was refused, or of which nobody knows, is proposed again: the
//! engine takes it once.

use std::collections::BTreeSet;

use sluice_engine::command::{Command, ScheduleFire};

use super::proposals::Pending;
use crate::clock::Clock;
use crate::schedule::{Firing, Missed, ScheduleSpec, firings};
use crate::shard::Shard;
use crate::shard::store::Store;

/// Number of schedules that one step examines.
const STEP_SCHEDULES: usize = 16;
/// Time for computing instants in one step, in microseconds, after which no further schedule begins.
const STEP_PLAN_US: u64 = 500;

/// Schedules with firings in flight, by number.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    /// Schedules with a firing in flight.
    firing: BTreeSet<u64>,
    /// Schedules whose missed instants to catch up on are chosen.
    catching_up: BTreeSet<u64>,
}

impl Schedules {
    /// True while a firing is in flight.
    pub(super) fn is_firing(&self) -> bool {
        !self.firing.is_empty()
    }

    /// Notes that a firing was applied.
    pub(super) fn done(&mut self, number: u64) {
        self.firing.remove(&number);
    }

    /// Notes that a firing was refused: the missed instants are chosen anew later, since by then more were
    /// missed.
    pub(super) fn refused(&mut self, number: u64) {
        self.firing.remove(&number);
        self.catching_up.remove(&number);
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Time of the log at which the next schedule without a firing in flight fires, in microseconds.
    pub(super) fn next_firing_us(&self) -> Option<u64> {
        let mut waiting = self.engine.schedules_by_time();
        waiting.find(|due| !self.leading.schedules.firing.contains(&due.number)).map(|due| due.instant_us)
    }

    pub(super) fn propose_firings(&mut self) {
        let due = self.engine.next_schedule().is_some_and(|at_us| at_us <= self.now_us);
        if !due || self.stopping || self.waits_for_room() {
            return;
        }
        let found: Vec<(u64, u64, Option<ScheduleSpec>)> = self
            .engine
            .schedules_by_time()
            .take_while(|due| due.instant_us <= self.now_us)
            .filter(|due| !self.leading.schedules.firing.contains(&due.number))
            .take(STEP_SCHEDULES)
            .map(|due| (due.number, due.instant_us, ScheduleSpec::from_bytes(due.spec)))
            .collect();
        let until_us = self.clock.monotonic_us() + STEP_PLAN_US;
        for (number, instant_us, spec) in found {
            self.propose_firings_of(number, instant_us, spec);
            if self.clock.monotonic_us() > until_us {
                break;
            }
        }
    }

    fn propose_firings_of(&mut self, number: u64, instant_us: u64, spec: Option<ScheduleSpec>) {
        let mut found = self.plan_firings(number, instant_us, spec);
        let Some(last) = found.pop() else { return };
        let command = |firing: Firing| {
            let Firing { instant_us, send, next_at_us } = firing;
            Command::ScheduleFire(ScheduleFire { number, instant_us, send, next_at_us })
        };
        for firing in found {
            self.propose(&command(firing), Pending::Internal);
        }
        self.leading.schedules.firing.insert(number);
        self.propose(&command(last), Pending::Firing(number));
    }

    /// The firings of a schedule that are due. A description that cannot be used any more, since this
    /// program's time zones differ from those of the one that accepted it, ends the schedule: it shows no
    /// next time until it is put again.
    fn plan_firings(&mut self, number: u64, instant_us: u64, spec: Option<ScheduleSpec>) -> Vec<Firing> {
        let planned = match &spec {
            Some(spec) => spec.plan().map(|plan| (plan, spec.missed)).map_err(|error| error.to_string()),
            None => Err("its description cannot be read".to_owned()),
        };
        let (plan, missed) = match planned {
            Ok(planned) => planned,
            Err(reason) => {
                tracing::error!(shard = self.number, number, reason, "a schedule cannot go on: put it again");
                return vec![Firing { instant_us, send: false, next_at_us: 0 }];
            }
        };
        let missed = if self.leading.advances.has_passed(instant_us) { Missed::All } else { missed };
        let mut catching_up = self.leading.schedules.catching_up.remove(&number);
        let found = firings(&plan, missed, instant_us, self.now_us, &mut catching_up);
        if catching_up {
            self.leading.schedules.catching_up.insert(number);
        }
        found
    }
}
