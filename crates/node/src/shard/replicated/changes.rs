//! Changes of the members, as their callers see them.

use std::collections::BTreeSet;
use std::fmt;

use sluice_journal::Committed;
use sluice_replica::{Follower, Members, NodeId, Position, Refused};
use tokio::sync::oneshot;

/// Members of a shard, as one node sees them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardMembers {
    /// Members in force.
    pub members: Members,
    /// The other members; empty, where another node leads.
    pub followers: Vec<Follower>,
    /// True: the last change is under way, and another one would be refused.
    pub is_changing: bool,
    /// Other members that may have the only whole copies of payloads that are damaged on this node's disk.
    pub may_have_copies: BTreeSet<NodeId>,
}

/// Reason for which a change of the members is not known to be in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotChanged {
    /// The node is alone, or has no such shard.
    NoCluster,
    /// The change was refused, or its leader lost it: it is not in force and never will be.
    Refused(Refused),
    /// The leadership has ended, or takes too long: the change may come into force yet.
    Unknown,
}

impl fmt::Display for NotChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotChanged::NoCluster => f.write_str("the shard is not one of a cluster"),
            NotChanged::Refused(why) => why.fmt(f),
            NotChanged::Unknown => f.write_str("it is not known yet whether the members have changed"),
        }
    }
}

impl std::error::Error for NotChanged {}

/// Way of an answer to who has asked for a change.
pub type ChangeAnswer = oneshot::Sender<Result<(), NotChanged>>;

/// Changes that were proposed and are not decided.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<(Position, ChangeAnswer)>);

impl Changes {
    /// Takes in what became of a proposal.
    pub(super) fn proposed(&mut self, proposed: Result<Position, Refused>, answer: ChangeAnswer) {
        self.0.retain(|(_, waiting)| !waiting.is_closed());
        match proposed {
            Ok(at) => self.0.push((at, answer)),
            Err(why) => tell(answer, Err(NotChanged::Refused(why))),
        }
    }

    /// Takes in a batch that is about to be applied, and answers whom it decides.
    pub(super) fn given(&mut self, batch: &Committed) {
        let here = Position { term: batch.term, index: batch.number };
        let is_decided =
            |(at, _): &mut (Position, _)| *at == here || at.term < here.term || at.index < here.index;
        for (at, answer) in self.0.extract_if(.., is_decided) {
            let lost = NotChanged::Refused(Refused::NotLeader { leader: None });
            tell(answer, if at == here { Ok(()) } else { Err(lost) });
        }
    }
}

fn tell(answer: ChangeAnswer, outcome: Result<(), NotChanged>) {
    // Who has asked may be gone.
    let _ = answer.send(outcome);
}
