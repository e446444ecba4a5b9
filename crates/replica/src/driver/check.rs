//! Check of a message before the library sees it. The library stops the process when one of these does not
//! hold; here the message is refused, with its reason.

use std::fmt;

use crate::entry::{Entry, NodeId, Position};
use crate::members::{Members, Snapshot};
use crate::message::{Body, Message};
use crate::ready::Role;
use crate::{BATCH_BYTES_MAX, INDEX_MAX, MESSAGE_ENTRIES_MAX, TERM_MAX};

/// Reason for which a message was refused; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// The message is for another node.
    NotForUs {
        /// Its receiver.
        to: NodeId,
    },
    /// The sender of an answer is no other member.
    UnknownSender {
        /// The sender.
        from: NodeId,
    },
    /// The sender was a member, and was removed.
    Removed {
        /// The sender.
        from: NodeId,
    },
    /// The term, or that of a position in the message, is impossible.
    Term {
        /// The term.
        term: u64,
    },
    /// An index is beyond [`INDEX_MAX`], or two of them contradict each other.
    Index {
        /// The index.
        index: u64,
    },
    /// An entry does not follow the one before it, or is too large.
    Entry(Position),
    /// A change of the members behind another one that is not known to be committed.
    SecondChange {
        /// Index of the later one.
        index: u64,
    },
    /// More entries than [`MESSAGE_ENTRIES_MAX`].
    TooManyEntries {
        /// Their number.
        entries: usize,
    },
    /// A second leader of the present term.
    SecondLeader {
        /// The sender.
        from: NodeId,
    },
    /// A leader says that more is committed than this replica has.
    CommitBeyondLog {
        /// The commit index.
        commit: u64,
        /// Index of the last entry here.
        last: u64,
    },
    /// A follower says that it has more than its leader.
    IndexBeyondLog {
        /// The index.
        index: u64,
        /// Index of the last entry here.
        last: u64,
    },
    /// The state does not have this node among its members.
    NotInSnapshot,
    /// A state is being installed: nothing is taken until it is synced.
    Installing,
    /// An answer to a question that was asked before others that have been answered, or was never asked.
    Stale,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejected::NotForUs { to } => write!(f, "the message is for node {}", to.get()),
            Rejected::UnknownSender { from } => write!(f, "node {} is no other member", from.get()),
            Rejected::Removed { from } => write!(f, "node {} was removed", from.get()),
            Rejected::Term { term } => write!(f, "term {term} is impossible"),
            Rejected::Index { index } => write!(f, "index {index} is impossible"),
            Rejected::Entry(at) => {
                write!(f, "the entry at index {}, term {} does not follow or is too large", at.index, at.term)
            }
            Rejected::SecondChange { index } => {
                write!(f, "the members change at index {index} before the last change is committed")
            }
            Rejected::TooManyEntries { entries } => {
                write!(f, "{entries} entries, where a message has at most {MESSAGE_ENTRIES_MAX}")
            }
            Rejected::SecondLeader { from } => {
                write!(f, "node {} claims to lead a term that another node leads", from.get())
            }
            Rejected::CommitBeyondLog { commit, last } => {
                write!(f, "index {commit} is said to be committed, but the log ends with {last}")
            }
            Rejected::IndexBeyondLog { index, last } => {
                write!(f, "index {index} is said to be synced, but the leader's log ends with {last}")
            }
            Rejected::NotInSnapshot => f.write_str("the state does not have this node among its members"),
            Rejected::Installing => f.write_str("a state is being installed"),
            Rejected::Stale => f.write_str("an answer to no question that is open"),
        }
    }
}

impl std::error::Error for Rejected {}

/// State of a replica when a message comes.
pub(super) struct View<'a> {
    pub id: NodeId,
    pub members: &'a Members,
    pub role: Role,
    pub term: u64,
    pub leader: Option<NodeId>,
    /// Index of the last entry.
    pub last: u64,
    /// Last entry that is committed.
    pub commit: Position,
    /// Last entry that the sender has acknowledged to this leader.
    pub matched: Position,
    /// True: the disk has not synced all that it was given.
    pub is_writing: bool,
    /// True: this node must not become leader yet.
    pub must_not_win: bool,
    /// True: a state is being installed.
    pub is_installing: bool,
}

