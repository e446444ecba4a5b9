//! The largest apply where one message leads to 100,000 others: each record does a slice.

use std::time::{Duration, Instant};

use sluice_engine::command::{
    Attach, Command, Deliver, Group, QueueItem, Receive, Send, SendItem, SettleItem, Settlement,
};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::item::{
    Chain, DependsOn, Expires, OnParentFailed, SendOptions, Step, Steps, Unique, UniqueUntil,
};
use sluice_engine::limit::LimitRules;
use sluice_engine::outcome::Reply;
use sluice_engine::settings::{OnExpire, OrderingRetry, Overflow, Placement, QueuePatch};
use sluice_engine::{BEHAVIOUR_VERSION, Engine, Outcome};
use sluice_record::write_record;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const MESSAGES: usize = 100_000;
const BATCH: usize = 1_000;
/// Of each record the shortest time counts: the others had something else beside them.
const RUNS: usize = 2;
/// Longest apply. With debug assertions it is what a slice never takes, and the whole of the work always
/// does.
const BAR: Duration = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 1 });

/// An engine, and how long each of its records took.
struct Run {
    engine: Engine,
    outcome: Outcome,
    now_us: u64,
    took: Vec<(&'static str, Duration)>,
}

impl Run {
    fn new() -> Run {
        let (engine, outcome) = (Engine::new(), Outcome::default());
        let mut run = Run { engine, outcome, now_us: 1_000_000_000, took: Vec::new() };
        run.apply("epoch", &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
        run
    }

    fn apply(&mut self, what: &'static str, command: &Command<'_>) {
        let mut batch = sluice_journal::Batch::new();
        write_record(&mut batch, command);
        let (bytes, _) = batch.take();
        let record = sluice_journal::Records::new(&bytes).next().unwrap();
        let index = self.took.len() as u64 + 1;
        let began = Instant::now();
        self.engine.apply(self.now_us, index, record.body, &mut self.outcome);
        self.took.push((what, began.elapsed()));
        assert!(self.outcome.error.is_none(), "{what}: {:?}", self.outcome.error);
    }

    fn set(&mut self, queue: &str, patch: QueuePatch) {
        self.apply("queue set", &Command::QueueSet { namespace: NAMESPACE, queue, patch, create: true });
    }

    /// Sends one message; returns its id.
    fn send(&mut self, queue: &str, item: SendItem<'_>) -> MessageId {
        self.send_batch("send", queue, &[item]);
        let Reply::Sent { first, .. } = self.outcome.reply else { panic!("{:?}", self.outcome.reply) };
        first
    }

    fn send_batch(&mut self, what: &'static str, queue: &str, items: &[SendItem<'_>]) {
        let (idempotency_key, request_digest) = (&[][..], 0);
        let send = Send { namespace: NAMESPACE, queue, idempotency_key, request_digest, items };
        self.apply(what, &Command::Send(send));
    }

    fn send_all(&mut self, queue: &str, item: &SendItem<'_>) {
        for _ in 0..MESSAGES / BATCH {
            self.send_batch("send 1,000", queue, &vec![item.clone(); BATCH]);
        }
    }

    fn receive(&mut self, queue: &str, max_messages: u32) -> Vec<Receipt> {
        let queues = [(queue, 0)];
        let receive = Receive {
            namespace: NAMESPACE,
            queues: &queues,
            max_messages,
            max_bytes: 1 << 30,
            lease_ms: 0,
            consumer: "",
        };
        self.apply("receive", &Command::Receive(receive));
        self.outcome.deliveries.iter().map(|delivery| delivery.receipt).collect()
    }

    fn settle(&mut self, receipts: &[Receipt], settlement: Settlement) {
        let item = |receipt: &Receipt| SettleItem {
            receipt: *receipt,
            settlement,
            error: "",
            result: None,
            add_cost: 0,
        };
        let items: Vec<_> = receipts.iter().map(item).collect();
        self.apply("settle", &Command::Settle { namespace: NAMESPACE, items: &items });
    }

    fn attach(&mut self, queue: &str, credit: u32) -> ConsumerId {
        let (lease_ms, grace_ms) = (600_000, 0);
        let attach = Attach { namespace: NAMESPACE, name: "w", queues: &[queue], credit, lease_ms, grace_ms };
        self.apply("attach", &Command::Attach(attach));
        let Reply::Consumer { consumer } = self.outcome.reply else { panic!("{:?}", self.outcome.reply) };
        consumer
    }

    fn tick_all(&mut self) {
        while self.engine.next_deadline().is_some_and(|due_us| due_us <= self.now_us) {
            self.apply("tick", &Command::Tick);
        }
    }
}

fn keyed(ordering_key: &[u8]) -> SendOptions<'_> {
    SendOptions { ordering_key, ..SendOptions::default() }
}

