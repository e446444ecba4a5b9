//! One member with its disk: its lives from a start to a crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_journal::{
    Commit, Committed, DiskJournal, Event as JournalEvent, Journal, Maintenance, OpenError, Opened, Options,
    SealedBatch, Writer,
};
use sluice_replica::{
    Body, Config, Envelope, Member, MemberEvent, Members, NodeId, ReadId, Role, Start, wire,
};

use super::{ClusterWorld, Event, batch};
use crate::disk::{Call, CallFailure, Crash, Flaws, SimDisk};
use crate::model::Checked;
use crate::plant::Plant;
use crate::rng::Rng;
use crate::world::encryption;

/// Data directory on each disk.
const DIRECTORY: &str = "/data";
/// Size of a disk that is never full, in bytes.
const ROOMY: usize = 1 << 30;
/// Time between two ticks of a clock that is right, in microseconds.
const TICK_US: u64 = 50_000;

/// The parts of an open journal under a member.
pub(super) struct Server {
    pub(super) member: Member,
    pub(super) writer: Writer,
    pub(super) maintenance: Maintenance,
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
    members: Members,
    options: Options,
    disk: SimDisk,
    /// Number of starts.
    pub(super) life: u64,
    /// None: it is down.
    pub(super) server: Option<Server>,
    /// Number of the batch that this life has applied last.
    pub(super) applied: u64,
    /// Time until which nothing is done, in microseconds.
    pub(super) paused_until_us: u64,
    /// Time between two ticks, in microseconds.
    pub(super) tick_us: u64,
    /// True when the writer is to take a step.
    pub(super) write_due: bool,
    /// Operations whose outcome is open, by index of the first record and term.
    pub(super) proposals: BTreeMap<(u64, u64), u64>,
    /// Reads that are open, with the index that was acknowledged when each was asked.
    pub(super) reads: BTreeMap<ReadId, u64>,
    /// Kind of the crash that a planned halt stands for.
    dying: Crash,
    /// True when a call was made to fail in this life.
    armed: bool,
}

/// Envelope on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bytes {
    message: Vec<u8>,
    batches: Vec<bytes::Bytes>,
}

impl Bytes {
    fn of(envelope: Envelope) -> Bytes {
        let mut message = Vec::new();
        wire::encode(&envelope.message, &mut message);
        Bytes { message, batches: envelope.batches }
    }

    /// Flips a bit somewhere.
    fn damage(&mut self, rng: &mut Rng) {
        let at = rng.index(self.message.len());
        match self.batches.iter_mut().find(|batch| !batch.is_empty() && rng.chance(1, 2)) {
            None => self.message[at] ^= 1 << rng.below(8),
            Some(batch) => {
                let mut bytes = batch.to_vec();
                bytes[rng.index(batch.len())] ^= 1 << rng.below(8);
                *batch = bytes.into();
            }
        }
    }

    /// The envelope; `None`: it was damaged.
    pub(super) fn open(self) -> Option<Envelope> {
        let message = wire::decode(&self.message).ok()?;
        Some(Envelope { message, batches: self.batches })
    }
}

impl Node {
    pub(super) fn new(place: usize, nodes: usize, plant: Option<Plant>, rng: &mut Rng) -> Node {
        let disk = SimDisk::new(Path::new("/"), ROOMY, rng.fork());
        disk.set_flaws(Flaws {
            skips_syncs: plant == Some(Plant::SkipSync),
            cuts_tail: plant == Some(Plant::CutValidRecordAtRecovery),
            goes_back: plant == Some(Plant::OlderSnapshotFallback),
        });
        let members = (0..nodes).map(id).collect();
        let members = Members::new(members, Vec::new(), nodes as u64).expect("some voters");
        Node {
            config: Config { id: id(place), heartbeat_ticks: 2, election_ticks: 10 },
            members,
            options: draw_options(rng),
            disk,
            life: 0,
            server: None,
            applied: 0,
            paused_until_us: 0,
            tick_us: TICK_US,
            write_due: false,
            proposals: BTreeMap::new(),
            reads: BTreeMap::new(),
            dying: Crash::Kill,
            armed: false,
        }
    }

    pub(super) fn syncs(&self) -> u64 {
        self.disk.tally().syncs
    }

