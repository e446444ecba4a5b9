//! Changes that a person or a program may make to existing messages.

use crate::id::{MessageId, NamespaceId};
use crate::item::Deliver;
use crate::limit::Cost;
use crate::state::State;

/// Most messages of one [`Change`]: it is applied in one step, which must not take long.
pub const CHANGE_ITEMS_MAX: usize = 1_000;
/// Longest text that tells who changes a message, in bytes.
pub const BY_BYTES_MAX: usize = 256;
/// Longest text that tells why, in bytes.
pub const WHY_BYTES_MAX: usize = 4_096;
/// Changes that a message remembers; of more, the first and the latest stay.
pub const CHANGES_REMEMBERED_MAX: usize = 32;

/// Changes messages, each for itself: each has its own result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change<'a> {
    /// Namespace of the messages.
    pub namespace: NamespaceId,
    /// Messages, and the version that each must have: see [`crate::query::MessageView::version`]; 0: any.
    pub items: &'a [(MessageId, u64)],
    /// Action applied to them.
    pub action: ChangeAction<'a>,
    /// Name of the person who changes them; may be empty. With it or `why`, each message remembers the
    /// change.
    pub by: &'a str,
    /// Why; may be empty.
    pub why: &'a str,
}

/// Action applied to a message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ChangeAction<'a> {
    /// Gone; a leased one at the end of its lease, whatever that is.
    Cancel,
    /// Delayed, ready or blocked to held.
    Hold,
    /// Held to ready, or delayed if its time has not come.
    Approve,
    /// Held to dead.
    Deny,
    /// Delayed or dead to ready.
    Retry,
    /// To another queue of the namespace; the state stays.
    Move {
        /// Name of a queue that exists.
        to: &'a str,
    },
    /// Other fields, for a message that waits.
    Set(NewFields<'a>),
}

/// Fields that a message gets instead of its own; `None`: stays.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NewFields<'a> {
    /// 0 to 9; it goes behind its equals.
    pub priority: Option<u8>,
    /// When it becomes ready; of a held one, the earliest time after its approval.
    pub deliver: Option<Deliver>,
    /// Attempts before it becomes a dead letter; 0: the queue's.
    pub max_attempts: Option<u16>,
    /// All its tags.
    pub tags: Option<&'a [&'a str]>,
    /// Share of its limit's rates that each delivery from now on takes.
    pub cost: Option<Cost>,
}

/// The name of a change, without its fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Verb {
    /// [`ChangeAction::Cancel`]
    Cancel,
    /// [`ChangeAction::Hold`]
    Hold,
    /// [`ChangeAction::Approve`]
    Approve,
    /// [`ChangeAction::Deny`]
    Deny,
    /// [`ChangeAction::Retry`]
    Retry,
    /// [`ChangeAction::Move`]
    Move,
    /// [`ChangeAction::Set`]
    Change,
}

impl Verb {
    /// All of them, in the order of their numbers.
    pub const ALL: [Verb; 7] =
        [Verb::Cancel, Verb::Hold, Verb::Approve, Verb::Deny, Verb::Retry, Verb::Move, Verb::Change];

    /// The word used in every API.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Cancel => "cancel",
            Verb::Hold => "hold",
            Verb::Approve => "approve",
            Verb::Deny => "deny",
            Verb::Retry => "retry",
            Verb::Move => "move",
            Verb::Change => "change",
        }
    }

    /// Checks that a message in this state can be changed so; else names the states in which it can.
    pub fn states(self) -> &'static [State] {
        match self {
            Verb::Cancel => {
                &[State::Delayed, State::Ready, State::Leased, State::Held, State::Dead, State::Blocked]
            }
            Verb::Hold => &[State::Delayed, State::Ready, State::Blocked],
            Verb::Approve | Verb::Deny => &[State::Held],
            Verb::Retry => &[State::Delayed, State::Dead],
            Verb::Move => &[State::Delayed, State::Ready, State::Held, State::Dead, State::Blocked],
            Verb::Change => &[State::Delayed, State::Ready, State::Held, State::Blocked],
        }
    }

    /// The same in words, for errors.
    pub(crate) fn states_text(self) -> &'static str {
        match self {
            Verb::Cancel => "one that is not done",
            Verb::Hold => "delayed, ready or blocked",
            Verb::Approve | Verb::Deny => "held",
            Verb::Retry => "delayed or dead",
            Verb::Move => "delayed, ready, blocked, held or dead",
            Verb::Change => "delayed, ready, blocked or held",
        }
    }
}

impl ChangeAction<'_> {
    /// Its name.
    pub fn verb(&self) -> Verb {
        match self {
            ChangeAction::Cancel => Verb::Cancel,
            ChangeAction::Hold => Verb::Hold,
            ChangeAction::Approve => Verb::Approve,
            ChangeAction::Deny => Verb::Deny,
            ChangeAction::Retry => Verb::Retry,
            ChangeAction::Move { .. } => Verb::Move,
            ChangeAction::Set(_) => Verb::Change,
        }
    }
}
