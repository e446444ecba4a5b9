//! What comes into a shard's mailbox, and where its answers go.

use std::sync::Arc;

use sluice_engine::change::ChangeAction;
use sluice_engine::command::{Command, RecordSink};
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::{Delivery, Reply};
use sluice_engine::query::DeliveryDetails;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{Engine, Error};
use sluice_journal::{Batch, BlobRead, Class, RecordWriter};
use tokio::sync::oneshot;

use super::ShardFigures;
use super::awaiting::Await;
use super::consumers::Attaching;
use super::feeds::{Left, Watch};
use super::store::Store;
use crate::api::{Duplicates, Room};
use crate::mailbox::Mailbox;

/// Bytes that an item about takes in a record, beside payload and headers.
const ITEM_BYTES: usize = 48;

/// One request to a shard.
#[derive(Debug)]
pub enum Request {
    /// Put this record into the log and tell what came of it.
    Propose(Proposal),
    /// Give messages, now or when there are some.
    Pull(Box<Pull>),
    /// Tell what becomes of a message, when that is known.
    Await(Await),
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
    /// disk refuses is proposed again. Not for what grows. Give it by [`Mailbox::push_surely`].
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

/// A record that was encoded by its caller.
#[derive(Debug)]
pub struct Proposal {
    /// Exactly one record.
    pub record: Batch,
    /// Whether a full disk refuses it.
    pub class: Class,
    /// Where the answer goes.
    pub reply: ReplyTo,
    /// Whether queues may be gone afterwards, on which receives wait.
    pub removes_queues: bool,
    /// Whether it ends or keeps what others have begun: taken while new work is refused.
    pub relieves: bool,
}

impl Proposal {
    /// Encodes a command on the caller's thread.
    pub fn new(command: &Command<'_>, reply: ReplyTo) -> Proposal {
        let mut record = Batch::with_capacity(size_hint(command));
        encode(&mut record, command);
        let removes_queues = matches!(command, Command::QueueDelete { .. } | Command::NamespaceDelete { .. });
        let relieves = matches!(
            command,
            Command::Settle { .. } | Command::Extend { .. } | Command::Resume { .. } | Command::Detach { .. }
        );
        Proposal { record, class: class_of(command), reply, removes_queues, relieves }
    }
}

/// Appends a command to a batch, as one record.
#[inline]
pub fn write_record(batch: &mut Batch, command: &Command<'_>) {
    batch.reserve(size_hint(command));
    encode(batch, command);
}

#[inline]
fn encode(batch: &mut Batch, command: &Command<'_>) {
    command.encode(&mut Sink(batch.record(command.blob_count())));
}

/// Room that a record will about take; too little costs a reallocation, no more.
#[inline]
fn size_hint(command: &Command<'_>) -> usize {
    match command {
        Command::Send(send) => {
            let items = send.items.iter();
            128 + send.queue.len()
                + items.map(|item| ITEM_BYTES + item.payload.len() + 32 * item.headers.len()).sum::<usize>()
        }
        Command::Receive(_) => 256,
        _ => size_hint_of_others(command),
    }
}

fn size_hint_of_others(command: &Command<'_>) -> usize {
    match command {
        Command::Group(group) => {
            let items =
                group.members.iter().chain(std::iter::once(group.callback)).map(|member| &member.item);
            128 + items
                .map(|item| 2 * ITEM_BYTES + item.payload.len() + 32 * item.headers.len())
                .sum::<usize>()
        }
        Command::Settle { items, .. } => {
            64 + items
                .iter()
                .map(|item| ITEM_BYTES + item.result.map_or(0, |it| it.bytes.len()))
                .sum::<usize>()
        }
        Command::Report { items, .. } => {
            64 + items.iter().map(|item| ITEM_BYTES + item.checkpoint.map_or(0, <[u8]>::len)).sum::<usize>()
        }
        Command::SchedulePut(put) => 512 + put.item.payload.len() + 32 * put.item.headers.len(),
        Command::Resume { receipts, .. } => 64 + receipts.len() * ITEM_BYTES,
        Command::Extend { items, .. } => 64 + items.len() * ITEM_BYTES,
        Command::Change(change) => 512 + change.items.len() * ITEM_BYTES,
        _ => 256,
    }
}

/// Settling without texts and results frees space, so the reserve serves it when the disk is full; texts are
/// left out then (`proposing.rs`). Who pauses or closes a queue wants less of it.
pub(super) fn class_of(command: &Command<'_>) -> Class {
    match command {
        Command::Settle { .. } | Command::Report { .. } if command.blob_count() == 0 => Class::Draining,
        Command::Change(change) if change.action == ChangeAction::Cancel && command.blob_count() == 0 => {
            Class::Draining
        }
        Command::QueueSet { patch, create: false, .. } if only_marks(patch) => Class::Draining,
        Command::Tick
        | Command::Epoch { .. }
        | Command::ReceiptKey(_)
        | Command::Receive(_)
        | Command::Extend { .. }
        | Command::Attach(_)
        | Command::Credit { .. }
        | Command::Resume { .. }
        | Command::Detach { .. }
        | Command::QueuePurge { .. }
        | Command::QueueDelete { .. }
        | Command::NamespaceDelete { .. }
        | Command::DeadDelete { .. }
        | Command::ScheduleDelete { .. }
        | Command::SchedulePause { .. }
        | Command::HoldDamaged { .. } => Class::Draining,
        _ => Class::Growing,
    }
}

/// Whether it does no more than to pause, resume, close or open.
fn only_marks(patch: &QueuePatch) -> bool {
    *patch == QueuePatch { paused: patch.paused, closed: patch.closed, ..QueuePatch::default() }
}

struct Sink<'a>(RecordWriter<'a>);

