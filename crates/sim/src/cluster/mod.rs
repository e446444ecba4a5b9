//! Three or five nodes with one shard: the real shards over the real replicas and journals, each on a faulty
//! disk and with clocks of its own, over a network that loses, repeats, delays, reorders and cuts, with
//! crashes, losses of power and pauses. They begin with copies of the data of one node.
//!
//! Unlike the other worlds this one runs by virtual time, since replicas live by it: everything that happens
//! is an event with a time, and the seed decides the times. A run has episodes with faults, after each of
//! which all faults end, and the cluster has to be whole again within ten virtual seconds.
//!
//! Map: [`begun`] the data of one node, [`node`] one node with its disk, [`drive`] its steps, [`witness`]
//! what its shard applies, [`packet`] messages on their way, [`network`] delays and losses, [`faults`]
//! everything that goes wrong, [`operator`] who adds and removes nodes, [`listing`] the list of nodes and
//! what leaders make of it, [`power`] machines that forget, [`damage`] payloads that one disk damages,
//! [`filling`] disks that are full or hang, [`silence`] what nodes notice of lost ones, [`calls`] calls and
//! their answers, [`clients`] who calls whom, [`returns`] consumers that come back to the next leader,
//! [`agreeing`] times in which a node applies batches, [`checker`] what has to be true of all nodes,
//! [`judge`] what has to be true of what clients hear, [`promised`] when leases and delays end, [`holding`]
//! until when a message is its holder's, [`kept`] what its receipt is good for until then, [`locks`] locks as
//! clients know them, [`locking`] what has to be true of these, [`documents`] and [`documenting`] the same of
//! documents, [`across`] transactions over several namespaces, [`stopping`] the
//! same of one whose driver stops, [`rest`] members that have nothing to do.

mod across;
mod agreeing;
mod begun;
mod calls;
mod checker;
mod clients;
mod damage;
mod documenting;
mod documents;
mod drive;
mod faults;
mod filling;
mod holding;
mod judge;
mod kept;
mod listing;
mod locking;
mod locks;
mod network;
mod node;
mod operator;
mod packet;
mod power;
mod promised;
mod rest;
mod returns;
mod silence;
mod stopping;
mod witness;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use sluice_journal::BlobKey;
use sluice_node::steering::Step;
use sluice_replica::NodeId;

use crate::model::Checked;
use crate::plant::Plant;
use crate::rng::Rng;
use crate::world::Stats;
use across::Across;
use begun::Begun;
use checker::Checker;
use clients::Clients;
use documents::Documents;
use filling::Filling;
use judge::Judge;
use locks::Locking;
use network::Network;
use node::{Node, draw_options};
use operator::Operator;
use packet::{Arrived, Packet};
use power::Power;
use returns::{Returns, Worker};

const SECOND_US: u64 = 1_000_000;

/// Time between two looks at a disk that hangs, in microseconds.
const HANG_US: u64 = 20_000;

/// Longest time after which work of a paused node is looked at again, since faults can end early, in
/// microseconds. Longer than most pauses.
const LOOK_AGAIN_US: u64 = 3 * SECOND_US;

/// Largest time that a clock wins or loses in a second, in microseconds.
const DRIFT_US: u64 = 200;

/// Episodes of a run, each of which ends with repair.
const EPISODES: u64 = 3;

/// Operations and elections that a run has to cover.
const OPERATIONS: u64 = 2_000;
const ELECTIONS: u64 = 3;

/// Time in which everything has to work again when nothing goes wrong any more, in microseconds.
const HEALING_US: u64 = 10 * SECOND_US;

/// Time in which all calls are answered when no new ones come, in microseconds.
const CLOSING_US: u64 = 30 * SECOND_US;

/// Time after which a run that gets too little done is given up, in microseconds.
const RUN_US: u64 = 900 * SECOND_US;

/// Event at a node; those of a life that has ended are ignored.
#[derive(PartialEq, Eq, Debug)]
enum Event {
    Tick { node: usize, life: u64 },
    Wake { node: usize, life: u64 },
    Write { node: usize, life: u64 },
    Maintain { node: usize, life: u64 },
    Work { node: usize, life: u64 },
    Arrive { node: usize, packet: Box<Packet> },
    Start { node: usize, life: u64 },
    Lost { node: usize, peer: usize },
    Steer { node: usize, life: u64, step: Step },
    Operate,
    Return(Worker),
    Client,
    Fault,
    Fill,
}

