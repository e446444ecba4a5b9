//! Output of the library after an input, put into [`Ready`].

use raft::StateRole;

use super::{Replica, convert};
use crate::message::{Body, Message};
use crate::plant::{self, Plant};
use crate::ready::{Append, Read, Role, Write};

impl Replica {
    /// Takes everything that the library has to say. Ends each input.
    pub(super) fn settle(&mut self) {
        self.timeouts.replace(&mut self.library.raft);
        #[cfg(feature = "plant")]
        self.commit_planted();
        while self.library.has_ready() {
            self.take();
        }
        self.release();
        self.find_lagging();
        if self.library.raft.state == StateRole::Leader {
            self.limit_flow();
        }
        #[cfg(feature = "plant")]
        self.apply_planted();
        let standing = self.standing();
        if standing != self.told {
            self.told = standing;
            self.ready.standing = Some(standing);
        }
    }

    fn take(&mut self) {
        let mut part = self.library.ready();
        self.taken = part.number();
        let hard_state = part.hs().map(convert::our_hard_state);
        let entries: Vec<_> = part.take_entries().iter().map(convert::our_entry).collect();
        let append =
            entries.first().map(|first| first.position.index - 1).map(|keep| Append { keep, entries });
        let install = convert::our_snapshot(part.snapshot());
        let (number, must_sync) = (self.taken, part.must_sync());
        self.write(Write { number, hard_state, install, append, must_sync, keeps_commit: false });

        for message in part.take_messages().iter().filter_map(convert::our_message) {
            if self.standing().role == Role::Leader {
                self.ready.messages.push(message);
            } else {
                self.held.push_back((self.sworn, message));
            }
        }
        for message in part.take_persisted_messages().iter().filter_map(convert::our_message) {
            if self.goes_early(&message) {
                self.ready.messages.push(message);
            } else {
                self.held.push_back((self.written, message));
            }
        }
        self.ready.committed.extend(part.take_committed_entries().iter().map(convert::our_entry));
        for state in part.take_read_states() {
            let read = convert::our_read(&state.request_ctx).map(|id| Read { id, index: state.index });
            self.ready.reads.extend(read);
        }
        self.library.advance_append_async(part);
        if self.synced == self.written {
            self.library.on_persist_ready(self.taken);
        }
    }

    /// Adds to what the owner has to write.
    fn write(&mut self, part: Write) {
        let Write { number, hard_state, install, append, must_sync, .. } = part;
        let is_state_only = install.is_none() && append.is_none();
        if hard_state.is_none() && is_state_only {
            return;
        }
        let must_sync = must_sync && !(is_state_only && plant::is(Plant::HardStateUnsynced));
        #[cfg(feature = "plant")]
        append.iter().for_each(|append| self.append_planted(append));
        let write = self.ready.write.get_or_insert_with(Write::default);
        write.number = number;
        write.must_sync |= must_sync;
        write.hard_state = hard_state.or(write.hard_state);
        if let Some(snapshot) = install {
            self.cut = number;
            self.installing = Some(snapshot.position.index);
            self.changed = snapshot.position.index;
            self.members = snapshot.members.clone();
            self.ready.members = Some(snapshot.members.clone());
            self.library.mut_store().install(snapshot.position);
            (write.install, write.append) = (Some(snapshot), None);
        }
        if let Some(append) = append {
            let log = self.library.mut_store();
            if append.keep < log.last() {
                self.cut = number;
            }
            log.append(&append);
            match &mut write.append {
                Some(before) => before.join(append),
                none => *none = Some(append),
            }
        }
        let oath = hard_state.map_or(self.oath, |state| (state.term, state.vote));
        if oath != self.oath {
            (self.oath, self.sworn) = (oath, number);
        }
        let keeps_commit = hard_state.is_some_and(|state| self.commits_change(state.commit));
        if keeps_commit {
            self.commit_kept = number;
            self.ready.write.iter_mut().for_each(Write::keep_commit);
        }
        if must_sync || keeps_commit {
            self.written = number;
        }
    }

    /// Lets go the messages whose writes are synced.
    fn release(&mut self) {
        while let Some((_, message)) = self.held.pop_front_if(|(number, _)| *number <= self.synced) {
            self.ready.messages.push(message);
        }
    }

    /// True: a planted bug does not let this message wait.
    fn goes_early(&self, message: &Message) -> bool {
        match message.body {
            Body::Vote { is_try: false, is_granted: true, .. } => plant::is(Plant::VoteBeforeSync),
            Body::Appended { .. } if self.installing.is_some() => plant::is(Plant::AckBeforeInstall),
            Body::Appended { .. } => plant::is(Plant::AckBeforeSync),
            Body::Append { .. }
            | Body::AppendRefused { .. }
            | Body::Heartbeat { .. }
            | Body::HeartbeatSeen { .. }
            | Body::AskVote { .. }
            | Body::Vote { .. }
            | Body::Snapshot(_)
            | Body::TimeoutNow => false,
        }
    }
}
