//! Calls of clients: what was asked of which node, and the answer when it comes.

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::command::{Attach, DocumentPut, LockAcquire, Send, SendItem, SettleItem, Settlement};
use sluice_engine::documents::{DocumentCondition, DocumentView};
use sluice_engine::id::{ConsumerId, LockToken, MessageId, NamespaceId, Receipt};
use sluice_engine::item::Deliver;
use sluice_engine::locks::{LockGrant, LockMode};
use sluice_engine::outcome::Reply;
use sluice_engine::query::State;
use sluice_engine::{Command, Error};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::channel::Channel;
use sluice_node::shard::request::{
    Acquiring, Answer, Attaching, Given, Granted, Proposal, Pull, PullReply, Read, ReplyTo, Request,
    ResultWait, ShardView, WaitOutcome,
};
use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use super::documents::{DocumentCall, Told};
use super::returns::Worker;
use crate::across::driving::Found;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// Queue of most messages.
pub(super) const QUEUE: &str = "jobs";
/// Lease of a receive and of an extension, in milliseconds.
pub(super) const LEASE_MS: u64 = 4_000;
/// Lease of an attached consumer, in milliseconds.
pub(super) const CONSUMER_LEASE_MS: u64 = 2 * LEASE_MS;
/// Credit of a consumer.
const CREDIT: u32 = 3;

/// A message to be sent.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) queue: String,
    /// Payload, unlike those of all other messages; the idempotency key as well, if there is one.
    pub(super) payload: String,
    pub(super) has_key: bool,
    pub(super) delay_ms: u64,
    /// Time at which it was sent first, in microseconds.
    pub(super) begun_us: u64,
}

/// Figures that a client has read.
#[derive(Debug)]
pub(super) struct Figures {
    /// Number of messages that were ever sent.
    pub(super) sent: u64,
    /// Number of messages of a queue, by its counters, and as they are listed.
    pub(super) counted: u64,
    pub(super) listed: u64,
}

/// A request for a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) key: &'static str,
    /// Number by which a repeat is known.
    pub(super) request: u64,
    pub(super) ttl_ms: u32,
}

/// A call about a lock.
#[derive(Clone, Copy, Debug)]
pub(super) enum LockCall {
    Acquire(Wanted),
    Renew { key: &'static str, token: LockToken, ttl_ms: u32 },
    Release(LockToken),
}

type Replied<T> = Receiver<Result<T, Error>>;

/// Proposer of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asker {
    /// The driver with this number, for the record in this place.
    Driver(u64, usize),
    /// The leader on this node.
    Leader(usize),
    /// One who writes an account in between.
    Other,
}

/// A call, with what has to be known when it is answered.
#[derive(Debug)]
pub(super) enum Call {
    Send(Message, Receiver<Answer>),
    Pull {
        queue: String,
        reply: Replied<Vec<Given>>,
    },
    Ack(Receipt, Receiver<Answer>),
    Release(Receipt, Receiver<Answer>),
    Extend(Receipt, Receiver<Answer>),
    Attach {
        worker: Worker,
        channel: Arc<Channel>,
        reply: Replied<ConsumerId>,
    },
    Resume {
        consumer: ConsumerId,
        receipts: Vec<Receipt>,
        reply: Receiver<Answer>,
    },
    /// Number of messages whose sends were answered before it began.
    Count {
        at_least: u64,
        reply: Replied<Figures>,
    },
    Await(MessageId, Replied<WaitOutcome>),
    Acquire {
        call: LockCall,
        ticket: u64,
        reply: Replied<Granted>,
    },
    /// Another call about a lock.
    Lock(LockCall, Receiver<Answer>),
    Write(DocumentCall, Receiver<Answer>),
    Read(DocumentCall, Replied<Told>),
    /// A record of a transaction over several namespaces.
    Record(Asker, Receiver<Answer>),
    /// The key of the request that this driver has.
    LookUp(u64, Receiver<Found>),
}

/// The answer to a call.
pub(super) enum Answered {
    Sent(Result<MessageId, Error>),
    Given(Result<Vec<Given>, Error>),
    Settled(Result<(), Error>),
    Attached(Result<ConsumerId, Error>),
    Resumed(Result<Vec<Result<(), Error>>, Error>),
    Counted(Result<Figures, Error>),
    Awaited(Result<State, Error>),
    /// With a grant, if it gives one.
    Locked(Result<Option<LockGrant>, Error>),
    Document(Result<Told, Error>),
    Record(Answer),
    Found(Found),
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) call: Call,
    pub(super) node: usize,
    pub(super) begun_us: u64,
    /// Longest wait that it has asked for, in microseconds.
    pub(super) wait_us: u64,
}

