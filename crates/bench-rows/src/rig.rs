//! An engine on a memory journal: the path that the rows measure, on one thread.

use sluice_alloc_count::counts;
use sluice_engine::command::{Command, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{NamespaceId, Receipt};
use sluice_engine::limit::LimitRules;
use sluice_engine::outcome::Delivery;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Engine, Outcome};
use sluice_journal::{Batch, BlobKey, BlobRead, Class, Event, Journal, MemoryJournal};
use sluice_record::write_record;

/// Names of the queues that rows use.
pub const QUEUES: [&str; 20] = [
    "queue-00", "queue-01", "queue-02", "queue-03", "queue-04", "queue-05", "queue-06", "queue-07",
    "queue-08", "queue-09", "queue-10", "queue-11", "queue-12", "queue-13", "queue-14", "queue-15",
    "queue-16", "queue-17", "queue-18", "queue-19",
];
/// The one header that messages have, where they have one.
pub const HEADER: &[(&str, &str)] = &[("x-request", "0123456789abcdef")];
/// Name of the limit that rows follow.
const LIMIT: &str = "limit";
/// Largest payload of a row.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Messages of one send when a queue is filled.
const FILL: u64 = 1_000;
/// Leases that no benchmark outlives.
const LEASE_MS: u64 = 3_600_000;
const START_US: u64 = 1_700_000_000_000_000;

static PAYLOAD: [u8; PAYLOAD_BYTES_MAX] = [b'p'; PAYLOAD_BYTES_MAX];

/// A message with so many bytes, with or without the one header.
pub fn message(payload_bytes: usize, header: bool) -> SendItem<'static> {
    SendItem {
        payload: &PAYLOAD[..payload_bytes.min(PAYLOAD_BYTES_MAX)],
        headers: if header { HEADER } else { &[] },
        ..SendItem::default()
    }
}

/// The message that rows send which say nothing else: 25 B and one header.
pub fn usual_message() -> SendItem<'static> {
    message(25, true)
}

/// An engine, its journal, and the time.
#[derive(Debug)]
pub struct Rig {
    engine: Engine,
    journal: MemoryJournal,
    batch: Batch,
    outcome: Outcome,
    /// Time is counted, not read: each command comes one microsecond after the one before.
    now_us: u64,
    /// Bytes that the engine alone holds more than at its start, when that is watched.
    engine_held_bytes: Option<i64>,
    failures: u64,
}

