//! Model of a journal whose owner tells what is committed.
//!
//! The orders given to a journal (batches, cuts, hard states) take effect on the disk in their order. So what
//! a start finds is the log after some of the first of them: at least those that are known to be durable. The
//! committed log is that of all members: what of it a node has lost in a crash, its owner proposes again, and
//! whatever stands in its place is cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluice_journal::BlobKey;

use super::batch::{Proposed, check_same, short};
use crate::model::Checked;

/// An order, in the sequence in which they were given since the start.
#[derive(Clone, Debug)]
enum Order {
    Batch(Arc<Proposed>),
    Cut(u64),
    HardState(u64),
    /// A state that has applied so many batches of the committed log.
    Install(usize),
}

/// The log as the owner and the other members know it.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// This node's log, as ordered.
    pub(super) log: Vec<Arc<Proposed>>,
    /// The committed log.
    pub(super) cluster: Vec<Arc<Proposed>>,
    /// Index of the last record that the journal was told to be committed.
    pub(super) told: u64,
    /// Index up to which the next start must know the log to be committed.
    floor: u64,
    /// Index of the last record that the journal has given.
    pub(super) given: u64,
    /// Live blobs of the state after `given`.
    pub(super) live: BTreeMap<BlobKey, Vec<u8>>,
    /// The log when the journal was opened, and the orders since.
    base: Vec<Arc<Proposed>>,
    orders: Vec<Order>,
    /// Number of first orders that survive any crash, and those that survive the end of the process.
    synced: usize,
    durable: usize,
    /// Number of the last hard state: given, and durable.
    pub(super) state: u64,
    state_kept: u64,
    /// State that was installed last, and the one before it.
    pub(super) installed: Installed,
    former: Installed,
    /// Number of orders with that state, the last of them.
    install_order: usize,
}

/// State that was installed.
#[derive(Debug, Default)]
pub(super) struct Installed {
    /// Index of its last record.
    index: u64,
    /// Blobs that it refers to, and that no node has any more.
    pub(super) gone: BTreeSet<BlobKey>,
    /// Index of the record from which on all of them are released.
    pub(super) whole_from: u64,
}

/// Log found by a start.
#[derive(Debug)]
pub(super) struct FoundLog {
    /// Index of the last record that the snapshot holds.
    pub(super) applied: u64,
    /// Committed batches after the snapshot.
    pub(super) replayed: Vec<Arc<Proposed>>,
    pub(super) tail: Vec<Arc<Proposed>>,
    /// Number and term of the last committed batch, as told.
    pub(super) last: (u64, u64),
    /// Live blobs of the snapshot, each with its length.
    pub(super) snapshot: BTreeMap<BlobKey, u32>,
    pub(super) hard_state: u64,
}

impl Model {
    /// Index of the next record.
    pub(super) fn next_index(&self) -> u64 {
        last_index(&self.log) + 1
    }

    /// The batches that were not given yet.
    pub(super) fn tail(&self) -> &[Arc<Proposed>] {
        &self.log[self.log.partition_point(|batch| batch.last_index() <= self.given)..]
    }

    pub(super) fn propose(&mut self, batch: Arc<Proposed>) {
        self.orders.push(Order::Batch(batch.clone()));
        self.log.push(batch);
    }

    pub(super) fn cut(&mut self, index: u64) {
        self.orders.push(Order::Cut(index));
        self.log.retain(|batch| batch.first_index < index);
    }

    pub(super) fn hard_state(&mut self) -> u64 {
        self.state += 1;
        self.orders.push(Order::HardState(self.state));
        self.state
    }

    /// Installs the state that has applied so many batches of the committed log.
    pub(super) fn install(&mut self, batches: usize, mut gone: BTreeSet<BlobKey>, whole_from: u64) {
        self.orders.push(Order::Install(batches));
        self.install_order = self.orders.len();
        self.log = self.cluster[..batches].to_vec();
        let index = last_index(&self.log);
        (self.told, self.given) = (index, index);
        self.live = self.live_at(index);
        gone.retain(|key| self.live.contains_key(key));
        let installed = Installed { index, gone, whole_from };
        self.former = std::mem::replace(&mut self.installed, installed);
    }

