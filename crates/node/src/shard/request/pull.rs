//! Receives that may wait, and where their messages go.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use tokio::sync::oneshot;

use super::answer::Completion;
use crate::api::Room;
use crate::mailbox::Mailbox;
use crate::shard::delivery::Given;

/// Where a pull's messages go.
#[derive(Debug)]
pub enum PullReply {
    /// One caller waits.
    Once(oneshot::Sender<Result<Vec<Given>, Error>>),
    /// A long-lived caller that numbers its requests.
    Mail(Mailbox<Completion>, u64),
}

impl PullReply {
    /// Whether nobody waits any more.
    pub(in crate::shard) fn is_closed(&self) -> bool {
        match self {
            PullReply::Once(sender) => sender.is_closed(),
            PullReply::Mail(..) => false,
        }
    }

    /// Hands the messages over; gives them back when the caller has gone.
    pub fn send(self, given: Result<Vec<Given>, Error>) -> Result<(), Vec<Given>> {
        match self {
            PullReply::Once(sender) => sender.send(given).map_err(Result::unwrap_or_default),
            PullReply::Mail(mailbox, tag) => {
                mailbox.push(Completion::Given(tag, given)).map_err(|back| match back {
                    Completion::Given(_, given) => given.unwrap_or_default(),
                    Completion::Answer(..) => Vec::new(),
                })
            }
        }
    }
}

/// A receive that may wait. It lives in the node only: while nothing is ready it costs no record.
#[derive(Debug)]
pub struct Pull {
    /// Names this pull to [`super::Request::Cancel`]; unique in the process.
    pub ticket: u64,
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// Queues and weights, as in [`sluice_engine::command::Receive`].
    pub queues: Arc<[(Box<str>, u16)]>,
    /// Most messages.
    pub max_messages: u32,
    /// Most bytes, though at least one message.
    pub max_bytes: u32,
    /// The lease in milliseconds; 0: each queue's.
    pub lease_ms: u64,
    /// How long it may wait, in microseconds.
    pub wait_us: u64,
    /// Name of the consumer; may be empty.
    pub consumer: Box<str>,
    /// Who has room for the messages; `None`: there always is.
    pub room: Option<Arc<dyn Room>>,
    /// Where the messages go.
    pub reply: PullReply,
}
