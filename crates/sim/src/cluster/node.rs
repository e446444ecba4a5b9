//! One node with its disk: its lives from a start to a crash.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluice_journal::{
    BlobKey, BlobRead, Commit, Committed, DiskJournal, Durability, Journal, Maintenance, OpenError, Opened,
    Options, Writer,
};
use sluice_node::clock::LogClock;
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::recover::{knows, recover};
use sluice_node::shard::replicated::forgotten::Forgotten;
use sluice_node::shard::replicated::inbox::Inbox;
use sluice_node::shard::replicated::{self, Carrier, OWN_RECORDS, Replicated};
use sluice_node::shard::request::Request;
use sluice_node::shard::store::Standing;
use sluice_node::shard::{Parts, Shard};
use sluice_replica::{
    BootId, Config, Dropped, Envelope, Fetch, Members, Memory, NodeId, Start, StateMessage, Work,
};

use super::SECOND_US;
use super::agreeing::Agreeing;
use super::damage::Harmed;
use super::silence::Link;
use super::witness::Witness;
use crate::clock::SimClock;
use crate::disk::{Call, CallFailure, Crash, Flaws, SimDisk};
use crate::plant::Plant;
use crate::resting;
use crate::rng::Rng;
use crate::world::encryption;

/// Data directory on each disk.
const DIRECTORY: &str = "/data";
/// Time between two ticks of a clock that is right, in microseconds.
pub(super) const TICK_US: u64 = 50_000;
/// Largest difference between two wall clocks that are right, in microseconds.
pub(super) const RIGHT_US: u64 = 10_000;

/// Carrier of a member: it keeps what the member gives to others. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox(Arc<Mutex<Outgoing>>);

/// Envelopes and orders that a member has given to others.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) envelopes: Vec<Envelope>,
    pub(super) fetches: Vec<Fetch>,
    pub(super) states: Vec<StateMessage>,
    pub(super) works: Vec<Work>,
    pub(super) dropped: Vec<(NodeId, Dropped)>,
}

impl Outbox {
    fn with<R>(&self, act: impl FnOnce(&mut Outgoing) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes everything.
    pub(super) fn take(&self) -> Outgoing {
        self.with(std::mem::take)
    }
}

impl Carrier for Outbox {
    fn send(&mut self, envelope: Envelope) {
        self.with(|out| out.envelopes.push(envelope));
    }

    fn fetch(&mut self, fetch: Fetch) {
        self.with(|out| out.fetches.push(fetch));
    }

    fn send_state(&mut self, message: StateMessage) {
        self.with(|out| out.states.push(message));
    }

    fn work(&mut self, work: Work) {
        self.with(|out| out.works.push(work));
    }

    fn members(&mut self, _members: &Members) {}

    fn dropped(&mut self, from: NodeId, why: Dropped) {
        self.with(|out| out.dropped.push((from, why)));
    }
}

/// The parts of a process.
pub(super) struct Server {
    pub(super) shard: Shard<Witness, SimClock>,
    pub(super) mailbox: Mailbox<Request>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) outbox: Outbox,
    pub(super) writer: Writer,
    pub(super) maintenance: Maintenance,
    /// Work on states that is not done.
    pub(super) works: VecDeque<Work>,
}

impl Server {
    /// The blobs to which its state refers.
    pub(super) fn live_blobs(&self) -> impl Iterator<Item = BlobKey> {
        self.shard.engine().live_blobs().map(|blob| BlobKey { index: blob.index, item: blob.item })
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Server")
    }
}