impl RecordSink for Sink<'_> {
    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.0.body(bytes);
    }

    #[inline]
    fn blob(&mut self, pieces: &[&[u8]]) {
        self.0.blob(pieces);
    }
}

/// What came of a proposal.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The whole.
    pub result: Result<Reply, Error>,
    /// Item by item where the command has items; empty when every item went well.
    pub results: Vec<Result<(), Error>>,
    /// Send: what was sent before, by its unique key.
    pub duplicates: Option<Box<Duplicates>>,
}

impl Answer {
    /// The command as a whole was refused.
    pub(crate) fn refused(error: Error) -> Answer {
        Answer { result: Err(error), results: Vec::new(), duplicates: None }
    }
}

/// Where an answer goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// Nobody waits.
    Nobody,
    /// One caller waits.
    Once(oneshot::Sender<Answer>),
    /// A long-lived caller that numbers its requests.
    Mail(Mailbox<Completion>, u64),
}

impl ReplyTo {
    /// Hands the answer over; a caller that has gone does not mind.
    pub fn send(self, answer: Answer) {
        match self {
            ReplyTo::Nobody => {}
            ReplyTo::Once(sender) => {
                let _ = sender.send(answer);
            }
            ReplyTo::Mail(mailbox, tag) => {
                let _ = mailbox.push(Completion::Answer(tag, answer));
            }
        }
    }
}

/// What a long-lived caller finds in its mailbox, with the number that it gave.
#[derive(Debug)]
pub enum Completion {
    /// Of a proposal.
    Answer(u64, Answer),
    /// Of a pull.
    Given(u64, Result<Vec<Given>, Error>),
}

/// One message for a pull; its bytes may still have to be read.
#[derive(Debug)]
pub struct Given {
    /// Receipt, attempt, times.
    pub delivery: Delivery,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload, or where to read them.
    pub blob: BlobRead,
    /// What it has beside the plain fields.
    pub details: Option<Box<GivenDetails>>,
}

/// What a message for a pull has beside the plain fields.
#[derive(Debug)]
pub struct GivenDetails {
    /// What the engine knows.
    pub known: DeliveryDetails,
    /// Checkpoint and tags, or where to read them.
    pub blobs: [Option<BlobRead>; 2],
}

impl Request {
    /// A record for [`Request::Surely`].
    pub fn surely(command: &Command<'_>) -> Request {
        let mut record = Batch::with_capacity(size_hint(command));
        encode(&mut record, command);
        Request::Surely(record)
    }
}

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
    pub(super) fn is_closed(&self) -> bool {
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
    /// Names this pull to [`Request::Cancel`]; unique in the process.
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

type ReadFn = dyn FnOnce(Result<&mut Looking<'_>, Error>) + Send;

/// What a look at a shard can see.
pub struct Looking<'a> {
    /// The state.
    pub engine: &'a Engine,
    /// The log's time, in microseconds since the Unix epoch.
    pub now_us: u64,
    /// Where the bytes are.
    pub journal: &'a mut dyn Store,
    /// Pulls that wait.
    pub waiting: usize,
    /// Readers of events.
    pub event_readers: usize,
    /// Records and batches since start.
    pub figures: ShardFigures,
}

/// A look at the state: takes bounded time. It is told when too many looks are waiting.
pub struct Read(pub Box<ReadFn>);

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Read")
    }
}