    /// True when no state is being installed.
    pub(super) fn is_installed(&self) -> bool {
        self.install_order <= self.durable
    }

    /// Commits this node's log up to a record.
    pub(super) fn commit(&mut self, index: u64) {
        self.told = index;
        let committed = self.log.iter().take_while(|batch| batch.last_index() <= index).count();
        if committed > self.cluster.len() {
            self.cluster = self.log[..committed].to_vec();
        }
    }

    /// Takes a batch that the journal gives; returns the blobs that its records release.
    pub(super) fn give(&mut self, batch: &Proposed) -> Result<Vec<BlobKey>, String> {
        let at = self.cluster.partition_point(|known| known.last_index() <= self.given);
        let expected = self.cluster.get(at).filter(|known| known.last_index() <= self.told);
        if expected.is_none_or(|expected| **expected != *batch) {
            let expected = expected.map(|expected| short(expected));
            return Err(format!("given {}, expected {expected:?}", short(batch)));
        }
        self.given = batch.last_index();
        Ok(apply(&mut self.live, batch))
    }

    /// Notes how many orders the journal says that it was given, and which of them are durable: with
    /// `always` these are synced, else as far as the last cut.
    pub(super) fn note_orders(&mut self, given: u64, durable: u64, always: bool) -> Checked {
        let expected = self.orders.len();
        let found = durable as usize;
        if given as usize != expected || !(self.durable..=expected).contains(&found) {
            let before = self.durable;
            return Err(format!("{durable} of {given} orders are durable, were {before} of {expected}"));
        }
        for (number, order) in (1..=found).zip(&self.orders).skip(self.durable) {
            match order {
                Order::Cut(_) => self.synced = number,
                Order::Install(batches) => {
                    self.synced = number;
                    self.floor = self.floor.max(last_index(&self.cluster[..*batches]));
                }
                Order::HardState(state) => self.state_kept = *state,
                Order::Batch(_) => {}
            }
        }
        self.durable = found;
        if always {
            self.synced = found;
        }
        Ok(())
    }

    /// Checks that the record up to which the journal says that the log is durable came with a durable order.
    pub(super) fn check_durable(&self, index: u64) -> Checked {
        let last = self.log.iter().rev().find(|batch| batch.last_index() <= index);
        let at = last.and_then(|last| {
            self.orders
                .iter()
                .rposition(|order| matches!(order, Order::Batch(batch) if Arc::ptr_eq(batch, last)))
        });
        let order = at.map_or(0, |at| at + 1);
        if index < self.next_index() && order <= self.durable {
            return Ok(());
        }
        Err(format!("record {index} is durable, of order {order}; {} orders are", self.durable))
    }

    /// True when each order is durable.
    pub(super) fn is_durable(&self) -> bool {
        self.durable == self.orders.len()
    }

    /// Notes that the journal was closed in order.
    pub(super) fn closed(&mut self, noted: bool) {
        (self.synced, self.durable) = (self.orders.len(), self.orders.len());
        self.state_kept = self.state;
        if noted {
            self.floor = self.floor.max(self.told);
        }
    }

