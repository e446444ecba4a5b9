//! The model: what must be true, told as naively as possible.
//!
//! It is given every committed command, with the engine's outcome, and follows: where the rules leave no
//! choice it predicts the outcome and compares; where they leave one (the order of what became ready at the
//! same moment, the jitter of a backoff, when exactly a due timer fires) it checks that the engine chose
//! within them, and goes on from what the engine chose. It keeps maps and counts by counting, so that it
//! shares no cleverness with the engine.
//!
//! What is true of crashes is not told here but in [`crate::world`]: the log that recovery gives is a prefix
//! of what was proposed, and the model is led along that prefix again.

mod admin;
mod apply;
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

use change::Changes;
use consumers::Consumer;
use expiry::End;
use fair::{FairLane, LaneKey};
use flows::Flow;
use keys::{Keys, Limited, Turn};
use placement::Turns;
use queues::{Origin, Redrive};
use results::{HolderReport, ResultOptions};
use schedules::Schedule;
use unique::{Taken, Unique};

/// What a rule says when it is broken.
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

/// One apply, as the model sees it.
struct Apply<'a> {
    world: &'a mut ModelState,
    index: u64,
    now_us: u64,
    outcome: &'a Outcome,
    engine: &'a Engine,
    /// Messages that wait between these delays from now: which one exactly is the engine's choice.
    unsure: Vec<(MessageId, u64, u64)>,
    /// Places given in this apply's line.
    place: u64,
    /// The place of what the timer that fires now brings about.
    firing: Option<u64>,
    /// Replies that were lost for want of a queue: each may have used up an id.
    lost: u64,
    /// Lanes that keep their place although their first message may have come in this record.
    kept_lanes: BTreeSet<LaneKey>,
    /// Queues to which something has come as a consequence: when, among what else became ready in this
    /// record, is not followed.
    blurred: BTreeSet<QueueId>,
    /// Messages that end in this record if they are over.
    ends: Vec<MessageId>,
    /// What was seen to be wrong where there was nobody to tell.
    broken: Option<String>,
    /// Messages that have failed, as they were, and why; what follows them is seen at the end.
    failed: Vec<(MessageId, Message, &'static str)>,
}

impl Model {
    /// Before the first record.
    pub fn new() -> Model {
        Model { world: ModelState::empty() }
    }

    /// Follows one record. `engine` has just applied it.
    ///
    /// # Errors
    /// Which rule was broken, and how.
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

    /// What lies in the log for messages and schedules, with whose it is.
    pub fn blobs(&self) -> impl Iterator<Item = (Holder<'_>, BlobRef)> {
        self.world.blobs()
    }
}

impl Default for Model {
    fn default() -> Self {
        Model::new()
    }
}

/// Where a ready message stands among those of its priority. What became ready by one apply for another
/// reason than being sent has no order among itself that a client could rely on, except by the time that it
/// was due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Line {
    /// Number of the apply that made it ready.
    step: u64,
    /// Its place in that apply's line, where there is one.
    place: u64,
}

/// Where a message is, and what goes with that.
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
    /// Kept until then in any case, and beyond as its queue says.
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
    /// Its place among the dead, by the order of dying.
    died: Line,
    flow: Flow,
    end: End,
    unique: Option<Unique>,
    /// The latest consumer that it was given to, and the token.
    pushed: Option<(u64, u64)>,
}

/// One queue.
#[derive(Clone, PartialEq, Debug)]
struct Queue {
    namespace: NamespaceId,
    name: String,
    settings: QueueSettings,
    /// The totals only: states and bytes are counted from the messages.
    totals: Counters,
    created_us: u64,
    /// Whether a message with a key ever came to it.
    keyed: bool,
    /// Whether one that may be blocked did.
    blocks: bool,
    /// Whether one that may end while it waits did: turns are not followed then, as ends empty lanes.
    ends: bool,
    /// Whether it is too long since something was sent, and its oldest messages go.
    makes_room: bool,
}

/// One namespace.
#[derive(Clone, PartialEq, Debug)]
struct Namespace {
    name: String,
    /// The shard that it lives on.
    shard: u32,
    quotas: Quotas,
    /// The largest id given so far.
    last_sequence: u64,
}

/// The owner of something in the log.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// A message's.
    Message(MessageId),
    /// A schedule's.
    Schedule(&'a str),
}

/// What a key got the first time.
#[derive(Clone, PartialEq, Debug)]
struct Keyed {
    digest: u64,
    first: MessageId,
    count: u32,
    duplicates: Option<Duplicates>,
    at_us: u64,
}

/// All of it.
#[derive(Clone, PartialEq, Debug)]
struct ModelState {
    limits: Limits,
    epoch: u64,
    /// Applies so far.
    step: u64,
    now_us: u64,
    namespaces: BTreeMap<NamespaceId, Namespace>,
    queues: BTreeMap<QueueId, Queue>,
    messages: BTreeMap<MessageId, Message>,
    keys: BTreeMap<(QueueId, Vec<u8>), Keyed>,
    /// The message that has taken a unique key last.
    unique: BTreeMap<(QueueId, Vec<u8>), Taken>,
    queue_limits: BTreeMap<(NamespaceId, String), Limited>,
    /// What queues begin with, by pattern.
    queue_defaults: BTreeMap<(NamespaceId, String), QueuePatch>,
    redrives: BTreeMap<QueueId, Redrive>,
    /// Dead letters of a redrive of all that the engine may not have looked at yet.
    sweeps: BTreeMap<QueueId, BTreeSet<MessageId>>,
    lanes: BTreeMap<LaneKey, FairLane>,
    schedules: BTreeMap<(NamespaceId, String), Schedule>,
    /// The largest number of a schedule given so far.
    last_schedule: u64,
    consumers: BTreeMap<u64, Consumer>,
    /// The largest number of a consumer given so far.
    last_consumer: u64,
    turns: Turns,
    /// Versions of the messages that the next record changes, as they are before it.
    versions: BTreeMap<MessageId, u64>,
    /// Receipts that have settled their message.
    settled: BTreeSet<Receipt>,
    /// All receipts ever given.
    given: BTreeSet<Receipt>,
    /// Receipts of namespaces that were deleted. One may be made anew under its number, where the log that
    /// gave the number has lost its end: it is up to the engine then what it knows of them.
    outlived: BTreeSet<Receipt>,
    /// The largest token given so far.
    last_token: u64,
    last_namespace: u32,
    /// Numbers of namespaces that are deleted: not free again before all that they held is swept.
    deleted_namespaces: BTreeSet<NamespaceId>,
    last_queue: Option<QueueId>,
}
