//! Place of a shard among its replicas: who may be served here, and what comes of a change.
//!
//! A leader begins with a record of its epoch, and serves once that is applied. Whatever it answers from its
//! state, without a record, waits until the other replicas confirm that it leads still: one round for all
//! that wait. A follower serves nobody: it names the leader, or lets requests wait for one. A leader lets
//! commands wait while it hands over, and while more came at once than it may propose.

use std::time::Duration;

use sluice_engine::Error;
use sluice_replica::{Clocks, LogTime, RECORD_BYTES_MAX};

use super::Shard;
use super::held::Held;
use super::leader::Leader;
use super::request::{Proof, Request};
use super::store::{Standing, Store};
use crate::agreed_clock::AgreedClock;
use crate::clock::Clock;
use crate::mailbox::Letter;
use crate::plant::{self, Plant};

/// Longest time for which a request waits for a leader, or for a leader's confirmation.
pub const LEADER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Time after the end of a leadership after which callers with records in flight hear that the outcome is
/// unknown, in microseconds.
const DECISION_US: u64 = 10_000_000;
/// Time after which a round of confirmation counts as lost, in microseconds.
const ROUND_US: u64 = 500_000;
/// Pause before the record of an epoch that was refused is proposed again, in microseconds.
const BEGIN_AGAIN_US: u64 = 100_000;

/// A round of confirmation.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Number of requests that it is for: the first of those held.
    requests: usize,
    /// Monotonic time at which it counts as lost, in microseconds.
    until_us: u64,
}

/// Place among the replicas, as the shard knows it.
#[derive(Debug)]
pub(super) struct Place {
    standing: Standing,
    /// The leader by `standing`, for other threads.
    pub(super) leader: Leader,
    /// Set to the time of the log, for other threads.
    pub(super) agreed_clock: AgreedClock,
    /// Epoch of a leadership that has not begun yet.
    beginning: Option<u64>,
    /// Requests that wait for a leader or a confirmation.
    pub(super) held: Held,
    /// Number of the last round of confirmation.
    rounds: u64,
    /// The round that goes on.
    round: Option<Round>,
    /// Monotonic time, in microseconds: up to it callers wait for the outcome of records of the last
    /// leadership; before it a refused record of an epoch is not proposed again.
    until_us: u64,
}

impl Place {
    /// The place at the start of a shard: its first step sees that a replica leads.
    pub(super) fn new(standing: Standing) -> Place {
        let standing = match standing {
            Standing::Alone => Standing::Alone,
            Standing::Leader { .. } | Standing::Follower { .. } => Standing::Follower { leader: None },
        };
        Place {
            standing,
            leader: Leader::new(standing),
            agreed_clock: AgreedClock::default(),
            beginning: None,
            held: Held::default(),
            rounds: 0,
            round: None,
            until_us: 0,
        }
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Place among the replicas, as of the last step.
    pub fn standing(&self) -> Standing {
        self.place.standing
    }

    /// True without other replicas.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.place.standing == Standing::Alone
    }

    /// True when another node leads, or nobody.
    pub(super) fn follows(&self) -> bool {
        matches!(self.place.standing, Standing::Follower { .. })
    }

    /// True when the shard leads and its epoch has begun.
    pub(super) fn leads(&self) -> bool {
        !self.follows() && self.place.beginning.is_none()
    }

    /// Term of the leadership; 0: there is none, or no other replica.
    pub(super) fn term(&self) -> u64 {
        match self.place.standing {
            Standing::Leader { term } => term,
            Standing::Alone | Standing::Follower { .. } => 0,
        }
    }

    /// The error of a request that this node does not serve, of which nothing is done.
    pub(super) fn unled(&self) -> Error {
        match self.place.standing {
            Standing::Follower { leader: Some(leader) } => Error::NotLeader { leader },
            Standing::Follower { leader: None } | Standing::Leader { .. } | Standing::Alone => {
                Error::NoLeader {}
            }
        }
    }

