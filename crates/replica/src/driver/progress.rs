//! Followers as their leader sees them.

use raft::ProgressState;

use super::Replica;
use crate::entry::{Descriptor, NodeId};
use crate::ready::{Follower, Role};
use crate::{MESSAGE_BYTES_MAX, MESSAGE_ENTRIES_MAX};

impl Replica {
    /// The other members, and what each has of the log; empty where this replica does not lead.
    pub fn followers(&self) -> Vec<Follower> {
        if self.standing().role != Role::Leader {
            return Vec::new();
        }
        let others = self.members.iter().filter(|node| *node != self.id);
        others.filter_map(|node| self.follower(node)).collect()
    }

    /// Another member as this leader sees it; `None`: it is no member.
    pub(super) fn follower(&self, node: NodeId) -> Option<Follower> {
        let progress = self.library.raft.prs().get(node.get())?;
        let log = self.library.store();
        let (first, last) = (progress.matched.max(log.base()) + 1, log.last());
        let batch_from = |index: u64| (index..=last).find_map(|index| log.get(index)?.batch());
        let last_batch = || (first..=last).rev().find_map(|index| log.get(index)?.batch());
        let end = |batch: Descriptor| batch.first_record + u64::from(batch.records);
        let bytes = log.bytes(first - 1, last);
        // One that has got a state with all of the log is probed until there is another entry.
        let takes_entries = progress.state == ProgressState::Replicate || progress.matched == last;
        let is_known = progress.matched >= log.base();
        let is_caught_up = takes_entries
            && is_known
            && last - progress.matched <= MESSAGE_ENTRIES_MAX as u64
            && bytes <= MESSAGE_BYTES_MAX;
        let missing = batch_from(first).zip(last_batch());
        Some(Follower {
            node,
            is_voter: self.members.voters().contains(&node),
            is_heard: progress.recent_active,
            has_room: true,
            is_known,
            needs_state: progress.state == ProgressState::Snapshot || self.is_lagging(node),
            is_caught_up,
            records: missing.map_or(0, |(from, to)| end(to) - from.first_record),
            bytes,
            missing_since_us: missing.map(|(from, _)| from.time_us),
        })
    }
}
