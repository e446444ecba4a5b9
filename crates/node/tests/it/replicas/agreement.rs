//! One log on which several nodes agree, in memory, and each node's journal over it.
//!
//! A node's own log is what is agreed and a tail. Who is elected takes over any part of a tail that fits, and
//! adds the first entry of its term; what it does not take over is overwritten. So an entry may be committed
//! long after the leader that proposed it has gone, or never.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use sluice_engine::Command;
use sluice_journal::{
    Batch, BlobKey, BlobLocation, BlobRead, Class, Committed, Event, Journal, Records, Refused, Status,
};
use sluice_node::shard::store::{Heard, Standing, Store};
use sluice_record::write_record;
use sluice_replica::{Clocks, NodeId};

use super::rng::Rng;

/// A batch in a log.
#[derive(Clone, Debug)]
pub struct Entry {
    pub first_index: u64,
    pub records: u32,
    pub term: u64,
    pub time_us: u64,
    pub bytes: Bytes,
}

impl Entry {
    /// Index of its last record.
    pub fn last(&self) -> u64 {
        self.end() - 1
    }

    fn end(&self) -> u64 {
        self.first_index + u64::from(self.records)
    }

    fn is(&self, other: &Entry) -> bool {
        (self.first_index, self.term) == (other.first_index, other.term)
    }
}

/// One node's view.
#[derive(Debug, Default)]
struct Node {
    log: Vec<Entry>,
    /// Number of entries that it knows to be committed.
    known: usize,
    /// Number of entries that its shard was given.
    given: usize,
    /// Term in which it believes to lead, with the number of entries before its first one.
    leads: Option<(u64, usize)>,
    /// The leader that it knows, when it does not lead.
    leader: Option<u64>,
    /// Answers to rounds of confirmation; `None`: not answered.
    rounds: BTreeMap<u64, Option<u64>>,
    /// Clocks as its shard has told them.
    clocks: Clocks,
    /// Clocks of others of which its shard has not heard.
    heard: Vec<Heard>,
}

/// The truth, and every node's view of it.
#[derive(Debug)]
pub struct Agreement {
    committed: Vec<Entry>,
    nodes: Vec<Node>,
    term: u64,
    /// The node that was elected last.
    elected: usize,
    pub elections: u32,
    pub late: u32,
    /// True while the disks are full.
    pub full: bool,
}

impl Agreement {
    /// `begun`: records of the time when there was one node.
    pub fn new(nodes: usize, begun: &mut Batch, time_us: u64) -> Arc<Mutex<Agreement>> {
        let (bytes, records) = begun.take();
        let first = Entry { first_index: 1, records, term: 0, time_us, bytes };
        let node = || Node { log: vec![first.clone()], known: 1, ..Node::default() };
        let nodes = (0..nodes).map(|_| node()).collect();
        let committed = vec![first];
        Arc::new(Mutex::new(Agreement {
            committed,
            nodes,
            term: 0,
            elected: 0,
            elections: 0,
            late: 0,
            full: false,
        }))
    }

    pub fn committed(&self) -> &[Entry] {
        &self.committed
    }

    pub fn elected(&self) -> usize {
        self.elected
    }

    /// True when a node believes to lead, rightly or not.
    pub fn believes(&self, node: usize) -> bool {
        self.nodes[node].leads.is_some()
    }

    /// Number of entries in a node's log that are not committed.
    pub fn tail(&self, node: usize) -> usize {
        self.nodes[node].log.len() - self.committed.len()
    }

    /// True when the leader's belief is out of date.
    pub fn is_deposed(&self, node: usize) -> bool {
        self.nodes[node].leads.is_some_and(|(term, _)| term != self.term)
    }

    /// Elects a node, with any part of a tail that fits.
    pub fn elect(&mut self, rng: &mut Rng, node: usize) {
        let fits: Vec<usize> = (0..self.nodes.len()).filter(|of| self.has_committed(*of)).collect();
        let source = fits[rng.index(fits.len())];
        let tail = (self.nodes[source].log.len() - self.committed.len()) as u64;
        self.elect_with(node, source, rng.below(tail + 1) as usize);
    }

    /// Elects a node, whose log is what is committed and so many entries of the tail of another.
    pub fn elect_with(&mut self, node: usize, source: usize, tail: usize) {
        let mut log = self.nodes[source].log[..self.committed.len() + tail].to_vec();
        self.term += 1;
        let before = log.len();
        log.push(own_entry(&log[before - 1], self.term));
        let elected = &mut self.nodes[node];
        elected.leads = Some((self.term, before));
        elected.log = log;
        elected.rounds.clear();
        (self.elected, self.elections) = (node, self.elections + 1);
        for voter in (0..self.nodes.len()).filter(|voter| *voter != node) {
            self.hear(node, voter);
        }
    }

    /// The leader adds an entry of its own, such as a change of members.
    pub fn add_own_entry(&mut self) {
        let view = &mut self.nodes[self.elected];
        if let (Some((term, _)), Some(last)) = (view.leads, view.log.last()) {
            view.log.push(own_entry(last, term));
        }
    }

    fn has_committed(&self, node: usize) -> bool {
        let log = &self.nodes[node].log;
        log.len() >= self.committed.len()
            && self.committed.last().is_some_and(|last| last.is(&log[self.committed.len() - 1]))
    }

    /// Commits up to so many entries of the leader, which never ends before the first of its term.
    pub fn commit(&mut self, entries: usize) {
        let leader = &self.nodes[self.elected];
        let Some((term, before)) = leader.leads.filter(|(term, _)| *term == self.term) else { return };
        let until = (self.committed.len() + entries).max(before + 1).min(leader.log.len());
        let more = &leader.log[self.committed.len()..until];
        self.late += more.iter().filter(|entry| entry.term < term).count() as u32;
        self.committed.extend_from_slice(more);
    }