/// Checks a message.
///
/// # Errors
///
/// The reason for which it must not reach the library.
pub(super) fn check(view: &View<'_>, message: &Message) -> Result<(), Rejected> {
    let Message { from, to, term, .. } = *message;
    if to != view.id {
        return Err(Rejected::NotForUs { to });
    }
    if view.members.is_removed(from) && from != view.id {
        return Err(Rejected::Removed { from });
    }
    // A leader or candidate may be newer than the members that are known here.
    if from == view.id || (message.body.is_answer() && !view.members.contains(from)) {
        return Err(Rejected::UnknownSender { from });
    }
    if view.is_installing {
        return Err(Rejected::Installing);
    }
    if !(1..=TERM_MAX).contains(&term) {
        return Err(Rejected::Term { term });
    }
    match &message.body {
        Body::Append { previous, commit, entries } => {
            leader(view, message)?;
            check_index(*commit)?;
            follow(*previous, entries, term)
        }
        Body::Heartbeat { commit, .. } => {
            leader(view, message)?;
            if *commit > view.last {
                return Err(Rejected::CommitBeyondLog { commit: *commit, last: view.last });
            }
            Ok(())
        }
        Body::Appended { index, .. } => appended(view, term, *index),
        Body::AppendRefused { previous, hint, .. } => {
            position(*hint, term)?;
            if hint.index > *previous {
                return Err(Rejected::Index { index: hint.index });
            }
            appended(view, term, *previous)?;
            refused(view, term, *previous, *hint)
        }
        Body::HeartbeatSeen { commit, .. } => check_index(*commit),
        Body::AskVote { last, commit, .. } => ask_vote(*last, *commit, term),
        Body::Vote { is_try, is_granted, commit } => {
            position(*commit, term)?;
            vote(view, term, *is_try, *is_granted)
        }
        Body::TimeoutNow => timeout_now(view, message),
        Body::Snapshot(content) => {
            leader(view, message)?;
            snapshot(view, content, term)
        }
    }
}

fn check_index(index: u64) -> Result<(), Rejected> {
    if index > INDEX_MAX { Err(Rejected::Index { index }) } else { Ok(()) }
}

/// A position in the log of a node whose term is `term`. Only the place before the first entry has term 0.
fn position(at: Position, term: u64) -> Result<(), Rejected> {
    check_index(at.index)?;
    if at.term > term || (at.term == 0) != (at.index == 0) {
        return Err(Rejected::Term { term: at.term });
    }
    Ok(())
}

fn leader(view: &View<'_>, message: &Message) -> Result<(), Rejected> {
    let from = message.from;
    if message.term == view.term && view.leader.is_some_and(|leader| leader != from) {
        return Err(Rejected::SecondLeader { from });
    }
    Ok(())
}

/// Each log begins behind a base, so that no entry is the first of all.
fn follow(previous: Position, entries: &[Entry], term: u64) -> Result<(), Rejected> {
    position(previous, term)?;
    if previous.index == 0 {
        return Err(Rejected::Index { index: 0 });
    }
    if entries.len() > MESSAGE_ENTRIES_MAX {
        return Err(Rejected::TooManyEntries { entries: entries.len() });
    }
    let mut before = previous;
    for entry in entries {
        let at = entry.position;
        position(at, term)?;
        let follows = at.index == before.index + 1 && at.term >= before.term;
        if !follows || entry.bytes() > BATCH_BYTES_MAX {
            return Err(Rejected::Entry(at));
        }
        before = at;
    }
    Ok(())
}

fn appended(view: &View<'_>, term: u64, index: u64) -> Result<(), Rejected> {
    check_index(index)?;
    if view.role == Role::Leader && term == view.term && index > view.last {
        return Err(Rejected::IndexBeyondLog { index, last: view.last });
    }
    Ok(())
}

/// A follower neither refuses what it has acknowledged to the same leader, nor hints at less. The library
/// would ask it again from below there (mended after version 0.7.0).
fn refused(view: &View<'_>, term: u64, previous: u64, hint: Position) -> Result<(), Rejected> {
    let Position { term: matched_term, index: matched } = view.matched;
    let is_below = previous <= matched || hint.index < matched || hint.term < matched_term;
    let is_old = view.role == Role::Leader && term == view.term && is_below;
    if is_old && !crate::plant::is(crate::plant::Plant::ProbeBelowMatched) {
        return Err(Rejected::Stale);
    }
    Ok(())
}

fn ask_vote(last: Position, commit: Position, term: u64) -> Result<(), Rejected> {
    position(last, term - 1)?;
    position(commit, last.term)?;
    if commit.index > last.index {
        return Err(Rejected::Index { index: commit.index });
    }
    Ok(())
}

/// A vote counts for the term that was asked for. A leader is made of a candidate that has synced its own
/// vote and its log, since it asked nobody before; the library relies on it.
fn vote(view: &View<'_>, term: u64, is_try: bool, is_granted: bool) -> Result<(), Rejected> {
    let is_for_us = match (is_try, is_granted) {
        (true, true) => term == view.term + 1,
        (false, true) => term < view.term || (term == view.term && !view.is_writing),
        (_, false) => true,
    };
    if is_for_us && !view.must_not_win { Ok(()) } else { Err(Rejected::Stale) }
}

/// A state neither begins before the log nor contradicts what is committed.
fn snapshot(view: &View<'_>, snapshot: &Snapshot, term: u64) -> Result<(), Rejected> {
    let at = snapshot.position;
    position(at, term)?;
    if at.index == 0 || (at.index == view.commit.index && at.term != view.commit.term) {
        return Err(Rejected::Index { index: at.index });
    }
    if snapshot.members.contains(view.id) { Ok(()) } else { Err(Rejected::NotInSnapshot) }
}

fn timeout_now(view: &View<'_>, message: &Message) -> Result<(), Rejected> {
    if message.term > view.term {
        return Err(Rejected::Term { term: message.term });
    }
    if view.must_not_win {
        return Err(Rejected::Stale);
    }
    leader(view, message)
}