    /// Looks whether the place has changed: ends the leadership that was, and begins the one that is. True
    /// when it has changed.
    pub(super) fn look_at_standing(&mut self) -> bool {
        let standing = self.store.standing();
        if standing == self.place.standing {
            return false;
        }
        let leads = matches!(standing, Standing::Leader { .. });
        if leads && self.applying.is_some() {
            return false;
        }
        if !self.follows() {
            self.step_down();
            self.place.until_us = self.monotonic_us + DECISION_US;
        }
        self.place.standing = standing;
        self.place.leader.set(standing);
        self.place.leader.set_epoch(0);
        self.tell_standing();
        self.place.beginning = leads.then(|| self.begin_epoch());
        self.sort_held();
        true
    }

    /// Tells the other replicas the clocks of this one, and other threads the time of the log.
    pub(super) fn tell_clocks(&mut self) {
        if self.is_alone() {
            return;
        }
        let monotonic_us = self.monotonic_us;
        if self.leads_or_begins() {
            let time = LogTime { term: self.term(), now_us: self.now_us };
            self.clocks.lead(time, monotonic_us);
        }
        let (wall_us, log) = (self.clock.wall_us(), self.clocks.time(monotonic_us));
        if let Some(log) = log {
            self.place.agreed_clock.set(log.now_us, wall_us);
        }
        self.store.tell_clocks(Clocks { wall_us, log });
    }

    /// Takes in the clocks of the others: a follower keeps the time of the leader, and a leader lets its time
    /// be slewed towards the median of all wall clocks, so that a wrong one does no harm.
    pub(super) fn hear_clocks(&mut self) {
        let Some(first) = self.store.hear_clocks() else { return };
        // Read now, since a message may have come while this step went on.
        let monotonic_us = self.clock.monotonic_us();
        self.clocks.hear(&first, monotonic_us);
        while let Some(heard) = self.store.hear_clocks() {
            self.clocks.hear(&heard, monotonic_us);
        }
        if self.leads_or_begins() {
            self.log_clock.aim(self.clocks.wall(self.clock.wall_us(), monotonic_us));
        } else if let Some(time) = self.clocks.time(monotonic_us) {
            self.log_clock.go_on(&self.clock, time.now_us);
        }
    }

    /// Sets the clock with which a leadership begins.
    pub(super) fn take_over_time(&mut self) {
        let (wall_us, monotonic_us) = (self.clock.wall_us(), self.clock.monotonic_us());
        let last_us = self.engine.time_us();
        let own_us = plant::is(Plant::OwnWallClock).then_some(wall_us);
        let time_us = own_us.or_else(|| self.clocks.begin(wall_us, monotonic_us, last_us));
        if time_us.is_none() {
            tracing::error!(
                shard = self.number,
                "the clocks of the nodes are more than a year ahead of the log: its time goes on from its end"
            );
        }
        let time_us = time_us.filter(|_| !plant::is(Plant::LastLoggedTime)).unwrap_or(last_us).max(last_us);
        self.log_clock.go_on(&self.clock, time_us);
        self.log_clock.aim(self.clocks.wall(wall_us, monotonic_us));
    }

    /// True when another replica follows this one, though its epoch may not have begun.
    fn leads_or_begins(&self) -> bool {
        matches!(self.place.standing, Standing::Leader { .. })
    }

    fn tell_standing(&self) {
        let shard = self.number;
        match self.place.standing {
            Standing::Leader { term } => tracing::info!(shard, term, "this node leads the shard"),
            Standing::Follower { leader: Some(leader) } => {
                tracing::info!(shard, leader, "another node leads the shard");
            }
            Standing::Follower { leader: None } => {
                tracing::info!(shard, "no node is known to lead the shard")
            }
            Standing::Alone => {}
        }
    }

    /// Proposes the record of an epoch; returns its number.
    fn begin_epoch(&mut self) -> u64 {
        self.place.until_us = self.monotonic_us + BEGIN_AGAIN_US;
        self.begin_leadership()
    }

    /// Takes a request, which may have to wait or to be refused.
    pub(super) fn take_as_replica(&mut self, request: Request) {
        if let Request::Propose(proposal) = &request
            && proposal.record.bytes() as u64 > RECORD_BYTES_MAX
        {
            let size = proposal.record.bytes() as u64;
            let what = "bytes to be agreed on at once";
            return request.refuse(&Error::BatchTooLarge { what, size, limit: RECORD_BYTES_MAX });
        }
        let until_us = self.monotonic_us + LEADER_WAIT_MAX.as_micros() as u64;
        // Commands are taken in the order in which they came.
        if request.is_command() && self.leads() && self.place.held.has_commands() {
            self.place.held.push(until_us, request);
        } else {
            self.sort(until_us, request);
        }
    }