    pub(super) fn leads(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.member.standing().role == Role::Leader)
    }

    /// True when the node is down since this life has ended.
    pub(super) fn is_down_since(&self, life: u64) -> bool {
        self.life == life && self.server.is_none()
    }

    pub(super) fn is_halted(&self) -> bool {
        self.disk.is_halted()
    }

    pub(super) fn halt_after(&mut self, calls: u64) {
        if self.server.is_some() {
            self.disk.halt_after(calls);
        }
    }

    pub(super) fn fail_call(&mut self, call: Call, nth: u64, how: CallFailure) {
        if self.server.is_some() {
            self.armed = true;
            self.disk.fail_call(call, nth, how);
        }
    }

    /// Ends pauses and planned faults.
    pub(super) fn heal(&mut self) {
        self.paused_until_us = 0;
        self.disk.forget_failures();
        self.disk.forget_halt();
    }

    /// Ends this life.
    pub(super) fn stop(&mut self, how: Crash) {
        self.disk.crash(how);
        self.disk.forget_failures();
        self.server = None;
        self.armed = false;
        self.proposals.clear();
        self.reads.clear();
    }

    /// Opens the journal; gives the batches that were replayed to `replayed`.
    fn open(&mut self, seed: u64, mut replayed: impl FnMut(&Committed) -> Checked) -> Result<Server, Fault> {
        let disk = Arc::new(self.disk.for_next_process());
        let opened = DiskJournal::open(disk, self.options.clone()).map_err(Fault::Open)?;
        let Opened { mut journal, writer, maintenance, mut replay, hard_state, .. } = opened;
        while let Some(batch) = replay.next_batch().map_err(Fault::Open)? {
            replayed(&batch).map_err(Fault::Rule)?;
        }
        journal.set_live([]).map_err(Fault::Open)?;
        if journal.committed_index() == 0 {
            let first = begin_log(&mut journal, &writer).map_err(Fault::Failed)?;
            replayed(&first).map_err(Fault::Rule)?;
        }
        let start = Start::read(&journal, self.members.clone(), hard_state, batch::begin(), u64::MAX);
        let start = start.map_err(|error| Fault::Failed(format!("{error:?}")))?;
        let member = Member::new(&self.config, journal, start, seed);
        let member = member.map_err(|error| Fault::Rule(error.to_string()))?;
        Ok(Server { member, writer, maintenance })
    }
}

/// Commits the first batch of the log, which all members begin with; a start that was cut short may have
/// written it already.
fn begin_log(journal: &mut DiskJournal, writer: &Writer) -> Result<Committed, String> {
    if journal.next_number() == 1 {
        let first = SealedBatch::received(1, 1, 0, batch::begin()).expect("one whole record");
        journal.append(1, first).map_err(|refused| format!("{refused:?}"))?;
        writer.step();
    }
    journal.commit(1).map_err(|error| format!("{error:?}"))?;
    match journal.poll() {
        Some(JournalEvent::Committed(first)) if journal.durable_orders() == journal.orders() => Ok(first),
        other => Err(format!("{other:?}")),
    }
}

/// Reason for which a node does not start.
enum Fault {
    Open(OpenError),
    Failed(String),
    Rule(String),
}

/// The identity of the node with this place.
pub(super) fn id(place: usize) -> NodeId {
    NodeId::new(place as u64 + 1).expect("one more than a place is not 0")
}

/// The place of the node with this identity.
fn place(id: NodeId) -> usize {
    id.get() as usize - 1
}

fn draw_options(rng: &mut Rng) -> Options {
    let mut options = Options::new(PathBuf::from(DIRECTORY));
    options.commit = Commit::Told;
    options.segment_bytes = *rng.pick(&[16 << 10, 64 << 10, 256 << 10]);
    options.cache_bytes = *rng.pick(&[0, 4 << 10, 1 << 20]);
    options.reserve_bytes = 0;
    options.low_water_bytes = 0;
    options.full_margin_bytes = 0;
    options.identity = rng.bits() | 1;
    options.encryption = encryption::draw(rng.fork());
    options
}

impl ClusterWorld {
    /// Starts a node with what its disk has.
    pub(super) fn start(&mut self, node: usize) -> Checked {
        let seed = self.rng.bits();
        if self.faulty && self.rng.chance(1, 10) {
            self.nodes[node].disk.halt_after(self.rng.below(60));
        }
        let (checker, owner) = (&mut self.checker, &mut self.nodes[node]);
        owner.life += 1;
        owner.applied = 0;
        let mut applied = 0;
        let opened = owner.open(seed, |batch| {
            checker.applies(node, applied, batch)?;
            applied = batch.number;
            Ok(())
        });
        owner.applied = applied;
        let life = owner.life;
        match opened {
            Ok(server) if !owner.disk.is_halted() => {
                owner.disk.forget_halt();
                owner.server = Some(server);
            }
            Err(Fault::Rule(what)) => return Err(format!("node {node} cannot start: {what}")),
            Err(Fault::Open(error)) if !owner.disk.is_halted() => {
                return Err(format!("node {node} cannot start: {error}"));
            }
            Err(Fault::Failed(what)) if !owner.disk.is_halted() => {
                return Err(format!("node {node} cannot begin its log: {what}"));
            }
            Ok(_) | Err(Fault::Open(_) | Fault::Failed(_)) => {
                let how = *self.rng.pick(&[Crash::Kill, Crash::Power]);
                owner.disk.crash(how);
                self.at_random(1_000, 30_000, Event::Start { node, life });
                return Ok(());
            }
        }
        owner.tick_us = match self.rng.chance(1, 8) {
            true => self.rng.between(TICK_US / 2, TICK_US * 2),
            false => self.rng.between(42_000, 58_000),
        };
        self.nodes[node].dying = *self.rng.pick(&[Crash::Kill, Crash::Power]);
        self.nodes[node].write_due = false;
        let tick_us = self.nodes[node].tick_us;
        self.at_random(0, tick_us, Event::Tick { node, life });
        self.at_random(5_000, 400_000, Event::Maintain { node, life });
        self.input(node, |_| {})
    }

