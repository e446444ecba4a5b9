//! Requests to a shard, and their answers.

mod acquiring;
mod advance;
mod answer;
mod attach;
mod letters;
mod proposal;
mod pull;
mod read;
mod result_wait;
mod watch;

use sluice_engine::command::Command;
use sluice_journal::Batch;

pub use acquiring::{Acquiring, Granted};
pub use advance::Advance;
pub use answer::{Answer, Completion, Operations};
pub(crate) use answer::{of_done, unexpected};
pub use attach::Attaching;
pub(super) use proposal::class_of;
pub use proposal::{Proposal, ReplyTo};
pub use pull::{Pull, PullReply};
pub use read::{FoundDocument, Read, ShardView};
pub use result_wait::{ResultWait, WaitOutcome};
pub use watch::{Left, Reader, Topic, Watch};

pub use super::delivery::{Given, GivenDetails};

/// Request to a shard.
#[derive(Debug)]
pub enum Request {
    /// Propose a record and answer with its outcome.
    Propose(Proposal),
    /// Deliver messages, now or when there are some.
    Pull(Box<Pull>),
    /// Answer when a message has ended.
    Await(ResultWait),
    /// Make a claim to locks, and answer when it is granted or its time of waiting is over.
    Acquire(Box<Acquiring>),
    /// Attach a consumer: deliver messages as they become ready.
    Attach(Box<Attaching>),
    /// Begin to read a feed of events.
    Watch(Box<Watch>),
    /// End reading a feed of events.
    Unwatch(Box<Left>),
    /// Forget a pull, a wait or a claim to locks, whose caller has gone.
    Cancel {
        /// Ticket of the pull, wait or claim.
        ticket: u64,
    },
    /// Forget the caller of a claim to locks, who may ask again: the claim stays in its lines.
    Forget {
        /// Ticket of the claim.
        ticket: u64,
    },
    /// Propose exactly one draining record without an answer. A full disk delays it; it is proposed until it
    /// is in the log. Push it by [`crate::mailbox::Mailbox::push_surely`].
    Surely(Batch),
    /// Read the state between two batches, with everything that was acknowledged anywhere before.
    Read(Read),
    /// Read the state between two batches as it is on this node, which may be behind.
    ReadStale(Read),
    /// Move the time of the log forward. Only to a shard without other replicas.
    Advance(Advance),
    /// End waiting pulls empty, and let later ones not wait.
    Drain,
    /// Finish records in flight, sync, and end the thread.
    Stop,
}

/// The thing that makes the answer to a request one of a leader, among replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Proof {
    /// The record that it becomes, once that is committed.
    Record,
    /// A confirmation that the node leads, since the answer comes from its state.
    Confirmation,
    /// None: it is taken wherever it comes.
    None,
}

/// A request is moved several times: large ones are boxed.
const _: () = assert!(size_of::<Request>() <= 80);

impl Request {
    /// The request for a command without an answer.
    pub fn surely(command: &Command<'_>) -> Request {
        Request::Surely(sluice_record::record_of(command))
    }

    /// The proof that it needs. A pull that finds messages becomes a record as well.
    pub(super) fn proof(&self) -> Proof {
        match self {
            Request::Propose(_) | Request::Attach(_) | Request::Acquire(_) => Proof::Record,
            Request::Pull(_) | Request::Await(_) | Request::Watch(_) | Request::Read(_) => {
                Proof::Confirmation
            }
            Request::ReadStale(_)
            | Request::Unwatch(_)
            | Request::Cancel { .. }
            | Request::Forget { .. }
            | Request::Surely(_)
            | Request::Advance(_)
            | Request::Drain
            | Request::Stop => Proof::None,
        }
    }

    /// True for one that is a record in any case.
    pub(super) fn is_command(&self) -> bool {
        self.proof() == Proof::Record
    }
}