impl Waiting {
    /// The answer, if it has come.
    ///
    /// # Errors
    /// The call was dropped without an answer.
    pub(super) fn answer(&mut self) -> Result<Option<Answered>, String> {
        let found = match &mut self.call {
            Call::Send(_, reply) => reply.try_recv().map(|answer| Answered::Sent(sent(answer))),
            Call::Pull { reply, .. } => reply.try_recv().map(Answered::Given),
            Call::Ack(_, reply) | Call::Release(_, reply) | Call::Extend(_, reply) => {
                reply.try_recv().map(|answer| Answered::Settled(settled(answer)))
            }
            Call::Attach { reply, .. } => reply.try_recv().map(Answered::Attached),
            Call::Resume { reply, .. } => {
                reply.try_recv().map(|answer| Answered::Resumed(answer.result.map(|_| answer.results)))
            }
            Call::Count { reply, .. } => reply.try_recv().map(Answered::Counted),
            Call::Await(_, reply) => {
                reply.try_recv().map(|seen| Answered::Awaited(seen.map(|seen| seen.state)))
            }
            Call::Acquire { reply, .. } => {
                reply.try_recv().map(|granted| Answered::Locked(granted.map(|granted| Some(granted.grant))))
            }
            Call::Lock(_, reply) => reply.try_recv().map(|answer| Answered::Locked(granted(answer))),
            Call::Write(call, reply) => {
                reply.try_recv().map(|answer| Answered::Document(written(*call, answer)))
            }
            Call::Read(_, reply) => reply.try_recv().map(Answered::Document),
            Call::Record(_, reply) => reply.try_recv().map(Answered::Record),
            Call::LookUp(_, reply) => reply.try_recv().map(Answered::Found),
        };
        match found {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Closed) => Err(format!("{self:?} was dropped without an answer")),
        }
    }
}

fn sent(answer: Answer) -> Result<MessageId, Error> {
    match answer.result? {
        Reply::Sent { first, .. } => Ok(first),
        other => Err(Error::Internal { reason: format!("a send was answered {other:?}") }),
    }
}

fn settled(answer: Answer) -> Result<(), Error> {
    answer.result?;
    answer.results.into_iter().next().unwrap_or(Ok(()))
}

/// The grant in an answer to a call about a lock.
fn granted(answer: Answer) -> Result<Option<LockGrant>, Error> {
    answer.result.map(|reply| if let Reply::LockGranted { grant } = reply { Some(grant) } else { None })
}

/// The version in the answer to a write of a document.
fn written(call: DocumentCall, answer: Answer) -> Result<Told, Error> {
    match (answer.result?, call) {
        (Reply::DocumentWritten { version, .. }, DocumentCall::Put { number, .. }) => {
            Ok(Some((version, number)))
        }
        (other, _) => Err(Error::Internal { reason: format!("a write was answered {other:?}") }),
    }
}

pub(super) fn propose(command: &Command<'_>) -> (Request, Receiver<Answer>) {
    let (sender, reply) = oneshot::channel();
    (Request::Propose(Proposal::new(command, ReplyTo::Once(sender))), reply)
}

/// A client of one node.
pub(super) struct Client<'a> {
    pub(super) node: usize,
    pub(super) mailbox: &'a Mailbox<Request>,
    pub(super) now_us: u64,
    pub(super) ticket: u64,
}

