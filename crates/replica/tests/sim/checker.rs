//! What has to be true, told by what owners and clients see. Nothing here knows how replicas agree.

use std::collections::{BTreeMap, BTreeSet};

use sluice_replica::{Content, Entry, Members, Position, Snapshot};

/// Counts of what a run has covered.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Coverage {
    pub(crate) acknowledged: u64,
    pub(crate) overwritten: u64,
    pub(crate) refused: u64,
    pub(crate) full: u64,
    pub(crate) reads: u64,
    pub(crate) elections: u64,
    pub(crate) transfers: u64,
    pub(crate) crashes: u64,
    pub(crate) cuts_of_tails: u64,
    pub(crate) late: u64,
    pub(crate) compactions: u64,
    pub(crate) installs: u64,
    pub(crate) failed_transfers: u64,
    pub(crate) changes: u64,
    pub(crate) sizes: [u64; 6],
    pub(crate) losses: u64,
    pub(crate) fallbacks: u64,
    pub(crate) removed: u64,
    pub(crate) strangers: u64,
    pub(crate) stale: u64,
    pub(crate) damaged: u64,
    pub(crate) faults: u64,
    pub(crate) virtual_ms: u64,
}

impl Coverage {
    pub(crate) fn operations(&self) -> u64 {
        self.acknowledged + self.reads
    }

    pub(crate) fn add(&mut self, other: &Coverage) {
        self.acknowledged += other.acknowledged;
        self.overwritten += other.overwritten;
        self.refused += other.refused;
        self.full += other.full;
        self.reads += other.reads;
        self.elections += other.elections;
        self.transfers += other.transfers;
        self.crashes += other.crashes;
        self.cuts_of_tails += other.cuts_of_tails;
        self.late += other.late;
        self.compactions += other.compactions;
        self.installs += other.installs;
        self.failed_transfers += other.failed_transfers;
        self.changes += other.changes;
        (0..6).for_each(|size| self.sizes[size] += other.sizes[size]);
        self.losses += other.losses;
        self.fallbacks += other.fallbacks;
        self.removed += other.removed;
        self.strangers += other.strangers;
        self.stale += other.stale;
        self.damaged += other.damaged;
        self.faults += other.faults;
        self.virtual_ms += other.virtual_ms;
    }
}

pub(crate) struct Checker {
    /// The log, as the first who applied each index saw it; the first is that before the log begins.
    pub(crate) log: Vec<Entry>,
    /// Digest of the state behind each entry.
    digests: Vec<u64>,
    /// Members in force, each from the index on behind which they are.
    configs: Vec<(u64, Members)>,
    /// Leader of each term: node and life.
    leaders: BTreeMap<u64, (usize, u64)>,
    /// Operation that was acknowledged at each index.
    acknowledged: BTreeMap<u64, u32>,
    /// Operations that are said to be not in the log.
    overwritten: BTreeSet<u32>,
    pub(crate) coverage: Coverage,
}

impl Checker {
    pub(crate) fn new(members: Members) -> Checker {
        let base = Entry { position: Position { term: 1, index: 1 }, content: Content::Begin };
        Checker {
            log: vec![base],
            digests: vec![0],
            configs: vec![(1, members)],
            leaders: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            overwritten: BTreeSet::new(),
            coverage: Coverage::default(),
        }
    }

    /// The members behind all that was applied.
    pub(crate) fn members(&self) -> &Members {
        &self.configs.last().expect("there are first members").1
    }

    /// The index from which on the last members are in force.
    pub(crate) fn changed(&self) -> u64 {
        self.configs.last().expect("there are first members").0
    }

    /// A node has these members in force behind the entries that it has applied.
    pub(crate) fn has_members(&self, node: usize, there: &Snapshot) -> Result<(), String> {
        let index = there.position.index;
        let members = self.members_at(index);
        if there.members == *members {
            return Ok(());
        }
        Err(format!("node {node} has {:?} in force at index {index}, not {members:?}", there.members))
    }

    /// The members in force behind an index.
    pub(crate) fn members_at(&self, index: u64) -> &Members {
        let later = self.configs.partition_point(|(from, _)| *from <= index);
        &self.configs[later.saturating_sub(1)].1
    }

    /// The members in force before an index, and those before these.
    pub(crate) fn members_before(&self, index: u64) -> impl Iterator<Item = &Members> {
        self.configs.iter().rev().filter(move |(from, _)| *from < index).take(2).map(|(_, members)| members)
    }

