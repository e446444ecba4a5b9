//! Steps of a node: what is given to it, and what comes of that.

use sluice_journal::{Committed, Journal};
use sluice_node::shard::Step;
use sluice_node::shard::replicated::work;
use sluice_replica::{Body, Dropped, Members, NodeId, Role, Work};

use super::node::{Fault, Outgoing, Server, TICK_US};
use super::packet::Packet;
use super::witness::Given;
use super::{ClusterWorld, Event, checker};
use crate::disk::Crash;
use crate::model::Checked;

/// Number of steps of a shard after which it spins.
const STEPS_MAX: u32 = 10_000;
/// Shortest time in which a shard is woken again, in microseconds.
const WAKE_US_MIN: u64 = 100;

impl ClusterWorld {
    /// Starts a node with what its disk has.
    pub(super) fn start(&mut self, node: usize) -> Checked {
        if self.faulty && self.rng.chance(1, 10) {
            let calls = self.rng.below(60);
            self.nodes[node].halt_opening(calls);
        }
        let owner = &mut self.nodes[node];
        owner.life += 1;
        let life = owner.life;
        match owner.open(self.now_us, &mut self.rng) {
            Ok(mut server) if !owner.is_halted() => {
                self.checker.has(node, server.shard.engine())?;
                let members = server.shard.store().store.member().members();
                self.checker.has_members(node, owner.applied, members)?;
                owner.begin(server);
                self.note_voters();
                self.judge.starts.add(node, self.now_us);
            }
            // Whoever runs the machine makes room before the next start.
            Err(_) if owner.is_full => {
                self.free_disk(node);
                self.nodes[node].stop(Crash::Kill);
                self.at_random(1_000, 30_000, Event::Start { node, life });
                return Ok(());
            }
            Err(Fault::Open(error)) if !owner.is_halted() => {
                return Err(format!("node {node} cannot start: {error}"));
            }
            Err(Fault::Failed(what)) if !owner.is_halted() => {
                return Err(format!("node {node} cannot recover: {what}"));
            }
            Ok(_) | Err(_) => {
                let how = *self.rng.pick(&[Crash::Kill, Crash::Power]);
                let how = self.ending(node, how);
                self.nodes[node].stop(how);
                self.at_random(1_000, 30_000, Event::Start { node, life });
                return Ok(());
            }
        }
        let tick_us = match self.rng.chance(1, 8) {
            true => self.rng.between(TICK_US / 2, TICK_US * 2),
            false => self.rng.between(42_000, 58_000),
        };
        self.nodes[node].tick_us = tick_us;
        self.nodes[node].dying = *self.rng.pick(&[Crash::Kill, Crash::Power]);
        self.at_random(0, tick_us, Event::Tick { node, life });
        self.at_random(5_000, 400_000, Event::Maintain { node, life });
        self.input(node, |_| {})
    }

    /// Gives an input to a node that runs and is not paused, and does what comes of it.
    pub(super) fn input(&mut self, node: usize, act: impl FnOnce(&mut Server)) -> Checked {
        if self.pause(node).is_some() {
            return Ok(());
        }
        self.nodes[node].run_clock(self.now_us);
        let Some(server) = &mut self.nodes[node].server else { return Ok(()) };
        let next = server.shard.store().next_index();
        act(server);
        loop {
            if !self.step(node)? {
                return Ok(());
            }
            let Some(server) = &mut self.nodes[node].server else { return Ok(()) };
            let out = server.outbox.take();
            let has_read = !out.fetches.is_empty();
            self.carry(node, out)?;
            if !has_read {
                break;
            }
        }
        if let Some(server) = &mut self.nodes[node].server {
            self.stats.cuts += u64::from(server.shard.store().next_index() < next);
        }
        self.count_quiet(node);
        self.look_for_copies()?;
        self.listen(node)?;
        self.plan(node);
        if self.nodes[node].is_halted() {
            let how = self.nodes[node].dying;
            self.crash_by(node, how);
        }
        Ok(())
    }

