//! Start of a replica: its settings, and the state that its disk holds.

use std::fmt;

use crate::entry::{Entry, NodeId, Position};
use crate::ready::HardState;

/// Settings of a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// This node.
    pub id: NodeId,
    /// All voting members, this node among them; the same on every node.
    pub members: Vec<NodeId>,
    /// Number of ticks between two heartbeats of a leader; at least 1.
    pub heartbeat_ticks: usize,
    /// Number of ticks without a word of the leader after which a replica may campaign; each wait is drawn
    /// between this and the double. More than `heartbeat_ticks`.
    pub election_ticks: usize,
}

/// State that the disk holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Durable {
    /// State that must not be forgotten.
    pub hard_state: HardState,
    /// Position of the last entry that is not in `entries` any more; index 0: all are.
    pub base: Position,
    /// The log behind the base, without holes.
    pub entries: Vec<Entry>,
    /// Index up to which the owner has applied the log, from that of the base on; entries above it are given
    /// again.
    pub applied: u64,
}

/// Reason for which a replica cannot start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// The members do not name this node, name one twice, or are more than [`crate::MEMBERS_MAX`].
    Members,
    /// The ticks are out of their range.
    Ticks,
    /// The journal's hard state is not one of a replica.
    HardState,
    /// The entry is not the next one, or its term is lower than that of the one before or higher than the
    /// last term seen.
    Entry(Position),
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
            StartError::Members => write!(
                f,
                "the members have to name this node, each node once, and at most {} of them",
                crate::MEMBERS_MAX
            ),
            StartError::Ticks => {
                f.write_str("heartbeats need at least 1 tick, elections more than heartbeats")
            }
            StartError::HardState => f.write_str("the journal's hard state is not that of a replica"),
            StartError::Entry(at) => {
                write!(f, "the entry at index {}, term {} does not follow those before it", at.index, at.term)
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
        let mut members = self.members.clone();
        members.sort_unstable();
        members.dedup();
        let is_whole = members.len() == self.members.len() && members.len() <= crate::MEMBERS_MAX;
        if !is_whole || !members.contains(&self.id) {
            return Err(StartError::Members);
        }
        if self.heartbeat_ticks == 0 || self.election_ticks <= self.heartbeat_ticks {
            return Err(StartError::Ticks);
        }
        Ok(())
    }
}

impl Durable {
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let mut before = self.base;
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
        let (base, last) = (self.base.index, before.index);
        if !(base..=last).contains(&self.applied) {
            return Err(StartError::AppliedOutsideLog { applied: self.applied, base, last });
        }
        Ok(())
    }
}