    /// Digest of the state behind this index, which somebody has applied.
    pub(crate) fn digest(&self, index: u64) -> u64 {
        self.digests[index as usize - 1]
    }

    /// A node has installed a state.
    pub(crate) fn installs(&mut self, node: usize, index: u64, digest: u64) -> Result<(), String> {
        self.coverage.installs += 1;
        if self.digests.get(index as usize - 1) == Some(&digest) {
            return Ok(());
        }
        Err(format!("node {node} has installed a state of index {index} that nobody has had"))
    }

    /// Highest index that was acknowledged.
    pub(crate) fn acknowledged_index(&self) -> u64 {
        self.acknowledged.last_key_value().map_or(0, |(index, _)| *index)
    }

    /// A node has applied an entry; `before` is the index that it applied last.
    pub(crate) fn applies(
        &mut self,
        node: usize,
        before: u64,
        entry: &Entry,
        digest: u64,
    ) -> Result<(), String> {
        let index = entry.position.index;
        if index != before + 1 {
            return Err(format!("node {node} applies index {index} after {before}"));
        }
        match self.log.get(before as usize) {
            Some(known) if known != entry => {
                Err(format!("node {node} applies {entry:?}, another has applied {known:?}"))
            }
            Some(_) if self.digest(index) != digest => {
                Err(format!("node {node} has another state at index {index} than others"))
            }
            Some(_) => Ok(()),
            None if self.log.len() as u64 == before => {
                self.log.push(*entry);
                self.digests.push(digest);
                if let Some(after) = entry.change().and_then(|change| self.members().after(change)) {
                    self.coverage.sizes[after.voters().len().min(5)] += 1;
                    self.configs.push((index, after));
                }
                Ok(())
            }
            None => Err(format!("node {node} starts with {before} applied, which nobody has applied")),
        }
    }

    /// A node says that it leads.
    pub(crate) fn leads(&mut self, node: usize, life: u64, term: u64) -> Result<(), String> {
        let first = *self.leaders.entry(term).or_insert((node, life));
        self.coverage.elections = self.leaders.len() as u64;
        if first == (node, life) {
            Ok(())
        } else {
            Err(format!("{first:?} and {node}, {life} lead term {term}"))
        }
    }

    /// A client is told that its operation is in the log.
    pub(crate) fn acknowledges(&mut self, index: u64, operation: u32) -> Result<(), String> {
        self.coverage.acknowledged += 1;
        if let Some(other) = self.acknowledged.insert(index, operation) {
            return Err(format!("index {index} is acknowledged for {other} and {operation}"));
        }
        self.holds(index, operation)
    }

    fn holds(&self, index: u64, operation: u32) -> Result<(), String> {
        let batch = self.log.get(index as usize - 1).and_then(Entry::batch);
        if batch.is_some_and(|batch| batch.checksum == operation) {
            return Ok(());
        }
        Err(format!("operation {operation} was acknowledged at {index}, where there is {batch:?}"))
    }

    /// A client is told that its operation is not in the log.
    pub(crate) fn overwrites(&mut self, operation: u32) {
        self.coverage.overwritten += 1;
        self.overwritten.insert(operation);
    }

    /// A read is answered; `floor` is the highest index that was acknowledged when it was asked.
    pub(crate) fn reads(&mut self, index: u64, floor: u64) -> Result<(), String> {
        self.coverage.reads += 1;
        if index < floor { Err(format!("a read at index {index} misses index {floor}")) } else { Ok(()) }
    }

    /// A node is told to cut its log behind `keep`.
    pub(crate) fn cuts(&mut self, node: usize, keep: u64, applied: u64) -> Result<(), String> {
        self.coverage.cuts_of_tails += 1;
        if keep < applied {
            return Err(format!("node {node} cuts its log behind {keep}, and has applied {applied}"));
        }
        Ok(())
    }

    /// All that was said is true of the log.
    pub(crate) fn finish(&self) -> Result<(), String> {
        for (index, operation) in &self.acknowledged {
            self.holds(*index, *operation)?;
        }
        let batches = self.log.iter().filter_map(Entry::batch);
        match batches.map(|batch| batch.checksum).find(|operation| self.overwritten.contains(operation)) {
            Some(operation) => Err(format!("operation {operation} is in the log and was said not to be")),
            None => Ok(()),
        }
    }
}
