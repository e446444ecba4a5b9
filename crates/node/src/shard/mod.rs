//! A shard: the unit of order. It owns one engine and one journal, and nobody else can touch them.
//!
//! [`Shard::step`] does what there is to do without ever waiting; the thread driver ([`crate::driver`]) and the
//! simulator call it again and again. One step applies what the journal has committed, takes requests, lets time pass,
//! serves waiting pulls, and proposes all that came of it as one batch. What arrives while a batch is being made
//! durable is the next batch: nothing waits in order to fill one.

pub mod awaiting;
pub mod channel;
pub mod consumers;
pub mod feed;
pub mod feeds;
mod given;
pub mod recover;
pub mod request;
pub mod store;

mod applying;
pub mod begin;
mod damage;
mod looks;
mod proposing;
mod pulls;
mod schedules;
mod snapshot;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sluice_engine::id::QueueId;
use sluice_engine::{Engine, Outcome};
use sluice_journal::{Batch, Class, Committed};
use smallvec::SmallVec;

use crate::api::EventOptions;
use crate::clock::{Alarm, Clock, LogClock};
use crate::mailbox::{Load, Mailbox};
use awaiting::Awaiting;
use consumers::Consumers;
use damage::Damaged;
use feeds::Feeds;
use request::{Attaching, Proposal, Read, ReplyTo, Request};
use schedules::Schedules;
use snapshot::Snapshotting;
use store::Store;
use waiting::{Waiter, Waiting};

pub(crate) use given::release;

/// Requests that one step takes from the mailbox.
const STEP_REQUESTS: usize = 1_024;
/// Bytes after which a step's batch is closed.
const STEP_BYTES: usize = 4 << 20;
/// Bytes proposed and not yet applied, beyond which no further request is taken.
const IN_FLIGHT_BYTES: usize = 64 << 20;

/// How soon to offer a piece of a snapshot again that the disk was too busy for.
const SNAPSHOT_RETRY_US: u64 = 1_000;

/// Ready messages that a pull has claimed, by queue.
type Claims = SmallVec<[(QueueId, u32); 2]>;

/// What waits for its record to be committed.
#[derive(Debug)]
enum Pending {
    /// Nothing to tell anybody.
    Internal,
    /// A tick of ours.
    Tick,
    /// The firing of a schedule, by its number.
    Firing(u64),
    /// A record of ours that is proposed again when it is refused.
    Owed(Batch),
    /// A proposal's answer.
    Reply(ReplyTo),
    /// An answer after which queues may be gone.
    Removal(ReplyTo),
    /// A consumer to attach.
    Attach(Box<Attaching>),
    /// A pull; what it claimed of each queue's ready messages.
    Pull(Waiter, Claims),
}

/// One for each record on its way, moved several times.
const _: () = assert!(size_of::<Pending>() <= 80);

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// There may be more to do at once.
    Worked,
    /// Nothing to do until a request, the journal, or the time says so.
    Idle,
    /// Asked to stop, and all is done.
    Stopped,
    /// The journal has failed: nothing may be answered any more.
    Failed,
}

/// Counters for the metrics, since start.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardFigures {
    /// Records committed.
    pub records: u64,
    /// Batches committed.
    pub batches: u64,
}

/// See the module.
pub struct Shard<S, C> {
    number: u32,
    engine: Engine,
    store: S,
    clock: C,
    log_clock: LogClock,
    mailbox: Mailbox<Request>,
    waiting: Waiting,
    waiting_max: usize,
    awaiting: Awaiting,
    consumers: Consumers,
    feeds: Feeds,
    batch: Batch,
    batch_pending: Vec<(Class, Pending)>,
    in_flight: VecDeque<Pending>,
    in_flight_bytes: VecDeque<(u64, usize)>,
    in_flight_bytes_sum: usize,
    tick_in_flight: bool,
    schedules: Schedules,
    outcome: Outcome,
    claims: BTreeMap<QueueId, u64>,
    woken: Vec<QueueId>,
    /// The newest queue in which a message has become ready, and whether that was news since the last step.
    newest_queue: Option<QueueId>,
    queue_appeared: bool,
    names: BTreeMap<QueueId, Arc<str>>,
    /// The queue of the last delivery of the record that is being applied.
    handed_name: Option<(QueueId, Arc<str>)>,
    snapshotting: Option<Snapshotting>,
    damaged: Damaged,
    looks: VecDeque<Read>,
    /// What is left of a batch that one step could not apply as a whole.
    applying: Option<Committed>,
    /// Records of ours that are to be proposed.
    owed: VecDeque<Batch>,
    /// Monotonic time before which nothing of ours is proposed, since a full disk has refused even what drains.
    room_at_us: u64,
    /// Queues may be gone on which pulls wait.
    removed: bool,
    figures: ShardFigures,
    draining: bool,
    stopping: bool,
    failure: Option<String>,
    now_us: u64,
    monotonic_us: u64,
}