fn step_aside(run: &mut Run) {
    let options = keyed(b"k");
    let receipts = {
        run.send("q", SendItem { options: Some(&options), ..SendItem::default() });
        run.receive("q", 1)
    };
    let deliver = Deliver::AfterMs(3_600_000);
    run.send_all("q", &SendItem { deliver, options: Some(&options), ..SendItem::default() });
    run.set("q", QueuePatch { ordering_retry: Some(OrderingRetry::StepAside), ..QueuePatch::default() });
    run.settle(&receipts, Settlement::Ack);
    run.tick_all();
}

fn children(run: &mut Run) {
    let parent = run.send("q", SendItem::default());
    let ids = [DependsOn::id_bytes(parent)];
    let depends_on = DependsOn {
        ids: &ids,
        places: &[],
        mode: Default::default(),
        on_parent_failed: OnParentFailed::Cancel,
    };
    let on_failure = Step { queue: "failed", own_payload: false, item: SendItem::default() };
    let steps = Steps { steps: &[], on_failure: Some(&on_failure) };
    let chain = Chain::Given(&steps);
    let options = SendOptions { depends_on: Some(depends_on), chain, ..SendOptions::default() };
    run.send_all("children", &SendItem { options: Some(&options), ..SendItem::default() });
    let receipts = run.receive("q", 1);
    run.settle(&receipts, Settlement::Reject);
    run.tick_all();
}

fn ends_with_steps(run: &mut Run) {
    let on_failure = Step { queue: "failed", own_payload: false, item: SendItem::default() };
    let steps = Steps { steps: &[], on_failure: Some(&on_failure) };
    let options =
        SendOptions { expires: Expires::AfterMs(1_000), chain: Chain::Given(&steps), ..keyed(b"k") };
    run.send_all("q", &SendItem { options: Some(&options), ..SendItem::default() });
    run.now_us += 5_000_000;
    run.tick_all();
}

fn ends_on_arrival(run: &mut Run) {
    run.set("q", QueuePatch { on_expire: Some(OnExpire::Drop), ..QueuePatch::default() });
    let on_failure = Step { queue: "failed", own_payload: false, item: SendItem::default() };
    let steps = Steps { steps: &[], on_failure: Some(&on_failure) };
    let options =
        SendOptions { expires: Expires::AtUs(1_000), chain: Chain::Given(&steps), ..SendOptions::default() };
    let item = SendItem { options: Some(&options), ..SendItem::default() };
    for _ in 0..MESSAGES / 100 {
        run.send_batch("send 100 that are over", "q", &vec![item.clone(); 100]);
    }
    run.tick_all();
}

fn limit_key(run: &mut Run) {
    let namespace = NAMESPACE;
    let one = LimitRules { in_flight_per_key: Some(1), ..LimitRules::default() };
    run.apply("limit set", &Command::LimitSet { namespace, limit: "l", rules: one });
    run.set("q", QueuePatch { limit: Some("l".into()), ..QueuePatch::default() });
    let options = SendOptions { limit_key: b"k", ..SendOptions::default() };
    run.send_all("q", &SendItem { options: Some(&options), ..SendItem::default() });
    run.apply("limit set", &Command::LimitSet { namespace, limit: "l", rules: LimitRules::default() });
    run.tick_all();
}

fn parked(run: &mut Run) {
    run.set("q", QueuePatch { placement: Some(Placement::Sticky), ..QueuePatch::default() });
    run.attach("q", 1);
    let keys: Vec<[u8; 4]> = (0..MESSAGES as u32).map(u32::to_le_bytes).collect();
    for (at, key) in keys.iter().enumerate() {
        let options = keyed(key);
        run.send("q", SendItem { options: Some(&options), ..SendItem::default() });
        let receipts: Vec<_> = run.outcome.pushed.iter().map(|(_, delivery)| delivery.receipt).collect();
        assert_eq!(receipts.len(), 1, "message {at}");
        run.settle(&receipts, Settlement::Ack);
    }
    run.send("q", SendItem::default());
    run.attach("q", 1);
    run.send("q", SendItem::default());
    let all: Vec<SendOptions<'_>> = keys.iter().map(|key| keyed(key)).collect();
    for some in all.chunks(BATCH) {
        let items: Vec<_> =
            some.iter().map(|options| SendItem { options: Some(options), ..SendItem::default() }).collect();
        run.send_batch("send 1,000", "q", &items);
    }
    run.tick_all();
    run.set("q", QueuePatch { placement: Some(Placement::Fair), ..QueuePatch::default() });
    run.tick_all();
}

