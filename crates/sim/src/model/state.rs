//! State of the model: plain maps; nothing is shared or kept twice.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId};
use sluice_engine::limits::Limits;
use sluice_engine::query::{Counters, State};
use sluice_engine::settings::{QueueSettings, Quotas};

use super::change::Changes;
use super::expiry::End;
use super::flows::Flow;
use super::keys::{Keys, Turn};
use super::placement::Turns;
use super::results::{HolderReport, ResultOptions};
use super::{Holder, Line, Message, MessagePlace, ModelState, Namespace, Queue};

impl MessagePlace {
    pub(super) fn state(self) -> State {
        match self {
            MessagePlace::Delayed { .. } => State::Delayed,
            MessagePlace::Ready { .. } => State::Ready,
            MessagePlace::Leased { .. } => State::Leased,
            MessagePlace::Held { .. } => State::Held,
            MessagePlace::Dead { .. } => State::Dead,
            MessagePlace::Done { .. } => State::Done,
        }
    }
}

impl Message {
    /// A message without special options; it has no place yet.
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
            place: MessagePlace::Held { reason: "" },
            history: Vec::new(),
            keys: Keys::default(),
            asked: ResultOptions::default(),
            told: HolderReport::default(),
            changes: Changes::default(),
            turn: Turn::default(),
            origin: None,
            died: Line::default(),
            unapproved: false,
            flow: Flow::default(),
            end: End::default(),
            unique: None,
            pushed: None,
        }
    }

    /// Name of the queue in which it died, if another one; else empty.
    pub(super) fn origin_queue(&self) -> &str {
        self.origin.as_ref().map_or("", |origin| &origin.queue)
    }

    /// Maximum number of attempts in a queue with these settings.
    pub(super) fn max_attempts(&self, settings: &QueueSettings) -> u16 {
        if self.max_attempts == 0 { settings.max_attempts } else { self.max_attempts }
    }
}

impl Namespace {
    pub(super) fn new(name: &str, shard: u32, quotas: Quotas) -> Namespace {
        Namespace { name: name.to_owned(), shard, quotas, last_sequence: 0 }
    }
}

impl ModelState {
    /// State before the first record: the two namespaces that always exist.
    pub(super) fn empty() -> ModelState {
        let always = |id, name: &str| (id, Namespace::new(name, 0, Quotas::default()));
        ModelState {
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
            documents: BTreeMap::new(),
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

    /// All blobs in the log that are needed, each with its owner.
    pub(super) fn blobs(&self) -> impl Iterator<Item = (Holder<'_>, BlobRef)> {
        let of_messages = self
            .messages
            .iter()
            .flat_map(|(id, message)| message.blobs().map(|blob| (Holder::Message(*id), blob)));
        let of_schedules =
            self.schedules.iter().map(|((_, name), schedule)| (Holder::Schedule(name), schedule.blob()));
        let of_documents =
            self.documents.iter().map(|(blob, namespace)| (Holder::Document(*namespace), *blob));
        of_messages.chain(of_schedules).chain(of_documents)
    }

    /// Counters that the queue must show.
    pub(super) fn counters(&self, id: QueueId) -> Counters {
        let mut counters = self.queues.get(&id).map(|queue| queue.totals).unwrap_or_default();
        for (_, message) in self.messages_of(id) {
            counters.states[message.place.state() as usize] += 1;
            counters.bytes += u64::from(message.blob.len);
        }
        counters
    }

    /// Number of messages and bytes of a namespace.
    pub(super) fn usage(&self, namespace: NamespaceId) -> (u64, u64) {
        let of =
            |message: &&Message| self.queues.get(&message.queue).is_some_and(|q| q.namespace == namespace);
        let in_documents = self
            .documents
            .iter()
            .filter(|(_, of)| **of == namespace)
            .map(|(blob, _)| u64::from(blob.len))
            .sum();
        self.messages.values().filter(of).fold((0, in_documents), |(count, bytes), message| {
            (count + 1, bytes + u64::from(message.blob.len))
        })
    }
}
