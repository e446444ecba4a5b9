//! Transactions over several namespaces in a cluster: drivers on the leader, which stop between any two
//! records with their process, their leadership, or alone; and leaders that go on with what they find.

use std::collections::BTreeMap;

use sluice_engine::command::Transaction;
use sluice_engine::id::NamespaceId;
use sluice_engine::{Command, Engine, Error};
use sluice_node::Committed;
use sluice_node::across::driver::Outcome;
use sluice_node::shard::request::{Answer, Read, Request, ShardView};
use tokio::sync::oneshot;

use super::calls::{Answered, Asker, Call, Client, Waiting, propose};
use super::{ClusterWorld, SECOND_US};
use crate::across::driving::{Driving, Found, outcome};
use crate::across::requests::{ACCOUNTS, Place, Requests, look, touch};
use crate::across::tending::Tending;
use crate::model::Checked;
use crate::rng::Rng;
use crate::workload::Op;

/// Upper limit of requests that are driven at a time.
const DRIVEN_MAX: usize = 4;

/// A driver, which is on a node.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) node: usize,
    pub(super) driving: Driving,
}

/// Transactions over several namespaces; see the module.
#[derive(Debug, Default)]
pub(super) struct Across {
    /// Draws of its own, so that those of other clients do not change; `None`: nobody uses them.
    rng: Option<Rng>,
    /// Namespaces with accounts.
    places: Vec<Place>,
    pub(super) requests: Requests,
    pub(super) driven: BTreeMap<u64, Driver>,
    /// Number of drivers so far.
    drivers: u64,
    /// Leaders that look for what nobody drives, by their nodes.
    tending: BTreeMap<usize, Tending>,
}

impl Across {
    /// Clients of half of the seeds use transactions over these namespaces.
    pub(super) fn new(seed: u64, places: Vec<Place>) -> Across {
        let mut rng = Rng::new(seed.rotate_left(29) ^ !0);
        Across { rng: rng.chance(1, 2).then_some(rng), places, ..Across::default() }
    }

    pub(super) fn draws(&mut self) -> &mut Rng {
        self.rng.get_or_insert_with(|| Rng::new(0))
    }

    /// The process of a node has ended.
    pub(super) fn ends(&mut self, node: usize) {
        self.driven.retain(|_, driver| driver.node != node);
        self.tending.remove(&node);
    }

    /// Gives the answer of a driver that has one to its caller, and lets go of one that is done.
    fn tells(&mut self, number: u64) {
        let Some(Driver { driving, .. }) = self.driven.get_mut(&number) else { return };
        let request = driving.number();
        if let Some(answer) = driving.answer() {
            self.requests.answered(request, answer);
        }
        if driving.is_over() {
            self.driven.remove(&number);
        }
    }

    /// Goes on with the outcome of a record; `None`: the node that was asked does not lead.
    pub(super) fn told(&mut self, asker: Asker, outcome: Option<Outcome>) {
        let gives_up = self.draws().chance(1, 3);
        match asker {
            Asker::Driver(number, place) => {
                let Some(Driver { driving, .. }) = self.driven.get_mut(&number) else { return };
                if outcome.is_none() && !driving.decides() && !gives_up {
                    return driving.put_back(place);
                }
                driving.told(place, outcome);
                self.tells(number);
            }
            Asker::Leader(node) => {
                let Some(tending) = self.tending.get_mut(&node) else { return };
                match outcome {
                    None if !gives_up => tending.put_back(),
                    None => tending.told(&Err(Error::NoLeader {}.into())),
                    Some(outcome) => tending.told(&outcome),
                }
            }
            Asker::Other => {}
        }
    }

    /// Takes in the answer to a record, or what was found of a key.
    pub(super) fn hears(&mut self, call: &Call, answer: Answered) -> Checked {
        match (call, answer) {
            (Call::Record(asker, _), Answered::Record(answer)) => self.told(*asker, led_outcome(&answer)),
            (Call::LookUp(number, _), Answered::Found(found)) => self.looked_up(*number, found),
            _ => return Err("an answer to another call".to_owned()),
        }
        Ok(())
    }