    /// Gives an input to a node that runs and is not paused, and does what comes of it.
    pub(super) fn input(&mut self, node: usize, act: impl FnOnce(&mut Server)) -> Checked {
        if self.pause(node).is_some() {
            return Ok(());
        }
        let Some(server) = &mut self.nodes[node].server else { return Ok(()) };
        let next = server.member.journal().next_number();
        act(server);
        self.stats.cuts += u64::from(server.member.journal().next_number() < next);
        self.events(node)?;
        self.fetch(node)?;
        self.send(node);
        self.plan_write(node);
        if self.nodes[node].disk.is_halted() {
            let how = self.nodes[node].dying;
            self.crash_by(node, how);
        }
        Ok(())
    }

    /// Takes everything that a member tells.
    fn events(&mut self, node: usize) -> Checked {
        while let Some(event) = self.nodes[node].server.as_mut().and_then(|server| server.member.poll()) {
            match event {
                MemberEvent::Journal(JournalEvent::Committed(batch)) => self.apply(node, &batch)?,
                MemberEvent::Journal(JournalEvent::Failed(why)) => return self.failed(node, &why),
                MemberEvent::Journal(other) => return Err(format!("node {node}: {other:?}")),
                MemberEvent::Read(read) => {
                    let owner = &mut self.nodes[node];
                    if let Some(floor) = owner.reads.remove(&read.id) {
                        self.checker.reads(read.index.max(owner.applied), floor)?;
                        self.stats.answers += 1;
                    }
                }
            }
        }
        let Some(server) = &self.nodes[node].server else { return Ok(()) };
        let standing = server.member.standing();
        if standing.role == Role::Leader {
            self.checker.leads(node, self.nodes[node].life, standing.term)?;
            self.stats.elections = self.checker.elections();
        }
        Ok(())
    }

    /// Applies a batch and tells whose operations it decides.
    fn apply(&mut self, node: usize, batch: &Committed) -> Checked {
        let owner = &mut self.nodes[node];
        self.checker.applies(node, owner.applied, batch)?;
        owner.applied = batch.number;
        self.stats.records += 1;
        let next = batch.records().count() as u64 + batch.first_index;
        let later = owner.proposals.split_off(&(next, 0));
        for ((index, term), operation) in std::mem::replace(&mut owner.proposals, later) {
            if (index, term) == (batch.first_index, batch.term) {
                self.checker.acknowledges(index, operation)?;
                self.stats.answers += 1;
            } else {
                self.checker.overwrites(operation);
                self.stats.overwritten += 1;
            }
        }
        Ok(())
    }

    fn failed(&mut self, node: usize, why: &str) -> Checked {
        let owner = &self.nodes[node];
        if !owner.armed && !owner.disk.is_halted() {
            return Err(format!("the journal of node {node} failed without a cause: {why}"));
        }
        self.crash(node);
        Ok(())
    }

    /// Reads what followers that are behind need.
    fn fetch(&mut self, node: usize) -> Checked {
        let Some(server) = &mut self.nodes[node].server else { return Ok(()) };
        for fetch in server.member.take_fetches() {
            match server.member.fetched(fetch.read()) {
                Ok(()) => {}
                Err(_) if self.nodes[node].armed || self.nodes[node].disk.is_halted() => return Ok(()),
                Err(error) => return Err(format!("node {node} cannot read its log back: {error:?}")),
            }
            self.stats.fetches += 1;
        }
        Ok(())
    }

    fn send(&mut self, node: usize) {
        let Some(server) = &mut self.nodes[node].server else { return };
        for envelope in server.member.take_envelopes() {
            let to = place(envelope.message.to);
            let is_vote = matches!(envelope.message.body, Body::Vote { is_try: false, is_granted: true, .. });
            let bytes = Bytes::of(envelope);
            for delay in self.network.send(node, to, &mut self.rng) {
                let mut bytes = bytes.clone();
                if self.faulty && self.rng.chance(1, 3_000) {
                    bytes.damage(&mut self.rng);
                }
                self.at(delay, Event::Arrive { node: to, envelope: Box::new(bytes) });
            }
            // Right after it has said something, and a vote above all, it matters most what the disk has.
            if self.faulty && self.rng.chance(1, if is_vote { 8 } else { 4_000 }) {
                return self.crash(node);
            }
        }
    }

    fn plan_write(&mut self, node: usize) {
        let owner = &mut self.nodes[node];
        let is_writing = owner.server.as_ref().is_some_and(|server| server.member.is_writing());
        if is_writing && !std::mem::replace(&mut owner.write_due, true) {
            let life = owner.life;
            let slowest = if self.rng.chance(1, 4) { self.slow_write_us.max(3_000) } else { 3_000 };
            self.at_random(100, slowest, Event::Write { node, life });
        }
    }
}