/// A node. What the process knows is gone with its life.
#[derive(Debug)]
pub(super) struct Node {
    config: Config,
    /// Numbers that it had before.
    former: Vec<NodeId>,
    members: Members,
    options: Options,
    /// Length of the log that is kept for others, in bytes: usually, and while a state is on its way.
    kept: (u64, u64),
    pub(super) disk: SimDisk,
    pub(super) harmed: Harmed,
    /// Lead of its wall clock over the right one, in microseconds.
    wall_ahead_us: i64,
    /// Number of starts.
    pub(super) life: u64,
    /// None: it is down.
    pub(super) server: Option<Server>,
    pub(super) clock: SimClock,
    /// Time up to which its clock has run, in microseconds.
    clock_us: u64,
    /// Lead that its monotonic clock wins in a second, in microseconds.
    drift_us: i64,
    /// Number of the batch that this life has applied last.
    pub(super) applied: u64,
    /// Time in which it applied one batch after the other.
    pub(super) agreeing: Agreeing,
    /// Time until which nothing is done, in microseconds.
    pub(super) paused_until_us: u64,
    /// Time between two ticks, in microseconds.
    pub(super) tick_us: u64,
    /// True when the writer is to take a step.
    pub(super) write_due: bool,
    /// Time at which the shard is to take a step, in microseconds.
    pub(super) wake_us: Option<u64>,
    /// Connections with the other nodes, by their places.
    pub(super) links: BTreeMap<usize, Link>,
    pub(super) was_quiet: bool,
    /// Kind of the crash that a planned halt stands for.
    pub(super) dying: Crash,
    /// Boot of its machine.
    boot: BootId,
    /// True: its machine has lost power where that loses what was acknowledged, and it does not vote yet.
    pub(super) has_lost_power: bool,
    /// Time until which nothing is written, in microseconds.
    pub(super) hangs_until_us: u64,
    /// True: its disk has little room.
    pub(super) is_full: bool,
    /// True: its journal has failed in its last life.
    pub(super) has_failed: bool,
    /// Reason for which it does not start.
    pub(super) away: Option<Away>,
}

/// Reason for which a node does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Away {
    /// Word of its removal.
    Removed,
    /// Its machine is gone for good.
    Lost,
}

/// Reason for which a node does not start.
pub(super) enum Fault {
    Open(OpenError),
    Failed(String),
}

impl Node {
    /// A node with a copy of this disk.
    pub(super) fn new(
        place: usize,
        nodes: usize,
        begun: &SimDisk,
        options: &Options,
        plant: Option<Plant>,
        rng: &mut Rng,
    ) -> Result<Node, String> {
        let disk = begun.copy(rng.fork()).map_err(|error| error.to_string())?;
        let members = (0..nodes).map(first_id).collect();
        let members = Members::new(members, Vec::new(), nodes as u64).ok_or("no voters")?;
        let options = Options { commit: Commit::Told, ..options.clone() };
        Ok(Node::with(first_id(place), members, disk, options, plant, rng))
    }

    /// A node like this one that has nothing, with another number.
    pub(super) fn spare(&self, id: NodeId, plant: Option<Plant>, rng: &mut Rng) -> Node {
        let disk = SimDisk::new(Path::new("/"), usize::MAX, rng.fork());
        Node::with(id, Members::default(), disk, self.options.clone(), plant, rng)
    }