    /// Goes on with what was found of a key.
    fn looked_up(&mut self, number: u64, found: Found) {
        if let Some(Driver { driving, .. }) = self.driven.get_mut(&number) {
            driving.looked_up(found);
            self.tells(number);
        }
    }
}

/// The outcome that an answer tells; `None`: its node does not lead.
fn led_outcome(answer: &Answer) -> Option<Outcome> {
    let is_led = !matches!(answer.result, Err(Error::NotLeader { .. } | Error::NoLeader {}));
    is_led.then(|| outcome(answer))
}

impl Client<'_> {
    fn record(&self, asker: Asker, op: &Op) -> Waiting {
        let (request, reply) = op.with(propose);
        self.ask(request, 0, Call::Record(asker, reply))
    }

    fn look_up(&self, number: u64, part: &Transaction<'_>) -> Waiting {
        let (namespace, key, digest) = (part.namespace, part.idempotency_key.to_vec(), part.request_digest);
        let (sender, reply) = oneshot::channel();
        let read = Read(Box::new(move |looking: Result<&mut ShardView<'_>, Error>| {
            let look = |at: &mut ShardView<'_>| at.engine.committed(namespace, &key, digest, at.now_us);
            let found = looking.and_then(look);
            let found = found.map(|it| it.map(|operations| Committed { operations, duplicate: true }));
            let _ = sender.send(found);
        }));
        self.ask(Request::Read(read), 0, Call::LookUp(number, reply))
    }
}

impl ClusterWorld {
    /// Lets a driver, a leader, or one who writes between take a step, at times; now and then a driver stops.
    pub(super) fn use_across(&mut self) -> Checked {
        let (closing, across) = (self.is_closing, &mut self.judge.across);
        let Some(rng) = &mut across.rng else { return Ok(()) };
        if !rng.chance(1, 3) {
            return Ok(());
        }
        let (kind, at, count) = (rng.below(100), rng.index(across.driven.len().max(1)), across.driven.len());
        let driver = across.driven.keys().nth(at).copied();
        match (kind, driver) {
            (0..12, _) if count < DRIVEN_MAX && !closing => self.begin_across(),
            (12..15, _) if !closing => self.write_between(),
            (15, Some(number)) if !closing => {
                across.driven.remove(&number);
                Ok(())
            }
            (16..40, _) => self.tend(),
            (_, Some(number)) => self.drive(number),
            (_, None) => Ok(()),
        }
    }

    /// True when nothing is driven, prepared or decided any more, by what the leader knows.
    pub(super) fn is_across_settled(&self) -> bool {
        let engine = self.leader().and_then(|node| self.engine(node));
        self.judge.across.driven.is_empty() && engine.is_some_and(|engine| !has_left(engine))
    }

    fn engine(&self, node: usize) -> Option<&Engine> {
        self.nodes[node].server.as_ref().map(|server| server.shard.engine())
    }

    /// A node that takes itself for the leader, and is not paused.
    fn leading(&mut self) -> Option<usize> {
        let leads = |node: &usize| self.nodes[*node].leads() && self.pause(*node).is_none();
        let leading: Vec<usize> = (0..self.nodes.len()).filter(leads).collect();
        let rng = self.judge.across.draws();
        (!leading.is_empty()).then(|| *rng.pick(&leading))
    }

    pub(super) fn begin_across(&mut self) -> Checked {
        let Some(node) = self.leading() else { return Ok(()) };
        let Some(server) = &self.nodes[node].server else { return Ok(()) };
        let engine = server.shard.engine();
        let (checker, across) = (&self.checker, &mut self.judge.across);
        let Some(rng) = &mut across.rng else { return Ok(()) };
        let known = |place: &Place, key| look(engine, (place.0, key), |blob| checker.content(blob));
        let request = across.requests.draw(across.places.clone(), rng, known)?;
        let within_us = rng.weighted(&[(6, 10 * SECOND_US), (2, SECOND_US), (1, 50_000), (1, 1)]);
        across.drivers += 1;
        let driving = Driving::new(request, across.drivers, engine.time_us() + within_us);
        across.driven.insert(across.drivers, Driver { node, driving });
        self.drive(self.judge.across.drivers)
    }

