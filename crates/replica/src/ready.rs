//! Work for the owner of a replica, and answers to what the owner asks.

use std::fmt;

use crate::entry::{Change, Entry, NodeId, Position, ReadId};
use crate::members::{Members, Snapshot};
use crate::message::Message;

/// Work that came of the inputs since the last one was taken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// Entries and hard state to write. Writes reach the disk in the order in which they were taken.
    pub write: Option<Write>,
    /// Messages to send. A leader's entries are among them before its own disk has them; whatever depends on
    /// a sync is only here once [`crate::Replica::persisted`] has told of it.
    pub messages: Vec<Message>,
    /// Entries that are committed and synced here, in order and without holes, each once in the life of a
    /// replica.
    pub committed: Vec<Entry>,
    /// Reads whose index is known.
    pub reads: Vec<Read>,
    /// Followers that need entries which this leader has forgotten: each needs a state of the shard, by
    /// [`crate::Replica::send_snapshot`].
    pub lagging: Vec<NodeId>,
    /// Members in force, when they have changed.
    pub members: Option<Members>,
    /// Standing of this replica, when it has changed. Reads and proposals that are under way are the former
    /// leader's: reads are lost, proposals are decided by what is committed at their index.
    pub standing: Option<Standing>,
}

impl Ready {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Ready::default()
    }
}

/// Change of what a replica has on disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Write {
    /// Number of the write; grows.
    pub number: u64,
    /// State to be written before all else.
    pub hard_state: Option<HardState>,
    /// State of the shard that takes the place of the present one and of the whole log, at once: after a
    /// crash there is either the former or this. It is the one that came with the message stepped last.
    /// Entries that the owner has not applied yet are not to be applied any more, and what became of
    /// proposals up to its index is not known.
    pub install: Option<Snapshot>,
    /// Entries to be written.
    pub append: Option<Append>,
    /// True: sync it, and tell [`crate::Replica::persisted`] its number. False: only the commit index has
    /// changed, which may be written at any time behind the cuts of earlier writes, or not at all.
    pub must_sync: bool,
    /// True: the commit index of the hard state is to be synced like the rest of it, since it covers a change
    /// of the members. False: it may be forgotten.
    pub keeps_commit: bool,
}

impl Write {
    /// Lets the commit index be synced with the rest.
    pub(crate) fn keep_commit(&mut self) {
        (self.must_sync, self.keeps_commit) = (true, true);
    }
}

/// Member as the leader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Follower {
    /// The member.
    pub node: NodeId,
    /// True: it votes; false: it is a learner.
    pub is_voter: bool,
    /// True: it has said something within the last election's ticks.
    pub is_heard: bool,
    /// False: its disk is known to have no room for batches that add data.
    pub has_room: bool,
    /// True: the leader knows what the member has of the log, and still has all that follows. False: the
    /// figures may be too high, as for a member that has acknowledged nothing to a new leader, or without
    /// entries that the leader has forgotten.
    pub is_known: bool,
    /// True: the next entry for it is forgotten, so that it gets a state, or one is on its way to it.
    pub needs_state: bool,
    /// True: it takes entries as they come, and lacks no more than one message of them. A learner can be
    /// promoted then.
    pub is_caught_up: bool,
    /// Number of records of the leader's log that it has not acknowledged.
    pub records: u64,
    /// Length of their batches, in bytes.
    pub bytes: u64,
    /// Time of the oldest of these batches, in microseconds since the Unix epoch; `None`: there is none.
    pub missing_since_us: Option<u64>,
}

impl Follower {
    /// Length of the log that a follower may miss and still take over at once, in bytes.
    const TAKEN_OVER_BYTES_MAX: u64 = 1 << 20;

    /// True: it may lead soon after it is told to.
    pub fn is_fit_to_lead(&self) -> bool {
        let misses_little = self.bytes <= Follower::TAKEN_OVER_BYTES_MAX && self.is_known;
        self.is_voter && self.is_heard && self.has_room && misses_little
    }
}

/// State that a replica must not forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HardState {
    /// Highest term seen; 0: none.
    pub term: u64,
    /// Candidate that got this replica's vote in `term`.
    pub vote: Option<NodeId>,
    /// Index up to which the log is committed, as far as this replica knows; may be older than the truth.
    pub commit: u64,
}

/// Entries for the end of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Append {
    /// Index of the last entry that stays: what is on disk behind it conflicts with the leader's log and is
    /// cut before the entries are written.
    pub keep: u64,
    /// Entries from `keep + 1` on, without holes; not empty.
    pub entries: Vec<Entry>,
}

