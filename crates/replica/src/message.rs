//! Messages between the replicas of one log.

use crate::entry::{Entry, NodeId, Position, ReadId};
use crate::members::Snapshot;

/// Message of one replica to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// Term of the sender, at least 1; of [`Campaign::Try`] and the votes granted for it the term that a
    /// candidate would begin.
    pub term: u64,
    /// Content.
    pub body: Body,
}

/// Content of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A leader's entries, to be appended behind `previous`.
    Append {
        /// Position of the entry before the first of `entries`.
        previous: Position,
        /// Index up to which the leader's log is committed.
        commit: u64,
        /// Entries, with indexes that follow `previous` without holes; may be empty.
        entries: Vec<Entry>,
    },
    /// The sender has synced the leader's log up to `index`. With a term above the receiver's, and an index
    /// of 0, it only tells the term.
    Appended {
        /// Index of the last entry of which the sender knows that it agrees with the leader's.
        index: u64,
        /// Index up to which the sender's log is committed.
        commit: u64,
    },
    /// The sender has no entry at `previous` of an [`Body::Append`], or another.
    AppendRefused {
        /// Index of `previous` in the message that is refused.
        previous: u64,
        /// Position of the last entry of the sender that may agree with the leader's.
        hint: Position,
        /// Index up to which the sender's log is committed.
        commit: u64,
    },
    /// A leader is alive.
    Heartbeat {
        /// Index up to which the log is committed, as far as the receiver is known to have it.
        commit: u64,
        /// Read that waits for the answers of a majority.
        read: Option<ReadId>,
    },
    /// Answer to [`Body::Heartbeat`].
    HeartbeatSeen {
        /// Index up to which the sender's log is committed.
        commit: u64,
        /// Read of the heartbeat.
        read: Option<ReadId>,
    },
    /// A candidate asks for a vote.
    AskVote {
        /// Kind of the campaign.
        campaign: Campaign,
        /// Position of the candidate's last entry.
        last: Position,
        /// Position up to which the candidate's log is committed.
        commit: Position,
    },
    /// Answer to [`Body::AskVote`].
    Vote {
        /// True: the answer is to [`Campaign::Try`], and binds nobody.
        is_try: bool,
        /// True: the vote is given to the receiver.
        is_granted: bool,
        /// Position up to which the sender's log is committed, when the vote is refused.
        commit: Position,
    },
    /// A leader's state, which its owner transfers: to be stepped when all of that is there.
    Snapshot(Snapshot),
    /// A leader hands over: the receiver shall campaign at once.
    TimeoutNow,
}

impl Body {
    /// The entries of an append; empty for all others.
    pub fn entries(&self) -> &[Entry] {
        match self {
            Body::Append { entries, .. } => entries,
            Body::Appended { .. }
            | Body::AppendRefused { .. }
            | Body::Heartbeat { .. }
            | Body::HeartbeatSeen { .. }
            | Body::AskVote { .. }
            | Body::Vote { .. }
            | Body::TimeoutNow
            | Body::Snapshot(_) => &[],
        }
    }

    /// True: an answer, which only a member can be asked for.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Body::Appended { .. }
            | Body::AppendRefused { .. }
            | Body::HeartbeatSeen { .. }
            | Body::Vote { .. } => true,
            Body::Append { .. }
            | Body::Heartbeat { .. }
            | Body::AskVote { .. }
            | Body::Snapshot(_)
            | Body::TimeoutNow => false,
        }
    }
}

/// Kind of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Campaign {
    /// A question whether an election could be won; changes no term.
    Try,
    /// An election.
    Election,
    /// An election that the leader has asked for; voters do not wait until they miss their leader.
    Transfer,
}
