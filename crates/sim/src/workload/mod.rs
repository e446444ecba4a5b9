//! The clients: what they know, and what they ask next.
//!
//! Most of what they ask makes sense. The rest is what real clients do: they are late, repeat themselves,
//! forge receipts, name queues that are not there, and go away while the answer is on its way.

mod admin;
mod bounds;
mod bulks;
mod change;
mod consumers;
mod decode;
mod flows;
mod generate;
mod keys;
mod names;
mod op;
mod queues;
mod results;
mod schedules;
mod seen;
mod times;

use std::collections::VecDeque;

use sluice_engine::command::{Command, Deliver, ScheduleFire, Settlement};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, Receipt, ReceiptKey};
use sluice_engine::item::SendOptions;
use sluice_engine::limits::Limits;
use sluice_engine::settings::{Backoff, QueuePatch, Quotas};

use crate::rng::Rng;

pub use bulks::{BulkChange, BulkOp};
pub use change::ChangeOp;
pub use consumers::ConsumerOp;
pub use decode::decode;
pub use flows::{GroupOp, Relations};
pub use keys::LimitOp;
pub use names::QUEUES;
pub use queues::QueueOp;
pub use schedules::ScheduleOp;
pub use seen::Seen;
pub use times::{Missed, Times};

/// One message to send.
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
    /// When it becomes ready.
    pub deliver: Deliver,
    /// 0: the queue's.
    pub max_attempts: u16,
    /// `None`: the queue's.
    pub backoff: Option<Backoff>,
    /// Keys and other optional fields.
    pub options: SendOptions<'static>,
    /// What it has to do with others.
    pub relations: Relations,
}

/// One message to settle.
#[derive(Clone, PartialEq, Debug)]
pub struct Settled {
    /// The delivery.
    pub receipt: Receipt,
    /// How it ends.
    pub settlement: Settlement,
    /// May be empty.
    pub error: String,
    /// What the work gave.
    pub result: Option<Vec<u8>>,
}

/// What one holder tells of its work.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkReport {
    /// The delivery.
    pub receipt: Receipt,
    /// 0: the queue's.
    pub lease_ms: u64,
    /// Percent and note.
    pub progress: Option<(u8, String)>,
    /// What the next attempt gets.
    pub checkpoint: Option<Vec<u8>>,
}

/// A blob as a client has sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentBlob<'a> {
    /// Laid out as a payload.
    #[allow(missing_docs)] // The fields are those of a message of the same name.
    Message {
        content_type: &'a str,
        headers: &'a [(&'static str, &'static str)],
        tags: &'a [&'static str],
        payload: &'a [u8],
    },
    /// Nothing but text.
    Text(&'a str),
}

impl<'a> SentBlob<'a> {
    /// Bytes alone, laid out as a payload.
    pub const fn payload(payload: &'a [u8]) -> SentBlob<'a> {
        SentBlob::Message { content_type: "", headers: &[], tags: &[], payload }
    }

    /// Headers and tags alone.
    pub fn head(headers: &'a [(&'static str, &'static str)], tags: &'a [&'static str]) -> SentBlob<'a> {
        SentBlob::Message { content_type: "", headers, tags, payload: &[] }
    }
}

/// The commands of one feature, as a type of their own: see [`Op::feature`].
pub trait Lend {
    /// Lends the command, once.
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>));

    /// The blob with this number of its record.
    fn blob(&self, _number: usize) -> Option<SentBlob<'_>> {
        None
    }

    /// Whether it is meant to be refused at the door.
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

/// What a pull asks.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where.
    pub namespace: NamespaceId,
    /// Queues and weights.
    pub queues: Vec<(Box<str>, u16)>,
    /// Most messages.
    pub max_messages: u32,
    /// Most bytes.
    pub max_bytes: u32,
    /// 0: the queue's.
    pub lease_ms: u64,
    /// How long it may wait.
    pub wait_us: u64,
}

/// Draws operations, and keeps what the clients have in their hands.
#[derive(Debug)]
pub struct Generator {
    /// The shard that these clients use.
    shard: u32,
    rng: Rng,
    /// Deliveries that clients hold and have not settled, as far as they know.
    held: Vec<Receipt>,
    spent: VecDeque<Receipt>,
    keyed: VecDeque<Op>,
    payloads: u64,
    payload_bytes_max: u64,
    /// Whether messages get no other keys than fair ones, and queues no limits: then the model knows whose
    /// turn it is.
    fair_only: bool,
    /// Whether messages have to do with others. What people change of messages, and where queues send them,
    /// is tried in the other runs.
    relates: bool,
    /// Whether there are unique messages, messages that end, and full queues. Then there are no redrives at a
    /// rate, as of dead letters that cannot be redriven nobody sees from outside whose turn has passed; and
    /// no queues for dead letters, as of what ends at one time nobody sees which went first, and which found
    /// no room.
    bounded: bool,
    /// Whether there are consumers with credit, beside those that pull.
    attaches: bool,
    /// Whether all of this is mixed, with narrow limits. The model is left out then.
    mixes: bool,
}
