//! Clients: what they ask, whom, and what they hear.

use sluice_node::shard::channel::{DetachedBy, News};

use super::calls::{Answered, Call, Client, Message, QUEUE, Waiting};
use super::judge::payload;
use super::returns::{Reading, Worker};
use super::{ClusterWorld, SECOND_US};
use crate::model::Checked;

/// Beginning of the names of queues in which one message at a time is sent and asked for.
const PROBE: &str = "probe-";
/// Number of those queues.
const PROBES: usize = 4;
/// Time after the end of a delay from which a message is there, whoever leads, in microseconds.
const LATE_US: u64 = 4 * SECOND_US;
/// Time after which a send with a key is not repeated, in microseconds: the key is forgotten 10 minutes after
/// the send has come into the log, and the clocks that tell may be faster than time.
const KEY_US: u64 = 8 * 60 * SECOND_US;
/// Upper limit of open calls.
const OPEN_MAX: usize = 64;
/// Upper limit of attached consumers.
const CONSUMERS_MAX: usize = 3;
/// Time within which a call is answered besides its own wait, in microseconds: it waits for a leader, hears
/// of its end, waits for the outcome of a record in flight, and its node pauses meanwhile.
const LATEST_US: u64 = 40 * SECOND_US;

/// The clients of a cluster.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) open: Vec<Waiting>,
    /// Workers that are attached.
    reading: Vec<Reading>,
    /// Queues to probe that are not in use.
    probes: Vec<String>,
    /// Queues whose message is there at these times, in microseconds.
    due: Vec<(u64, String)>,
    /// Number of messages and tickets so far.
    number: u64,
}

impl Default for Clients {
    fn default() -> Clients {
        let probes = (0..PROBES).map(|number| format!("{PROBE}{number}")).collect();
        Clients { open: Vec::new(), reading: Vec::new(), probes, due: Vec::new(), number: 0 }
    }
}

impl ClusterWorld {
    /// Lets a client ask a node, mostly one that says that it leads.
    pub(super) fn client(&mut self) -> Checked {
        self.use_across()?;
        if self.is_closing || self.clients.open.len() >= OPEN_MAX {
            return Ok(());
        }
        self.use_locks()?;
        self.use_documents()?;
        let Some(node) = self.node_to_ask() else { return Ok(()) };
        if self.faulty && self.rng.chance(1, 300) {
            self.transfer(node);
        } else if let Some(call) = self.call(node) {
            self.open(call);
        }
        self.input(node, |_| {})
    }

    pub(super) fn node_to_ask(&mut self) -> Option<usize> {
        let is_up = |node: &usize| self.nodes[*node].server.is_some() && self.pause(*node).is_none();
        let up: Vec<usize> = (0..self.nodes.len()).filter(is_up).collect();
        let leading: Vec<usize> = up.iter().copied().filter(|node| self.nodes[*node].leads()).collect();
        let among = if leading.is_empty() || self.rng.chance(1, 16) { up } else { leading };
        if among.is_empty() { None } else { Some(*self.rng.pick(&among)) }
    }

    fn transfer(&mut self, node: usize) {
        let to = self.rng.pick(&self.nodes).id();
        let is_to_the_fittest = self.rng.chance(1, 2);
        if let Some(server) = &self.nodes[node].server {
            if is_to_the_fittest {
                server.inbox.hand_over()
            } else {
                server.inbox.transfer_leader(to)
            }
            self.stats.transfers += 1;
        }
    }

    /// A call; `None`: there is nothing to ask about.
    fn call(&mut self, node: usize) -> Option<Waiting> {
        self.clients.number += 1;
        let server = self.nodes[node].server.as_ref()?;
        let (mailbox, ticket, begun_us) = (&server.mailbox, self.clients.number, self.now_us);
        let client = Client { node, mailbox, now_us: begun_us, ticket };
        let (rng, judge) = (&mut self.rng, &mut self.judge);
        judge.again.retain(|message| message.begun_us + KEY_US > begun_us);
        let kind = rng.below(100);
        let wait_us = if rng.chance(1, 2) { 0 } else { rng.below(4 * SECOND_US) };
        let held = judge.holds.values().nth(rng.index(judge.holds.len())).map(|hold| hold.receipt);
        if let Some(at) = self.clients.due.iter().position(|(due_us, _)| *due_us <= self.now_us) {
            // A leader that has just begun has a tick to agree on first.
            return Some(client.pull(&self.clients.due.swap_remove(at).1, SECOND_US));
        }
        Some(match kind {
            0..20 => {
                let (has_key, is_late) = (rng.chance(1, 2), rng.chance(1, 3));
                let delay_ms = if is_late { rng.between(1, 3_000) } else { 0 };
                let (queue, payload) = (QUEUE.to_owned(), payload(ticket));
                client.send(Message { queue, payload, has_key, delay_ms, begun_us })
            }
            20..26 if !judge.again.is_empty() => {
                let at = rng.index(judge.again.len());
                client.send(judge.again.swap_remove(at))
            }
            20..32 => {
                let queue = self.clients.probes.pop()?;
                let delay_ms = if rng.chance(1, 2) { rng.between(1, 3_000) } else { 0 };
                client.send(Message { queue, payload: payload(ticket), has_key: false, delay_ms, begun_us })
            }
            32..50 => client.pull(QUEUE, wait_us),
            50..72 => client.ack(held?),
            72..76 => client.release(held?),
            76..80 => client.extend(held?),
            80..85 if self.clients.reading.len() + self.returns.away < CONSUMERS_MAX => {
                client.attach(self.returns.worker())
            }
            80..94 => client.count(judge.sends()),
            _ => client.wait_for(held?.id, wait_us),
        })
    }

