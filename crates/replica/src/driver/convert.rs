//! Our types as the library's, and back. The library's encoding of them is never used.

use raft::eraftpb::{
    ConfChange, ConfChangeType, ConfState, Entry as LibraryEntry, EntryType, HardState as LibraryState,
    Message as LibraryMessage, MessageType as Kind, Snapshot as LibrarySnapshot,
};

use crate::entry::{Change, Content, Descriptor, Entry, NodeId, Position, ReadId};
use crate::members::{Members, Snapshot};
use crate::message::{Body, Campaign, Message};
use crate::plant::{self, Plant};
use crate::ready::HardState;
use crate::wire;

pub(super) fn hard_state(state: &HardState) -> LibraryState {
    LibraryState {
        term: state.term,
        vote: state.vote.map_or(0, NodeId::get),
        commit: state.commit,
        ..LibraryState::default()
    }
}

pub(super) fn our_hard_state(state: &LibraryState) -> HardState {
    HardState { term: state.term, vote: NodeId::new(state.vote), commit: state.commit }
}

pub(super) fn entry(entry: &Entry) -> LibraryEntry {
    let mut to =
        LibraryEntry { term: entry.position.term, index: entry.position.index, ..LibraryEntry::default() };
    match entry.content {
        Content::Begin => {}
        Content::Batch(batch) => to.data = data(&batch).into(),
        Content::Members(members) => {
            to.set_entry_type(EntryType::EntryConfChange);
            to.context = change(members).into();
        }
    }
    to
}

/// The context of the entry with this change. Its data is empty, so that the library has nothing to decode.
pub(super) fn change(change: Change) -> Vec<u8> {
    wire::encode_change(change)
}

/// The library's steps of a change.
pub(super) fn steps(change: Change) -> Vec<ConfChange> {
    let step = |kind, node: NodeId| {
        let mut step = ConfChange { node_id: node.get(), ..ConfChange::default() };
        step.set_change_type(kind);
        step
    };
    let learner = if plant::is(Plant::CountLearners) {
        ConfChangeType::AddNode
    } else {
        ConfChangeType::AddLearnerNode
    };
    match change {
        Change::Add(node) => vec![step(learner, node)],
        Change::Demote(node) => vec![step(ConfChangeType::AddLearnerNode, node)],
        Change::Promote(node) => vec![step(ConfChangeType::AddNode, node)],
        Change::Remove(node) => vec![step(ConfChangeType::RemoveNode, node)],
        Change::Replace { old, new } => vec![step(ConfChangeType::RemoveNode, old), step(learner, new)],
    }
}

/// The data of the entry with this batch.
pub(super) fn data(batch: &Descriptor) -> Vec<u8> {
    batch.encode().to_vec()
}

/// The entry; what is neither a descriptor nor a change has been made by the library.
pub(super) fn our_entry(entry: &LibraryEntry) -> Entry {
    let batch: Option<&[u8; Descriptor::LEN]> = entry.data.as_ref().try_into().ok();
    let change = match entry.get_entry_type() {
        EntryType::EntryConfChange => wire::decode_change(&entry.context).ok(),
        EntryType::EntryNormal | EntryType::EntryConfChangeV2 => None,
    };
    let content = match (batch, change) {
        (Some(batch), _) => Content::Batch(Descriptor::decode(batch)),
        (None, Some(change)) => Content::Members(change),
        (None, None) => Content::Begin,
    };
    Entry { position: Position { term: entry.term, index: entry.index }, content }
}

pub(super) fn members(members: &Members) -> ConfState {
    let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.get()).collect();
    let mut state = ConfState::default();
    state.set_voters(numbers(members.voters()));
    state.set_learners(numbers(members.learners()));
    state
}

/// The snapshot; its data are our members, of which the library's say less.
pub(super) fn snapshot(snapshot: &Snapshot) -> LibrarySnapshot {
    let data = wire::encode_members(&snapshot.members).into();
    let mut to = LibrarySnapshot { data, ..LibrarySnapshot::default() };
    let about = to.mut_metadata();
    (about.index, about.term) = (snapshot.position.index, snapshot.position.term);
    about.set_conf_state(members(&snapshot.members));
    to
}

/// The snapshot; `None`: there is none.
pub(super) fn our_snapshot(snapshot: &LibrarySnapshot) -> Option<Snapshot> {
    let about = snapshot.get_metadata();
    let members = wire::decode_members(&snapshot.data).ok()?;
    Some(Snapshot { position: Position { term: about.term, index: about.index }, members })
}

/// The context of a read.
pub(super) fn context(read: ReadId) -> Vec<u8> {
    read.0.to_le_bytes().to_vec()
}

