//! The clients: what they know, and what they request next.
//!
//! Most requests make sense. The rest are what real clients do wrong: they are late, repeat themselves, forge
//! receipts, name queues that do not exist, and go away before the answer.

mod admin;
mod attachments;
mod bounds;
mod bulks;
mod change;
mod consumers;
mod decode;
mod documents;
mod flows;
mod generate;
mod indexes;
mod keys;
mod locks;
mod names;
mod op;
mod queues;
mod results;
mod schedules;
mod search;
mod seen;
mod times;
mod transactions;
mod two_phase;

use std::collections::VecDeque;

use sluice_engine::command::{Command, Deliver, ScheduleFire, Settlement};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, Receipt, ReceiptKey};
use sluice_engine::item::SendOptions;
use sluice_engine::limits::Limits;
use sluice_engine::settings::{Backoff, QueuePatch, Quotas};

use crate::rng::Rng;
use attachments::AttachmentsKnown;
use documents::DocumentsKnown;
use locks::LocksKnown;

pub use attachments::AttachmentOp;
pub use bulks::{BulkChange, BulkOp};
pub use change::ChangeOp;
pub use consumers::ConsumerOp;
pub use decode::decode;
pub use documents::DocumentOp;
pub use flows::{GroupOp, Relations};
pub use indexes::{IndexOp, TERMS, terms_of};
pub use keys::LimitOp;
pub use locks::LockOp;
pub use names::QUEUES;
pub use queues::QueueOp;
pub use schedules::ScheduleOp;
pub use search::{SearchOp, TERMS_FOUND, term, value_of};
pub use seen::Seen;
pub use times::{Missed, Times};
pub use transactions::TransactionOp;
pub use two_phase::TwoPhaseOp;

/// A message to send.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// Unique among all messages of the run.
    pub payload: Vec<u8>,
    /// May be empty.
    pub content_type: &'static str,
    /// May be empty.
    pub headers: Vec<(&'static str, &'static str)>,
    /// May be empty.
    pub tags: Vec<&'static str>,
    /// 0 to 9; beyond that the send must be refused.
    pub priority: u8,
    /// Time of becoming ready.
    pub deliver: Deliver,
    /// Maximum number of attempts; 0: the queue's.
    pub max_attempts: u16,
    /// Backoff; `None`: the queue's.
    pub backoff: Option<Backoff>,
    /// Keys and other optional fields.
    pub options: SendOptions<'static>,
    /// Relations to other messages.
    pub relations: Relations,
}

/// A message to settle.
#[derive(Clone, PartialEq, Debug)]
pub struct Settled {
    /// Receipt of the delivery.
    pub receipt: Receipt,
    /// Kind of the settlement.
    pub settlement: Settlement,
    /// Error text; may be empty.
    pub error: String,
    /// Result of the work.
    pub result: Option<Vec<u8>>,
    /// Cost beyond that of the message.
    pub add_cost: u32,
}

/// A holder's report on its work.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkReport {
    /// Receipt of the delivery.
    pub receipt: Receipt,
    /// Lease from now, in milliseconds; 0: the queue's.
    pub lease_ms: u64,
    /// Percent and note.
    pub progress: Option<(u8, String)>,
    /// Checkpoint for the next attempt.
    pub checkpoint: Option<Vec<u8>>,
    /// Cost beyond that of the message and of earlier reports.
    pub add_cost: u32,
}

