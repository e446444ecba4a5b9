//! Transactions over several namespaces on the shards of a server: drivers that take a step at a time, in
//! between everything else, and stop between any two records; leaders that go on with what they find; others
//! who write what is prepared.

use std::collections::BTreeMap;

use sluice_engine::Engine;
use sluice_engine::id::{BlobRef, NamespaceId};
use sluice_engine::query::NamespaceView;
use sluice_engine::settings::Quotas;
use sluice_node::Committed;
use sluice_node::shard::request::Answer;

use super::World;
use super::history::History;
use crate::across::driving::{Driving, outcome};
use crate::across::requests::{ACCOUNTS, Account, Place, Requests, look, touch};
use crate::across::tending::{ASKED_AFTER_US, Tending};
use crate::model::Checked;
use crate::rng::Rng;
use crate::workload::{Op, SentBlob};

/// Namespaces that only transactions over several ones use for their accounts, besides `default`.
const NAMESPACES: [&str; 3] = ["across-0", "across-1", "across-2"];
/// Upper limit of requests that are driven at a time.
const DRIVEN_MAX: usize = 4;
/// Rounds within which everything is finished without trouble, and the virtual time between two, in
/// microseconds.
const ROUNDS_MAX: usize = 1_000;
const ROUND_US: u64 = 3_000_000;

/// Proposer of a record.
#[derive(Clone, Copy, Debug)]
enum Asker {
    /// The driver with this number, for the record in this place.
    Driver(u64, usize),
    /// The leader of a shard.
    Leader(usize),
}

/// Transactions over several namespaces; see the module.
#[derive(Debug)]
pub(super) struct Across {
    rng: Rng,
    requests: Requests,
    /// Requests being driven, by the numbers of their drivers.
    pub(super) driven: BTreeMap<u64, Driving>,
    /// Number of drivers so far.
    drivers: u64,
    tending: BTreeMap<usize, Tending>,
    /// Records that are not answered, by shard and tag.
    asked: BTreeMap<(usize, u64), Asker>,
}

