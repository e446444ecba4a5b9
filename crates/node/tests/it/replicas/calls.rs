//! Calls of clients: what was asked of which node, and the answer when it comes.

use std::sync::Arc;

use sluice_engine::command::{Attach, DETACH_GRACE_MS, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::item::Deliver;
use sluice_engine::query::State;
use sluice_engine::{Command, Error};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::channel::Channel;
use sluice_node::shard::request::{
    Answer, Attaching, Given, Proposal, Pull, PullReply, Read, ReplyTo, Request, ResultWait, WaitOutcome,
};
use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use crate::rig::SECOND_US;

pub const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// Lease of a pull, in milliseconds; consumers have twice as much.
pub const LEASE_MS: u64 = 4_000;

/// Beginning of the names of queues in which one message at a time is sent and asked for.
pub const PROBE: &str = "probe-";

/// Time within which a call is answered besides its own wait: for a leader, to hear of its end, for the
/// outcome of a record in flight, and for a node that pauses.
const LATEST_US: u64 = (5 + 5 + 10 + 4) * SECOND_US;

/// A call, with what has to be known when it is answered.
pub enum Call {
    Send {
        queue: String,
        payload: String,
        delay_us: u64,
        reply: Receiver<Answer>,
    },
    Pull {
        queue: String,
        reply: Receiver<Result<Vec<Given>, Error>>,
    },
    Ack {
        receipt: Receipt,
        reply: Receiver<Answer>,
    },
    Attach {
        channel: Arc<Channel>,
        reply: Receiver<Result<ConsumerId, Error>>,
    },
    /// Number of sends that were answered before it began.
    Count {
        at_least: u64,
        reply: Receiver<Result<u64, Error>>,
    },
    Await {
        id: MessageId,
        reply: Receiver<Result<WaitOutcome, Error>>,
    },
}

/// The answer to a call.
pub enum Answered {
    Sent(Result<MessageId, Error>),
    Given(Result<Vec<Given>, Error>),
    Settled(Result<(), Error>),
    Attached(Result<ConsumerId, Error>),
    Counted(Result<u64, Error>),
    Awaited(Result<State, Error>),
}

/// A call that waits for its answer.
pub struct Waiting {
    pub call: Call,
    pub begun_us: u64,
    /// Time by which it has to be answered.
    pub until_us: u64,
}

impl Waiting {
    /// The answer, if it has come.
    ///
    /// # Errors
    /// The call was dropped without an answer.
    pub fn answer(&mut self) -> Result<Option<Answered>, String> {
        let found = match &mut self.call {
            Call::Send { reply, .. } => reply.try_recv().map(|answer| Answered::Sent(sent(answer))),
            Call::Pull { reply, .. } => reply.try_recv().map(Answered::Given),
            Call::Ack { reply, .. } => reply.try_recv().map(|answer| Answered::Settled(settled(answer))),
            Call::Attach { reply, .. } => reply.try_recv().map(Answered::Attached),
            Call::Count { reply, .. } => reply.try_recv().map(Answered::Counted),
            Call::Await { reply, .. } => {
                reply.try_recv().map(|seen| Answered::Awaited(seen.map(|seen| seen.state)))
            }
        };
        match found {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Closed) => Err("a call was dropped without an answer".to_owned()),
        }
    }
}

fn sent(answer: Answer) -> Result<MessageId, Error> {
    match answer.result? {
        sluice_engine::outcome::Reply::Sent { first, .. } => Ok(first),
        other => panic!("{other:?}"),
    }
}

fn settled(answer: Answer) -> Result<(), Error> {
    answer.result?;
    answer.results.into_iter().next().unwrap_or(Ok(()))
}

/// A client of one node.
pub struct Client<'a> {
    pub mailbox: &'a Mailbox<Request>,
    pub now_us: u64,
    pub ticket: u64,
}

impl Client<'_> {
    fn ask(&self, request: Request, wait_us: u64, call: Call) -> Waiting {
        self.mailbox.push(request).unwrap();
        Waiting { call, begun_us: self.now_us, until_us: self.now_us + wait_us + LATEST_US }
    }

    pub fn send(&self, queue: &str, payload: String, delay_ms: u64) -> Waiting {
        let deliver = if delay_ms > 0 { Deliver::AfterMs(delay_ms) } else { Deliver::Now };
        let items = [SendItem { payload: payload.as_bytes(), deliver, ..SendItem::default() }];
        let send =
            Send { namespace: NAMESPACE, queue, idempotency_key: b"", request_digest: 0, items: &items };
        let (sender, reply) = oneshot::channel();
        let proposal = Proposal::new(&Command::Send(send), ReplyTo::Once(sender));
        self.ask(
            Request::Propose(proposal),
            0,
            Call::Send { queue: queue.to_owned(), payload, delay_us: delay_ms * 1_000, reply },
        )
    }

    pub fn pull(&self, queue: &str, wait_us: u64) -> Waiting {
        let (sender, reply) = oneshot::channel();
        let pull = Pull {
            ticket: self.ticket,
            namespace: NAMESPACE,
            queues: vec![(queue.into(), 0)].into(),
            max_messages: 3,
            max_bytes: 1 << 20,
            lease_ms: LEASE_MS,
            wait_us,
            consumer: Box::default(),
            room: None,
            reply: PullReply::Once(sender),
        };
        let call = Call::Pull { queue: queue.to_owned(), reply };
        self.ask(Request::Pull(Box::new(pull)), wait_us, call)
    }

    pub fn ack(&self, receipt: Receipt) -> Waiting {
        let items =
            [SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }];
        let (sender, reply) = oneshot::channel();
        let settle = Command::Settle { namespace: NAMESPACE, items: &items };
        let proposal = Proposal::new(&settle, ReplyTo::Once(sender));
        self.ask(Request::Propose(proposal), 0, Call::Ack { receipt, reply })
    }

    pub fn attach(&self, queue: &str) -> Waiting {
        let attach = Attach {
            namespace: NAMESPACE,
            name: "worker",
            queues: &[queue],
            credit: 3,
            lease_ms: 2 * LEASE_MS,
            grace_ms: DETACH_GRACE_MS,
        };
        let channel = Arc::<Channel>::default();
        let (sender, reply) = oneshot::channel();
        let attaching = Attaching::new(&attach, Arc::clone(&channel), sender);
        self.ask(Request::Attach(Box::new(attaching)), 0, Call::Attach { channel, reply })
    }

    pub fn count(&self, at_least: u64) -> Waiting {
        self.count_by(Request::Read, at_least)
    }

    /// Counts what this node knows of.
    pub fn count_stale(&self) -> Waiting {
        self.count_by(Request::ReadStale, 0)
    }

    fn count_by(&self, request: impl FnOnce(Read) -> Request, at_least: u64) -> Waiting {
        let (sender, reply) = oneshot::channel();
        let read = Read(Box::new(move |looking| {
            let _ = sender.send(looking.map(|at| at.engine.totals().sent));
        }));
        self.ask(request(read), 0, Call::Count { at_least, reply })
    }

    pub fn wait_for(&self, id: MessageId, wait_us: u64) -> Waiting {
        let (reply, receiver) = oneshot::channel();
        let wait = ResultWait { ticket: self.ticket, id, wait_us, reply };
        self.ask(Request::Await(wait), wait_us, Call::Await { id, reply: receiver })
    }
}
