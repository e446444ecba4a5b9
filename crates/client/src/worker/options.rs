//! The options of a worker, and what it reports.

use std::time::Duration;

use crate::answers::Delivered;
use crate::client::Client;
use crate::error::ClientError;
use crate::stop::Stop;

/// The options of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Names of queues with weights, 1 to 1,000: each queue gets its share of the deliveries. With weight 0,
    /// for all, queues are tried in the order given.
    pub queues: Vec<(String, u16)>,
    /// Largest number of handlers that run at the same time (default 1).
    pub concurrency: usize,
    /// Messages held ready beyond those that run, so that a free handler need not wait for the network
    /// (default 0: a message is taken only when a handler is free for it).
    pub prefetch: usize,
    /// The lease of each message, extended at half time while its handler runs (default 30 s, at least 1 s).
    /// After a crash of this process its messages come back after so long.
    pub lease: Duration,
    /// Wait of one receive (default 20 s): not an interval of polling, since a message ends the wait at once.
    pub wait: Duration,
    /// Name of the consumer, shown in lists of consumers; may be empty.
    pub consumer: String,
    /// End when nothing has come for half a second, no handler runs, and every message that was taken is
    /// settled. After a receive whose answer was lost also only when its lease is over, since its messages
    /// come back then.
    pub until_empty: bool,
    /// Transport of the messages (default [`WorkerTransport::Auto`]).
    pub transport: WorkerTransport,
}

/// The transport by which a worker gets messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WorkerTransport {
    /// Over a session if there is one queue and the server has sessions, else by receives.
    #[default]
    Auto,
    /// Over a session: messages come as they become ready, and settlements go back on the same stream. For
    /// one queue; with several it is as `Http`.
    Session,
    /// By receives that wait, over HTTP. The only way for several queues, which are looked at in order or by
    /// weight.
    Http,
}

impl WorkerOptions {
    /// One handler at a time on these queues.
    pub fn new(queues: Vec<(String, u16)>) -> WorkerOptions {
        WorkerOptions {
            queues,
            concurrency: 1,
            prefetch: 0,
            lease: Duration::from_secs(30),
            wait: Duration::from_secs(20),
            consumer: String::new(),
            until_empty: false,
            transport: WorkerTransport::default(),
        }
    }
}

/// The argument of a handler: a message, and the signal that its lease was lost.
#[derive(Clone, Debug)]
pub struct Job {
    /// The message.
    pub message: Delivered,
    /// Given when the lease was lost (the server said so, or it ended by this process's clock before it could
    /// be extended) or when the message was cancelled. The work is of no use then.
    pub lost: Stop,
}

/// Counts of the messages that a worker has settled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Messages whose ack the server accepted.
    pub acked: u64,
    /// Messages whose nack the server accepted.
    pub nacked: u64,
    /// Messages whose rejection the server accepted.
    pub rejected: u64,
    /// Messages given back, whether started or not.
    pub released: u64,
    /// Messages that were cancelled while their handlers ran.
    pub cancelled: u64,
    /// Messages whose lease was over, or that were gone, when they were to be settled.
    pub lost: u64,
    /// Messages that could not be settled because the server did not answer; they come back when their lease
    /// ends.
    pub unsettled: u64,
}

impl Summary {
    /// The sum of both.
    pub(super) fn and(self, other: &Summary) -> Summary {
        Summary {
            acked: self.acked + other.acked,
            nacked: self.nacked + other.nacked,
            rejected: self.rejected + other.rejected,
            released: self.released + other.released,
            cancelled: self.cancelled + other.cancelled,
            lost: self.lost + other.lost,
            unsettled: self.unsettled + other.unsettled,
        }
    }
}

/// An event of a worker, for its log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// The server did not answer a receive; it is tried again.
    ReceiveFailed(ClientError),
    /// The server answers again.
    ReceiveRecovered,
    /// A message could not be settled.
    SettleFailed {
        /// Id of the message.
        id: String,
        /// `ack`, `nack`, `release` or `reject`.
        outcome: &'static str,
        /// Reason.
        reason: String,
    },
    /// The server said that the lease of a message is lost, since it is over or the message is gone: its id.
    LeaseLost(String),
    /// The server said that a message was cancelled: its id.
    Cancelled(String),
    /// The lease of a message ended by this process's own clock, since the server could not be reached in
    /// time to extend it: its id.
    LeaseEnded(String),
}

/// Receives messages, runs a handler for each, and settles them.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(super) client: Client,
    pub(super) options: WorkerOptions,
}

impl Worker {
    /// A worker on the client's server and namespace.
    pub fn new(client: Client, options: WorkerOptions) -> Worker {
        Worker { client, options }
    }
}
