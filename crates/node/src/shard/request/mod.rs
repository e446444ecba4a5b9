//! What comes into a shard's mailbox, and where its answers go.

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

pub(crate) use answer::unexpected;
pub use answer::{Answer, Completion};
pub use attach::Attaching;
pub(super) use proposal::class_of;
pub use proposal::{Proposal, ReplyTo, write_record};
pub use pull::{Pull, PullReply};
pub use read::{Read, ShardView};
pub use result_wait::{ResultWait, WaitOutcome};
pub use watch::{Left, Reader, Topic, Watch};

pub use super::delivery::{Given, GivenDetails};

/// One request to a shard.
#[derive(Debug)]
pub enum Request {
    /// Put this record into the log and tell what came of it.
    Propose(Proposal),
    /// Give messages, now or when there are some.
    Pull(Box<Pull>),
    /// Tell what becomes of a message, when that is known.
    Await(ResultWait),
    /// Give messages as they become ready, for as long as the consumer is attached.
    Attach(Box<Attaching>),
    /// Read the events of a feed.
    Watch(Box<Watch>),
    /// A reader of events has gone.
    Unwatch(Box<Left>),
    /// The caller of this pull or wait has gone.
    Cancel {
        /// Its ticket.
        ticket: u64,
    },
    /// Exactly one record that drains, for which nobody waits, and which must enter the log sooner or later: what a full
    /// disk refuses is proposed again. Not for what grows. Give it by [`crate::mailbox::Mailbox::push_surely`].
    Surely(Batch),
    /// Look at the state between two batches.
    Read(Read),
    /// Waiting pulls end empty, later ones do not wait.
    Drain,
    /// Finish what is in flight, sync, and end the thread.
    Stop,
}

/// Requests are moved several times: what is large lies in a box.
const _: () = assert!(size_of::<Request>() <= 80);

impl Request {
    /// A record for [`Request::Surely`].
    pub fn surely(command: &Command<'_>) -> Request {
        Request::Surely(proposal::record_of(command))
    }
}