impl Append {
    /// Joins a later append to this one.
    pub(crate) fn join(&mut self, later: Append) {
        if later.keep < self.keep {
            *self = later;
            return;
        }
        self.entries.truncate((later.keep - self.keep) as usize);
        self.entries.extend(later.entries);
    }
}

/// Read whose index is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// Number of the read.
    pub id: ReadId,
    /// Index that has to be applied before the state is read. Everything that was acknowledged anywhere
    /// before the read was asked for is at or below it.
    pub index: u64,
}

/// Role of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Follows a leader, or waits for one.
    Follower,
    /// Tries to become leader.
    Candidate,
    /// Leads.
    Leader,
}

/// Role, term and leader, as one replica sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Role of this replica.
    pub role: Role,
    /// Term of this replica.
    pub term: u64,
    /// Leader of the term, when it is known.
    pub leader: Option<NodeId>,
}

/// Reason for which a request of the owner was refused; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Another node leads, or nobody.
    NotLeader {
        /// Leader, when it is known.
        leader: Option<NodeId>,
    },
    /// The leadership is being handed over.
    Transferring,
    /// The batch is longer than [`crate::BATCH_BYTES_MAX`].
    BatchTooLarge {
        /// Length of the batch, in bytes.
        bytes: u32,
    },
    /// The batch and those that are not committed yet are longer than [`crate::UNCOMMITTED_BYTES_MAX`]:
    /// repeat it when more is committed.
    TooMuchUncommitted {
        /// Length of the batches that are not committed, in bytes.
        bytes: u64,
    },
    /// [`crate::READS_MAX`] reads wait already: join one that is asked for later.
    TooManyReads,
    /// A new leader has not committed an entry of its own term, and cannot know what else is committed.
    NotYet,
    /// The node is not another member.
    NotAMember {
        /// The node.
        node: NodeId,
    },
    /// The node is not another voter.
    NotAVoter {
        /// The node.
        node: NodeId,
    },
    /// The last change of the members is under way: see [`crate::Replica::is_changing`].
    ChangeUnderWay,
    /// The change does not fit the members: see [`crate::Members::after`].
    ChangeUnfit {
        /// The change.
        change: Change,
    },
    /// The leader can neither be removed nor be made a learner: hand the leadership over first.
    Leads,
    /// The learner is more than one message behind the leader.
    Behind {
        /// The learner.
        node: NodeId,
    },
    /// The leader has not heard lately of a majority of those who would be voters.
    NoMajority,
    /// The node needs no state now, is not heard of, or one is on its way to it.
    NotLagging {
        /// The node.
        node: NodeId,
    },
    /// The state is older than what has been forgotten, or than the beginning of this cluster with another's
    /// backup, or newer than what is applied.
    SnapshotUnfit {
        /// Index up to which it has applied the log.
        index: u64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotLeader { leader: Some(leader) } => write!(f, "node {} leads", leader.get()),
            Refused::NotLeader { leader: None } => f.write_str("no leader is known"),
            Refused::Transferring => f.write_str("the leadership is being handed over"),
            Refused::BatchTooLarge { bytes } => write!(f, "the batch has {bytes} bytes, which is too long"),
            Refused::TooMuchUncommitted { bytes } => write!(f, "{bytes} bytes are not committed yet"),
            Refused::TooManyReads => f.write_str("too many reads wait"),
            Refused::NotYet => f.write_str("the leader has only begun"),
            Refused::NotAMember { node } => write!(f, "node {} is not another member", node.get()),
            Refused::NotAVoter { node } => write!(f, "node {} is not another voter", node.get()),
            Refused::ChangeUnderWay => f.write_str("the last change of the members is under way"),
            Refused::ChangeUnfit { change } => write!(f, "the members are not such that one could {change}"),
            Refused::Leads => f.write_str("the node leads: hand the leadership over first"),
            Refused::Behind { node } => write!(f, "node {} is too far behind", node.get()),
            Refused::NoMajority => f.write_str("no majority of those who would be voters is heard of"),
            Refused::NotLagging { node } => write!(f, "node {} needs no state now", node.get()),
            Refused::SnapshotUnfit { index } => write!(f, "the state of index {index} is of no use now"),
        }
    }
}

impl std::error::Error for Refused {}

/// Answer to a proposal: the place of its entry, if it is committed.
pub(crate) type Proposed = Result<Position, Refused>;
