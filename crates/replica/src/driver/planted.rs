//! Planted bugs that need code of their own.

use raft::StateRole;

use super::{Replica, convert};
use crate::message::{Body, Message};
use crate::plant::{self, Plant};
use crate::ready::{Append, Write};

impl Replica {
    /// Bugs in taking in a message.
    pub(super) fn step_planted(&mut self, message: &Message) {
        if plant::is(Plant::CountTwice) && matches!(message.body, Body::Appended { .. }) {
            let twin = self.members.iter().find(|member| *member != self.id && *member != message.from);
            let Some(twin) = twin else { return };
            let _ = self.library.step(convert::message(&Message { from: twin, ..message.clone() }));
            self.settle();
        }
        if let Body::Append { previous, entries, .. } = &message.body
            && plant::is(Plant::CutOnRepeat)
        {
            let end = previous.index + entries.len() as u64;
            let is_repeated =
                entries.iter().all(|entry| self.library.store().get(entry.position.index) == Some(entry));
            let raft_log = &self.library.raft.raft_log;
            let is_ours = message.term == self.library.raft.term && !entries.is_empty();
            if is_ours && is_repeated && end < raft_log.last_index() && end >= raft_log.applied {
                self.cut_planted(end);
            }
        }
    }

    /// Cuts the log behind this index, here and on disk.
    fn cut_planted(&mut self, end: u64) {
        let Some(last) = self.library.store().get(end).copied() else { return };
        let again = Append { keep: end - 1, entries: vec![last] };
        self.library.mut_store().append(&again);
        let log = &mut self.library.raft.raft_log;
        log.unstable.offset = end + 1;
        log.persisted = log.persisted.min(end);
        let write = self.ready.write.get_or_insert_with(Write::default);
        write.must_sync = true;
        match &mut write.append {
            Some(before) => before.join(again),
            none => *none = Some(again),
        }
    }

    /// Bugs in appending entries.
    pub(super) fn append_planted(&mut self, append: &Append) {
        if !plant::is(Plant::MembersWhenAppended) {
            return;
        }
        for entry in &append.entries {
            entry.change().into_iter().for_each(|change| self.change_members(change));
        }
    }

    /// Bugs in the commit index.
    pub(super) fn commit_planted(&mut self) {
        let raft = &mut self.library.raft;
        if raft.state == StateRole::Leader && plant::is(Plant::CommitOlderTerm) {
            let (index, _) = raft.mut_prs().maximal_committed_index();
            if index > raft.raft_log.committed {
                raft.raft_log.commit_to(index);
                raft.bcast_append();
            }
        }
        if raft.state == StateRole::Leader && plant::is(Plant::HeartbeatTellsAll) {
            let commit = raft.raft_log.committed;
            for message in &mut raft.msgs {
                if message.get_msg_type() == raft::eraftpb::MessageType::MsgHeartbeat {
                    message.commit = commit;
                }
            }
        }
    }

    /// Bugs in applying entries: those proposed are given, those committed later are not.
    pub(super) fn apply_planted(&mut self) {
        if !plant::is(Plant::ApplyBeyondCommit) {
            return;
        }
        self.ready.committed.retain(|entry| entry.position.index > self.given);
        if self.library.raft.state == StateRole::Leader {
            let next = self.ready.committed.last().map_or(self.given, |entry| entry.position.index) + 1;
            let store = self.library.store();
            let more = (next..=store.last()).filter_map(|index| store.get(index)).copied();
            self.ready.committed.extend(more.collect::<Vec<_>>());
        }
        self.given = self.ready.committed.last().map_or(self.given, |entry| entry.position.index);
    }
}
