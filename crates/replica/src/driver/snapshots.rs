//! States for followers that need what the leader has forgotten, and their installation.

use std::cmp::Ordering;

use raft::{ProgressState, SnapshotStatus, StateRole};

use super::{Replica, check};
use crate::entry::{NodeId, Position};
use crate::members::Snapshot;
use crate::message::{Body, Message};
use crate::ready::{Refused, Role};

impl Replica {
    /// Describes the state that the owner has now, as it has told by [`Replica::applied`]. Kept with a copy
    /// of that state, it is what a start and [`Replica::send_snapshot`] need. `None`: there is no state,
    /// since none has been installed yet.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let index = self.library.raft.raft_log.applied;
        let term = self.library.store().term_at(index).filter(|term| *term > 0)?;
        Some(Snapshot { position: Position { term, index }, members: self.members.clone() })
    }

    /// Begins the transfer of a state to a node that [`crate::Ready::lagging`] has named: the state's message
    /// comes out of [`Replica::ready`], and the owner sends the state with it. The receiver steps the message
    /// when all of the state is there.
    ///
    /// # Errors
    ///
    /// The reason for which nothing was begun.
    pub fn send_snapshot(&mut self, to: NodeId, snapshot: &Snapshot) -> Result<(), Refused> {
        self.check_leader()?;
        if !snapshot.members.contains(to) {
            return Err(Refused::NotAMember { node: to });
        }
        let Position { term, index } = snapshot.position;
        let is_in_log =
            index <= self.library.raft.raft_log.applied && self.library.store().term_at(index) == Some(term);
        if !is_in_log || !self.has_our_members(snapshot) {
            return Err(Refused::SnapshotUnfit { index });
        }
        if !self.is_lagging(to) {
            return Err(Refused::NotLagging { node: to });
        }
        if let Some(progress) = self.library.raft.mut_prs().get_mut(to.get()) {
            // Neither a pause nor messages in flight hold it back.
            progress.become_probe();
        }
        self.library.mut_store().offer = Some(snapshot.clone());
        self.library.raft.send_append(to.get());
        self.library.mut_store().offer = None;
        let is_sent = !self.is_lagging(to);
        self.lagging.retain(|node| *node != to);
        self.settle();
        if is_sent { Ok(()) } else { Err(Refused::NotLagging { node: to }) }
    }

    /// True: all changes of the members behind this state are of this cluster. One that is older than the
    /// beginning may have another's members, and be followed by another's changes.
    fn has_our_members(&self, snapshot: &Snapshot) -> bool {
        let (index, members) = &self.began;
        match snapshot.position.index.cmp(index) {
            Ordering::Less => false,
            Ordering::Equal => snapshot.members == *members,
            Ordering::Greater => true,
        }
    }

    /// Takes in how the transfer of a state has ended. Until then nothing else is sent to the node. When it
    /// has failed, [`crate::Ready::lagging`] names the node again.
    pub fn transferred(&mut self, to: NodeId, is_whole: bool) {
        let status = if is_whole { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
        self.library.report_snapshot(to.get(), status);
        self.settle();
    }

    /// True: the log holds the entry at this position, or what is committed reaches it. The state there is
    /// not needed.
    pub fn has(&self, position: Position) -> bool {
        let is_held = self.library.store().term_at(position.index) == Some(position.term);
        is_held || position.index <= self.library.raft.raft_log.committed
    }

    /// True: a state is installed when this message of the present leader, which offers it, is stepped.
    pub fn installs(&self, message: &Message) -> bool {
        let Body::Snapshot(Snapshot { position, .. }) = &message.body else { return false };
        let standing = self.standing();
        let is_leader = standing.leader == Some(message.from) && standing.term == message.term;
        let is_fit = check::check(&self.view(message.from), message).is_ok();
        is_leader && standing.role == Role::Follower && is_fit && !self.has(*position)
    }

    /// Index up to which a member is known to have the log. `None`: this replica does not lead, or has not
    /// heard of the member lately.
    pub fn matched(&self, node: NodeId) -> Option<u64> {
        self.check_leader().ok()?;
        let progress = self.library.raft.prs().get(node.get()).filter(|progress| progress.recent_active);
        progress.map(|progress| progress.matched)
    }

    /// Tells the owner of followers that need a state.
    pub(super) fn find_lagging(&mut self) {
        let lagging = std::mem::take(&mut self.lagging);
        if self.library.raft.state != StateRole::Leader {
            return;
        }
        let is_heard = |node: &NodeId| {
            let progress = self.library.raft.prs().get(node.get());
            lagging.contains(node) || progress.is_some_and(|progress| progress.recent_active)
        };
        let members = self.members.iter().filter(|node| self.is_lagging(*node));
        self.lagging = members.filter(is_heard).collect();
        let is_new = |node: &&NodeId| !lagging.contains(node);
        self.ready.lagging.extend(self.lagging.iter().filter(is_new));
    }

    /// True: the next entry for this follower is forgotten, and no state is on its way to it.
    pub(super) fn is_lagging(&self, node: NodeId) -> bool {
        let progress = self.library.raft.prs().get(node.get());
        progress.is_some_and(|progress| {
            progress.state != ProgressState::Snapshot && progress.next_idx <= self.library.store().base()
        })
    }
}