/// What a shard is made of.
#[derive(Debug)]
pub struct Parts<S, C> {
    /// Which shard of the node.
    pub number: u32,
    /// The state as recovered.
    pub engine: Engine,
    /// The journal, behind the engine's state.
    pub store: S,
    /// Where time comes from.
    pub clock: C,
    /// The log's time, started behind the last logged time.
    pub log_clock: LogClock,
    /// Where requests come from.
    pub mailbox: Mailbox<Request>,
    /// Most pulls that may wait, and most waits for results.
    pub waiting_max: usize,
    /// How much is kept for those who read events.
    pub events: EventOptions,
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Takes over the parts; serves nothing before the first step.
    pub fn new(parts: Parts<S, C>) -> Shard<S, C> {
        Shard {
            number: parts.number,
            engine: parts.engine,
            store: parts.store,
            clock: parts.clock,
            log_clock: parts.log_clock,
            mailbox: parts.mailbox,
            waiting: Waiting::default(),
            waiting_max: parts.waiting_max,
            awaiting: Awaiting::default(),
            consumers: Consumers::default(),
            feeds: Feeds::new(parts.events),
            batch: Batch::new(),
            batch_pending: Vec::new(),
            in_flight: VecDeque::new(),
            in_flight_bytes: VecDeque::new(),
            in_flight_bytes_sum: 0,
            tick_in_flight: false,
            schedules: Schedules::default(),
            outcome: Outcome::default(),
            claims: BTreeMap::new(),
            woken: Vec::new(),
            newest_queue: None,
            queue_appeared: false,
            names: BTreeMap::new(),
            handed_name: None,
            snapshotting: None,
            damaged: Damaged::default(),
            looks: VecDeque::new(),
            applying: None,
            owed: VecDeque::new(),
            room_at_us: 0,
            removed: false,
            figures: ShardFigures::default(),
            draining: false,
            stopping: false,
            failure: None,
            now_us: 0,
            monotonic_us: 0,
        }
    }

    /// The state, for those who look.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The journal, for those who drive it.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Where requests come from.
    pub fn mailbox(&self) -> &Mailbox<Request> {
        &self.mailbox
    }

    /// Records that are proposed and not yet applied.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Bytes that are proposed and not yet applied.
    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes_sum
    }

    /// Whether it was asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Why the journal failed, when [`Shard::step`] said so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Does what there is to do, without waiting.
    pub fn step(&mut self) -> Step {
        self.look_at_the_clock();
        let mut worked = self.apply_committed();
        if self.failure.is_some() {
            return Step::Failed;
        }
        worked |= self.take_requests();
        self.propose_tick();
        self.propose_firings();
        self.end_waits();
        self.end_awaits(self.monotonic_us);
        self.end_feeds();
        self.detach_stalled();
        self.serve_woken();
        worked |= self.hold_damaged();
        self.propose_owed();
        worked |= self.propose_batch();
        worked |= self.look();
        worked |= self.advance_snapshot();
        if self.stopping && self.is_done() {
            return Step::Stopped;
        }
        if worked { Step::Worked } else { Step::Idle }
    }

    /// Whether nobody waits for anything any more.
    fn is_done(&self) -> bool {
        let owes = !self.owed.is_empty() && !self.waits_for_room();
        self.in_flight.is_empty() && self.mailbox.is_empty() && self.looks.is_empty() && !owes
    }

    /// How long nothing will happen by itself, in microseconds; `None`: for ever.
    pub fn idle_us(&self) -> Option<u64> {
        if self.snapshot_waits() {
            return Some(SNAPSHOT_RETRY_US);
        }
        let room = self.room_at_us.saturating_sub(self.monotonic_us);
        let timer = match self.engine.next_deadline() {
            Some(deadline) if !self.tick_in_flight => Some(deadline.saturating_sub(self.now_us).max(room)),
            _ => None,
        };
        let firing = self.next_firing_us().map(|at_us| at_us.saturating_sub(self.now_us).max(room));
        let owed = if self.owed.is_empty() { None } else { Some(room) };
        let wait = self.waiting.next_end_us().map(|end| end.saturating_sub(self.monotonic_us));
        let awaits = self.awaiting.next_end_us().map(|end| end.saturating_sub(self.monotonic_us));
        let look = self.consumers.look_us().map(|at_us| at_us.saturating_sub(self.now_us));
        let feeds = self.feeds.look_us().map(|at_us| at_us.saturating_sub(self.monotonic_us));
        [timer, firing, owed, wait, awaits, look, feeds].into_iter().flatten().min()
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
    }

    fn take_requests(&mut self) -> bool {
        let (mut taken, mut room) = (0, Load::default());
        while taken < STEP_REQUESTS
            && self.batch.bytes() < STEP_BYTES
            && self.in_flight_bytes_sum < IN_FLIGHT_BYTES
            && let Some(request) = self.mailbox.take(&mut room)
        {
            taken += 1;
            match request {
                Request::Propose(proposal) => self.take_proposal(proposal),
                Request::Pull(pull) => self.take_pull(pull),
                Request::Await(wait) => self.take_await(wait),
                Request::Attach(attaching) => self.take_attaching(attaching),
                Request::Watch(watch) => self.take_watch(*watch),
                Request::Unwatch(left) => self.end_watch(&left),
                Request::Cancel { ticket } => {
                    self.waiting.cancel(ticket);
                    self.cancel_await(ticket);
                }
                Request::Surely(record) => self.owed.push_back(record),
                Request::Read(read) => self.take_look(read),
                Request::Drain => self.drain(),
                Request::Stop => {
                    self.drain();
                    self.stopping = true;
                }
            }
        }
        self.mailbox.free(room);
        taken > 0
    }

    fn take_proposal(&mut self, proposal: Proposal) {
        self.batch.append(&proposal.record);
        let pending = if proposal.removes_queues {
            Pending::Removal(proposal.reply)
        } else {
            Pending::Reply(proposal.reply)
        };
        self.batch_pending.push((proposal.class, pending));
    }

    fn drain(&mut self) {
        if !std::mem::replace(&mut self.draining, true) {
            self.detach_all();
        }
        while let Some(waiter) = self.waiting.pop_any() {
            let _ = waiter.pull.reply.send(Ok(Vec::new()));
        }
        self.end_awaits(u64::MAX);
    }
}
