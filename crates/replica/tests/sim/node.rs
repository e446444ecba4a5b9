//! The owner of one replica: a life from a start to a crash.

use std::collections::{BTreeMap, VecDeque};

use sluice_replica::{Config, Durable, Entry, NodeId, ReadId, Replica, Role, Snapshot};

use super::checker::Checker;
use super::disk::Disk;
use super::rng::Rng;

pub(crate) struct Node {
    pub(crate) id: NodeId,
    /// Number of starts.
    pub(crate) life: u64,
    /// True: the disk has lost something since the last start.
    pub(crate) has_forgotten: bool,
    /// None: it is down.
    pub(crate) replica: Option<Replica>,
    pub(crate) disk: Disk,
    /// Index that this life has applied last.
    pub(crate) applied: u64,
    /// Digest of the state.
    pub(crate) digest: u64,
    /// State that came with the message that was stepped last, with its digest.
    pub(crate) incoming: Option<(Snapshot, u64)>,
    /// Entries that are to be applied.
    pub(crate) given: VecDeque<Entry>,
    /// Highest index on which the disk was told to write.
    pub(crate) written: u64,
    /// Time until which nothing is done, in microseconds.
    pub(crate) paused_until_us: u64,
    /// Time between two ticks, in microseconds.
    pub(crate) tick_us: u64,
    /// Operations whose outcome is open, by index and term.
    pub(crate) proposals: BTreeMap<(u64, u64), u32>,
    /// Reads that are open, with the index that was acknowledged when each was asked.
    pub(crate) reads: BTreeMap<ReadId, u64>,
}

impl Node {
    /// A node with this first state.
    pub(crate) fn new(id: NodeId, durable: Durable) -> Node {
        Node {
            id,
            life: 0,
            has_forgotten: false,
            replica: None,
            disk: Disk::new(durable),
            applied: 0,
            digest: 0,
            incoming: None,
            given: VecDeque::new(),
            written: 0,
            paused_until_us: 0,
            tick_us: 50_000,
            proposals: BTreeMap::new(),
            reads: BTreeMap::new(),
        }
    }

    /// Starts with what the disk has. The state that the owner has kept may be older than the last one.
    pub(crate) fn start(&mut self, id: usize, checker: &Checker, rng: &mut Rng) -> Result<(), String> {
        let mut durable: Durable = self.disk.crash(rng);
        let base = durable.base.position.index;
        durable.applied = if rng.chance(1, 2) { base } else { rng.between(base, self.applied.max(base)) };
        if base > 0 && rng.chance(1, 2) {
            durable.changed = rng.between(base, durable.applied);
            durable.base.members = checker.members_at(durable.changed).clone();
        }
        durable.has_forgotten = std::mem::take(&mut self.has_forgotten);
        self.life += 1;
        self.applied = durable.applied;
        let is_base = self.applied == base;
        self.digest = if is_base { self.disk.digest } else { checker.digest(self.applied) };
        self.written = base + durable.entries.len() as u64;
        self.tick_us =
            if rng.chance(1, 8) { rng.between(25_000, 100_000) } else { rng.between(42_000, 58_000) };
        let config = Config { id: self.id, heartbeat_ticks: 2, election_ticks: 10, quiet_ticks: 40 };
        let replica = Replica::new(&config, &durable, rng.bits());
        self.replica = Some(replica.map_err(|error| format!("node {id} cannot start: {error}"))?);
        Ok(())
    }

    /// Ends this life.
    pub(crate) fn stop(&mut self) {
        self.replica = None;
        self.given.clear();
        self.incoming = None;
        self.proposals.clear();
        self.reads.clear();
    }

    pub(crate) fn leads(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.standing().role == Role::Leader)
    }

    /// Applies an entry and tells whose operations it decides.
    pub(crate) fn apply(&mut self, id: usize, entry: &Entry, checker: &mut Checker) -> Result<(), String> {
        self.digest = digest(self.digest, entry);
        checker.applies(id, self.applied, entry, self.digest)?;
        let at = entry.position;
        self.applied = at.index;
        let later = self.proposals.split_off(&(at.index + 1, 0));
        for ((_, term), operation) in std::mem::replace(&mut self.proposals, later) {
            if term == at.term || sluice_replica::plant::is(sluice_replica::plant::Plant::MatchByIndex) {
                checker.acknowledges(at.index, operation)?;
            } else {
                checker.overwrites(operation);
            }
        }
        Ok(())
    }
}

/// The digest of a state behind one more entry.
fn digest(before: u64, entry: &Entry) -> u64 {
    let operation = entry.batch().map_or(0, |batch| u64::from(batch.checksum) + 1);
    let mixed =
        before ^ entry.position.index.rotate_left(40) ^ entry.position.term.rotate_left(20) ^ operation;
    Rng::new(mixed).bits()
}
