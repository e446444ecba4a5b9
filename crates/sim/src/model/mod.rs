//! The model: the rules of the engine, written as plainly as possible.
//!
//! It gets every committed command with the engine's outcome. Where the rules leave no choice it predicts the
//! outcome and compares. Where they leave one (the order of what became ready at the same moment, the jitter
//! of a backoff, the moment at which a due timer fires) it checks that the engine's choice is allowed, and
//! takes it over. It keeps plain maps and counts by counting, so that it shares no algorithm with the engine.
//!
//! The rules of crashes are in [`crate::world`]: the recovered log is a prefix of what was proposed, and the
//! model is led along that prefix again.

mod admin;
mod apply;
mod budgets;
mod change;
mod compare;
mod consumers;
mod dead;
mod expiry;
mod fair;
mod flows;
mod item;
mod keys;
mod length;
mod own_sends;
mod placement;
mod places;
mod queues;
mod receive;
mod results;
mod schedules;
mod send;
mod settle;
mod state;
#[cfg(test)]
mod stories;
mod time;
mod transactions;
mod unique;

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Engine;
use sluice_engine::command::Command;
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId, Receipt};
use sluice_engine::limits::Limits;
use sluice_engine::outcome::Outcome;
use sluice_engine::query::{AttemptEnd, Counters};
use sluice_engine::settings::{Backoff, QueuePatch, QueueSettings, Quotas};
use sluice_node::Duplicates;

use budgets::Limited;
use change::Changes;
use consumers::Consumer;
use expiry::End;
use fair::{FairLane, LaneKey};
use flows::Flow;
use keys::{Keys, Turn};
use placement::Turns;
use queues::{Origin, Redrive};
use results::{HolderReport, ResultOptions};
use schedules::Schedule;
use unique::{Taken, Unique};

/// Result of a check; the error says which rule was broken, and how.
pub type Checked = Result<(), String>;

/// Returns `Err` with a formatted sentence unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}
pub(crate) use ensure;

/// The model of one shard.
#[derive(Clone, Debug)]
pub struct Model {
    world: ModelState,
}

/// The application of one record.
struct Apply<'a> {
    world: &'a mut ModelState,
    index: u64,
    now_us: u64,
    outcome: &'a Outcome,
    engine: &'a Engine,
    /// Messages that wait, with the least and the longest delay from now, in microseconds; the engine chooses
    /// in between.
    unsure: Vec<(MessageId, u64, u64)>,
    /// Last position given among what this record makes ready.
    place: u64,
    /// Position for the consequences of the timer that fires now.
    firing: Option<u64>,
    /// Replies lost for want of a queue: each may have used up an id.
    lost: u64,
    /// Lanes that keep their place although their first message may have come in this record.
    kept_lanes: BTreeSet<LaneKey>,
    /// Queues to which a consequence has added a message: its order among everything else that became ready
    /// in this record is not followed.
    blurred: BTreeSet<QueueId>,
    /// Messages that end in this record if their time is over.
    ends: Vec<MessageId>,
    /// First broken rule found where no error can be returned.
    broken: Option<String>,
    /// Messages that have failed, as they were, and the reason; their consequences are checked at the end.
    failed: Vec<(MessageId, Message, &'static str)>,
}

impl Model {
    /// State before the first record.
    pub fn new() -> Model {
        Model { world: ModelState::empty() }
    }

    /// Applies one record, which `engine` has just applied.
    ///
    /// # Errors
    /// The rule that was broken, and how.
    pub fn apply(
        &mut self,
        now_us: u64,
        index: u64,
        command: &Command<'_>,
        outcome: &Outcome,
        engine: &Engine,
    ) -> Checked {
        ensure!(now_us >= self.world.now_us, "time ran backwards: {} after {}", now_us, self.world.now_us);
        self.world.now_us = now_us;
        self.world.step += 1;
        let world = &mut self.world;
        let mut apply = Apply {
            world,
            index,
            now_us,
            outcome,
            engine,
            unsure: Vec::new(),
            place: 0,
            firing: None,
            lost: 0,
            kept_lanes: BTreeSet::new(),
            blurred: BTreeSet::new(),
            ends: Vec::new(),
            broken: None,
            failed: Vec::new(),
        };
        apply.run(command)
    }

    /// Blobs in the log that messages and schedules refer to, each with its owner.
    pub fn blobs(&self) -> impl Iterator<Item = (Holder<'_>, BlobRef)> {
        self.world.blobs()
    }
}

impl Default for Model {
    fn default() -> Self {
        Model::new()
    }
}

/// Position of a ready message among those of its priority. Messages that became ready in one record, other
/// than by a send, have no order that a client could rely on, except that of their due times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Line {
    /// Number of the record that made the message ready.
    step: u64,
    /// Position within that record; 0 where there is no order.
    place: u64,
}

