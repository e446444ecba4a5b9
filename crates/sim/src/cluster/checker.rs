//! Rules for the replicas of a shard, told by what each was given to apply. Nothing here knows how members
//! agree.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use sluice_engine::blob::MessageBlob;
use sluice_engine::id::BlobRef;
use sluice_engine::{Engine, Outcome};
use sluice_journal::{Committed, Entry, Records};
use sluice_replica::{Dropped, Members, Rejected};

use crate::model::Checked;

/// A batch as it was applied.
#[derive(PartialEq, Eq)]
struct Applied {
    term: u64,
    first_index: u64,
    time_us: u64,
    bytes: Bytes,
}

impl fmt::Debug for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Applied { term, first_index, time_us, bytes } = self;
        write!(f, "index {first_index} of term {term} at {time_us}: {} bytes", bytes.len())
    }
}

/// Members, as nodes have told of them.
#[derive(Debug)]
struct Known {
    members: Members,
    /// Number of the first batch behind which they may have been in force: a node that was killed before it
    /// told of them does so when it starts again.
    since: u64,
}

/// The log as it was first applied, and what nodes said of themselves.
#[derive(Debug, Default)]
pub(super) struct Checker {
    log: Vec<Applied>,
    /// Leader of each term: node and life.
    leaders: BTreeMap<u64, (usize, u64)>,
    /// Digest of the state behind each record, by the first node that was there.
    digests: BTreeMap<u64, u64>,
    /// Members, each with the number of the first batch behind which some node had them.
    members: BTreeMap<u64, Known>,
    /// Number of the last batch behind which they are known.
    compared: u64,
}

impl Checker {
    /// A checker of a log that begins with these batches.
    pub(super) fn new(begun: Vec<Entry>) -> Checker {
        let applied = |entry: Entry| {
            let Entry { term, first_index, time_us, bytes, .. } = entry;
            Applied { term, first_index, time_us, bytes }
        };
        Checker { log: begun.into_iter().map(applied).collect(), ..Checker::default() }
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
        let Committed { first_index, term, time_us, ref bytes, .. } = *batch;
        let applied = Applied { term, first_index, time_us, bytes: bytes.clone() };
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

    /// A node has taken over a state that has applied the batch with this number last.
    pub(super) fn takes_over(&self, node: usize, number: u64, engine: &Engine) -> Checked {
        let next = self.log.get(number as usize).map(|batch| batch.first_index);
        let is_whole = number <= self.last() && next.is_none_or(|next| next == engine.applied_index() + 1);
        let index = engine.applied_index();
        if is_whole { Ok(()) } else { Err(format!("node {node} takes over batch {number}, record {index}")) }
    }

    /// A node has a state.
    pub(super) fn has(&mut self, node: usize, engine: &Engine) -> Checked {
        let index = engine.applied_index();
        let digest = engine.digest();
        if *self.digests.entry(index).or_insert(digest) == digest {
            Ok(())
        } else {
            Err(format!("node {node} has another state after record {index} than one before"))
        }
    }

    /// A node has these members in force behind the batch with this number, which it has applied.
    pub(super) fn has_members(&mut self, node: usize, number: u64, members: &Members) -> Checked {
        if number == 0 && *members == Members::default() {
            return Ok(());
        }
        let next = self.members.range(number + 1..).next().map(|(at, next)| (*at, next.since));
        let changed_from = next.map_or(self.compared + 1, |(_, since)| since);
        let known = self.members.range(..=number).next_back().map(|(_, known)| &known.members);
        let is_known = known == Some(members);
        if !is_known && number < changed_from {
            return Err(format!("node {node} has {members:?} behind batch {number}, another had {known:?}"));
        }
        self.compared = self.compared.max(number);
        if let Some((at, since)) = next {
            self.has_next(at, since.max(number + 1), members);
        }
        if !is_known {
            let known = Known { members: members.clone(), since: changed_from };
            self.members.insert(number, known);
        }
        Ok(())
    }

    /// Notes that the members of this batch were in force since another at the earliest, unless a node had
    /// them before, which are these.
    fn has_next(&mut self, at: u64, since: u64, before: &Members) {
        match self.members.get_mut(&at) {
            Some(next) if next.members != *before => next.since = since,
            _ => drop(self.members.remove(&at)),
        }
    }

    /// Members by whom the batch with this number may be committed: those in force before it, and before the
    /// last change, of which its leader may not have known.
    pub(super) fn members_before(&self, number: u64) -> impl Iterator<Item = &Members> {
        self.members.range(..number).rev().map(|(_, known)| &known.members).take(2)
    }

    /// The newest members.
    pub(super) fn members(&self) -> Members {
        self.members.values().next_back().map(|known| known.members.clone()).unwrap_or_default()
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

    /// The state that the log gives.
    pub(super) fn replay(&self) -> Engine {
        let (mut engine, mut outcome) = (Engine::new(), Outcome::default());
        for batch in &self.log {
            for (index, record) in (batch.first_index..).zip(Records::new(&batch.bytes)) {
                engine.apply(batch.time_us, index, record.body, &mut outcome);
            }
        }
        engine
    }

    /// The content of a blob that a record of the log has brought.
    pub(super) fn content(&self, blob: BlobRef) -> Option<Vec<u8>> {
        let behind = self.log.partition_point(|batch| batch.first_index <= blob.index);
        let batch = self.log.get(behind.checked_sub(1)?)?;
        let record = Records::new(&batch.bytes).nth((blob.index - batch.first_index) as usize)?;
        Some(MessageBlob::parse(record.blob(blob.item)?)?.payload.to_vec())
    }

    /// The bytes of each batch.
    pub(super) fn bytes(&self) -> impl Iterator<Item = &Bytes> {
        self.log.iter().map(|batch| &batch.bytes)
    }
}

/// Members drop only what has become stale, or was damaged on its way; and where nodes forget something and
/// get other numbers, what is for a former number, comes from one, or finds its receiver silent.
pub(super) fn may_be_dropped(why: &Dropped, is_renumbered: bool) -> Checked {
    use Rejected::{NotForUs, NotInSnapshot, Removed, UnknownSender};
    match why {
        Dropped::Mute if is_renumbered => Ok(()),
        Dropped::Message(NotForUs { .. } | NotInSnapshot | Removed { .. } | UnknownSender { .. })
            if is_renumbered =>
        {
            Ok(())
        }
        Dropped::Message(Rejected::Stale | Rejected::Installing) | Dropped::Batches(_) => Ok(()),
        Dropped::Message(rejected) => Err(rejected.to_string()),
        other => Err(format!("{other:?}")),
    }
}