    /// A node hears the clocks of another.
    fn hear(&mut self, node: usize, from: usize) {
        let clocks = self.nodes[from].clocks;
        let is_of_leader = from == self.elected && clocks.log.is_some_and(|log| log.term == self.term);
        let from = NodeId::new(from as u64 + 1).unwrap();
        self.nodes[node].heard.push(Heard { from, is_of_leader, clocks });
    }

    /// A node hears from the leader what is committed, up to so many entries more.
    pub fn learn(&mut self, node: usize, entries: usize) {
        self.follow(node);
        if node != self.elected {
            self.hear(node, self.elected);
        }
        let view = &mut self.nodes[node];
        let until = (view.known + entries).min(self.committed.len());
        let same = |at: &usize| view.log.get(*at).is_some_and(|entry| entry.is(&self.committed[*at]));
        if let Some(differs) = (view.known..until).find(|at| !same(at)) {
            view.log.truncate(differs);
            view.log.extend_from_slice(&self.committed[differs..until]);
        }
        view.known = until;
    }

    /// A node hears who leads.
    pub fn follow(&mut self, node: usize) {
        if node != self.elected {
            self.loses(node);
            self.nodes[node].leader = Some(self.elected as u64);
        }
    }

    /// A node learns that it does not lead, and not who does.
    pub fn loses(&mut self, node: usize) {
        let view = &mut self.nodes[node];
        (view.leads, view.leader) = (None, None);
        view.rounds.clear();
    }

    /// Answers the rounds of the leader, or loses them.
    pub fn confirm(&mut self, lose: bool) {
        let Some((_, before)) = self.nodes[self.elected].leads.filter(|(term, _)| *term == self.term) else {
            return;
        };
        if self.committed.len() <= before {
            return;
        }
        let index = self.committed.last().map_or(0, |last| last.end() - 1);
        for answer in self.nodes[self.elected].rounds.values_mut().filter(|answer| answer.is_none()) {
            *answer = Some(if lose { u64::MAX } else { index });
        }
    }
}

/// An entry after `last` that no shard has proposed, with the time of that.
fn own_entry(last: &Entry, term: u64) -> Entry {
    let mut batch = Batch::new();
    write_record(&mut batch, &Command::Consensus { entry: &term.to_le_bytes() });
    let (bytes, records) = batch.take();
    Entry { first_index: last.end(), records, term, time_us: last.time_us, bytes }
}

/// A node's journal.
pub struct Member {
    pub of: Arc<Mutex<Agreement>>,
    pub node: usize,
}

impl Member {
    fn of(&self) -> MutexGuard<'_, Agreement> {
        self.of.lock().unwrap()
    }
}

impl Journal for Member {
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.of().nodes[self.node].log.last().map_or(1, Entry::end)
    }

    fn durable_index(&self) -> u64 {
        self.next_index() - 1
    }

    fn committed_index(&self) -> u64 {
        let of = self.of();
        let view = &of.nodes[self.node];
        view.log[view.known - 1].end() - 1
    }

    fn propose(&mut self, batch: &mut Batch, time_us: u64, _class: Class) -> Result<u64, Refused> {
        let first_index = self.next_index();
        let mut of = self.of();
        if of.full {
            return Err(Refused::Full { free_bytes: 0, needed_bytes: 1 });
        }
        let view = &mut of.nodes[self.node];
        let Some((term, _)) = view.leads else { return Err(Refused::NotLeader) };
        let (bytes, records) = batch.take();
        view.log.push(Entry { first_index, records, term, time_us, bytes });
        Ok(first_index)
    }

    fn poll(&mut self) -> Option<Event> {
        let mut of = self.of();
        let view = &mut of.nodes[self.node];
        if view.given >= view.known {
            return None;
        }
        let Entry { first_index, term, time_us, bytes, .. } = view.log[view.given].clone();
        view.given += 1;
        Some(Event::Committed(Committed { first_index, number: view.given as u64, term, time_us, bytes }))
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        let of = self.of();
        let at = of.committed.partition_point(|entry| entry.end() <= key.index);
        let Some(entry) = of.committed.get(at) else { return BlobRead::Missing };
        let record = Records::new(&entry.bytes).nth((key.index - entry.first_index) as usize);
        let blob = record.and_then(|record| record.blob(key.item));
        blob.map_or(BlobRead::Missing, |blob| BlobRead::Cached(Bytes::copy_from_slice(blob)))
    }

    fn release(&mut self, _key: BlobKey) {}
}

impl Store for Member {
    fn standing(&self) -> Standing {
        let of = self.of();
        let view = &of.nodes[self.node];
        match view.leads {
            Some((term, before)) if view.given > before => Standing::Leader { term },
            Some(_) => Standing::Follower { leader: None },
            None => Standing::Follower { leader: view.leader },
        }
    }

    fn tell_clocks(&mut self, clocks: Clocks) {
        self.of().nodes[self.node].clocks = clocks;
    }

    fn hear_clocks(&mut self) -> Option<Heard> {
        self.of().nodes[self.node].heard.pop()
    }

    fn confirm(&mut self, round: u64) -> Option<u64> {
        let mut of = self.of();
        let answer = *of.nodes[self.node].rounds.entry(round).or_default();
        answer.filter(|index| *index < u64::MAX)
    }

    fn wants_snapshot(&self) -> bool {
        false
    }

    fn snapshot_begin(&mut self, _applied_index: u64, _time_us: u64, _behaviour: u32) {}

    fn snapshot_piece(&mut self, _piece: Vec<u8>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn snapshot_finish(&mut self) {}

    fn status(&self) -> Status {
        Status::default()
    }
}
