//! Pulls that wait. A pull stands in the line of each of its queues and leaves all of them at once.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::id::QueueId;

use super::request::Pull;

/// A pull with its queues resolved.
#[derive(Debug)]
pub(super) struct Waiter {
    /// What was asked.
    pub(super) pull: Pull,
    /// The numbers behind the pull's queue names, in the same order; a name that is unknown has none.
    pub(super) queues: Vec<QueueId>,
    /// Monotonic time at which it ends empty, in microseconds.
    pub(super) until_us: u64,
}

/// All waiting pulls of a shard, by age.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    waiters: BTreeMap<u64, Waiter>,
    lines: BTreeSet<(QueueId, u64)>,
    ends: BTreeSet<(u64, u64)>,
    tickets: BTreeMap<u64, u64>,
    /// Pulls that name a queue which did not exist when they were lined up.
    incomplete: BTreeSet<u64>,
    next: u64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Lines a pull up behind those that wait already.
    pub(super) fn push(&mut self, waiter: Waiter) {
        let place = self.next;
        self.next += 1;
        self.lines.extend(waiter.queues.iter().map(|queue| (*queue, place)));
        self.ends.insert((waiter.until_us, place));
        self.tickets.insert(waiter.pull.ticket, place);
        if waiter.queues.len() < waiter.pull.queues.len() {
            self.incomplete.insert(place);
        }
        self.waiters.insert(place, waiter);
    }

    /// Takes the pull that has waited longest for this queue.
    pub(super) fn pop(&mut self, queue: QueueId) -> Option<Waiter> {
        let place = self.lines.range((queue, 0)..=(queue, u64::MAX)).next()?.1;
        self.remove(place)
    }

    /// Whether any pull waits for this queue.
    pub(super) fn waits_for(&self, queue: QueueId) -> bool {
        self.lines.range((queue, 0)..=(queue, u64::MAX)).next().is_some()
    }

    /// Takes a pull whose time is over.
    pub(super) fn pop_ended(&mut self, monotonic_us: u64) -> Option<Waiter> {
        let (until_us, place) = *self.ends.first()?;
        if until_us > monotonic_us { None } else { self.remove(place) }
    }

    /// Takes all pulls that wait for a queue of which this is true.
    pub(super) fn take_if(&mut self, of: impl Fn(QueueId) -> bool) -> Vec<Waiter> {
        let places: BTreeSet<u64> =
            self.lines.iter().filter(|(queue, _)| of(*queue)).map(|line| line.1).collect();
        places.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes all pulls that name a queue which did not exist when they were lined up.
    pub(super) fn take_incomplete(&mut self) -> Vec<Waiter> {
        let places = std::mem::take(&mut self.incomplete);
        places.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes any pull.
    pub(super) fn pop_any(&mut self) -> Option<Waiter> {
        let place = *self.waiters.keys().next()?;
        self.remove(place)
    }

    /// Forgets a pull whose caller has gone.
    pub(super) fn cancel(&mut self, ticket: u64) {
        if let Some(place) = self.tickets.get(&ticket).copied() {
            self.remove(place);
        }
    }

    /// When the next pull ends by itself.
    pub(super) fn next_end_us(&self) -> Option<u64> {
        self.ends.first().map(|end| end.0)
    }

    fn remove(&mut self, place: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&place)?;
        for queue in &waiter.queues {
            self.lines.remove(&(*queue, place));
        }
        self.ends.remove(&(waiter.until_us, place));
        self.tickets.remove(&waiter.pull.ticket);
        self.incomplete.remove(&place);
        Some(waiter)
    }
}