/// Lets the monotonic clocks of the nodes drift apart, in half of all runs.
fn draw_drifts(nodes: &mut [Node], seed: u64) {
    let mut rng = Rng::new(seed.rotate_left(16));
    if rng.chance(1, 2) {
        nodes.iter_mut().for_each(|node| node.drift(rng.below(2 * DRIFT_US) as i64 - DRIFT_US as i64));
    }
}

/// Event with its time and its number, which decides between events of one time.
#[derive(Debug)]
struct Due {
    at_us: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at_us, self.number).cmp(&(other.at_us, other.number))
    }
}

/// The disks of a cluster, besides their failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disks {
    /// Disks with room, for nodes that sync what they acknowledge.
    Sound,
    /// Disks of nodes that acknowledge what is not synced: a loss of power takes some of it.
    Forgetful,
    /// Disks that are full at times, or hang.
    Bad,
}

/// The nodes, what is on its way between them, and what has to be true of them.
#[derive(Debug)]
pub struct ClusterWorld {
    rng: Rng,
    now_us: u64,
    nodes: Vec<Node>,
    network: Network,
    power: Power,
    /// None: the members stay as they are, but for machines that forget.
    operator: Option<Operator>,
    /// None: the disks have room, and do not hang.
    filling: Option<Filling>,
    plant: Option<Plant>,
    checker: Checker,
    judge: Judge,
    clients: Clients,
    returns: Returns,
    /// Longest time before a writer takes a step, in microseconds.
    slow_write_us: u64,
    /// True: things go wrong.
    faulty: bool,
    /// Number of nodes at first.
    first_count: usize,
    /// The node whose wall clock is wrong; those of the others are right.
    wrong_clock: usize,
    /// The node whose disk damages payloads.
    bad_disk: usize,
    /// Blobs that it has damaged, and that are needed.
    damaged: BTreeSet<BlobKey>,
    /// True: clients ask nothing new.
    is_closing: bool,
    due: BinaryHeap<Reverse<Due>>,
    next_event: u64,
    verbose: bool,
    stats: Stats,
}

impl ClusterWorld {
    /// The world of this seed.
    ///
    /// # Errors
    /// The data with which it begins cannot be made.
    pub fn new(seed: u64, plant: Option<Plant>, disks: Disks, verbose: bool) -> Result<ClusterWorld, String> {
        sluice_replica::plant::plant(plant.and_then(Plant::in_replica));
        sluice_journal::plant::plant(plant.and_then(Plant::in_journal));
        sluice_node::plant::plant(plant.and_then(Plant::in_node));
        sluice_engine::plant::plant(plant.and_then(Plant::in_engine));
        let mut rng = Rng::new(seed);
        let count = if rng.chance(2, 3) { 3 } else { 5 };
        let is_lax = disks == Disks::Forgetful;
        let mut options = draw_options(is_lax, &mut rng);
        if disks == Disks::Bad {
            filling::with_reserve(&mut options);
        }
        let Begun { disk, log, places } = Begun::new(&options, &mut rng)?;
        let (wrong_clock, bad_disk) = (rng.index(count), rng.index(count));
        let nodes = (0..count).map(|place| Node::new(place, count, &disk, &options, plant, &mut rng));
        let mut nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        draw_drifts(&mut nodes, seed);
        Ok(ClusterWorld {
            nodes,
            rng,
            now_us: SECOND_US,
            network: Network::new(count),
            power: Power::new(count, &options),
            operator: Operator::new(count, seed).filter(|_| !is_lax),
            filling: (disks == Disks::Bad).then(|| Filling::new(seed)),
            plant,
            checker: Checker::new(log),
            judge: Judge::new(
                disks == Disks::Bad,
                Locking::new(seed),
                Documents::new(seed),
                Across::new(seed, places),
            ),
            clients: Clients::default(),
            returns: Returns::new(seed),
            slow_write_us: 0,
            faulty: false,
            first_count: count,
            wrong_clock,
            bad_disk,
            damaged: BTreeSet::new(),
            is_closing: false,
            due: BinaryHeap::new(),
            next_event: 0,
            verbose,
            stats: Stats::default(),
        })
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        let syncs = self.nodes.iter().map(Node::syncs).sum();
        let mut stats = Stats { syncs, ..self.stats };
        stats += self.judge.stats;
        let (committed, refused) = self.judge.across.requests.counts();
        (stats.committed, stats.aborted) = (committed as u64, refused as u64);
        stats
    }

