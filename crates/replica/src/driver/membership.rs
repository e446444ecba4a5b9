//! Changes of the members, one at a time, each in force where its entry is applied.
//!
//! That is safe because a replica never campaigns with a committed change that it has not applied, and
//! because a log shows that each of its changes but the last is committed: a change is proposed when the one
//! before is applied. So the members of two leaders that could overlook each other differ by one voter at
//! most, and any two majorities of theirs have a voter in common.

use raft::StateRole;
use raft::eraftpb::ConfChange;

use super::check::Rejected;
use super::{Replica, convert};
use crate::config::Durable;
use crate::entry::{Change, Entry, NodeId, Position};
use crate::members::Members;
use crate::message::{Body, Message};
use crate::plant::{self, Plant};
use crate::ready::{Proposed, Refused};

impl Replica {
    /// The members in force.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Proposes a change of the members, and tells where its entry will stand. It is in force on a node when
    /// that has applied the entry.
    ///
    /// # Errors
    ///
    /// The reason for which the change was refused; it is not in the log and never will be.
    pub fn propose_members(&mut self, change: Change) -> Proposed {
        self.check_leader()?;
        if plant::is(Plant::SecondChange) {
            self.library.raft.pending_conf_index = 0;
        } else if self.is_changing() {
            return Err(Refused::ChangeUnderWay);
        }
        let raft = &self.library.raft;
        if self.is_transferring() {
            return Err(Refused::Transferring);
        }
        // Before that, another leader's change may be in force elsewhere.
        if !raft.apply_to_current_term() {
            return Err(Refused::NotYet);
        }
        let after = self.members.after(change).ok_or(Refused::ChangeUnfit { change })?;
        if !after.voters().contains(&self.id) {
            return Err(Refused::Leads);
        }
        if let Change::Promote(node) = change
            && !self.follower(node).is_some_and(|follower| follower.is_caught_up)
        {
            return Err(Refused::Behind { node });
        }
        if !self.is_heard_by_majority(&after) {
            return Err(Refused::NoMajority);
        }
        let at = Position { term: raft.term, index: raft.raft_log.last_index() + 1 };
        let proposed = self.library.propose_conf_change(convert::change(change), ConfChange::default());
        proposed.map_err(|_| Refused::Transferring)?;
        self.settle();
        Ok(at)
    }

    /// True: a leader does not know yet that the last change of the members is applied here, and known on the
    /// disks of a majority of the voters. Until then the members before it may have to elect a leader, so
    /// that the loss of a minority of the present ones, for good, can stop the cluster.
    pub fn is_changing(&self) -> bool {
        let raft = &self.library.raft;
        let knows = |node: &&NodeId| {
            let told = raft.prs().get(node.get()).map_or(0, |progress| progress.committed_index);
            if **node == self.id { self.synced >= self.commit_kept } else { told >= self.changed }
        };
        let voters = self.members.voters();
        raft.has_pending_conf() || voters.iter().filter(knows).count() * 2 <= voters.len()
    }

    /// Checks that a leader's entries show each of their changes but the last to be committed.
    pub(super) fn check_changes(&self, message: &Message) -> Result<(), Rejected> {
        let Body::Append { previous, commit, entries } = &message.body else { return Ok(()) };
        let Some(last) = entries.iter().rfind(|entry| entry.change().is_some()) else { return Ok(()) };
        let log = self.library.store();
        if log.term_at(previous.index) != Some(previous.term) {
            return Ok(()); // Nothing of it is appended.
        }
        let known = self.library.raft.raft_log.committed.max(*commit);
        let ours = (known + 1..=previous.index).filter_map(|index| log.get(index));
        let unknown = entries.iter().filter(|entry| entry.position.index > known);
        let changes = ours.chain(unknown).filter(|entry| entry.change().is_some());
        let index = last.position.index;
        if changes.count() > 1 { Err(Rejected::SecondChange { index }) } else { Ok(()) }
    }

    /// The change of the members that the entry with this index is.
    pub(crate) fn change(&self, index: u64) -> Option<Change> {
        self.library.store().get(index).and_then(Entry::change)
    }

    /// Puts the changes up to this index into force, which is applied now.
    pub(super) fn change_members_to(&mut self, index: u64) {
        if plant::is(Plant::MembersWhenAppended) {
            return;
        }
        for at in self.library.raft.raft_log.applied + 1..=index {
            if let Some(change) = self.change(at) {
                self.changed = at;
                self.change_members(change);
            }
        }
    }

    /// Puts a change into force. One that does not fit is left out, on all nodes alike.
    pub(super) fn change_members(&mut self, change: Change) {
        let Some(after) = self.members.after(change) else { return };
        let raft = &mut self.library.raft;
        if raft.state == StateRole::Leader && !after.voters().contains(&self.id) {
            // Proposed by a former leader: who is no voter does not lead.
            raft.become_follower(raft.term, raft::INVALID_ID);
        }
        for step in convert::steps(change) {
            // What fits our members fits the library's, which are the same.
            let _ = self.library.apply_conf_change(&step);
        }
        self.members = after;
        self.ready.members = Some(self.members.clone());
    }

    /// True: this commit index covers a change of the members that none before has covered.
    pub(super) fn commits_change(&mut self, commit: u64) -> bool {
        let first = self.commit_seen + 1;
        self.commit_seen = self.commit_seen.max(commit);
        (first..=commit).any(|index| self.change(index).is_some())
    }

    /// True: this leader has heard of a majority of these voters lately.
    fn is_heard_by_majority(&self, members: &Members) -> bool {
        let is_heard = |node: &&NodeId| {
            **node == self.id || self.follower(**node).is_some_and(|follower| follower.is_heard)
        };
        members.voters().iter().filter(is_heard).count() * 2 > members.voters().len()
    }
}

/// Index up to which the base's members hold all changes.
pub(super) fn held(durable: &Durable) -> u64 {
    durable.base.position.index.max(durable.changed)
}

/// The members in force behind what is applied at a start, and the index since which they are, or a later
/// one.
pub(super) fn at_start(durable: &Durable) -> (Members, u64) {
    let mut at = (durable.base.members.clone(), held(durable));
    let open = at.1 + 1..=durable.applied;
    for entry in durable.entries.iter().filter(|entry| open.contains(&entry.position.index)) {
        if let Some(after) = entry.change().and_then(|change| at.0.after(change))
            && !plant::is(Plant::StaleMembers)
        {
            at = (after, entry.position.index);
        }
    }
    at
}

/// The members in force where a state has applied its log, and the highest number that was given to a node.
pub(crate) fn members_of(durable: &Durable) -> (Members, u64) {
    (at_start(durable).0, highest(durable))
}

/// The highest number that was given to a node, as far as this state tells, in a change that is under way as
/// well. Changes that the members hold already may be those of another cluster, from whose backup this one
/// was made.
pub(super) fn highest(durable: &Durable) -> u64 {
    let given = |change: Change| match change {
        Change::Add(node) | Change::Replace { new: node, .. } => node.get(),
        Change::Promote(_) | Change::Demote(_) | Change::Remove(_) => 0,
    };
    let held = held(durable);
    let open = durable.entries.iter().filter(|entry| entry.position.index > held);
    let changed = open.filter_map(Entry::change).map(given);
    changed.fold(durable.base.members.highest(), u64::max)
}

/// The index up to which a log shows by itself that it is committed: that of the last change but one.
pub(super) fn shown_committed(entries: &[Entry]) -> u64 {
    let changes = entries.iter().rev().filter(|entry| entry.change().is_some());
    changes.map(|entry| entry.position.index).nth(1).unwrap_or(0)
}