    /// Sorts all held requests anew, after the place has changed.
    fn sort_held(&mut self) {
        self.place.round = None;
        for _ in 0..self.place.held.len() {
            if let Some((until_us, request)) = self.place.held.pop() {
                self.sort(until_us, request);
            }
        }
    }

    /// Serves a request, refuses it, or lets it wait until `until_us`.
    fn sort(&mut self, until_us: u64, request: Request) {
        let from_state = match request.proof() {
            Proof::None => return self.take_request(request),
            Proof::Record => false,
            Proof::Confirmation => !matches!(&request, Request::Pull(pull) if self.is_served_at_once(pull)),
        };
        match self.place.standing {
            Standing::Follower { leader: Some(_) } => request.refuse(&self.unled()),
            _ if self.takes_commands() && !from_state => self.take_request(request),
            _ => self.place.held.push(until_us, request),
        }
    }

    /// True when a command may be proposed now.
    fn takes_commands(&self) -> bool {
        self.leads() && self.store.takes_proposals() && self.leading.takes_more()
    }

    /// A replica's part of a step: begins to lead, confirms that it leads, and ends waits that are over. True
    /// when there may be more to do at once.
    pub(super) fn keep_place(&mut self) -> bool {
        if self.is_alone() {
            return false;
        }
        self.place.leader.hands_over(!self.store.takes_proposals());
        let worked = self.advance_beginning() | self.confirm_held();
        if self.stopping && !self.leads() {
            self.place.held.end();
        }
        while let Some(request) = self.place.held.pop_ended(self.monotonic_us) {
            request.refuse(&Error::NoLeader {});
            self.place.round = self.place.round.and_then(Round::without_first);
        }
        if self.follows() && self.place.until_us <= self.monotonic_us {
            self.give_up_in_flight();
        }
        worked
    }

    /// Begins to serve once the epoch is applied. Its record is proposed again where a full disk refused it.
    fn advance_beginning(&mut self) -> bool {
        let Some(epoch) = self.place.beginning else { return false };
        if self.engine.epoch() == epoch {
            self.place.beginning = None;
            self.place.leader.set_epoch(epoch);
            self.sort_held();
            return true;
        }
        if self.leading.in_flight() == 0 && self.place.until_us <= self.monotonic_us {
            self.place.beginning = Some(self.begin_epoch());
        }
        false
    }

    /// Serves held requests that this node may answer from its state: it led at some moment since they came,
    /// and has applied what was acknowledged until then.
    fn confirm_held(&mut self) -> bool {
        if self.place.held.is_empty() || !self.takes_commands() {
            return false;
        }
        let round = match self.place.round {
            Some(round) if round.until_us > self.monotonic_us => round,
            _ => {
                self.place.rounds += 1;
                Round { requests: self.place.held.len(), until_us: self.monotonic_us + ROUND_US }
            }
        };
        self.place.round = Some(round);
        if self.store.confirm(self.place.rounds).is_none_or(|index| index > self.engine.applied_index()) {
            return false;
        }
        self.place.round = None;
        for _ in 0..round.requests {
            if self.leading.takes_more()
                && let Some((_, request)) = self.place.held.pop()
            {
                self.take_request(request);
            }
        }
        true
    }

    /// Time without anything to do for a replica without requests, in microseconds; `None`: unlimited.
    pub(super) fn place_idle_us(&self) -> Option<u64> {
        let held = self.place.held.next_end_us();
        let round = self.place.round.map(|round| round.until_us);
        let in_flight = self.leading.in_flight() > 0;
        let undecided = if self.follows() { in_flight } else { self.place.beginning.is_some() && !in_flight };
        let until = undecided.then_some(self.place.until_us);
        let next = [held, round, until].into_iter().flatten().min()?;
        Some(next.saturating_sub(self.monotonic_us))
    }
}

impl Round {
    /// The round after the first request has left; `None`: it is for nobody any more.
    fn without_first(self) -> Option<Round> {
        (self.requests > 1).then(|| Round { requests: self.requests - 1, ..self })
    }
}
