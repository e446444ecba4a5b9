//! What the model remembers: plain maps of plain things, nothing shared and nothing kept twice.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId, Receipt};
use sluice_engine::limits::Limits;
use sluice_engine::query::{AttemptEnd, Counters, State};
use sluice_engine::settings::{Backoff, QueuePatch, QueueSettings, Quotas};
use sluice_node::Duplicates;

use super::change::Changes;
use super::consumers::Consumer;
use super::expiry::End;
use super::fair::{Lane, LaneKey};
use super::flows::Flow;
use super::keys::{Keys, Limited, Turn};
use super::placement::Turns;
use super::queues::{Origin, Redrive};
use super::results::{Asked, Told};
use super::schedules::Schedule;
use super::unique::{Taken, Unique};

/// Where a ready message stands among those of its priority. What became ready by one apply for another
/// reason than being sent has no order among itself that a client could rely on, except by the time that it
/// was due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Line {
    /// Number of the apply that made it ready.
    pub(super) step: u64,
    /// Its place in that apply's line, where there is one.
    pub(super) place: u64,
}

/// Where a message is, and what goes with that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
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

impl Place {
    pub(super) fn state(self) -> State {
        match self {
            Place::Delayed { .. } => State::Delayed,
            Place::Ready { .. } => State::Ready,
            Place::Leased { .. } => State::Leased,
            Place::Held { .. } => State::Held,
            Place::Dead { .. } => State::Dead,
            Place::Done { .. } => State::Done,
        }
    }
}

/// An attempt that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    pub(super) number: u16,
    pub(super) end: AttemptEnd,
    pub(super) started_us: u64,
    pub(super) error_len: u32,
}

/// One message.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Message {
    pub(super) queue: QueueId,
    pub(super) blob: BlobRef,
    pub(super) priority: u8,
    /// 0: the queue's.
    pub(super) max_attempts: u16,
    pub(super) backoff: Option<Backoff>,
    pub(super) sent_us: u64,
    pub(super) attempts: u16,
    pub(super) deliveries: u16,
    pub(super) place: Place,
    pub(super) history: Vec<Ended>,
    pub(super) keys: Keys,
    pub(super) asked: Asked,
    pub(super) told: Told,
    pub(super) changes: Changes,
    pub(super) turn: Turn,
    pub(super) origin: Option<Origin>,
    /// Its place among the dead, by the order of dying.
    pub(super) died: Line,
    pub(super) flow: Flow,
    pub(super) end: End,
    pub(super) unique: Option<Unique>,
    /// The latest consumer that it was given to, and the token.
    pub(super) pushed: Option<(u64, u64)>,
}

impl Message {
    /// One that its sender says nothing special of; not placed.
    pub(super) fn new(blob: BlobRef) -> Message {
        Message {
            queue: QueueId(0),
            blob,
            priority: 0,
            max_attempts: 0,
            backoff: None,
            sent_us: 0,
            attempts: 0,
            deliveries: 0,
            place: Place::Held { reason: "" },
            history: Vec::new(),
            keys: Keys::default(),
            asked: Asked::default(),
            told: Told::default(),
            changes: Changes::default(),
            turn: Turn::default(),
            origin: None,
            died: Line::default(),
            flow: Flow::default(),
            end: End::default(),
            unique: None,
            pushed: None,
        }
    }

    /// Name of the queue in which it died, if that was another one; else empty.
    pub(super) fn origin_queue(&self) -> &str {
        self.origin.as_ref().map_or("", |origin| &origin.queue)
    }

    /// Attempts that it may have in a queue with these settings.
    pub(super) fn max_attempts(&self, settings: &QueueSettings) -> u16 {
        if self.max_attempts == 0 { settings.max_attempts } else { self.max_attempts }
    }
}

/// One queue.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Queue {
    pub(super) namespace: NamespaceId,
    pub(super) name: String,
    pub(super) settings: QueueSettings,
    /// The totals only: states and bytes are counted from the messages.
    pub(super) totals: Counters,
    pub(super) created_us: u64,
    /// Whether a message with a key ever came to it.
    pub(super) keyed: bool,
    /// Whether one that may be blocked did.
    pub(super) blocks: bool,
    /// Whether one that may end while it waits did: turns are not followed then, as ends empty lanes.
    pub(super) ends: bool,
    /// Whether it is too long since something was sent, and its oldest messages go.
    pub(super) makes_room: bool,
}

/// One namespace.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Namespace {
    pub(super) name: String,
    /// The shard that it lives on.
    pub(super) shard: u32,
    pub(super) quotas: Quotas,
    /// The largest id given so far.
    pub(super) last_sequence: u64,
}