/// State of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MessagePlace {
    Delayed {
        until_us: u64,
    },
    Ready {
        line: Line,
    },
    Leased {
        token: u64,
        until_us: u64,
        since_us: u64,
    },
    Held {
        reason: &'static str,
    },
    Dead {
        reason: &'static str,
    },
    /// Kept until `until_us` in any case, and longer as its queue says.
    Done {
        done_us: u64,
        until_us: u64,
        result: Option<BlobRef>,
    },
}

/// An attempt that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Ended {
    number: u16,
    end: AttemptEnd,
    started_us: u64,
    error_len: u32,
}

/// One message.
#[derive(Clone, PartialEq, Debug)]
struct Message {
    queue: QueueId,
    blob: BlobRef,
    priority: u8,
    /// 0: the queue's.
    max_attempts: u16,
    backoff: Option<Backoff>,
    sent_us: u64,
    attempts: u16,
    deliveries: u16,
    place: MessagePlace,
    history: Vec<Ended>,
    keys: Keys,
    asked: ResultOptions,
    told: HolderReport,
    changes: Changes,
    turn: Turn,
    origin: Option<Origin>,
    /// Position among the dead letters, in the order of dying.
    died: Line,
    /// Held when it died.
    unapproved: bool,
    flow: Flow,
    end: End,
    unique: Option<Unique>,
    /// Last consumer that it was given to, and the token.
    pushed: Option<(u64, u64)>,
}

/// One queue.
#[derive(Clone, PartialEq, Debug)]
struct Queue {
    namespace: NamespaceId,
    name: String,
    settings: QueueSettings,
    /// Totals only: states and bytes are counted from the messages.
    totals: Counters,
    created_us: u64,
    /// True if a message with a key ever came to it.
    keyed: bool,
    /// True if a message that parents may block ever came to it.
    blocks: bool,
    /// True if a message with an end ever came to it: turns are not followed then, since ends empty lanes.
    ends: bool,
    /// True if it was beyond its maximum length after a send: its oldest messages are dropped.
    makes_room: bool,
}

/// One namespace.
#[derive(Clone, PartialEq, Debug)]
struct Namespace {
    name: String,
    /// Number of the shard that it lives on.
    shard: u32,
    quotas: Quotas,
    /// Largest sequence number given so far.
    last_sequence: u64,
}

/// Owner of a blob in the log.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// A message.
    Message(MessageId),
    /// A schedule, by name.
    Schedule(&'a str),
    /// A document of a namespace.
    Document(NamespaceId),
}

/// Outcome of the first send with an idempotency key.
#[derive(Clone, PartialEq, Debug)]
struct Keyed {
    digest: u64,
    first: MessageId,
    count: u32,
    duplicates: Option<Duplicates>,
    at_us: u64,
}

/// The model's whole state.
#[derive(Clone, PartialEq, Debug)]
struct ModelState {
    limits: Limits,
    epoch: u64,
    /// Number of records applied.
    step: u64,
    now_us: u64,
    namespaces: BTreeMap<NamespaceId, Namespace>,
    queues: BTreeMap<QueueId, Queue>,
    messages: BTreeMap<MessageId, Message>,
    keys: BTreeMap<(QueueId, Vec<u8>), Keyed>,
    /// Last message that took a unique key.
    unique: BTreeMap<(QueueId, Vec<u8>), Taken>,
    queue_limits: BTreeMap<(NamespaceId, String), Limited>,
    /// Defaults of new queues, by pattern.
    queue_defaults: BTreeMap<(NamespaceId, String), QueuePatch>,
    redrives: BTreeMap<QueueId, Redrive>,
    /// Dead letters of a redrive of all that the engine may not have come to yet.
    sweeps: BTreeMap<QueueId, BTreeSet<MessageId>>,
    lanes: BTreeMap<LaneKey, FairLane>,
    schedules: BTreeMap<(NamespaceId, String), Schedule>,
    /// Versions of documents that are not let go of, by their blobs. `lives` follows what they are.
    documents: BTreeMap<BlobRef, NamespaceId>,
    /// Largest number of a schedule given so far.
    last_schedule: u64,
    consumers: BTreeMap<u64, Consumer>,
    /// Largest number of a consumer given so far.
    last_consumer: u64,
    turns: Turns,
    /// Versions, before the next record, of the messages that it changes.
    versions: BTreeMap<MessageId, u64>,
    /// Receipts that have settled their message.
    settled: BTreeSet<Receipt>,
    /// All receipts ever given.
    given: BTreeSet<Receipt>,
    /// Receipts of deleted namespaces. Where the log has lost its end, a new namespace may get the number
    /// again: then the engine may or may not know these receipts.
    outlived: BTreeSet<Receipt>,
    /// Largest token given so far.
    last_token: u64,
    last_namespace: u32,
    /// Numbers of deleted namespaces: not free again before everything in them is swept.
    deleted_namespaces: BTreeSet<NamespaceId>,
    last_queue: Option<QueueId>,
}
