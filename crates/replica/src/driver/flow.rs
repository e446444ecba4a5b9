//! Bytes in flight to each follower. The library counts messages; their number is limited so that groups of
//! batches fit. A batch that is larger than a group goes beyond the limit, and then nothing else is sent
//! until it has arrived.

use raft::ProgressState;

use super::Replica;
use crate::{GROUP_BYTES, IN_FLIGHT_BYTES};

/// Number of messages in flight to one follower.
pub(super) const MESSAGES_MAX: usize = 256;

/// Number of messages in flight to one that is far behind. These are read, sent and written one after the
/// other: all at once would hold up those for which calls wait.
const FAR_MESSAGES_MAX: usize = 4;

impl Replica {
    /// Limits what the next input may send to each follower. A follower that answers heartbeats gets one
    /// message more each time although the limit is reached, since those before may be lost.
    pub(super) fn limit_flow(&mut self) {
        self.library.mut_store().commit = self.library.raft.raft_log.committed;
        for member in self.members.iter() {
            let raft = &self.library.raft;
            let Some(progress) = raft.prs().get(member.get()) else { continue };
            if member == self.id || progress.state != ProgressState::Replicate {
                continue;
            }
            let log = self.library.store();
            // What is forgotten and not acknowledged may be as long as all that is allowed.
            let is_known = progress.matched >= log.base();
            let bytes = log.bytes(progress.matched, progress.next_idx - 1);
            let bytes = if is_known { bytes } else { IN_FLIGHT_BYTES };
            let room = IN_FLIGHT_BYTES.saturating_sub(bytes) / (2 * GROUP_BYTES);
            // At least one, even when all were taken off by heartbeats: what is refused behind a gap shows
            // that those before were lost.
            let most = if log.is_far(progress.next_idx) { FAR_MESSAGES_MAX } else { MESSAGES_MAX };
            let limit = (progress.ins.count() + room as usize).clamp(1, most);
            if let Some(progress) = self.library.raft.mut_prs().get_mut(member.get()) {
                progress.ins.set_cap(limit);
            }
        }
    }
}