    /// Lets the shard step until it has nothing to do. False: its process has ended.
    fn step(&mut self, node: usize) -> Result<bool, String> {
        for steps in 0.. {
            let Some(server) = &mut self.nodes[node].server else { return Ok(false) };
            let step = server.shard.step();
            self.look(node)?;
            match step {
                Step::Worked if steps < STEPS_MAX => {}
                Step::Worked => return Err(format!("the shard of node {node} spins")),
                Step::Idle => return Ok(true),
                Step::Stopped => return Err(format!("the shard of node {node} has stopped")),
                Step::Failed => {
                    self.failed(node)?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Holds what a shard has done against all others.
    fn look(&mut self, node: usize) -> Checked {
        let Some(server) = &mut self.nodes[node].server else { return Ok(()) };
        self.judge.consumers.proposed(server.shard.store().take_proposed(), self.now_us);
        let given = server.shard.store().take();
        given.iter().try_for_each(|given| self.is_given(node, given))?;
        let owner = &mut self.nodes[node];
        let id = owner.id();
        let Some(server) = &mut owner.server else { return Ok(()) };
        if !given.is_empty() {
            self.checker.has(node, server.shard.engine())?;
        }
        let member = server.shard.store().store.member();
        let standing = member.standing();
        if standing.role == Role::Leader {
            if !member.members().voters().contains(&id) {
                return Err(format!("node {node} leads term {} and is no voter", standing.term));
            }
            self.checker.leads(node, owner.life, standing.term)?;
            self.stats.elections = self.checker.elections();
        }
        Ok(())
    }

    /// Takes in a thing that a shard was given.
    fn is_given(&mut self, node: usize, given: &Given) -> Checked {
        match given {
            Given::Batch(batch, members) => {
                self.is_committed(batch)?;
                let owner = &mut self.nodes[node];
                self.checker.applies(node, owner.applied, batch)?;
                self.checker.has_members(node, batch.number, members)?;
                owner.applied = batch.number;
                owner.agreeing.note(self.now_us);
                self.stats.records += batch.records().count() as u64;
                self.note_voters();
                Ok(())
            }
            Given::State(number, members) => {
                let owner = &mut self.nodes[node];
                let Some(server) = &owner.server else { return Ok(()) };
                self.checker.takes_over(node, *number, server.shard.engine())?;
                self.checker.has_members(node, *number, members)?;
                owner.applied = *number;
                self.stats.installs += 1;
                self.note_voters();
                Ok(())
            }
            Given::Lost(key) => Err(format!("node {node} has lost {key:?}, which is damaged on one disk")),
        }
    }

    /// Lets the judge know who the voters are.
    fn note_voters(&mut self) {
        let members = self.checker.members();
        let voters = members.voters().iter().filter_map(|voter| self.place(*voter)).collect();
        self.judge.starts.set_voters(voters);
    }

    /// Checks that a batch which nobody has applied before may be on the disks of a majority of the voters:
    /// of nodes that are down nothing is known.
    fn is_committed(&mut self, batch: &Committed) -> Checked {
        if batch.number <= self.checker.last() || self.power.renumbers() {
            return Ok(());
        }
        let lacking = self.nodes.iter_mut().filter_map(|node| node.lacks(batch).then(|| node.id()));
        let lacking: Vec<NodeId> = lacking.collect();
        let may_be = |members: &Members| {
            let voters = members.voters();
            voters.iter().filter(|voter| lacking.contains(voter)).count() * 2 < voters.len()
        };
        if self.checker.members_before(batch.number).any(may_be) {
            return Ok(());
        }
        Err(format!("batch {} is committed, and {lacking:?} lack it", batch.number))
    }

    fn failed(&mut self, node: usize) -> Checked {
        let owner = &self.nodes[node];
        let has_failed = owner.disk.has_failed();
        if !has_failed && !owner.is_halted() {
            let server = owner.server.as_ref();
            let why = server.and_then(|server| server.shard.failure()).unwrap_or_default();
            return Err(format!("the journal of node {node} failed without a cause: {why}"));
        }
        let owner = &mut self.nodes[node];
        // A failure that its journal survived, and after which it was counted back, has lost nothing.
        owner.has_failed = has_failed && owner.has_lost_power;
        self.crash(node);
        Ok(())
    }

    /// Brings on its way what a member gives to others, and reads for it what followers need.
    fn carry(&mut self, node: usize, out: Outgoing) -> Checked {
        for (from, why) in &out.dropped {
            if *why == Dropped::NoRoom && self.filling.is_some() {
                continue;
            }
            checker::may_be_dropped(why, self.power.renumbers() || self.operator.is_some())
                .map_err(|why| format!("node {node} drops a message of node id {}: {why}", from.get()))?;
        }
        let owner = &mut self.nodes[node];
        let Some(server) = &owner.server else { return Ok(()) };
        for fetch in out.fetches {
            let fetched = fetch.read();
            let may_fail = owner.disk.may_fail() || owner.is_halted() || owner.harmed.is_harmed;
            if let Some(error) = fetched.error().filter(|_| !may_fail) {
                return Err(format!("node {node} cannot read its log back: {error:?}"));
            }
            server.inbox.fetched(fetched);
            self.stats.fetches += 1;
        }
        self.plan_works(node, out.works);
        for message in &out.states {
            self.send(node, message.to, &Packet::of_state(message));
        }
        for envelope in out.envelopes {
            let to = envelope.message.to;
            let is_vote = matches!(envelope.message.body, Body::Vote { is_try: false, is_granted: true, .. });
            self.send(node, to, &Packet::of(envelope));
            // Right after it has said something, and a vote above all, it matters most what the disk has.
            if self.faulty && self.rng.chance(1, if is_vote { 8 } else { 4_000 }) {
                self.crash(node);
                return Ok(());
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, to: NodeId, packet: &Packet) {
        let Some(to) = self.place(to) else { return };
        for delay in self.network.send(from, to, &mut self.rng) {
            let mut packet = packet.clone();
            if self.faulty && self.rng.chance(1, 3_000) {
                packet.damage(&mut self.rng);
            }
            self.at(delay, Event::Arrive { node: to, packet: Box::new(packet) });
        }
    }

    /// Plans work on states, which is done in order: at once, or late.
    fn plan_works(&mut self, node: usize, mut works: Vec<Work>) {
        let (life, count) = (self.nodes[node].life, works.len());
        self.nodes[node].server.iter_mut().for_each(|server| server.works.extend(works.drain(..)));
        for _ in 0..count {
            let longest = if self.rng.chance(1, 20) { 1_000_000 } else { 3_000 };
            self.at_random(10, longest, Event::Work { node, life });
        }
    }

    /// Does the first work on a state.
    pub(super) fn work(&mut self, node: usize, life: u64) -> Checked {
        if !self.is_life(node, life) {
            return Ok(());
        }
        if let Some(delay) = self.disk_pause(node) {
            self.at(delay, Event::Work { node, life });
            return Ok(());
        }
        self.input(node, |server| {
            if let Some(work) = server.works.pop_front() {
                work::run(work, &server.inbox);
            }
        })
    }

    /// Plans the next steps of the writer and the shard.
    fn plan(&mut self, node: usize) {
        let (now_us, owner) = (self.now_us, &mut self.nodes[node]);
        let Some(server) = &mut owner.server else { return };
        let life = owner.life;
        let is_writing = server.shard.store().store.member().is_writing();
        let wake_us = server.shard.idle_us().map(|idle_us| now_us + idle_us.max(WAKE_US_MIN));
        let is_earlier = |at_us: &u64| owner.wake_us.is_none_or(|before| before <= now_us || *at_us < before);
        if let Some(at_us) = wake_us.filter(is_earlier) {
            owner.wake_us = Some(at_us);
            self.at(at_us - now_us, Event::Wake { node, life });
        }
        if is_writing && !std::mem::replace(&mut self.nodes[node].write_due, true) {
            let slowest = if self.rng.chance(1, 4) { self.slow_write_us.max(3_000) } else { 3_000 };
            self.at_random(100, slowest, Event::Write { node, life });
        }
    }
}
