//! Rules for a cluster, told by what owners and clients see. Nothing here knows how members agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use sluice_journal::Committed;
use sluice_replica::{Dropped, Rejected};

use super::batch::operation_of;
use crate::model::Checked;

/// A batch as it was applied.
#[derive(PartialEq, Eq)]
struct Applied {
    term: u64,
    first_index: u64,
    time_us: u64,
    operation: Option<u64>,
    bytes: Bytes,
}

impl fmt::Debug for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Applied { term, first_index, time_us, operation, bytes } = self;
        let bytes = bytes.len();
        write!(f, "index {first_index} of term {term} at {time_us}: {operation:?}, {bytes} bytes")
    }
}

/// Everything that was said, and the log as it was first applied.
#[derive(Debug, Default)]
pub(super) struct Checker {
    log: Vec<Applied>,
    /// Leader of each term: node and life.
    leaders: BTreeMap<u64, (usize, u64)>,
    /// Operation that was acknowledged at each index of a record.
    acknowledged: BTreeMap<u64, u64>,
    /// Operations that are said to be not in the log.
    overwritten: BTreeSet<u64>,
}

impl Checker {
    /// Highest index of a record that was acknowledged.
    pub(super) fn acknowledged_index(&self) -> u64 {
        self.acknowledged.last_key_value().map_or(0, |(index, _)| *index)
    }

    /// Number of the last batch that was applied anywhere.
    pub(super) fn last(&self) -> u64 {
        self.log.len() as u64
    }

    /// Number of terms that had a leader.
    pub(super) fn elections(&self) -> u64 {
        self.leaders.len() as u64
    }

    /// A node has applied a batch; `before` is the number of the one that it applied last.
    pub(super) fn applies(&mut self, node: usize, before: u64, batch: &Committed) -> Checked {
        if batch.number != before + 1 {
            return Err(format!("node {node} applies batch {} after {before}", batch.number));
        }
        let applied = Applied {
            term: batch.term,
            first_index: batch.first_index,
            time_us: batch.time_us,
            operation: operation_of(&batch.bytes),
            bytes: batch.bytes.clone(),
        };
        match self.log.get(before as usize) {
            Some(known) if *known != applied => {
                Err(format!("node {node} applies {applied:?}, another has applied {known:?}"))
            }
            Some(_) => Ok(()),
            None if self.last() == before => {
                self.log.push(applied);
                Ok(())
            }
            None => Err(format!("node {node} has applied {before} batches, and nobody else so many")),
        }
    }

    /// A node says that it leads.
    pub(super) fn leads(&mut self, node: usize, life: u64, term: u64) -> Checked {
        let first = *self.leaders.entry(term).or_insert((node, life));
        if first == (node, life) {
            Ok(())
        } else {
            Err(format!("{first:?} and {node}, {life} lead term {term}"))
        }
    }

    /// A client is told that its operation is in the log, at this index.
    pub(super) fn acknowledges(&mut self, index: u64, operation: u64) -> Checked {
        if let Some(other) = self.acknowledged.insert(index, operation) {
            return Err(format!("index {index} is acknowledged for {other} and {operation}"));
        }
        self.holds(index, operation)
    }

    fn holds(&self, index: u64, operation: u64) -> Checked {
        let at = self.log.binary_search_by_key(&index, |applied| applied.first_index);
        let found = at.ok().map(|at| &self.log[at]);
        if found.is_some_and(|found| found.operation == Some(operation)) {
            return Ok(());
        }
        Err(format!("operation {operation} was acknowledged at {index}, where there is {found:?}"))
    }

    /// A client is told that its operation is not in the log.
    pub(super) fn overwrites(&mut self, operation: u64) {
        self.overwritten.insert(operation);
    }

    /// A read is answered with the state after `applied` batches; `floor` is the highest index that was
    /// acknowledged when it was asked.
    pub(super) fn reads(&self, applied: u64, floor: u64) -> Checked {
        let next = self.log.get(applied as usize).map_or(u64::MAX, |batch| batch.first_index);
        if next <= floor {
            Err(format!("a read after {applied} batches misses index {floor}"))
        } else {
            Ok(())
        }
    }

    /// All that was said is true of the log.
    pub(super) fn finish(&self) -> Checked {
        for (index, operation) in &self.acknowledged {
            self.holds(*index, *operation)?;
        }
        let mut operations = BTreeSet::new();
        for operation in self.log.iter().filter_map(|batch| batch.operation) {
            if !operations.insert(operation) {
                return Err(format!("operation {operation} is in the log twice"));
            }
            if self.overwritten.contains(&operation) {
                return Err(format!("operation {operation} is in the log and was said not to be"));
            }
        }
        Ok(())
    }
}

/// Members drop only what has become stale, or was damaged on its way.
pub(super) fn may_be_dropped(taken: &Result<(), Dropped>) -> Checked {
    match taken {
        Ok(()) | Err(Dropped::Message(Rejected::Stale) | Dropped::Batches(_) | Dropped::NoRoom) => Ok(()),
        Err(Dropped::Message(rejected)) => Err(rejected.to_string()),
        Err(Dropped::State) => Err("a state is sent, though nobody has forgotten anything".to_owned()),
        Err(Dropped::Place(at)) => Err(format!("the batch of {at:?} is for another place")),
    }
}
