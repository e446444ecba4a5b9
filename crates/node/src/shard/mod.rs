//! A shard: the unit of order. It owns one engine and one journal, and nobody else can touch them.
//!
//! [`Shard::step`] does what there is to do without ever waiting; the thread driver ([`crate::driver`]) and
//! the simulator call it again and again. One step applies what the journal has committed, takes requests,
//! lets time pass, serves waiting pulls, and proposes all that came of it as one batch. What arrives while a
//! batch is being made durable is the next batch: nothing waits in order to fill one.

pub mod channel;
pub mod feed;
pub mod leader;
pub mod lock_watches;
pub mod recover;
pub mod replicated;
pub mod request;
pub mod store;

mod applying;
mod clocks;
mod damage;
mod delivery;
mod held;
mod leading;
mod reads;
mod snapshot;
mod standing;
mod taking_over;

use std::collections::VecDeque;
use std::sync::Arc;

use sluice_engine::{Engine, Error, Outcome};
use tokio::sync::Notify;

use crate::agreed_clock::AgreedClock;
use crate::api::EventOptions;
use crate::clock::{Alarm, Clock, LogClock};
use crate::in_force::InForce;
use crate::mailbox::{Load, Mailbox};
use crate::placement::Placement;
use applying::Applying;
use clocks::ReplicaClocks;
use damage::Damaged;
use leader::Leader;
use leading::Leading;
use request::{Read, Request};
use snapshot::Snapshotting;
use standing::Place;
use store::Store;

pub(crate) use delivery::release;
pub use leading::begin;
pub use standing::LEADER_WAIT_MAX;

/// Upper limit of requests that one step takes from the mailbox.
const STEP_REQUESTS: usize = 1_024;

/// Pause before a piece of a snapshot that the journal refused is offered again, in microseconds.
const SNAPSHOT_RETRY_US: u64 = 1_000;

/// Result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Progress was made; there may be more to do at once.
    Worked,
    /// Nothing to do until a request, a journal event, or the end of [`Shard::idle_us`].
    Idle,
    /// The shard was asked to stop, and everything is done.
    Stopped,
    /// The journal has failed: nothing may be answered any more.
    Failed,
}

/// Counters for metrics, since start.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardFigures {
    /// Number of committed records.
    pub records: u64,
    /// Number of committed batches.
    pub batches: u64,
}

/// See the module. What only a leader has is in `leading`; the rest is what any replica has.
pub struct Shard<S, C> {
    number: u32,
    engine: Engine,
    store: S,
    clock: C,
    log_clock: LogClock,
    clocks: ReplicaClocks,
    mailbox: Mailbox<Request>,
    place: Place,
    leading: Leading,
    /// Outcome of the record that was applied last.
    outcome: Outcome,
    /// Rest of a batch that one step could not apply as a whole.
    applying: Option<Applying>,
    snapshotting: Option<Snapshotting>,
    damaged: Damaged,
    looks: VecDeque<Read>,
    figures: ShardFigures,
    stopping: bool,
    failure: Option<String>,
    /// Table of namespaces that follows this shard, which other nodes may lead.
    placement: Option<Arc<Placement>>,
    /// Limits for callers of the node, which follow this shard.
    limits: Option<Arc<InForce>>,
    /// Told of changes of the server's own data, which are on shard 0.
    system: Option<Arc<Notify>>,
    /// [`Engine::comings_and_goings`] of that data when it was told last.
    system_told: Option<(u64, u64)>,
    now_us: u64,
    monotonic_us: u64,
}

/// Parts of a new shard.
#[derive(Debug)]
pub struct Parts<S, C> {
    /// Number of the shard.
    pub number: u32,
    /// The recovered state.
    pub engine: Engine,
    /// The journal, whose replay gave that state.
    pub store: S,
    /// Source of time.
    pub clock: C,
    /// Time of the log, started at or after the last logged time.
    pub log_clock: LogClock,
    /// Mailbox of requests.
    pub mailbox: Mailbox<Request>,
    /// Upper limit of waiting pulls, and of waits for results.
    pub waiting_max: usize,
    /// Settings of event feeds.
    pub events: EventOptions,
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Makes a shard. It serves nothing before the first step.
    pub fn new(parts: Parts<S, C>) -> Shard<S, C> {
        Shard {
            number: parts.number,
            place: Place::new(parts.store.standing()),
            engine: parts.engine,
            store: parts.store,
            clock: parts.clock,
            log_clock: parts.log_clock,
            clocks: ReplicaClocks::default(),
            mailbox: parts.mailbox,
            leading: Leading::new(parts.waiting_max, parts.events),
            outcome: Outcome::default(),
            applying: None,
            snapshotting: None,
            damaged: Damaged::default(),
            looks: VecDeque::new(),
            figures: ShardFigures::default(),
            stopping: false,
            failure: None,
            placement: None,
            limits: None,
            system: None,
            system_told: None,
            now_us: 0,
            monotonic_us: 0,
        }
    }