    /// Lets a driver propose a record: the decision on its own node, another at whoever leads. Answers of
    /// other nodes may be lost on their way.
    fn drive(&mut self, number: u64) -> Checked {
        let leading = self.leading();
        let across = &mut self.judge.across;
        let (Some(rng), Some(Driver { node, driving })) = (&mut across.rng, across.driven.get_mut(&number))
        else {
            return Ok(());
        };
        let own = *node;
        if let Some((_, part)) = driving.looks_up() {
            let part = part.clone();
            Op::Transaction(part).with(|command| {
                if let Command::Transaction(part) = command {
                    self.ask(own, |client| client.look_up(number, part));
                }
            });
            return self.input(own, |_| {});
        }
        let Some(record) = driving.record(rng) else { return Ok(()) };
        let (is_lost, asker) = (self.faulty && rng.chance(1, 10), Asker::Driver(number, record.place));
        let to = if record.is_here { Some(own) } else { leading };
        let Some(to) = to else {
            across.told(asker, None);
            return Ok(());
        };
        if to != own && is_lost {
            self.ask(to, |client| client.record(Asker::Other, &record.op));
            self.judge.across.told(asker, Some(Err(Error::OutcomeUnknown {}.into())));
        } else {
            self.ask(to, |client| client.record(asker, &record.op));
        }
        self.input(to, |_| {})
    }

    /// Lets a leader look for what nobody drives, or propose its next record.
    fn tend(&mut self) -> Checked {
        let Some(node) = self.leading() else { return Ok(()) };
        // A look wakes members that are quiet.
        let has_left = self.engine(node).is_some_and(has_left);
        let across = &mut self.judge.across;
        let is_over = across.tending.get_mut(&node).is_none_or(Tending::is_over);
        if is_over
            && has_left
            && let Some(server) = &self.nodes[node].server
        {
            let (tending, look) = Tending::begin(0);
            if server.mailbox.push(look).is_ok() {
                across.tending.insert(node, tending);
            }
        } else if let Some((_, op)) = across.tending.get_mut(&node).and_then(Tending::record) {
            self.ask(node, |client| client.record(Asker::Leader(node), &op));
        }
        self.input(node, |_| {})
    }

    /// Writes an account, as others do while it may be prepared.
    fn write_between(&mut self) -> Checked {
        let Some(node) = self.leading() else { return Ok(()) };
        let across = &mut self.judge.across;
        let Some(rng) = &mut across.rng else { return Ok(()) };
        let ((namespace, _), key) = (*rng.pick(&across.places), *rng.pick(&ACCOUNTS));
        let Some(engine) = self.engine(node) else { return Ok(()) };
        let known = look(engine, (namespace, key), |blob| self.checker.content(blob))?;
        self.ask(node, |client| client.record(Asker::Other, &touch(namespace, key, &known)));
        self.input(node, |_| {})
    }

    /// Checks what came of all requests, by the state that the log gives.
    ///
    /// Returns the number of requests that are done.
    pub(super) fn judge_across(&self, engine: &Engine) -> Result<usize, String> {
        if has_left(engine) {
            return Err("transactions over several namespaces are not finished".to_owned());
        }
        self.judge.across.requests.judge(|name: &(NamespaceId, &'static str)| {
            let is_decided = engine.expect_decided(name.0, name.1);
            is_decided.map_err(|error| format!("{name:?} stays in doubt: {error}"))?;
            look(engine, *name, |blob| self.checker.content(blob)).map(|(_, account)| account)
        })
    }
}

fn has_left(engine: &Engine) -> bool {
    !engine.prepared_transactions().is_empty() || !engine.decided_transactions().is_empty()
}
