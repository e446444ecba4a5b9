//! Start of a replica: its settings, and the state that its disk holds.

use std::fmt;

use crate::entry::{Entry, NodeId, Position};
use crate::members::{Members, Snapshot};
use crate::ready::HardState;

/// Settings of a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// This node.
    pub id: NodeId,
    /// Number of ticks between two heartbeats of a leader; at least 1.
    pub heartbeat_ticks: usize,
    /// Number of ticks without a word of the leader after which a replica may campaign; each wait is drawn
    /// between this and the double. More than `heartbeat_ticks`.
    pub election_ticks: usize,
    /// Number of ticks without anything new after which a member rests, if the others do
    /// ([`crate::Member::is_quiet`]).
    pub quiet_ticks: usize,
}

/// State that the disk holds. The default is that of a node that joins a cluster: it knows nobody, and takes
/// nothing but a state of the shard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Durable {
    /// State that must not be forgotten.
    pub hard_state: HardState,
    /// Last entry that is not in `entries` any more, and the members in force behind it.
    pub base: Snapshot,
    /// The log behind the base, without holes.
    pub entries: Vec<Entry>,
    /// Index up to which the base's members hold the changes among `entries` already; at most `applied`.
    pub changed: u64,
    /// Index up to which the owner has applied the log, from that of the base on; entries above it are given
    /// again.
    pub applied: u64,
    /// True: the disk may have lost a part of what this node has promised to others, as after a loss of power
    /// where not every write was synced. Then the node starts under a new number, above all that were given:
    /// it keeps what it has of state and log, is bound by no promise, and follows once a leader has put it in
    /// the place of the former ([`crate::Change::Replace`]). Nobody votes or acknowledges as the former any
    /// more; where that leaves no majority of voters, the cluster waits.
    pub has_forgotten: bool,
}

/// Reason for which a replica cannot start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// There are entries or a base without members, or members without a base.
    Members,
    /// No member of a cluster has written the log.
    NoVoters,
    /// The ticks are out of their range.
    Ticks,
    /// A node that may have forgotten its promises starts under a number that was given before.
    Forgetful {
        /// The number.
        node: NodeId,
    },
    /// The journal's hard state, or the label of its newest snapshot, is not one of a replica.
    HardState,
    /// The entry is not the next one, or its term is lower than that of the one before or higher than the
    /// last term seen.
    Entry(Position),
    /// The batch of this entry holds what no member writes.
    Content(Position),
    /// More is applied than the log holds, or less than it begins with.
    AppliedOutsideLog {
        /// Index up to which the owner has applied the log.
        applied: u64,
        /// Index of the base.
        base: u64,
        /// Index of the last entry.
        last: u64,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Members => f.write_str("a log has a base with members, and a new node has neither"),
            StartError::NoVoters => f.write_str("no node of a cluster has written the log"),
            StartError::Ticks => {
                f.write_str("heartbeats need at least 1 tick, elections more than heartbeats")
            }
            StartError::Forgetful { node } => {
                let number = node.get();
                write!(f, "number {number} was given to a node that may have forgotten what it promised")
            }
            StartError::HardState => f.write_str(
                "the journal's hard state, or the label of its snapshot, is not that of a replica",
            ),
            StartError::Entry(at) => {
                write!(f, "the entry at index {}, term {} does not follow those before it", at.index, at.term)
            }
            StartError::Content(at) => {
                write!(f, "the entry at index {}, term {} is of no kind that is known", at.index, at.term)
            }
            StartError::AppliedOutsideLog { applied, base, last } => {
                write!(f, "index {applied} is applied, but the log begins behind {base} and ends with {last}")
            }
        }
    }
}

impl std::error::Error for StartError {}

impl Config {
    pub(crate) fn check(&self) -> Result<(), StartError> {
        if self.heartbeat_ticks == 0 || self.election_ticks <= self.heartbeat_ticks {
            return Err(StartError::Ticks);
        }
        Ok(())
    }
}

impl Durable {
    /// The state of each of the first members of a cluster. Its base is the state of the shard before the
    /// log begins, which they share.
    pub fn first(members: Members) -> Durable {
        let position = Position { term: 1, index: 1 };
        Durable {
            hard_state: HardState { term: position.term, vote: None, commit: position.index },
            base: Snapshot { position, members },
            entries: Vec::new(),
            changed: 0,
            applied: position.index,
            has_forgotten: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        let mut before = self.base.position;
        let is_new = self.base == Snapshot::default() && self.entries.is_empty();
        if !is_new && (before.index == 0 || before.term == 0 || self.base.members.voters().is_empty()) {
            return Err(StartError::Members);
        }
        for entry in &self.entries {
            let at = entry.position;
            if at.index != before.index + 1 || at.term < before.term.max(1) {
                return Err(StartError::Entry(at));
            }
            before = at;
        }
        if before.term > self.hard_state.term {
            return Err(StartError::Entry(before));
        }
        let (base, last) = (self.base.position.index, before.index);
        if !(base..=last).contains(&self.applied) {
            return Err(StartError::AppliedOutsideLog { applied: self.applied, base, last });
        }
        Ok(())
    }
}