    /// Lets a table of namespaces follow this shard, and if it is shard 0 the limits for callers, and those
    /// who are told of changes of the server's own data.
    pub(crate) fn followed_by(
        &mut self,
        placement: Arc<Placement>,
        limits: Arc<InForce>,
        system: Arc<Notify>,
    ) {
        self.placement = Some(placement);
        if self.number == 0 {
            limits.set(self.engine.limits());
            self.limits = Some(limits);
            self.system = Some(system);
        }
    }

    /// The state.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The journal.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Mailbox of requests.
    pub fn mailbox(&self) -> &Mailbox<Request> {
        &self.mailbox
    }

    /// Leader of the shard, for other threads.
    pub fn leader(&self) -> &Leader {
        &self.place.leader
    }

    /// Clock that follows the time of the log, for other threads.
    pub(crate) fn agreed_clock(&self) -> &AgreedClock {
        &self.place.agreed_clock
    }

    /// Number of records that are proposed and not yet applied.
    pub fn in_flight(&self) -> usize {
        self.leading.in_flight()
    }

    /// Number of bytes that are proposed and not yet applied.
    pub fn in_flight_bytes(&self) -> usize {
        self.leading.in_flight_bytes()
    }

    /// True once the shard was asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Reason of the journal's failure, after [`Step::Failed`].
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Does what there is to do, without blocking.
    pub fn step(&mut self) -> Step {
        self.look_at_the_clock();
        let mut worked = self.look_at_standing();
        self.tell_clocks();
        worked |= self.apply_committed();
        self.hear_clocks();
        if self.failure.is_some() {
            self.end();
            return Step::Failed;
        }
        // What is proposed from here on has the term of the place that was seen last.
        worked |= self.look_at_standing();
        worked |= self.take_requests();
        worked |= self.keep_place();
        worked |= self.leads() && self.lead();
        worked |= self.look();
        worked |= self.advance_snapshot();
        if self.stopping && self.is_done() {
            self.end();
            return Step::Stopped;
        }
        if worked { Step::Worked } else { Step::Idle }
    }

    /// Ends the shard: ends the leadership, and answers the reads and requests that still wait.
    fn end(&mut self) {
        self.end_leading();
        self.place.held.end();
        for read in self.looks.drain(..) {
            (read.0)(Err(Error::ShuttingDown {}));
        }
    }

    /// True when nobody waits for anything, and nothing is to be proposed.
    fn is_done(&self) -> bool {
        self.leading.in_flight() == 0
            && self.mailbox.is_empty()
            && self.looks.is_empty()
            && self.place.held.is_empty()
            && !self.owes()
    }

    /// Time without anything to do by itself, in microseconds; `None`: unlimited.
    pub fn idle_us(&self) -> Option<u64> {
        if self.snapshot_waits() {
            return Some(SNAPSHOT_RETRY_US);
        }
        let leading = if self.leads() { self.leading_idle_us() } else { None };
        leading.into_iter().chain(self.place_idle_us()).min()
    }

    fn look_at_the_clock(&mut self) {
        let (now_us, alarm) = self.log_clock.now(&self.clock);
        if let Some(Alarm::Jumped(by_us)) = alarm {
            tracing::warn!(
                shard = self.number,
                by_ms = by_us / 1_000,
                "the wall clock jumped; the log's time goes on as before"
            );
        }
        self.now_us = now_us;
        self.monotonic_us = self.log_clock.monotonic_us();
        self.place.leader.set_log_us(now_us, self.monotonic_us);
    }

    fn take_requests(&mut self) -> bool {
        let (mut taken, mut room) = (0, Load::default());
        while taken < STEP_REQUESTS
            && self.leading.takes_more()
            && let Some(request) = self.mailbox.take(&mut room)
        {
            taken += 1;
            if self.is_alone() {
                self.take_request(request);
            } else {
                self.take_as_replica(request);
            }
        }
        self.mailbox.free(room);
        taken > 0
    }

    #[inline]
    fn take_request(&mut self, request: Request) {
        match request {
            Request::Propose(proposal) => self.take_proposal(proposal),
            Request::Pull(pull) => self.take_pull(pull),
            Request::Await(wait) => self.take_await(wait),
            Request::Attach(attaching) => self.take_attaching(attaching),
            Request::Acquire(acquiring) => self.take_acquiring(acquiring),
            Request::Watch(watch) => self.take_watch(*watch),
            Request::Unwatch(left) => self.end_watch(&left),
            Request::Cancel { ticket } => self.cancel(ticket),
            Request::Forget { ticket } => self.forget_acquiring(ticket),
            Request::Surely(record) => self.owe_record(record),
            Request::Read(read) | Request::ReadStale(read) => self.take_look(read),
            Request::Advance(advance) => self.take_advance(advance),
            Request::Drain => self.drain(),
            Request::Stop => {
                self.drain();
                self.stopping = true;
            }
        }
    }
}