/// A blob as a client has sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentBlob<'a> {
    /// A blob with the layout of a payload.
    #[allow(missing_docs)] // The fields are those of a message of the same name.
    Message {
        content_type: &'a str,
        headers: &'a [(&'static str, &'static str)],
        tags: &'a [&'static str],
        payload: &'a [u8],
    },
    /// Plain text.
    Text(&'a str),
    /// Bytes as they are.
    Bytes(&'a [u8]),
}

impl<'a> SentBlob<'a> {
    /// A payload without other fields.
    pub const fn payload(payload: &'a [u8]) -> SentBlob<'a> {
        SentBlob::Message { content_type: "", headers: &[], tags: &[], payload }
    }

    /// Headers and tags without a payload.
    pub fn head(headers: &'a [(&'static str, &'static str)], tags: &'a [&'static str]) -> SentBlob<'a> {
        SentBlob::Message { content_type: "", headers, tags, payload: &[] }
    }
}

/// Commands of one feature that has a type of its own: see [`Op::feature`].
pub trait Lend {
    /// Calls `f` with the command, once.
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>));

    /// The blob with this number of the command's record.
    fn blob(&self, _number: usize) -> Option<SentBlob<'_>> {
        None
    }

    /// True when the generator meant this to be refused by the check of the request.
    fn is_wrong(&self) -> bool {
        false
    }
}

/// A command that owns its parts.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum Op {
    Send { namespace: NamespaceId, queue: String, key: Vec<u8>, digest: u64, items: Vec<Item> },
    Settle { namespace: NamespaceId, items: Vec<Settled> },
    Extend { namespace: NamespaceId, items: Vec<(Receipt, u64)> },
    Report { namespace: NamespaceId, items: Vec<WorkReport> },
    NamespaceCreate { number: Option<NamespaceId>, name: String, shard: u32, quotas: Quotas },
    NamespaceSet { namespace: NamespaceId, quotas: Quotas },
    NamespaceDelete { namespace: NamespaceId, force: bool },
    QueueSet { namespace: NamespaceId, queue: String, patch: QueuePatch, create: bool },
    QueuePurge { namespace: NamespaceId, queue: String },
    QueueDelete { namespace: NamespaceId, queue: String },
    DeadRedrive { namespace: NamespaceId, queue: String, ids: Vec<MessageId> },
    DeadDelete { namespace: NamespaceId, queue: String, ids: Vec<MessageId> },
    Node(NodeOp),
    Limit(LimitOp),
    Schedule(ScheduleOp),
    Change(ChangeOp),
    Bulk(BulkChange),
    Queue(QueueOp),
    Group(GroupOp),
    Consumer(ConsumerOp),
    Lock(LockOp),
    Document(DocumentOp),
    Attachment(AttachmentOp),
    Index(IndexOp),
    Search(SearchOp),
    Transaction(TransactionOp),
    TwoPhase(TwoPhaseOp),
}

/// A command that the node makes by itself.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum NodeOp {
    Epoch {
        number: u64,
        behaviour: u16,
    },
    ReceiptKey(ReceiptKey),
    Configure(Limits),
    Tick,
    Receive {
        namespace: NamespaceId,
        queues: Vec<(String, u16)>,
        max_messages: u32,
        max_bytes: u32,
        lease_ms: u64,
    },
    HoldDamaged {
        id: MessageId,
        blob: BlobRef,
    },
    Fire(ScheduleFire),
}

/// A request to pull messages.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Namespace.
    pub namespace: NamespaceId,
    /// Queues and weights.
    pub queues: Vec<(Box<str>, u16)>,
    /// Maximum number of messages.
    pub max_messages: u32,
    /// Maximum number of payload bytes.
    pub max_bytes: u32,
    /// Lease in milliseconds; 0: the queue's.
    pub lease_ms: u64,
    /// Longest wait, in microseconds.
    pub wait_us: u64,
}

/// Source of random operations; keeps what the clients hold.
#[derive(Debug)]
pub struct Generator {
    /// The shard that these clients use.
    shard: u32,
    rng: Rng,
    /// Receipts of deliveries that clients hold and have not settled, as far as they know.
    held: Vec<Receipt>,
    spent: VecDeque<Receipt>,
    keyed: VecDeque<Op>,
    payloads: u64,
    payload_bytes_max: u64,
    /// True when messages have fair keys only, and queues no limits: then the model knows whose turn it is.
    fair_only: bool,
    /// True when messages have relations. Changes by people and dead-letter queues are tested in the other
    /// runs.
    relates: bool,
    /// True with unique messages, messages that end, and bounded queues. Such runs have no redrives at a
    /// rate, since nothing shows whose turn has passed among dead letters that cannot be redriven; and no
    /// dead-letter queues, since nothing shows which of the messages that end at one time went first, and
    /// which found no room.
    bounded: bool,
    /// True with attached consumers, beside those that pull.
    attaches: bool,
    /// True when all features are mixed, with narrow limits. Such runs have no model.
    mixes: bool,
    /// Locks; `None`: clients use none in this run.
    locks: Option<LocksKnown>,
    /// Documents; `None`: clients use none in this run.
    documents: Option<DocumentsKnown>,
    /// Attachments; `None`: clients use none in this run.
    attachments: Option<AttachmentsKnown>,
    /// The draws about transactions; `None`: clients use none in this run.
    transactions: Option<Rng>,
    /// The draws about indexes of messages; `None`: queues have none in this run.
    searches: Option<Rng>,
}
