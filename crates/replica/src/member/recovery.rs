//! Recovery of a log whose majority is gone for good: what one node has of it becomes the log of a cluster of
//! that node alone.

use sluice_journal::{DiskJournal, Journal, Writer};

use super::memory::Kept;
use super::start::{Start, Started};
use super::state::Saved;
use crate::config::{Durable, StartError};
use crate::driver;
use crate::entry::{NodeId, Position};
use crate::members::Members;

/// Number of terms that are left out: far more than the lost nodes can have used since they were last heard
/// of, so that no epoch of theirs comes again.
const TERMS_LEFT_OUT: u64 = 1 << 28;

/// Log that one node has of a cluster, with what was never committed.
#[derive(Debug)]
pub struct Remains {
    /// Members in force at its end.
    pub members: Members,
    /// Highest number that was given to a node, as far as the log tells.
    pub highest: u64,
    /// Term and number of its last batch.
    pub last: Position,
    /// The node that has written it last; `None`: no member has.
    id: Option<NodeId>,
    term: u64,
}

impl Remains {
    /// The log of a journal that was opened and is not used. `start` is that of its member.
    ///
    /// # Errors
    /// The journal holds no log of a member, or one that contradicts itself.
    pub fn of(start: Start, journal: &DiskJournal) -> Result<Remains, StartError> {
        let Start { started, records, .. } = start;
        let Started { saved, base, changed, mut entries } = started?;
        for batch in journal.tail(0) {
            entries.push(records.entry(batch)?);
        }
        let last = entries.last().map_or(base.position, |entry| entry.position);
        let term = saved.hard_state(last.term).term;
        let durable = Durable { base, changed, entries, applied: last.index, ..Durable::default() };
        let (members, highest) = driver::members_of(&durable);
        if members.voters().is_empty() {
            return Err(StartError::NoVoters);
        }
        Ok(Remains { members, highest, last, id: saved.id, term })
    }

    /// Commits the whole log, and makes this node its only voter, under a number above all that were given.
    /// Nodes with lower ones are refused from then on, and its next leadership has a term that none of
    /// theirs had. Payloads that it has not got from them yet are given up. Blocks; all of it is on the disk
    /// then, or nothing but a part of the commit. The same again changes nothing.
    ///
    /// # Errors
    /// The number was given before, or the disk has failed.
    pub fn become_sole_voter(
        self,
        id: NodeId,
        journal: &mut DiskJournal,
        writer: &Writer,
    ) -> Result<(), String> {
        let members = Members::new(vec![id], Vec::new(), id.get());
        if self.id == Some(id) && members.as_ref() == Some(&self.members) {
            return Ok(());
        }
        let members = members.filter(|_| id.get() > self.highest);
        let members = members.ok_or_else(|| StartError::Forgetful { node: id }.to_string())?;
        let since = journal.next_index() - 1;
        journal.commit(since).map_err(|error| format!("the log could not be committed: {error:?}"))?;
        if journal.may_miss_blobs() {
            let without = journal.go_on_without_blobs();
            without.map_err(|error| format!("what the log lacks could not be given up: {error}"))?;
        }
        let term = self.term + TERMS_LEFT_OUT;
        let saved = Saved { id: Some(id), term, vote: None, kept: Kept::All, since, members };
        journal.hard_state(&saved.encode(), true);
        writer.step();
        writer.finish()
    }
}