    /// Checks what a start has found. `power`: unsynced bytes may be lost.
    pub(super) fn recovered(&mut self, found: &FoundLog, power: bool) -> Checked {
        let before = self.cluster.iter().take_while(|batch| batch.last_index() <= found.applied);
        let committed: Vec<_> = before.chain(&found.replayed).cloned().collect();
        let told = last_index(&committed);
        if told < found.applied || told < self.floor {
            return Err(format!("committed up to {told}: snapshot {}, noted {}", found.applied, self.floor));
        }
        let known = self.cluster.get(..committed.len()).ok_or("more is committed than anybody told")?;
        check_same("the committed log", &committed, known)?;
        let last = known.last().map_or((0, 0), |batch| (batch.number, batch.term));
        if found.last != last {
            return Err(format!("the last committed batch: {:?}, expected {last:?}", found.last));
        }
        let log: Vec<_> = known.iter().chain(&found.tail).cloned().collect();
        let survived = self.find(&log, if power { self.synced } else { self.durable })?;
        let states = self.orders[..survived].iter().map(|order| match order {
            Order::HardState(number) => *number,
            Order::Batch(_) | Order::Cut(_) | Order::Install(_) => 0,
        });
        let least = states.max().unwrap_or(0).max(self.state_kept);
        if !(least..=self.state).contains(&found.hard_state) {
            return Err(format!("hard state {}, expected {least} to {}", found.hard_state, self.state));
        }
        self.check_snapshot(found)?;
        if found.applied < self.installed.index {
            self.installed = std::mem::take(&mut self.former);
        }
        self.begin(log, told, found.hard_state);
        Ok(())
    }

    /// The least number of orders after which the log is this one.
    fn find(&self, log: &[Arc<Proposed>], least: usize) -> Result<usize, String> {
        let mut replayed = self.base.clone();
        for survived in 0..=self.orders.len() {
            if let Some(order) = survived.checked_sub(1).and_then(|at| self.orders.get(at)) {
                match order {
                    Order::Batch(batch) => replayed.push(batch.clone()),
                    Order::Cut(index) => replayed.retain(|batch| batch.first_index < *index),
                    Order::Install(batches) => replayed = self.cluster[..*batches].to_vec(),
                    Order::HardState(_) => {}
                }
            }
            if survived >= least && check_same("", log, &replayed).is_ok() {
                return Ok(survived);
            }
        }
        let last = log.last().map(|batch| short(batch));
        Err(format!(
            "the log is none that the orders give, of which the first {least} of {} are durable: {} batches, the \
             last of them {last:?}",
            self.orders.len(),
            log.len()
        ))
    }

    fn check_snapshot(&self, found: &FoundLog) -> Checked {
        let live: BTreeMap<_, _> =
            self.live_at(found.applied).iter().map(|(key, blob)| (*key, blob.len() as u32)).collect();
        if live == found.snapshot {
            return Ok(());
        }
        Err(format!("the snapshot of record {} has other blobs: {:?}", found.applied, found.snapshot))
    }

    /// Live blobs of the state after a record of the committed log.
    pub(super) fn live_at(&self, index: u64) -> BTreeMap<BlobKey, Vec<u8>> {
        let mut live = BTreeMap::new();
        for batch in self.cluster.iter().take_while(|batch| batch.last_index() <= index) {
            apply(&mut live, batch);
        }
        live
    }

    /// Goes on with the log that a start has found.
    fn begin(&mut self, log: Vec<Arc<Proposed>>, told: u64, state: u64) {
        self.live = self.live_at(told);
        (self.base, self.log) = (log.clone(), log);
        self.orders.clear();
        (self.told, self.given, self.floor) = (told, told, told);
        (self.synced, self.durable, self.install_order) = (0, 0, 0);
        (self.state, self.state_kept) = (state, state);
    }

    /// The first record of this node's log that is not the committed one.
    pub(super) fn conflict(&self) -> Option<u64> {
        let differs = self.log.iter().zip(&self.cluster).find(|(own, committed)| own != committed);
        differs.map(|(own, _)| own.first_index)
    }
}

/// Index of the last record of a log; 0: none.
pub(super) fn last_index(log: &[Arc<Proposed>]) -> u64 {
    log.last().map_or(0, |batch| batch.last_index())
}

/// Applies a batch to the live blobs; returns those that it releases.
fn apply(live: &mut BTreeMap<BlobKey, Vec<u8>>, batch: &Proposed) -> Vec<BlobKey> {
    let mut released = Vec::new();
    for (index, record) in (batch.first_index..).zip(&batch.records) {
        for (item, blob) in (0..).zip(&record.blobs) {
            live.insert(BlobKey { index, item }, blob.clone());
        }
        for key in &record.releases {
            if live.remove(key).is_some() {
                released.push(*key);
            }
        }
    }
    released
}
