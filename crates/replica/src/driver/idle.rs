//! Idle replicas, whose clock may rest.

use raft::StateRole;

use super::Replica;

impl Replica {
    /// True where a leader's log is on the disks of all members, committed and known to be, and nothing else
    /// goes on; where a follower has all of its log committed and synced, and knows its leader.
    pub fn is_idle(&self) -> bool {
        let raft = &self.library.raft;
        let last = raft.raft_log.last_index();
        let is_settled = raft.raft_log.committed == last && self.synced == self.written;
        is_settled
            && match raft.state {
                StateRole::Leader => {
                    raft.lead_transferee.is_none()
                        && raft.pending_read_count() == 0
                        && !self.is_changing()
                        && raft.prs().iter().all(|(_, progress)| progress.matched == last)
                }
                StateRole::Follower => raft.leader_id != 0,
                StateRole::Candidate | StateRole::PreCandidate => false,
            }
    }

    /// Index of the last entry.
    pub fn last_index(&self) -> u64 {
        self.library.raft.raft_log.last_index()
    }

    /// Lets the clock go on after a rest: neither a leader nor a follower was silent meanwhile.
    pub fn wake(&mut self) {
        self.library.raft.election_elapsed = 0;
    }

    /// Sends a heartbeat to all other members, where this replica leads.
    pub fn ping(&mut self) {
        self.library.ping();
        self.settle();
    }
}