impl Client<'_> {
    pub(super) fn ask(&self, request: Request, wait_us: u64, call: Call) -> Waiting {
        if self.mailbox.push(request).is_err() {
            unreachable!("a mailbox has room for all calls that are open")
        }
        Waiting { call, node: self.node, begun_us: self.now_us, wait_us }
    }

    pub(super) fn send(&self, message: Message) -> Waiting {
        let Message { queue, payload, has_key, delay_ms, .. } = &message;
        let deliver = if *delay_ms > 0 { Deliver::AfterMs(*delay_ms) } else { Deliver::Now };
        let items = [SendItem { payload: payload.as_bytes(), deliver, ..SendItem::default() }];
        let idempotency_key = if *has_key { payload.as_bytes() } else { b"" };
        let send = Send { namespace: NAMESPACE, queue, idempotency_key, request_digest: 0, items: &items };
        let (request, reply) = propose(&Command::Send(send));
        self.ask(request, 0, Call::Send(message, reply))
    }

    pub(super) fn pull(&self, queue: &str, wait_us: u64) -> Waiting {
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

    fn settle(&self, receipt: Receipt, settlement: Settlement) -> (Request, Receiver<Answer>) {
        let items = [SettleItem { receipt, settlement, error: "", result: None, add_cost: 0 }];
        propose(&Command::Settle { namespace: NAMESPACE, items: &items })
    }

    pub(super) fn ack(&self, receipt: Receipt) -> Waiting {
        let (request, reply) = self.settle(receipt, Settlement::Ack);
        self.ask(request, 0, Call::Ack(receipt, reply))
    }

    pub(super) fn release(&self, receipt: Receipt) -> Waiting {
        let (request, reply) = self.settle(receipt, Settlement::Release { delay_ms: 0 });
        self.ask(request, 0, Call::Release(receipt, reply))
    }

    pub(super) fn extend(&self, receipt: Receipt) -> Waiting {
        let extend = Command::Extend { namespace: NAMESPACE, items: &[(receipt, LEASE_MS)] };
        let (request, reply) = propose(&extend);
        self.ask(request, 0, Call::Extend(receipt, reply))
    }

    pub(super) fn attach(&self, worker: Worker) -> Waiting {
        let attach = Attach {
            namespace: NAMESPACE,
            name: "worker",
            queues: &[QUEUE],
            credit: CREDIT,
            lease_ms: CONSUMER_LEASE_MS,
            grace_ms: worker.grace_ms,
        };
        let channel = Arc::<Channel>::default();
        let (sender, reply) = oneshot::channel();
        let attaching = Attaching::new(&attach, Arc::clone(&channel), sender);
        self.ask(Request::Attach(Box::new(attaching)), 0, Call::Attach { worker, channel, reply })
    }

    pub(super) fn resume(&self, consumer: ConsumerId, receipts: Vec<Receipt>) -> Waiting {
        let resume = Command::Resume { namespace: NAMESPACE, consumer, receipts: &receipts };
        let (request, reply) = propose(&resume);
        self.ask(request, 0, Call::Resume { consumer, receipts, reply })
    }

    pub(super) fn count(&self, at_least: u64) -> Waiting {
        let (sender, reply) = oneshot::channel();
        let read = Read(Box::new(move |looking| {
            let _ = sender.send(looking.map(figures));
        }));
        self.ask(Request::Read(read), 0, Call::Count { at_least, reply })
    }

    pub(super) fn lock(&self, call: LockCall, wait_us: u64) -> Waiting {
        match call {
            LockCall::Acquire(Wanted { key, request, ttl_ms }) => {
                let acquire = LockAcquire {
                    namespace: NAMESPACE,
                    keys: &[key],
                    owner: "client",
                    mode: LockMode::Exclusive,
                    ttl_ms,
                    wait_ms: 0,
                    if_absent: false,
                    request: [7, request],
                };
                let (sender, reply) = oneshot::channel();
                let wait = Duration::from_micros(wait_us);
                let acquiring = Acquiring::new(self.ticket, acquire, wait, sender);
                let call = Call::Acquire { call, ticket: self.ticket, reply };
                self.ask(Request::Acquire(Box::new(acquiring)), wait_us, call)
            }
            LockCall::Renew { token, ttl_ms, .. } => {
                let renew = Command::LockRenew { namespace: NAMESPACE, token, ttl_ms };
                let (request, reply) = propose(&renew);
                self.ask(request, 0, Call::Lock(call, reply))
            }
            LockCall::Release(token) => {
                let (request, reply) = propose(&Command::LockRelease { namespace: NAMESPACE, token });
                self.ask(request, 0, Call::Lock(call, reply))
            }
        }
    }

    pub(super) fn document(&self, call: DocumentCall) -> Waiting {
        match call {
            DocumentCall::Put { key, number, over } => {
                let put = DocumentPut {
                    namespace: NAMESPACE,
                    key,
                    when: DocumentCondition { version: over, ..DocumentCondition::default() },
                    ttl_ms: Some(0),
                    history: None,
                    request: 0,
                    content_type: "",
                    attributes: &[],
                    content: &vec![b'd'; number as usize],
                    terms: &[],
                };
                let (request, reply) = propose(&Command::DocumentPut(put));
                self.ask(request, 0, Call::Write(call, reply))
            }
            DocumentCall::Get { key } => {
                let (sender, reply) = oneshot::channel();
                let read = Read(Box::new(move |looking| {
                    let found = |view: &mut ShardView<'_>| view.engine.document(NAMESPACE, key);
                    let told = |view: DocumentView| (view.version, view.content_bytes);
                    let _ = sender.send(looking.map(|view| found(view).map(told)));
                }));
                self.ask(Request::Read(read), 0, Call::Read(call, reply))
            }
        }
    }

    pub(super) fn wait_for(&self, id: MessageId, wait_us: u64) -> Waiting {
        let (reply, receiver) = oneshot::channel();
        let wait = ResultWait { ticket: self.ticket, id, wait_us, reply };
        self.ask(Request::Await(wait), wait_us, Call::Await(id, receiver))
    }
}

fn figures(view: &mut ShardView<'_>) -> Figures {
    let sent = view.engine.totals().sent;
    let Some(queue) = view.engine.queue_id(NAMESPACE, QUEUE) else {
        return Figures { sent, counted: 0, listed: 0 };
    };
    let counted = view.engine.queue(queue).map_or(0, |queue| queue.counters.states.iter().sum());
    let (mut listed, mut cursor) = (0, None);
    loop {
        let page = view.engine.messages(queue, None, cursor, usize::MAX);
        listed += page.items.len() as u64;
        cursor = page.next;
        if cursor.is_none() {
            return Figures { sent, counted, listed };
        }
    }
}
