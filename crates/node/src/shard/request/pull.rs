//! Pulls: receives that may wait.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use tokio::sync::oneshot;

use super::answer::Completion;
use crate::api::Room;
use crate::mailbox::Mailbox;
use crate::shard::delivery::Given;

/// Destination of a pull's messages.
#[derive(Debug)]
pub enum PullReply {
    /// A caller that waits.
    Once(oneshot::Sender<Result<Vec<Given>, Error>>),
    /// A caller with a mailbox, and its number for the request.
    Mail(Mailbox<Completion>, u64),
}

impl PullReply {
    /// True when the caller has gone.
    pub(in crate::shard) fn is_closed(&self) -> bool {
        match self {
            PullReply::Once(sender) => sender.is_closed(),
            PullReply::Mail(..) => false,
        }
    }

    /// Sends the messages.
    ///
    /// # Errors
    /// The caller has gone: the messages are given back.
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

/// A receive that may wait. It exists in the node only: while nothing is ready it costs no record.
#[derive(Debug)]
pub struct Pull {
    /// Ticket for [`super::Request::Cancel`], unique in the process.
    pub ticket: u64,
    /// Namespace of the queues.
    pub namespace: NamespaceId,
    /// Queues with weights, see [`sluice_engine::command::Receive`].
    pub queues: Arc<[(Box<str>, u16)]>,
    /// Upper limit of messages.
    pub max_messages: u32,
    /// Upper limit of payload bytes, unless the first message alone is larger.
    pub max_bytes: u32,
    /// Lease in milliseconds; 0: each queue's.
    pub lease_ms: u64,
    /// Longest wait, in microseconds.
    pub wait_us: u64,
    /// Name of the consumer; may be empty.
    pub consumer: Box<str>,
    /// Memory budget for the messages; `None`: unlimited.
    pub room: Option<Arc<dyn Room>>,
    /// Destination of the messages.
    pub reply: PullReply,
}