impl Rig {
    /// An empty engine in its first epoch.
    #[allow(clippy::new_without_default, reason = "it begins an epoch")]
    pub fn new() -> Rig {
        let mut rig = Rig {
            engine: Engine::new(),
            journal: MemoryJournal::new(),
            batch: Batch::new(),
            outcome: Outcome::default(),
            now_us: START_US,
            engine_held_bytes: None,
            failures: 0,
        };
        rig.run(&Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
        rig
    }

    /// From here on, notes what each apply leaves the engine with. Counting has to be on.
    pub fn watch_memory(&mut self) {
        self.engine_held_bytes = Some(0);
    }

    /// Bytes that the engine holds more than when watching began.
    pub fn engine_held_bytes(&self) -> i64 {
        self.engine_held_bytes.unwrap_or(0)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Time of the latest command, in microseconds since 1970.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Moves the time.
    pub fn set_now_us(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    /// Commands and items that were refused; there must be none.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Encodes a command, passes it through the journal, applies it.
    pub fn run(&mut self, command: &Command<'_>) {
        self.now_us += 1;
        self.run_at_same_time(command);
    }

    /// The same without letting time pass.
    pub fn run_at_same_time(&mut self, command: &Command<'_>) {
        write_record(&mut self.batch, command);
        if self.journal.propose(&mut self.batch, self.now_us, Class::Growing).is_err() {
            self.failures += 1;
        }
        while let Some(event) = self.journal.poll() {
            let Event::Committed(committed) = event else {
                self.failures += 1;
                continue;
            };
            for (index, record) in (committed.first_index..).zip(committed.records()) {
                self.apply(committed.time_us, index, record.body);
            }
        }
    }

    fn apply(&mut self, time_us: u64, index: u64, body: &[u8]) {
        match &mut self.engine_held_bytes {
            None => self.engine.apply(time_us, index, body, &mut self.outcome),
            Some(held) => {
                let before = counts().held_bytes;
                self.engine.apply(time_us, index, body, &mut self.outcome);
                *held += counts().held_bytes - before;
            }
        }
        for blob in self.outcome.released.drain(..) {
            self.journal.release(BlobKey { index: blob.index, item: blob.item });
        }
        if self.outcome.error.is_some() || self.outcome.results.iter().any(Result::is_err) {
            self.failures += 1;
        }
    }

    /// Sends messages to a queue.
    pub fn send(&mut self, queue: &str, items: &[SendItem<'_>]) {
        self.run(&Command::Send(Send {
            namespace: NamespaceId::DEFAULT,
            queue,
            idempotency_key: b"",
            request_digest: 0,
            items,
        }));
    }

    /// Fills a queue with the usual message, in batches.
    pub fn fill(&mut self, queue: &str, messages: u64) {
        let items = vec![usual_message(); FILL as usize];
        let mut left = messages;
        while left > 0 {
            let count = left.min(FILL);
            self.send(queue, &items[..count as usize]);
            left -= count;
        }
    }

    /// Lets the queue follow a limit.
    pub fn follow_limit(&mut self, queue: &str, rules: LimitRules) {
        let namespace = NamespaceId::DEFAULT;
        self.run(&Command::LimitSet { namespace, limit: LIMIT, rules });
        let patch = QueuePatch { limit: Some(LIMIT.into()), ..QueuePatch::default() };
        self.run(&Command::QueueSet { namespace, queue, patch, create: true });
    }

    /// Receives messages, under a lease that lasts.
    pub fn receive(&mut self, queues: &[(&str, u16)], max_messages: u32, consumer: &str) -> &[Delivery] {
        self.run(&Command::Receive(Receive {
            namespace: NamespaceId::DEFAULT,
            queues,
            max_messages,
            max_bytes: u32::MAX,
            lease_ms: LEASE_MS,
            consumer,
        }));
        &self.outcome.deliveries
    }

    /// The deliveries of the last receive.
    pub fn deliveries(&self) -> &[Delivery] {
        &self.outcome.deliveries
    }

    /// Reads the bytes of a delivered message, as a consumer would get them.
    fn read(&mut self, delivery: &Delivery) {
        let key = BlobKey { index: delivery.blob.index, item: delivery.blob.item };
        match self.journal.read(key) {
            BlobRead::Cached(bytes) => drop(std::hint::black_box(bytes)),
            BlobRead::OnDisk(_) | BlobRead::Missing => self.failures += 1,
        }
    }

    /// Reads the bytes of everything that the last receive gave.
    pub fn read_all(&mut self) {
        for at in 0..self.outcome.deliveries.len() {
            let delivery = self.outcome.deliveries[at];
            self.read(&delivery);
        }
    }

    /// Acks deliveries.
    pub fn ack(&mut self, items: &[SettleItem<'_>]) {
        self.run(&Command::Settle { namespace: NamespaceId::DEFAULT, items });
    }

    /// Takes one message from the queue and acks it; `false` when there was none.
    pub fn receive_and_ack(&mut self, queue: &str) -> bool {
        let Some(delivery) = self.receive(&[(queue, 0)], 1, "").first().copied() else { return false };
        self.read(&delivery);
        self.ack(&[ack_of(delivery.receipt)]);
        true
    }
}

/// An ack of one delivery.
pub fn ack_of(receipt: Receipt) -> SettleItem<'static> {
    SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }
}