/// The read of this context; `None`: there is none.
pub(super) fn our_read(context: &[u8]) -> Option<ReadId> {
    Some(ReadId(u64::from_le_bytes(context.try_into().ok()?)))
}

/// The message for the library, which trusts it.
pub(super) fn message(message: &Message) -> LibraryMessage {
    let mut to = LibraryMessage::default();
    to.from = message.from.get();
    to.to = message.to.get();
    to.term = message.term;
    match &message.body {
        Body::Append { previous, commit, entries } => {
            to.set_msg_type(Kind::MsgAppend);
            (to.index, to.log_term, to.commit) = (previous.index, previous.term, *commit);
            to.set_entries(entries.iter().map(entry).collect());
        }
        Body::Appended { index, commit } => {
            to.set_msg_type(Kind::MsgAppendResponse);
            (to.index, to.commit) = (*index, *commit);
        }
        Body::AppendRefused { previous, hint, commit } => {
            to.set_msg_type(Kind::MsgAppendResponse);
            to.reject = true;
            (to.index, to.commit) = (*previous, *commit);
            (to.reject_hint, to.log_term) = (hint.index, hint.term);
        }
        Body::Heartbeat { commit, read } => {
            to.set_msg_type(Kind::MsgHeartbeat);
            to.commit = *commit;
            to.context = read.map(context).unwrap_or_default().into();
        }
        Body::HeartbeatSeen { commit, read } => {
            to.set_msg_type(Kind::MsgHeartbeatResponse);
            to.commit = *commit;
            to.context = read.map(context).unwrap_or_default().into();
        }
        Body::AskVote { campaign, last, commit } => {
            let is_try = *campaign == Campaign::Try;
            to.set_msg_type(if is_try { Kind::MsgRequestPreVote } else { Kind::MsgRequestVote });
            (to.index, to.log_term) = (last.index, last.term);
            (to.commit, to.commit_term) = (commit.index, commit.term);
            if *campaign == Campaign::Transfer {
                to.context = raft::CAMPAIGN_TRANSFER.into();
            }
        }
        Body::Vote { is_try, is_granted, commit } => {
            to.set_msg_type(if *is_try {
                Kind::MsgRequestPreVoteResponse
            } else {
                Kind::MsgRequestVoteResponse
            });
            to.reject = !is_granted;
            (to.commit, to.commit_term) = (commit.index, commit.term);
        }
        Body::TimeoutNow => to.set_msg_type(Kind::MsgTimeoutNow),
        Body::Snapshot(content) => {
            to.set_msg_type(Kind::MsgSnapshot);
            to.set_snapshot(snapshot(content));
        }
    }
    to
}

/// The message of the library; `None`: one of a kind that it only sends for what it is never asked.
pub(super) fn our_message(message: &LibraryMessage) -> Option<Message> {
    let commit = message.commit;
    let body = match message.get_msg_type() {
        Kind::MsgAppend => Body::Append {
            previous: Position { term: message.log_term, index: message.index },
            commit,
            entries: message.get_entries().iter().map(our_entry).collect(),
        },
        Kind::MsgAppendResponse if message.reject => Body::AppendRefused {
            previous: message.index,
            hint: Position { term: message.log_term, index: message.reject_hint },
            commit,
        },
        Kind::MsgAppendResponse => Body::Appended { index: message.index, commit },
        Kind::MsgHeartbeat => Body::Heartbeat { commit, read: our_read(&message.context) },
        Kind::MsgHeartbeatResponse => Body::HeartbeatSeen { commit, read: our_read(&message.context) },
        kind @ (Kind::MsgRequestPreVote | Kind::MsgRequestVote) => Body::AskVote {
            campaign: match kind {
                Kind::MsgRequestPreVote => Campaign::Try,
                _ if message.context == raft::CAMPAIGN_TRANSFER => Campaign::Transfer,
                _ => Campaign::Election,
            },
            last: Position { term: message.log_term, index: message.index },
            commit: Position { term: message.commit_term, index: commit },
        },
        kind @ (Kind::MsgRequestPreVoteResponse | Kind::MsgRequestVoteResponse) => Body::Vote {
            is_try: kind == Kind::MsgRequestPreVoteResponse,
            is_granted: !message.reject,
            commit: Position { term: message.commit_term, index: commit },
        },
        Kind::MsgTimeoutNow => Body::TimeoutNow,
        Kind::MsgSnapshot => Body::Snapshot(our_snapshot(message.get_snapshot())?),
        _ => return None,
    };
    let (from, to) = (NodeId::new(message.from)?, NodeId::new(message.to)?);
    Some(Message { from, to, term: message.term, body })
}