    /// Runs all episodes; `step` gets the number of each event.
    pub fn run(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        (0..self.nodes.len()).try_for_each(|node| self.start(node))?;
        self.at(0, Event::Client);
        self.at(500_000, Event::Fault);
        if self.operator.is_some() {
            self.at(SECOND_US, Event::Operate);
        }
        if self.filling.is_some() {
            self.at(SECOND_US, Event::Fill);
        }
        for episode in 1..=EPISODES {
            self.faulty = true;
            while !self.is_covered(episode) {
                if self.now_us > RUN_US {
                    let Stats { answers, .. } = self.judge.stats;
                    let elections = self.stats.elections;
                    return Err(format!("too little gets done: {answers} answers, {elections} elections"));
                }
                self.next(step)?;
            }
            self.faulty = false;
            self.heal()?;
            self.watch_healing(step)?;
            self.watch_bad_disks(step)?;
            self.watch_rest(step)?;
        }
        self.close(step)
    }

    /// Lets all open calls end, and compares everything with the log, which is applied once more.
    fn close(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        self.is_closing = true;
        let end = self.now_us + CLOSING_US;
        while !self.clients.open.is_empty() || !self.is_whole() || !self.is_across_settled() {
            if self.now_us > end {
                return Err(format!("not answered in peace: {:?}", self.clients.open));
            }
            self.next(step)?;
        }
        let engine = self.checker.replay();
        engine.recount()?;
        self.present().try_for_each(|node| match &self.nodes[node].server {
            Some(server) if server.shard.engine().digest() == engine.digest() => Ok(()),
            _ => Err(format!("node {node} differs from what its log gives")),
        })?;
        self.judge_across(&engine)?;
        self.judge.look_back(self.checker.bytes(), &engine)
    }

    /// True when all nodes that are to be members are, and have applied all that any has.
    fn is_whole(&self) -> bool {
        let last = self.checker.last();
        let has_all = |node: usize| self.nodes[node].server.is_some() && self.nodes[node].applied == last;
        self.has_power() && self.has_its_members() && self.present().all(has_all)
    }

    fn is_covered(&self, episode: u64) -> bool {
        let Stats { elections, .. } = self.stats;
        let Stats { answers, .. } = self.judge.stats;
        answers * EPISODES >= OPERATIONS * episode && elections * EPISODES >= ELECTIONS * episode
    }

    /// Runs until another send is answered and all nodes have applied everything.
    fn watch_healing(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        let end = self.now_us + HEALING_US;
        let before = self.judge.sends();
        loop {
            if self.is_whole() && self.judge.sends() > before {
                return Ok(());
            }
            if self.now_us > end {
                let applied: Vec<u64> = self.nodes.iter().map(|node| node.applied).collect();
                let (last, members) = (self.checker.last(), self.checker.members());
                return Err(format!("not healed: {applied:?} applied, {last} in all, {members:?}"));
            }
            self.next(step)?;
        }
    }

    fn at(&mut self, delay_us: u64, event: Event) {
        self.next_event += 1;
        self.due.push(Reverse(Due { at_us: self.now_us + delay_us, number: self.next_event, event }));
    }

    fn at_random(&mut self, low_us: u64, high_us: u64, event: Event) {
        let delay = self.rng.between(low_us, high_us);
        self.at(delay, event);
    }