    fn with(
        id: NodeId,
        members: Members,
        disk: SimDisk,
        options: Options,
        plant: Option<Plant>,
        rng: &mut Rng,
    ) -> Node {
        disk.set_flaws(Flaws {
            skips_syncs: plant == Some(Plant::SkipSync),
            cuts_tail: plant == Some(Plant::CutValidRecordAtRecovery),
            goes_back: plant == Some(Plant::OlderSnapshotFallback),
        });
        let quiet_ticks = *rng.pick(&[1, 2, 5, 20]);
        Node {
            config: Config { id, heartbeat_ticks: 2, election_ticks: 10, quiet_ticks },
            former: Vec::new(),
            members,
            options,
            kept: (*rng.pick(&[0, 0, 16 << 10, u64::MAX]), *rng.pick(&[0, 64 << 10, u64::MAX])),
            disk,
            harmed: Harmed::default(),
            wall_ahead_us: rng.below(RIGHT_US) as i64 - (RIGHT_US / 2) as i64,
            life: 0,
            server: None,
            clock: SimClock::default(),
            clock_us: 0,
            drift_us: 0,
            applied: 0,
            agreeing: Agreeing::default(),
            paused_until_us: 0,
            tick_us: TICK_US,
            write_due: false,
            wake_us: None,
            links: BTreeMap::new(),
            was_quiet: false,
            dying: Crash::Kill,
            boot: BootId([0; 16]),
            has_lost_power: false,
            hangs_until_us: 0,
            is_full: false,
            has_failed: false,
            away: None,
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> NodeId {
        self.config.id
    }

    /// Gives it another number, from the next start on.
    pub(super) fn rename(&mut self, id: NodeId) {
        self.former.push(std::mem::replace(&mut self.config.id, id));
    }

    /// True: it has this number, or had it.
    pub(super) fn is_known_as(&self, id: NodeId) -> bool {
        self.config.id == id || self.former.contains(&id)
    }

    /// True: it runs, and may have forgotten what it has acknowledged.
    pub(super) fn is_silent(&mut self) -> bool {
        self.server.as_mut().is_some_and(|server| server.shard.store().store.member().has_forgotten())
    }

    /// The members in force, as it knows them while it leads; `None`: it is down, or the last change is
    /// under way, so that those before it may still have to elect a leader.
    pub(super) fn members(&mut self) -> Option<Members> {
        let member = self.server.as_mut()?.shard.store().store.member();
        (!member.is_changing()).then(|| member.members().clone())
    }

    /// True: it runs, and its journal has the blob whole.
    pub(super) fn has_whole(&mut self, key: BlobKey) -> bool {
        self.server.as_mut().is_some_and(|server| match server.shard.store().read(key) {
            BlobRead::Cached(_) => true,
            BlobRead::OnDisk(location) => location.read().is_ok(),
            BlobRead::Missing => false,
        })
    }

    /// The blobs among `keys` that this file holds and that cannot be read.
    pub(super) fn spoiled(&mut self, path: &Path, keys: &[BlobKey]) -> Vec<BlobKey> {
        let Some(server) = &mut self.server else { return Vec::new() };
        let store = server.shard.store();
        let is_spoiled = |key: &BlobKey| match store.read(*key) {
            BlobRead::OnDisk(location) => location.place().0 == path && location.read().is_err(),
            BlobRead::Cached(_) | BlobRead::Missing => false,
        };
        keys.iter().copied().filter(is_spoiled).collect()
    }

    /// True: it runs, and its disk has not synced this batch.
    pub(super) fn lacks(&mut self, batch: &Committed) -> bool {
        let server = self.server.as_mut();
        server.is_some_and(|server| server.shard.store().durable_index() < batch.first_index)
    }

    pub(super) fn syncs(&self) -> u64 {
        self.disk.tally().syncs
    }

    pub(super) fn leads(&self) -> bool {
        self.term_led().is_some()
    }

    /// Term in which it leads.
    pub(super) fn term_led(&self) -> Option<u64> {
        match self.server.as_ref()?.shard.standing() {
            Standing::Leader { term } => Some(term),
            Standing::Follower { .. } | Standing::Alone => None,
        }
    }

    /// True when the node is down since this life has ended, and is to start again.
    pub(super) fn is_down_since(&self, life: u64) -> bool {
        self.life == life && self.server.is_none() && self.away.is_none()
    }

    pub(super) fn is_halted(&self) -> bool {
        self.disk.is_halted()
    }

    pub(super) fn halt_after(&mut self, calls: u64) {
        if self.server.is_some() {
            self.disk.halt_after(calls);
        }
    }

    /// Lets the opening that follows die after so many calls to the disk.
    pub(super) fn halt_opening(&mut self, calls: u64) {
        self.disk.halt_after(calls);
    }

    pub(super) fn fail_call(&mut self, call: Call, nth: u64, how: CallFailure) {
        if self.server.is_some() {
            self.disk.fail_call(call, nth, how);
        }
    }

    /// Ends pauses and planned faults.
    pub(super) fn heal(&mut self) {
        self.paused_until_us = 0;
        self.disk.forget_failures();
        self.disk.forget_halt();
    }

    /// Sets its wall clock forward or back, for this process and all that follow.
    pub(super) fn jump(&mut self, by_us: i64) {
        self.wall_ahead_us += by_us;
        self.clock.jump(by_us);
    }

    /// Begins a life with this process.
    pub(super) fn begin(&mut self, server: Server) {
        self.disk.forget_halt();
        self.has_failed = false;
        self.server = Some(server);
        self.write_due = false;
        self.wake_us = None;
        self.links.clear();
        self.was_quiet = false;
    }

    /// Ends this life.
    pub(super) fn stop(&mut self, how: Crash) {
        if how == Crash::Power {
            self.boot = BootId((u128::from_le_bytes(self.boot.0) + 1).to_le_bytes());
        }
        self.disk.crash(how);
        self.harmed.mend(&self.disk);
        self.disk.forget_failures();
        self.server = None;
    }

    /// Lets its monotonic clock win so many microseconds in a second.
    pub(super) fn drift(&mut self, by_us: i64) {
        self.drift_us = by_us;
    }

    /// Lets the clock of the process run on to this time. The wall clock does not drift.
    pub(super) fn run_clock(&mut self, now_us: u64) {
        let before_us = std::mem::replace(&mut self.clock_us, now_us);
        let drifted = |at_us: u64| at_us as i64 * self.drift_us / SECOND_US as i64;
        let won_us = drifted(now_us) - drifted(before_us);
        self.clock.advance(now_us.saturating_sub(before_us).saturating_add_signed(won_us));
        self.clock.jump(-won_us);
    }

    /// Sets the clocks of a process that begins now: its monotonic time begins anywhere.
    fn begin_clock(&mut self, now_us: u64, rng: &mut Rng) {
        let origin_us = rng.below(1_000 * SECOND_US);
        (self.clock, self.clock_us) = (SimClock::default(), now_us);
        self.clock.advance(origin_us);
        self.clock.jump(self.wall_ahead_us + now_us as i64 - origin_us as i64);
    }

    /// Opens the journal, and makes a shard with what it has.
    pub(super) fn open(&mut self, now_us: u64, rng: &mut Rng) -> Result<Server, Fault> {
        self.begin_clock(now_us, rng);
        let disk = Arc::new(self.disk.for_next_process());
        let opened = DiskJournal::open(disk, self.options.clone()).map_err(Fault::Open)?;
        let Opened {
            mut journal,
            writer,
            maintenance,
            snapshot,
            replay,
            hard_state,
            report,
            last_number,
            ..
        } = opened;
        let failed = |error| Fault::Failed(format!("{error:?}"));
        let engine = recover(snapshot, replay, &mut journal).map_err(failed)?;
        let (inbox, outbox) = (Arc::new(Inbox::new(Arc::new(|| {}))), Outbox::default());
        let parts = replicated::Parts {
            config: self.config.clone(),
            memory: Memory {
                boot: self.boot,
                syncs_first: syncs_first(&self.options),
                is_whole: report.end_known,
                has_failed: self.has_failed,
            },
            forgotten: Forgotten::default(),
            seed: rng.bits(),
            kept_bytes: self.kept.0,
            transfer_bytes: self.kept.1,
            inbox: Arc::clone(&inbox),
            carrier: Box::new(outbox.clone()),
        };
        let start = Start::read(&journal, self.members.clone(), &hard_state, OWN_RECORDS, self.kept.0);
        let start = start.map_err(|error| Fault::Failed(format!("{error:?}")))?;
        let store = Replicated::new(journal, writer.clone(), start, parts).map_err(failed)?;
        self.applied = last_number;
        let mailbox = Mailbox::new(1 << 10);
        let shard = Shard::new(Parts {
            number: 0,
            engine,
            store: Witness::new(store),
            log_clock: LogClock::follow(&self.clock, report.last_time_us),
            clock: self.clock.clone(),
            mailbox: mailbox.clone(),
            waiting_max: 100,
            events: Default::default(),
        });
        Ok(Server { shard, mailbox, inbox, outbox, writer, maintenance, works: VecDeque::new() })
    }
}

/// The identity of the node with this place.
fn first_id(place: usize) -> NodeId {
    NodeId::new(place as u64 + 1).expect("one more than a place is not 0")
}

/// True: nothing is acknowledged before it is synced.
pub(super) fn syncs_first(options: &Options) -> bool {
    options.durability == Durability::Always
}

/// Options of all journals of a cluster, which begin as copies of one.
pub(super) fn draw_options(is_lax: bool, rng: &mut Rng) -> Options {
    let mut options = Options::new(PathBuf::from(DIRECTORY));
    options.segment_bytes = *rng.pick(&[16 << 10, 64 << 10, 256 << 10]);
    options.snapshot_log_bytes = *rng.pick(&[8 << 10, 16 << 10, 64 << 10, 1 << 20]);
    options.cache_bytes = *rng.pick(&[0, 4 << 10, 1 << 20]);
    options.reserve_bytes = 0;
    options.low_water_bytes = 0;
    options.full_margin_bytes = 0;
    options.durability = match rng.below(2) {
        _ if !is_lax => Durability::Always,
        0 => Durability::Os,
        _ => Durability::Interval(Duration::from_millis(rng.between(10, 3_000))),
    };
    options.knows = knows();
    options.identity = rng.bits() | 1;
    options.rest_after = resting::draw(Rng::new(options.identity));
    options.encryption = encryption::draw(rng.fork());
    options
}