impl Namespace {
    pub(super) fn new(name: &str, shard: u32, quotas: Quotas) -> Namespace {
        Namespace { name: name.to_owned(), shard, quotas, last_sequence: 0 }
    }
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
pub(super) struct Keyed {
    pub(super) digest: u64,
    pub(super) first: MessageId,
    pub(super) count: u32,
    pub(super) duplicates: Option<Duplicates>,
    pub(super) at_us: u64,
}

/// All of it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct World {
    pub(super) limits: Limits,
    pub(super) epoch: u64,
    /// Applies so far.
    pub(super) step: u64,
    pub(super) now_us: u64,
    pub(super) namespaces: BTreeMap<NamespaceId, Namespace>,
    pub(super) queues: BTreeMap<QueueId, Queue>,
    pub(super) messages: BTreeMap<MessageId, Message>,
    pub(super) keys: BTreeMap<(QueueId, Vec<u8>), Keyed>,
    /// The message that has taken a unique key last.
    pub(super) unique: BTreeMap<(QueueId, Vec<u8>), Taken>,
    pub(super) queue_limits: BTreeMap<(NamespaceId, String), Limited>,
    /// What queues begin with, by pattern.
    pub(super) queue_defaults: BTreeMap<(NamespaceId, String), QueuePatch>,
    pub(super) redrives: BTreeMap<QueueId, Redrive>,
    /// Dead letters of a redrive of all that the engine may not have looked at yet.
    pub(super) sweeps: BTreeMap<QueueId, BTreeSet<MessageId>>,
    pub(super) lanes: BTreeMap<LaneKey, Lane>,
    pub(super) schedules: BTreeMap<(NamespaceId, String), Schedule>,
    /// The largest number of a schedule given so far.
    pub(super) last_schedule: u64,
    pub(super) consumers: BTreeMap<u64, Consumer>,
    /// The largest number of a consumer given so far.
    pub(super) last_consumer: u64,
    pub(super) turns: Turns,
    /// Versions of the messages that the next record changes, as they are before it.
    pub(super) versions: BTreeMap<MessageId, u64>,
    /// Receipts that have settled their message.
    pub(super) settled: BTreeSet<Receipt>,
    /// All receipts ever given.
    pub(super) given: BTreeSet<Receipt>,
    /// Receipts of namespaces that were deleted. One may be made anew under its number, where the log that
    /// gave the number has lost its end: it is up to the engine then what it knows of them.
    pub(super) outlived: BTreeSet<Receipt>,
    /// The largest token given so far.
    pub(super) last_token: u64,
    pub(super) last_namespace: u32,
    /// Numbers of namespaces that are deleted: not free again before all that they held is swept.
    pub(super) deleted_namespaces: BTreeSet<NamespaceId>,
    pub(super) last_queue: Option<QueueId>,
}

impl World {
    /// Before the first record: the two namespaces that always exist.
    pub(super) fn empty() -> World {
        let always = |id, name: &str| (id, Namespace::new(name, 0, Quotas::default()));
        World {
            limits: Limits::default(),
            epoch: 0,
            step: 0,
            now_us: 0,
            namespaces: BTreeMap::from([
                always(NamespaceId::SYS, "$sys"),
                always(NamespaceId::DEFAULT, "default"),
            ]),
            queues: BTreeMap::new(),
            messages: BTreeMap::new(),
            keys: BTreeMap::new(),
            unique: BTreeMap::new(),
            queue_limits: BTreeMap::new(),
            queue_defaults: BTreeMap::new(),
            redrives: BTreeMap::new(),
            sweeps: BTreeMap::new(),
            lanes: BTreeMap::new(),
            schedules: BTreeMap::new(),
            last_schedule: 0,
            consumers: BTreeMap::new(),
            last_consumer: 0,
            turns: Turns::default(),
            versions: BTreeMap::new(),
            settled: BTreeSet::new(),
            given: BTreeSet::new(),
            outlived: BTreeSet::new(),
            last_token: 0,
            last_namespace: NamespaceId::DEFAULT.0,
            deleted_namespaces: BTreeSet::new(),
            last_queue: None,
        }
    }

    pub(super) fn queue_named(&self, namespace: NamespaceId, name: &str) -> Option<QueueId> {
        let named = |(id, queue): (&QueueId, &Queue)| {
            (queue.namespace == namespace && queue.name == name).then_some(*id)
        };
        self.queues.iter().find_map(named)
    }

    pub(super) fn messages_of(&self, queue: QueueId) -> impl Iterator<Item = (&MessageId, &Message)> {
        self.messages.iter().filter(move |(_, message)| message.queue == queue)
    }

    /// All that lies in the log and is needed.
    pub(super) fn blobs(&self) -> impl Iterator<Item = (Holder<'_>, BlobRef)> {
        let of_messages = self
            .messages
            .iter()
            .flat_map(|(id, message)| message.blobs().map(|blob| (Holder::Message(*id), blob)));
        let of_schedules =
            self.schedules.iter().map(|((_, name), schedule)| (Holder::Schedule(name), schedule.blob()));
        of_messages.chain(of_schedules)
    }

    /// The counters that the queue must show.
    pub(super) fn counters(&self, id: QueueId) -> Counters {
        let mut counters = self.queues.get(&id).map(|queue| queue.totals).unwrap_or_default();
        for (_, message) in self.messages_of(id) {
            counters.states[message.place.state() as usize] += 1;
            counters.bytes += u64::from(message.blob.len);
        }
        counters
    }

    /// Messages and bytes of a namespace.
    pub(super) fn usage(&self, namespace: NamespaceId) -> (u64, u64) {
        let of =
            |message: &&Message| self.queues.get(&message.queue).is_some_and(|q| q.namespace == namespace);
        self.messages
            .values()
            .filter(of)
            .fold((0, 0), |(count, bytes), message| (count + 1, bytes + u64::from(message.blob.len)))
    }
}