impl Across {
    pub(super) fn new(rng: Rng) -> Across {
        Across {
            rng,
            requests: Requests::default(),
            driven: BTreeMap::new(),
            drivers: 0,
            tending: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Stops all drivers and leaders, as the end of the process does.
    pub(super) fn stop(&mut self) {
        self.driven.clear();
        self.tending.clear();
        self.asked.clear();
    }

    fn answered(&mut self, asker: Asker, answer: &Answer) {
        match asker {
            Asker::Driver(number, place) => {
                if let Some(driving) = self.driven.get_mut(&number) {
                    driving.told(place, Some(outcome(answer)));
                    self.tells(number);
                }
            }
            Asker::Leader(shard) => {
                if let Some(tending) = self.tending.get_mut(&shard) {
                    tending.told(&outcome(answer));
                }
            }
        }
    }

    /// Gives the answer of a driver that has one to its caller, and lets go of one that is done.
    fn tells(&mut self, number: u64) {
        let Some(driving) = self.driven.get_mut(&number) else { return };
        let request = driving.number();
        if let Some(answer) = driving.answer() {
            self.requests.answered(request, answer);
        }
        if driving.is_over() {
            self.driven.remove(&number);
        }
    }
}

fn is_of_accounts(view: &NamespaceView) -> bool {
    NAMESPACES.contains(&&*view.name)
}

/// An account as the log of its shard gives it.
fn account(
    history: &History,
    (namespace, key): (NamespaceId, &'static str),
) -> Result<(u64, Account), String> {
    look(history.witness(), (namespace, key), |blob: BlobRef| match history.sent(blob)? {
        SentBlob::Message { payload, .. } => Some(payload.to_vec()),
        SentBlob::Text(_) | SentBlob::Bytes(_) => None,
    })
}

impl World {
    /// True for the deletion of a namespace with accounts, which has to stay.
    pub(super) fn has_accounts(&self, op: &Op) -> bool {
        let Op::NamespaceDelete { namespace, .. } = op else { return false };
        self.lanes[self.at].history.witness().namespace(*namespace).is_some_and(|view| is_of_accounts(&view))
    }

    /// Weight of a step of a driver or of a leader.
    pub(super) fn across_weight(&self) -> u64 {
        if self.across.is_some() { 6_000 } else { 0 }
    }

    /// Lets a driver, a leader, or one who writes between take a step; now and then a driver stops.
    pub(super) fn across(&mut self) -> Checked {
        if let Some(missing) = self.missing_namespace() {
            return self.create_namespace_of_accounts(missing);
        }
        let at = self.at;
        let Some(across) = &mut self.across else { return Ok(()) };
        let (count, kind) = (across.driven.len(), across.rng.below(100));
        match kind {
            0..20 if count < DRIVEN_MAX => self.begin_across(),
            20..22 => self.write_between(),
            22 if count > 0 => {
                let at = across.rng.index(count);
                if let Some(number) = across.driven.keys().nth(at).copied() {
                    across.driven.remove(&number);
                }
                Ok(())
            }
            23..28 => {
                self.tend(at);
                self.tend_on(at)
            }
            28..45 => self.tend_on(at),
            _ => self.drive_one(),
        }
    }

    /// The place in the list of a namespace of accounts that is not there yet.
    pub(super) fn missing_namespace(&self) -> Option<usize> {
        let known = self.lanes[0].history.witness().namespaces();
        NAMESPACES.iter().position(|name| !known.iter().any(|view| view.name == *name))
    }

    fn create_namespace_of_accounts(&mut self, place: usize) -> Checked {
        let shard = (place % self.lanes.len()) as u32;
        let name = NAMESPACES[place].to_owned();
        let create = Op::NamespaceCreate { number: None, name, shard, quotas: Quotas::default() };
        if self.lanes.len() > 1 {
            self.tend_namespaces()?;
            return self.change_namespace(create);
        }
        self.ask(create).map(drop)
    }

    /// Namespaces with accounts that are there, on the shards on which they live.
    fn places(&self) -> Vec<Place> {
        let is_there = |engine: &Engine, namespace| engine.namespace(namespace).is_some();
        let known = self.lanes[0].history.witness().namespaces().into_iter();
        let of_accounts = known.filter(|view| is_of_accounts(view) || view.id == NamespaceId::DEFAULT);
        let places = of_accounts.map(|view| (view.id, view.shard));
        places.filter(|(id, shard)| is_there(self.lanes[*shard as usize].history.witness(), *id)).collect()
    }

    /// Begins to drive a request.
    pub(super) fn begin_across(&mut self) -> Checked {
        let places = self.places();
        let (lanes, Some(across)) = (&self.lanes, &mut self.across) else { return Ok(()) };
        if places.len() < 2 {
            return Ok(());
        }
        let known = |place: &Place, key| account(&lanes[place.1 as usize].history, (place.0, key));
        let request = across.requests.draw(places, &mut across.rng, known)?;
        let now_us = lanes[request.places[0].1 as usize].history.seen().now_us();
        let within_us = across.rng.weighted(&[(6, 10_000_000), (2, 1_000_000), (1, 50_000), (1, 1)]);
        across.drivers += 1;
        let driving = Driving::new(request, across.drivers, now_us + within_us);
        self.trace(|| format!("  is driven: {driving:?}"));
        if let Some(across) = &mut self.across {
            across.driven.insert(across.drivers, driving);
        }
        Ok(())
    }

    /// The request that this driver has.
    pub(super) fn driving(&self, number: u64) -> Option<&Driving> {
        self.across.as_ref()?.driven.get(&number)
    }

    /// Lets a driver that does not wait for an answer propose a record, or read.
    fn drive_one(&mut self) -> Checked {
        let Some(across) = &mut self.across else { return Ok(()) };
        let ready = across.driven.iter().filter(|(_, driving)| !driving.waits()).map(|(number, _)| *number);
        let ready: Vec<u64> = ready.collect();
        let at = across.rng.index(ready.len().max(1));
        ready.get(at).map_or(Ok(()), |number| self.drive(*number))
    }

    pub(super) fn drive(&mut self, number: u64) -> Checked {
        let Some(across) = &mut self.across else { return Ok(()) };
        let Some(driving) = across.driven.get_mut(&number) else { return Ok(()) };
        if let Some((shard, part)) = driving.looks_up() {
            let Some(server) = &self.lanes[shard as usize].server else { return Ok(()) };
            let engine = server.shard.engine();
            let found = engine.committed(part.namespace, &part.key, part.digest, engine.time_us());
            let found = found.map(|it| it.map(|operations| Committed { operations, duplicate: true }));
            driving.looked_up(found);
            across.tells(number);
            return Ok(());
        }
        let Some(record) = driving.record(&mut across.rng) else { return Ok(()) };
        let asked = self.ask_on(record.shard as usize, record.op)?;
        let Some(across) = &mut self.across else { return Ok(()) };
        match asked {
            Some(tag) => {
                across.asked.insert((record.shard as usize, tag), Asker::Driver(number, record.place));
            }
            None => {
                if let Some(driving) = across.driven.get_mut(&number) {
                    driving.put_back(record.place);
                }
            }
        }
        Ok(())
    }

    /// Makes a request on another shard; returns its tag if the server took it.
    fn ask_on(&mut self, shard: usize, op: Op) -> Result<Option<u64>, String> {
        let at = std::mem::replace(&mut self.at, shard);
        let asked = self.ask(op);
        self.at = at;
        asked
    }

    /// Lets the leader of a shard look for what nobody drives, unless it does so already.
    fn tend(&mut self, shard: usize) {
        let (Some(server), Some(across)) = (&self.lanes[shard].server, &mut self.across) else { return };
        if across.tending.get_mut(&shard).is_none_or(Tending::is_over) {
            let (tending, look) = Tending::begin(shard as u32);
            if server.mailbox.push(look).is_ok() {
                across.tending.insert(shard, tending);
            }
        }
    }

    /// Lets the leader of a shard propose its next record.
    fn tend_on(&mut self, shard: usize) -> Checked {
        let Some(across) = &mut self.across else { return Ok(()) };
        let Some((to, op)) = across.tending.get_mut(&shard).and_then(Tending::record) else { return Ok(()) };
        let asked = self.ask_on(to as usize, op)?;
        let Some(across) = &mut self.across else { return Ok(()) };
        match (asked, across.tending.get_mut(&shard)) {
            (Some(tag), _) => drop(across.asked.insert((to as usize, tag), Asker::Leader(shard))),
            (None, Some(tending)) => tending.put_back(),
            (None, None) => {}
        }
        Ok(())
    }

    /// Writes an account, as others do while it may be prepared.
    fn write_between(&mut self) -> Checked {
        let places = self.places();
        let (lanes, Some(across)) = (&self.lanes, &mut self.across) else { return Ok(()) };
        let Some((namespace, shard)) = places.get(across.rng.index(places.len().max(1))).copied() else {
            return Ok(());
        };
        let key = *across.rng.pick(&ACCOUNTS);
        let known = account(&lanes[shard as usize].history, (namespace, key))?;
        self.ask_on(shard as usize, touch(namespace, key, &known)).map(drop)
    }

    /// Takes an answer, if it is for a driver or a leader.
    pub(super) fn across_answered(&mut self, tag: u64, answer: &Answer) {
        let Some(across) = &mut self.across else { return };
        if let Some(asker) = across.asked.remove(&(self.at, tag)) {
            across.answered(asker, answer);
        }
    }

    /// Finishes everything, with or without its drivers, and checks what came of it. Returns the number of
    /// requests that are done.
    pub(super) fn end_across(&mut self) -> Result<usize, String> {
        let Some(across) = &mut self.across else { return Ok(0) };
        if across.rng.chance(1, 2) {
            across.stop();
        }
        for _ in 0..ROUNDS_MAX {
            if self.is_finished()? {
                return self.judge_across();
            }
            let driven: Vec<u64> =
                self.across.iter().flat_map(|across| across.driven.keys().copied()).collect();
            for number in &driven {
                self.drive(*number)?;
            }
            if driven.is_empty() {
                let late_us = self.latest_us().max(ROUND_US);
                self.clock.advance(late_us);
                for shard in 0..self.lanes.len() {
                    self.tend(shard);
                    self.settle_all()?;
                    self.tend_on(shard)?;
                }
            }
        }
        Err(format!("transactions over several namespaces are not finished: {:?}", self.across))
    }

    pub(super) fn settle_all(&mut self) -> Checked {
        let at = self.at;
        for shard in 0..self.lanes.len() {
            self.at = shard;
            self.settle_down()?;
        }
        self.at = at;
        Ok(())
    }

    /// Lets all shards come to rest; true when nothing is driven, prepared or decided any more.
    fn is_finished(&mut self) -> Result<bool, String> {
        self.settle_all()?;
        let is_left = |engine: &Engine| {
            !engine.prepared_transactions().is_empty() || !engine.decided_transactions().is_empty()
        };
        let is_driven = self.across.as_ref().is_some_and(|across| !across.driven.is_empty());
        Ok(!is_driven && !self.lanes.iter().any(|lane| is_left(lane.history.witness())))
    }

    /// Time after which nothing that is prepared can be decided any more, in microseconds.
    fn latest_us(&self) -> u64 {
        let left_us =
            |shard: usize, until_us: u64| until_us.saturating_sub(self.lanes[shard].history.seen().now_us());
        let left = self.lanes.iter().enumerate().flat_map(|(shard, lane)| {
            let prepared = lane.history.witness().prepared_transactions().into_iter();
            prepared.map(move |part| {
                let asks_us = part.prepared_at_us + ASKED_AFTER_US;
                left_us(shard, asks_us).max(left_us(part.shard as usize, part.until_us))
            })
        });
        left.max().unwrap_or(0)
    }

    fn judge_across(&mut self) -> Result<usize, String> {
        let Some(across) = &self.across else { return Ok(0) };
        let places: BTreeMap<NamespaceId, u32> = self.places().into_iter().collect();
        let done = across.requests.judge(|name| {
            let shard = places.get(&name.0).ok_or_else(|| format!("{:?} is gone", name.0))?;
            let history = &self.lanes[*shard as usize].history;
            let is_decided = history.witness().expect_decided(name.0, name.1);
            is_decided.map_err(|error| format!("{name:?} stays in doubt: {error}"))?;
            account(history, *name).map(|(_, account)| account)
        })?;
        let (committed, refused) = across.requests.counts();
        self.stats.committed += committed as u64;
        self.stats.aborted += refused as u64;
        Ok(done)
    }
}
