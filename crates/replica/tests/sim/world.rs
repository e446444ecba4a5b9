//! Events in the order of virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sluice_replica::{
    Body, Descriptor, Durable, Members, NodeId, PROTOCOL_NEWEST, Ready, Refused, Rejected, Role, wire,
};

use super::checker::{Checker, Coverage};
use super::network::Network;
use super::node::Node;
use super::rng::Rng;

/// Parts of a run, each of which ends with repair.
const EPISODES: u64 = 3;

/// Nodes, each of which is a member or not.
const NODES: u64 = 5;

/// Operations and elections that a run has to cover.
const OPERATIONS: u64 = 2_100;
const ELECTIONS: u64 = 4;

/// Time in which everything has to work again when nothing goes wrong any more, in microseconds.
const HEALING_US: u64 = 10_000_000;

/// Time after which a run that gets nothing done is given up, in microseconds.
const RUN_US: u64 = 600_000_000;

/// Steps after which a node dies, on average and when nothing is worse than usual.
pub(crate) const LIFETIME: u64 = 4_000;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Tick {
        node: usize,
        life: u64,
    },
    /// A message, and the digest of the state that came with it.
    Arrive {
        node: usize,
        bytes: Vec<u8>,
        state: Option<u64>,
    },
    Transferred {
        node: usize,
        life: u64,
        to: NodeId,
        is_whole: bool,
    },
    Synced {
        node: usize,
        life: u64,
    },
    Start {
        node: usize,
        life: u64,
    },
    Apply {
        node: usize,
        life: u64,
    },
    Client,
    Fault,
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now_us: u64,
    pub(crate) nodes: Vec<Node>,
    pub(super) network: Network,
    pub(crate) checker: Checker,
    /// Longest time that a sync takes, in microseconds; 0: the usual one.
    pub(crate) slow_sync_us: u64,
    /// Steps after which a node dies, on average.
    pub(crate) lifetime: u64,
    /// True: things go wrong.
    pub(crate) faulty: bool,
    /// Number of voters that the operator wants.
    pub(crate) wanted: usize,
    /// Highest number that was given to a node.
    pub(crate) highest: u64,
    /// Disks that were lost, with the identities that were lost with them.
    pub(crate) graves: Vec<(NodeId, Durable)>,
    pub(crate) events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of the next event.
    next_event: u64,
    next_operation: u32,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let wanted = [1, 3, 3, 3, 5, 5][rng.index(6)];
        let ids: Vec<NodeId> = (1..=NODES).filter_map(NodeId::new).collect();
        let members = Members::new(ids[..wanted].to_vec(), Vec::new(), wanted as u64);
        let members = members.expect("the members are right");
        let state = |place| if place < wanted { Durable::first(members.clone()) } else { Durable::default() };
        let nodes = ids.iter().enumerate().map(|(place, id)| Node::new(*id, state(place))).collect();
        World {
            rng,
            now_us: 0,
            nodes,
            network: Network::new(NODES as usize),
            checker: Checker::new(members),
            slow_sync_us: 0,
            lifetime: LIFETIME,
            faulty: false,
            wanted,
            highest: NODES,
            graves: Vec::new(),
            events: BinaryHeap::new(),
            next_event: 0,
            next_operation: 0,
        }
    }

    pub(crate) fn run(mut self) -> Result<Coverage, String> {
        for node in 0..self.nodes.len() {
            self.start(node)?;
        }
        self.at(0, Event::Client);
        self.at(500_000, Event::Fault);
        for episode in 1..=EPISODES {
            self.faulty = true;
            let is_done = |world: &World| {
                let covered = &world.checker.coverage;
                covered.operations() * EPISODES >= OPERATIONS * episode
                    && covered.elections * EPISODES >= ELECTIONS * episode
            };
            while !is_done(&self) {
                if self.now_us > RUN_US {
                    return Err("too little gets done".to_owned());
                }
                self.next()?;
            }
            self.faulty = false;
            self.heal()?;
            self.watch_healing()?;
        }
        self.checker.finish()?;
        self.checker.coverage.virtual_ms = self.now_us / 1_000;
        Ok(self.checker.coverage)
    }

    /// Runs until a new operation is acknowledged and all nodes have applied everything.
    fn watch_healing(&mut self) -> Result<(), String> {
        let end = self.now_us + HEALING_US;
        let before = self.checker.acknowledged_index();
        let is_healed = |world: &World| {
            let all = world.checker.log.len() as u64;
            let mut members = world.nodes.iter().filter(|node| world.checker.members().contains(node.id));
            let is_even = members.all(|node| node.applied == all);
            world.checker.acknowledged_index() > before && is_even && world.is_whole()
        };
        while !is_healed(self) {
            if self.now_us > end {
                let applied: Vec<u64> = self.nodes.iter().map(|node| node.applied).collect();
                let members = self.checker.members();
                let all = self.checker.log.len();
                return Err(format!("not healed: {applied:?} applied, {all} in all, {members:?}"));
            }
            self.next()?;
        }
        Ok(())
    }

    pub(crate) fn at(&mut self, delay_us: u64, event: Event) {
        self.next_event += 1;
        self.events.push(Reverse((self.now_us + delay_us, self.next_event, event)));
    }

    fn next(&mut self) -> Result<(), String> {
        let Reverse((time, _, event)) = self.events.pop().expect("the clients never end");
        self.now_us = time;
        match event {
            Event::Tick { node, life } if self.nodes[node].life == life => {
                self.at(self.nodes[node].tick_us, Event::Tick { node, life });
                if self.awake(node).is_some() {
                    return self.input(node, |replica| replica.tick());
                }
            }
            Event::Arrive { node, bytes, state } => return self.arrive(node, bytes, state),
            Event::Transferred { node, life, to, is_whole } if self.nodes[node].life == life => {
                self.checker.coverage.failed_transfers += u64::from(!is_whole);
                return self.input(node, |replica| replica.transferred(to, is_whole));
            }
            Event::Synced { node, life } if self.nodes[node].life == life => {
                if let Some(delay) = self.pause(node) {
                    self.at(delay, Event::Synced { node, life });
                } else if self.nodes[node].replica.is_some() {
                    let number = self.nodes[node].disk.end_sync();
                    if self.rng.chance(1, 50) {
                        self.nodes[node].disk.remember();
                    }
                    self.sync(node);
                    self.install(node)?;
                    return self
                        .input(node, |replica| number.into_iter().for_each(|it| replica.persisted(it)));
                }
            }
            Event::Start { node, life } if self.nodes[node].life == life => {
                if self.nodes[node].replica.is_none() {
                    return self.start(node);
                }
            }
            Event::Apply { node, life } if self.nodes[node].life == life => {
                if let Some(delay) = self.pause(node) {
                    self.at(delay, Event::Apply { node, life });
                } else if self.nodes[node].replica.is_some() {
                    return self.apply_late(node, life);
                }
            }
            Event::Client => {
                self.at_random(1_000, 5_000, Event::Client);
                if self.rng.chance(1, 20) {
                    let node = self.rng.index(self.nodes.len());
                    self.compact(node);
                }
                if self.rng.chance(1, 200) {
                    self.bring_back();
                }
                return self.client();
            }
            Event::Fault => {
                self.at_random(20_000, 700_000, Event::Fault);
                if self.faulty {
                    self.fault();
                }
            }
            // Of a life that has ended.
            Event::Tick { .. }
            | Event::Synced { .. }
            | Event::Start { .. }
            | Event::Apply { .. }
            | Event::Transferred { .. } => {}
        }
        Ok(())
    }

    pub(crate) fn at_random(&mut self, low_us: u64, high_us: u64, event: Event) {
        let delay = self.rng.between(low_us, high_us);
        self.at(delay, event);
    }

    /// Time that the node is still paused, in microseconds.
    fn pause(&self, node: usize) -> Option<u64> {
        self.nodes[node].paused_until_us.checked_sub(self.now_us).filter(|left| *left > 0)
    }

    /// The replica of a node that is neither down nor paused.
    fn awake(&mut self, node: usize) -> Option<&mut sluice_replica::Replica> {
        if self.pause(node).is_some() { None } else { self.nodes[node].replica.as_mut() }
    }

    pub(crate) fn leader(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|node| self.nodes[*node].leads())
    }

    pub(crate) fn start(&mut self, node: usize) -> Result<(), String> {
        self.nodes[node].start(node, &self.checker, &mut self.rng)?;
        let (life, tick_us) = (self.nodes[node].life, self.nodes[node].tick_us);
        self.at_random(0, tick_us, Event::Tick { node, life });
        self.output(node)
    }

    pub(crate) fn crash(&mut self, node: usize) {
        if self.nodes[node].replica.is_some() {
            self.checker.coverage.crashes += 1;
            self.nodes[node].stop();
            let life = self.nodes[node].life;
            let longest = if self.rng.chance(1, 2) { 30_000 } else { 1_500_000 };
            self.at_random(1_000, longest, Event::Start { node, life });
        }
    }

    /// Gives an input to a replica that runs, and does what comes of it.
    pub(crate) fn input(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut sluice_replica::Replica),
    ) -> Result<(), String> {
        let Some(replica) = self.nodes[node].replica.as_mut() else { return Ok(()) };
        act(replica);
        replica.audit()?;
        if let Some(there) = replica.snapshot() {
            self.checker.has_members(node, &there)?;
        }
        self.output(node)
    }

    fn arrive(&mut self, node: usize, bytes: Vec<u8>, state: Option<u64>) -> Result<(), String> {
        if let Some(delay) = self.pause(node) {
            self.at(delay, Event::Arrive { node, bytes, state });
            return Ok(());
        }
        let Some(replica) = self.nodes[node].replica.as_mut() else { return Ok(()) };
        let Ok(message) = wire::decode(&bytes, PROTOCOL_NEWEST) else {
            self.checker.coverage.damaged += 1;
            return Ok(());
        };
        match replica.step(&message) {
            Ok(()) => {
                if let (Body::Snapshot(snapshot), Some(digest)) = (message.body, state) {
                    self.nodes[node].incoming = Some((snapshot, digest));
                }
                self.input(node, |_| {})
            }
            Err(Rejected::Removed { .. }) => {
                self.checker.coverage.removed += 1;
                Ok(())
            }
            Err(Rejected::UnknownSender { .. } | Rejected::NotForUs { .. } | Rejected::NotInSnapshot) => {
                self.checker.coverage.strangers += 1;
                Ok(())
            }
            Err(Rejected::Stale | Rejected::Installing) => {
                self.checker.coverage.stale += 1;
                Ok(())
            }
            Err(other) => Err(format!("node {node} refuses {message:?}: {other}")),
        }
    }

    /// Does what a replica asks for. The node may die between any two steps.
    fn output(&mut self, node: usize) -> Result<(), String> {
        while let Some(ready) = self.nodes[node].replica.as_mut().and_then(|replica| replica.ready()) {
            let sends_first = self.rng.chance(1, 2);
            if sends_first && !self.send(node, &ready) {
                return Ok(());
            }
            self.write(node, &ready)?;
            if self.dies(node) || (!sends_first && !self.send(node, &ready)) {
                return Ok(());
            }
            if let Some(standing) = ready.standing.filter(|standing| standing.role == Role::Leader) {
                self.checker.leads(node, self.nodes[node].life, standing.term)?;
                self.check_votes(node, standing.term)?;
            }
            if !ready.committed.is_empty() {
                self.nodes[node].given.extend(&ready.committed);
                self.apply_some(node)?;
            }
            for to in ready.lagging.clone() {
                self.serve(node, to);
            }
            for read in &ready.reads {
                if let Some(floor) = self.nodes[node].reads.remove(&read.id) {
                    self.checker.reads(read.index, floor)?;
                }
            }
        }
        Ok(())
    }

    /// Crashes the node by chance.
    pub(crate) fn dies(&mut self, node: usize) -> bool {
        let dies = self.faulty && self.rng.chance(1, self.lifetime);
        if dies {
            self.crash(node);
        }
        dies
    }

    /// Sends messages; false: the node has died.
    fn send(&mut self, node: usize, ready: &Ready) -> bool {
        for message in &ready.messages {
            let Some(to) = self.place(message.to) else { continue };
            let mut bytes = Vec::new();
            wire::encode(message, PROTOCOL_NEWEST, &mut bytes);
            if let Body::Snapshot(snapshot) = &message.body {
                self.transfer_state(node, message, snapshot, &bytes);
                continue;
            }
            for delay in self.network.send(node, to, &mut self.rng) {
                let mut bytes = bytes.clone();
                if self.faulty && self.rng.chance(1, 3_000) {
                    let at = self.rng.index(bytes.len());
                    bytes[at] ^= 1 << self.rng.below(8);
                }
                self.at(delay, Event::Arrive { node: to, bytes, state: None });
            }
            // A promise that was sent is where it matters most what the disk has.
            let promises = matches!(message.body, Body::Vote { is_try: false, is_granted: true, .. });
            if promises && self.faulty && self.rng.chance(1, 4) {
                self.crash(node);
            }
            if self.nodes[node].replica.is_none() || self.dies(node) {
                return false;
            }
        }
        true
    }

    fn write(&mut self, node: usize, ready: &Ready) -> Result<(), String> {
        let Some(write) = ready.write.clone() else { return Ok(()) };
        let owner = &mut self.nodes[node];
        let mut digest = 0;
        if let Some(snapshot) = &write.install {
            let incoming = owner.incoming.take().filter(|(incoming, _)| incoming == snapshot);
            digest = incoming.ok_or("a state is installed that did not come")?.1;
            owner.written = snapshot.position.index;
        }
        if let Some(append) = &write.append {
            if append.keep < owner.written {
                self.checker.cuts(node, append.keep, owner.applied)?;
            }
            owner.written = append.keep + append.entries.len() as u64;
        }
        owner.disk.write(write, digest, &mut self.rng);
        self.sync(node);
        Ok(())
    }

    fn sync(&mut self, node: usize) {
        if self.nodes[node].disk.begin_sync() {
            let installs = self.nodes[node].disk.installs() && self.faulty && self.rng.chance(1, 2);
            let slowest = if installs {
                2_500_000
            } else if self.rng.chance(1, 4) {
                self.slow_sync_us.max(3_000)
            } else {
                3_000
            };
            let life = self.nodes[node].life;
            self.at_random(100, slowest, Event::Synced { node, life });
        }
    }

    /// Lets a client ask one of those who say that they lead.
    fn client(&mut self) -> Result<(), String> {
        let leading: Vec<usize> = (0..self.nodes.len())
            .filter(|node| self.nodes[*node].leads() && self.pause(*node).is_none())
            .collect();
        if leading.is_empty() {
            return Ok(());
        }
        let node = leading[self.rng.index(leading.len())];
        let asked = match self.rng.below(200) {
            0 if self.faulty => self.transfer(node),
            1..60 => self.read(node),
            60..66 => self.change_members(node),
            _ => self.propose(node),
        };
        match asked {
            Ok(()) => {}
            Err(Refused::TooMuchUncommitted { .. }) => self.checker.coverage.full += 1,
            Err(_) => self.checker.coverage.refused += 1,
        }
        self.input(node, |_| {})
    }

    fn transfer(&mut self, node: usize) -> Result<(), Refused> {
        let to = self.nodes[self.rng.index(self.nodes.len())].id;
        self.hand_over(node, to)
    }

    pub(crate) fn hand_over(&mut self, node: usize, to: NodeId) -> Result<(), Refused> {
        self.nodes[node].replica.as_mut().expect("it leads").transfer_leader(to)?;
        self.checker.coverage.transfers += 1;
        Ok(())
    }

    fn read(&mut self, node: usize) -> Result<(), Refused> {
        let floor = self.checker.acknowledged_index();
        let id = self.nodes[node].replica.as_mut().expect("it leads").read_index()?;
        self.nodes[node].reads.insert(id, floor);
        Ok(())
    }

    fn propose(&mut self, node: usize) -> Result<(), Refused> {
        self.next_operation += 1;
        let operation = self.next_operation;
        let is_large = self.rng.chance(1, 5);
        let bytes = if is_large { self.rng.between(1 << 20, 4 << 20) } else { self.rng.between(1, 9_000) };
        let batch = Descriptor {
            first_record: u64::from(operation),
            records: 1,
            time_us: self.now_us,
            bytes: bytes as u32,
            checksum: operation,
        };
        let at = self.nodes[node].replica.as_mut().expect("it leads").propose(batch)?;
        self.nodes[node].proposals.insert((at.index, at.term), operation);
        Ok(())
    }
}