fn purge_and_delete(run: &mut Run) {
    let options = keyed(b"k");
    let item = SendItem { options: Some(&options), ..SendItem::default() };
    for queue in ["q", "r"] {
        run.send_all(queue, &item);
    }
    run.apply("purge", &Command::QueuePurge { namespace: NAMESPACE, queue: "q" });
    run.send("q", item.clone());
    run.apply("delete", &Command::QueueDelete { namespace: NAMESPACE, queue: "r" });
    run.send("r", item);
    run.tick_all();
}

fn overflow(run: &mut Run) {
    run.send_all("q", &SendItem::default());
    let overflow = Some(Overflow::DeadLetterOldest);
    run.set("q", QueuePatch { max_messages: Some(1), overflow, ..QueuePatch::default() });
    run.send("q", SendItem::default());
    run.tick_all();
    run.apply("redrive", &Command::DeadRedrive { namespace: NAMESPACE, queue: "q", ids: &[] });
    run.tick_all();
}

fn unique_and_replies(run: &mut Run) {
    let keys: Vec<[u8; 4]> = (0..MESSAGES as u32).map(u32::to_le_bytes).collect();
    let options: Vec<SendOptions<'_>> = keys
        .iter()
        .map(|key| SendOptions {
            unique: Some(Unique {
                key,
                window_ms: 1_000,
                until: UniqueUntil::Window,
                on_duplicate: Default::default(),
            }),
            reply_to: "replies",
            ..SendOptions::default()
        })
        .collect();
    for some in options.chunks(100) {
        let items: Vec<_> =
            some.iter().map(|options| SendItem { options: Some(options), ..SendItem::default() }).collect();
        run.send_batch("send 100 unique", "q", &items);
        let receipts = run.receive("q", 100);
        run.settle(&receipts, Settlement::Ack);
    }
    run.now_us += 5_000_000;
    run.tick_all();
}

fn detach(run: &mut Run) {
    let consumer = run.attach("q", 10_000);
    for _ in 0..10 {
        run.send_batch("send 1,000", "q", &vec![SendItem::default(); BATCH]);
        run.tick_all();
    }
    let detach = Command::Detach { namespace: NAMESPACE, consumer, grace_ms: 0, reached: 0 };
    run.apply("detach", &detach);
    run.now_us += 5_000_000;
    run.tick_all();
}

fn group(run: &mut Run) {
    let options = SendOptions { expires: Expires::AtUs(1_000), ..SendOptions::default() };
    let item = SendItem { options: Some(&options), ..SendItem::default() };
    let members = vec![QueueItem { queue: "members", item }; 500];
    let callback = QueueItem { queue: "callbacks", item: SendItem::default() };
    for _ in 0..MESSAGES / 500 {
        let group = Group {
            namespace: NAMESPACE,
            idempotency_key: &[],
            request_digest: 0,
            members: &members,
            callback: &callback,
        };
        run.apply("group of 500", &Command::Group(group));
    }
    run.tick_all();
}

/// What it is called, and what happens.
type Story = (&'static str, fn(&mut Run));

/// `cargo test --release -p sluice-node -- --nocapture largest` measures.
#[test]
fn the_largest_apply_where_features_meet() {
    let stories: [Story; 11] = [
        ("100,000 step aside", step_aside),
        ("100,000 children are cancelled, with steps", children),
        ("100,000 end, with steps and one ordering key", ends_with_steps),
        ("100,000 are over on arrival, with steps", ends_on_arrival),
        ("100,000 wait for a limit key that goes", limit_key),
        ("100,000 are parked, and freed", parked),
        ("100,000 of one ordering key are purged, others deleted", purge_and_delete),
        ("100,000 make room, and are redriven", overflow),
        ("100,000 unique ones with replies", unique_and_replies),
        ("a consumer with 10,000 is detached", detach),
        ("200 groups of 500 that are over on arrival", group),
    ];
    let mut worst = Duration::ZERO;
    for (name, story) in stories {
        let took: Vec<Vec<(&str, Duration)>> = (0..RUNS)
            .map(|_| {
                let mut run = Run::new();
                story(&mut run);
                run.took
            })
            .collect();
        let shortest = (0..took[0].len())
            .map(|at| took.iter().map(|run| run[at]).min_by_key(|(_, took)| *took).unwrap());
        let (what, longest) = shortest.max_by_key(|(_, took)| *took).unwrap();
        println!("{name}: {longest:?} in a {what}, of {} records", took[0].len());
        worst = worst.max(longest);
    }
    assert!(worst <= BAR, "the largest apply took {worst:?}");
}
