//! Several shards over one agreed log, in virtual time, in an order that a seed decides: proposals commit
//! late or are overwritten, leaders change at any moment and hear of it late, confirmations get lost, nodes
//! pause, and their wall clocks differ by hours.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sluice_engine::{Engine, Outcome};
use sluice_node::clock::Clock;
use sluice_node::shard::Step;
use sluice_node::shard::channel::{Channel, DetachedBy, News};

use super::agreement::{Agreement, Entry};
use super::calls::{Answered, Call, Client, PROBE, Waiting};
use super::judge::{Judge, Seen};
use super::machine::{Machine, NodeTime, begun};
use super::rng::Rng;
use crate::rig::{SECOND_US, Time};

const NODES: usize = 3;
/// Longest time for which a leader that was replaced does not hear of it, in microseconds.
const DEPOSED_US: u64 = 4 * SECOND_US;
/// Longest time for which a node is cut off, in microseconds.
const ISOLATED_US: u64 = 20 * SECOND_US;
/// Longest time without a commit, or without a leader, in microseconds.
const STALLED_US: u64 = 3 * SECOND_US;

pub struct World {
    rng: Rng,
    time: Time,
    agreement: Arc<Mutex<Agreement>>,
    machines: Vec<Machine>,
    paused_until_us: [u64; NODES],
    /// Time at which a node that believes to lead was replaced or cut off.
    deposed_us: [Option<u64>; NODES],
    waiting: Vec<Waiting>,
    channels: Vec<Arc<Channel>>,
    judge: Judge,
    /// The node that nobody reaches, and until when.
    isolated: (usize, u64),
    /// Queues to probe that are not in use.
    probes: Vec<String>,
    /// Digest of the state at each index, by the first node that was there.
    digests: BTreeMap<u64, u64>,
    /// Time of the last commit.
    moved_us: u64,
    committed: usize,
    number: u64,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut rng = Rng(seed);
        let agreement = begun(NODES);
        let time = Time::default();
        let machines = (0..NODES).map(|node| {
            let clock = NodeTime {
                time: time.clone(),
                origin_us: rng.below(1_000 * SECOND_US),
                wall_us: (rng.below(7_200 * SECOND_US)) as i64 - (3_600 * SECOND_US) as i64,
            };
            Machine::new(&agreement, node, clock)
        });
        World {
            machines: machines.collect(),
            paused_until_us: [0; NODES],
            deposed_us: [None; NODES],
            rng,
            time,
            agreement,
            waiting: Vec::new(),
            channels: Vec::new(),
            judge: Judge::default(),
            isolated: (0, 0),
            probes: (0..4).map(|number| format!("{PROBE}{number}")).collect(),
            digests: BTreeMap::new(),
            moved_us: 0,
            committed: 1,
            number: 0,
        }
    }

    fn now_us(&self) -> u64 {
        self.time.monotonic_us()
    }

    /// Runs so many moments of trouble, then as many of peace as it takes to answer every call.
    pub fn run(mut self, moments: u32) -> Result<Seen, String> {
        for _ in 0..moments {
            self.agree();
            if self.rng.one_in(2) {
                self.ask();
            }
            self.moment()?;
        }
        self.heal()?;
        self.look_back()
    }

    /// Lets all nodes step and a little time pass, and takes what clients hear.
    fn moment(&mut self) -> Result<(), String> {
        let passes_us = if self.rng.one_in(50) { self.rng.below(SECOND_US) } else { self.rng.below(20_000) };
        self.time.advance(passes_us);
        for node in 0..NODES {
            self.step(node)?;
        }
        self.listen()
    }

    fn step(&mut self, node: usize) -> Result<(), String> {
        if self.paused_until_us[node] > self.now_us() {
            return Ok(());
        }
        if self.rng.one_in(200) {
            self.paused_until_us[node] = self.now_us() + self.rng.below(SECOND_US);
        }
        let shard = &mut self.machines[node].shard;
        let mut idle = 0;
        for _ in 0..1 + self.rng.below(4) {
            idle += u32::from(shard.step() == Step::Idle);
            if idle > 2 && shard.idle_us() == Some(0) {
                return Err(format!("node {node} spins"));
            }
        }
        let engine = self.machines[node].shard.engine();
        let (index, digest) = (engine.applied_index(), engine.digest());
        let first = *self.digests.entry(index).or_insert(digest);
        if first == digest { Ok(()) } else { Err(format!("node {node} differs at {index}")) }
    }

    /// Moves the agreement on, in any way that consensus allows.
    fn agree(&mut self) {
        let now_us = self.time.monotonic_us();
        let agreement = Arc::clone(&self.agreement);
        let mut agreement = agreement.lock().unwrap();
        let rng = &mut self.rng;
        if now_us > self.isolated.1 && rng.one_in(200) {
            let node = if rng.one_in(2) { agreement.elected() } else { rng.index(NODES) };
            self.isolated = (node, now_us + rng.below(ISOLATED_US));
        }
        let is_isolated = |node| self.isolated.0 == node && now_us <= self.isolated.1;
        let node = rng.index(NODES);
        let heard = !is_isolated(node);
        let leads = !is_isolated(agreement.elected());
        match rng.below(100) {
            0 if heard => agreement.elect(rng, node),
            // Its followers miss it long before it knows.
            0..=15 if heard && !leads => agreement.elect(rng, node),
            1 => agreement.loses(node),
            2..=40 if leads => agreement.commit(1 + rng.index(3)),
            41..=80 if heard => agreement.learn(node, 1 + rng.index(3)),
            81..=84 if heard => agreement.follow(node),
            85..=95 if leads => agreement.confirm(rng.one_in(4)),
            96 if leads => agreement.add_own_entry(),
            _ => {}
        }
        if agreement.committed().len() > self.committed {
            (self.committed, self.moved_us) = (agreement.committed().len(), now_us);
        } else if now_us > self.moved_us + STALLED_US {
            self.moved_us = now_us;
            let elected = agreement.elected();
            if agreement.believes(elected) && leads && !rng.one_in(3) {
                agreement.commit(usize::MAX >> 1);
                agreement.learn(elected, usize::MAX >> 1);
            } else if heard {
                agreement.elect(rng, node);
            }
        }
        for (node, deposed_us) in self.deposed_us.iter_mut().enumerate() {
            let alone = agreement.believes(node) && is_isolated(node);
            if !agreement.is_deposed(node) && !alone {
                *deposed_us = None;
            } else if *deposed_us.get_or_insert(now_us) + DEPOSED_US < now_us {
                agreement.loses(node);
            }
        }
    }

    /// A node, mostly one that believes to lead.
    fn most_likely(&mut self) -> usize {
        let agreement = self.agreement.lock().unwrap();
        let leads: Vec<usize> = (0..NODES).filter(|node| agreement.believes(*node)).collect();
        let rng = &mut self.rng;
        if leads.is_empty() || rng.one_in(8) { rng.index(NODES) } else { leads[rng.index(leads.len())] }
    }

    /// One call of a client, mostly to a node that believes to lead.
    fn ask(&mut self) {
        let node = self.most_likely();
        if self.agreement.lock().unwrap().is_deposed(node) {
            self.judge.seen.note("asked of a leader that was replaced");
        }
        self.number += 1;
        let (rng, mailbox) = (&mut self.rng, &self.machines[node].mailbox);
        let client = Client { mailbox, now_us: self.time.monotonic_us(), ticket: self.number };
        let payload = format!("<{:07}>", self.number);
        let wait_us = if rng.one_in(2) { 0 } else { rng.below(4 * SECOND_US) };
        let call = match rng.below(12) {
            0..=2 => client.send("jobs", payload, if rng.one_in(3) { 1 + rng.below(3_000) } else { 0 }),
            3 => match self.probes.pop() {
                None => return,
                Some(queue) => client.send(&queue, payload, 0),
            },
            4..=5 => client.pull("jobs", wait_us),
            6..=8 => match pick(rng, &self.judge.holds).map(|(_, hold)| hold.receipt) {
                None => return,
                Some(receipt) => {
                    self.judge.tries_ack(receipt.id);
                    client.ack(receipt)
                }
            },
            9 if self.channels.len() < 3 => client.attach("jobs"),
            9 | 10 => client.count(self.judge.sends()),
            _ => match pick(rng, &self.judge.holds) {
                None => return,
                Some((id, _)) => client.wait_for(id, wait_us),
            },
        };
        self.waiting.push(call);
    }

    /// Takes the answers that have come, and what consumers were given.
    fn listen(&mut self) -> Result<(), String> {
        let now_us = self.now_us();
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut answered = Vec::new();
        let mut at = 0;
        while at < waiting.len() {
            let call = &mut waiting[at];
            match call.answer()? {
                Some(answer) => {
                    answered.push((waiting.swap_remove(at), answer));
                }
                None if call.until_us < now_us => return Err("a call is not answered in its time".to_owned()),
                None => at += 1,
            }
        }
        self.waiting = waiting;
        for (call, answer) in answered {
            self.hears(&call.call, &answer);
            self.judge.hears(&call, answer, now_us)?;
        }
        let mut channels = std::mem::take(&mut self.channels);
        for at in (0..channels.len()).rev() {
            if self.reads_to_the_end(&channels[at])? {
                channels.swap_remove(at);
            }
        }
        self.channels.append(&mut channels);
        Ok(())
    }

    /// Takes what a consumer was given. True when nothing more will come.
    fn reads_to_the_end(&mut self, channel: &Channel) -> Result<bool, String> {
        while let Some(news) = channel.take(10, 1 << 20) {
            match news {
                News::Handed(handed) => self.judge.is_handed(&handed, self.time.monotonic_us())?,
                News::Cancelled(_) => {}
                News::Detached(DetachedBy::SteppedDown) => {
                    self.judge.seen.note("detached");
                    return Ok(true);
                }
                News::Detached(by) => return Err(format!("a consumer was detached: {by:?}")),
            }
        }
        Ok(false)
    }

    /// Goes on with what an answer allows.
    fn hears(&mut self, call: &Call, answer: &Answered) {
        match (call, answer) {
            (Call::Attach { channel, .. }, Answered::Attached(Ok(_))) => {
                self.channels.push(Arc::clone(channel));
            }
            (Call::Send { queue, .. }, Answered::Sent(Ok(_))) if queue.starts_with(PROBE) => {
                self.ask_of_any(|client| client.pull(queue, 0));
            }
            (Call::Send { queue, .. } | Call::Pull { queue, .. }, _) if queue.starts_with(PROBE) => {
                self.probes.push(queue.clone());
            }
            _ => {}
        }
        if let (Call::Pull { queue, .. }, Answered::Given(Ok(given))) = (call, answer)
            && queue.starts_with(PROBE)
        {
            for given in given {
                let receipt = given.delivery.receipt;
                self.judge.tries_ack(receipt.id);
                self.ask_of_any(|client| client.ack(receipt));
            }
        }
    }

    fn ask_of_any(&mut self, call: impl Fn(Client<'_>) -> Waiting) {
        let node = self.most_likely();
        self.number += 1;
        let (mailbox, now_us) = (&self.machines[node].mailbox, self.time.monotonic_us());
        self.waiting.push(call(Client { mailbox, now_us, ticket: self.number }));
    }

    /// Lets one node lead for good until every call is answered and all have the same state.
    fn heal(&mut self) -> Result<(), String> {
        let leader = self.rng.index(NODES);
        let rng = &mut self.rng;
        self.agreement.lock().unwrap().elect(rng, leader);
        for moment in 0.. {
            {
                let mut agreement = self.agreement.lock().unwrap();
                agreement.commit(usize::MAX >> 1);
                (0..NODES).for_each(|node| agreement.learn(node, usize::MAX >> 1));
                agreement.confirm(false);
            }
            self.moment()?;
            let indexes = self.machines.iter().map(|machine| machine.shard.engine().applied_index());
            let last = self.agreement.lock().unwrap().committed().last().map_or(0, Entry::last);
            if self.waiting.is_empty() && indexes.min() == Some(last) {
                return Ok(());
            }
            if moment > 20_000 {
                return Err(format!("{} calls are not answered in peace", self.waiting.len()));
            }
        }
        Ok(())
    }

    /// Compares everything with the agreed log, which is applied once more from its beginning.
    fn look_back(self) -> Result<Seen, String> {
        let World { agreement, machines, mut judge, .. } = self;
        let agreement = agreement.lock().unwrap();
        let (mut engine, mut outcome) = (Engine::new(), Outcome::default());
        for entry in agreement.committed() {
            for (index, record) in (entry.first_index..).zip(sluice_journal::Records::new(&entry.bytes)) {
                engine.apply(entry.time_us, index, record.body, &mut outcome);
            }
        }
        if machines.iter().any(|machine| machine.shard.engine().digest() != engine.digest()) {
            return Err("a node differs from what its log gives".to_owned());
        }
        judge.looks_back(agreement.committed(), &engine)?;
        for _ in 0..agreement.elections {
            judge.seen.note("election");
        }
        for _ in 0..agreement.late {
            judge.seen.note("committed by a later leader");
        }
        Ok(judge.seen)
    }
}

fn pick<K: Copy, V: Copy>(rng: &mut Rng, from: &BTreeMap<K, V>) -> Option<(K, V)> {
    if from.is_empty() {
        return None;
    }
    from.iter().nth(rng.index(from.len())).map(|(key, value)| (*key, *value))
}