    fn next(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        let Some(Reverse(Due { at_us, event, .. })) = self.due.pop() else {
            return Err("nothing happens any more".to_owned());
        };
        self.now_us = at_us;
        self.stats.steps += 1;
        step.set(self.stats.steps);
        self.trace(|| format!("{at_us}: {event:?}"));
        match event {
            Event::Client => {
                // Now and then nobody asks for a while, and the members become quiet; not while answers are
                // awaited as the sign that all is well.
                let is_quiet = self.rng.chance(1, 1_000) && self.faulty;
                let longest = if is_quiet { 6 * SECOND_US } else { 5_000 };
                self.at_random(1_000, longest, Event::Client);
                self.client()
            }
            Event::Fault => {
                self.at_random(20_000, 700_000, Event::Fault);
                if self.faulty { self.fault() } else { Ok(()) }
            }
            Event::Fill => {
                self.fill();
                Ok(())
            }
            Event::Arrive { node, packet } => self.arrive(node, packet),
            Event::Steer { node, life, step } => self.steer(node, life, step),
            Event::Operate => self.change_cluster(),
            Event::Return(worker) => self.comes_back(worker),
            Event::Start { node, life } => match self.nodes[node].is_down_since(life) {
                true => self.start(node),
                false => Ok(()),
            },
            Event::Lost { node, peer } => {
                let peer = self.nodes[peer].id();
                self.input(node, |server| server.inbox.lost(peer))
            }
            Event::Tick { node, life } => {
                if self.is_life(node, life) {
                    let tick_us = self.nodes[node].tick_us;
                    self.at(tick_us, Event::Tick { node, life });
                    if self.pause(node).is_none() {
                        self.notice_silence(node);
                    }
                    self.input(node, |server| server.inbox.tick())?;
                    self.operate()?;
                    self.follow_list(node)?;
                }
                Ok(())
            }
            Event::Wake { node, life } => match self.is_life(node, life) {
                true => self.input(node, |_| {}),
                false => Ok(()),
            },
            Event::Write { node, life } => self.write(node, life),
            Event::Maintain { node, life } => self.maintain(node, life),
            Event::Work { node, life } => self.work(node, life),
        }
    }

    /// True when this life of the node goes on, and is not paused.
    fn is_life(&self, node: usize, life: u64) -> bool {
        self.nodes[node].life == life && self.nodes[node].server.is_some()
    }

    fn write(&mut self, node: usize, life: u64) -> Checked {
        if !self.is_life(node, life) {
            return Ok(());
        }
        if let Some(delay) = self.disk_pause(node) {
            self.at(delay, Event::Write { node, life });
            return Ok(());
        }
        self.nodes[node].write_due = false;
        self.input(node, |server| {
            server.writer.step();
        })
    }

    fn maintain(&mut self, node: usize, life: u64) -> Checked {
        if !self.is_life(node, life) {
            return Ok(());
        }
        self.at_random(5_000, 400_000, Event::Maintain { node, life });
        if self.nodes[node].hangs_until_us > self.now_us {
            return Ok(());
        }
        let now_us = self.now_us;
        self.input(node, |server| {
            server.maintenance.step(now_us);
        })
    }

    fn arrive(&mut self, node: usize, packet: Box<Packet>) -> Checked {
        if let Some(delay) = self.pause(node) {
            self.at(delay, Event::Arrive { node, packet });
            return Ok(());
        }
        match packet.open() {
            None => Ok(()),
            Some(Arrived::Envelope(envelope)) => self.input(node, |server| server.inbox.envelope(envelope)),
            Some(Arrived::State(message)) => self.input(node, |server| server.inbox.state(message)),
        }
    }

    /// Time after which to look again whether the node is still paused, in microseconds; `None`: it is not.
    fn pause(&self, node: usize) -> Option<u64> {
        let left = self.nodes[node].paused_until_us.checked_sub(self.now_us).filter(|left| *left > 0);
        left.map(|left| left.min(LOOK_AGAIN_US))
    }

    /// Time after which to look again whether something can be written: the node is paused, or its disk
    /// hangs, in microseconds.
    pub(super) fn disk_pause(&self, node: usize) -> Option<u64> {
        let hangs = self.nodes[node].hangs_until_us > self.now_us;
        self.pause(node).or_else(|| hangs.then_some(HANG_US))
    }

    /// The place of the node that has this number, or had it.
    fn place(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.is_known_as(id))
    }

    fn leader(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|node| self.nodes[*node].leads())
    }

    fn trace(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", what());
        }
    }
}