    /// Takes the answers of a node, and what its consumers were given.
    pub(super) fn listen(&mut self, node: usize) -> Checked {
        let mut at = 0;
        while at < self.clients.open.len() {
            let call = &mut self.clients.open[at];
            let answer = if call.node == node { call.answer()? } else { None };
            match answer {
                Some(answer) => {
                    let call = self.clients.open.swap_remove(at);
                    self.hears(call, answer)?;
                }
                None if call.begun_us + call.wait_us + LATEST_US < self.now_us => {
                    return Err(format!("{call:?} is not answered in its time"));
                }
                None => at += 1,
            }
        }
        for reading in std::mem::take(&mut self.clients.reading) {
            if reading.node == node && self.reads_to_the_end(&reading)? {
                self.loses_leader(reading.worker);
            } else {
                self.clients.reading.push(reading);
            }
        }
        Ok(())
    }

    /// Goes on with what an answer allows.
    fn hears(&mut self, waiting: Waiting, answer: Answered) -> Checked {
        let node = waiting.node;
        match (&waiting.call, &answer) {
            (Call::Attach { worker, channel, .. }, Answered::Attached(Ok(consumer))) => {
                let mut worker = worker.clone();
                worker.consumers.push(*consumer);
                self.resumes(node, &worker);
                self.clients.reading.push(Reading { node, channel: channel.clone(), worker });
            }
            (Call::Attach { worker, .. }, Answered::Attached(Err(_))) => self.loses_leader(worker.clone()),
            (Call::Resume { receipts, .. }, Answered::Resumed(Ok(results))) => {
                self.has_resumed(node, receipts, results);
            }
            (Call::Send(message, _), Answered::Sent(Ok(_)))
                if message.delay_ms > 0 && message.queue != QUEUE =>
            {
                let due_us = self.now_us + message.delay_ms * 1_000 + LATE_US;
                self.clients.due.push((due_us, message.queue.clone()));
            }
            (Call::Send(message, _), Answered::Sent(Ok(_))) if message.queue != QUEUE => {
                let queue = message.queue.clone();
                self.ask(node, |client| client.pull(&queue, 0));
            }
            (Call::Send(Message { queue, .. }, _) | Call::Pull { queue, .. }, _) if queue != QUEUE => {
                self.clients.probes.push(queue.clone());
            }
            _ => {}
        }
        if let (Call::Pull { queue, .. }, Answered::Given(Ok(given))) = (&waiting.call, &answer)
            && queue != QUEUE
        {
            for given in given {
                self.ask(node, |client| client.ack(given.delivery.receipt));
            }
        }
        self.judge.hears(waiting, answer, self.nodes[node].agreeing, self.now_us)
    }

    /// Asks a node that has just answered.
    pub(super) fn ask(&mut self, node: usize, call: impl FnOnce(Client<'_>) -> Waiting) {
        self.clients.number += 1;
        let (now_us, ticket) = (self.now_us, self.clients.number);
        if let Some(server) = &self.nodes[node].server {
            let call = call(Client { node, mailbox: &server.mailbox, now_us, ticket });
            self.open(call);
        }
    }

    fn open(&mut self, call: Waiting) {
        self.judge.is_asked(&call);
        self.clients.open.push(call);
    }

    /// Takes what a worker was given. True when nothing more will come.
    fn reads_to_the_end(&mut self, reading: &Reading) -> Result<bool, String> {
        while let Some(news) = reading.channel.take(10, 1 << 20) {
            match news {
                News::Handed(handed) => {
                    let consumer = reading.worker.consumers.last().ok_or("nobody reads")?;
                    self.judge.is_handed(*consumer, &handed, self.now_us)?;
                    // Otherwise the backlog is delivered again and again, and nobody comes to rest.
                    let is_closing = self.is_closing;
                    for handed in handed.iter().filter(|_| is_closing) {
                        self.ask(reading.node, |client| client.ack(handed.delivery().receipt));
                    }
                }
                News::Cancelled(_) => {}
                News::Detached(DetachedBy::SteppedDown | DetachedBy::Stalled) => return Ok(true),
                News::Detached(by) => return Err(format!("a consumer was detached: {by:?}")),
            }
        }
        Ok(false)
    }

    /// The process of a node is gone, and with it all that its clients waited for.
    pub(super) fn forget_calls(&mut self, node: usize) {
        let mut lost: Vec<Worker> = Vec::new();
        for reading in self.clients.reading.extract_if(.., |reading| reading.node == node) {
            lost.push(reading.worker);
        }
        self.judge.across.ends(node);
        let gone = |call: &mut Waiting| call.node == node;
        for call in self.clients.open.extract_if(.., gone) {
            match &call.call {
                Call::Send(Message { queue, .. }, _) | Call::Pull { queue, .. } if queue != QUEUE => {
                    self.clients.probes.push(queue.clone());
                }
                Call::Attach { worker, .. } => lost.push(worker.clone()),
                _ => {}
            }
            self.judge.hears_nothing(call.call);
        }
        lost.into_iter().for_each(|worker| self.loses_leader(worker));
    }
}
