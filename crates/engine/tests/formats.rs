//! Every format of records and snapshots that was ever written stays readable: each has a fixture in `tests/fixtures`.
//!
//! A fixture is a log and the snapshot that was taken after it, in lines: `record NOW_US INDEX BODY`, then `snapshot BYTES`
//! (hexadecimal), then `state` lines that tell what both must give. For a new format, run the ignored test
//! `write_fixture` once, and commit the new file beside the older ones.

#![allow(clippy::unwrap_used)]

mod common;

use std::fmt::Write as _;

use common::Driver;
use sluice_engine::command::{Deliver, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{NamespaceId, QueueId, Receipt};
use sluice_engine::settings::{Backoff, BackoffKind, QueuePatch, Quotas};
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Limits, Outcome};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const START_US: u64 = 1_700_000_000_000_000;

#[test]
fn every_format_ever_written_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("state ")).collect();
        assert!(!expected.is_empty());
        let (replayed, restored) = (replay(&text), restore(&text));
        assert_eq!(state(&replayed), expected, "the log of {}", file.display());
        assert_eq!(state(&restored), expected, "the snapshot of {}", file.display());
        assert_eq!(replayed.digest(), restored.digest(), "{}", file.display());
        restored.recount().unwrap();
    }
}

fn replay(text: &str) -> Engine {
    let (mut engine, mut out) = (Engine::new(), Outcome::default());
    for line in text.lines().filter_map(|line| line.strip_prefix("record ")) {
        let words: Vec<&str> = line.split(' ').collect();
        engine.apply(words[0].parse().unwrap(), words[1].parse().unwrap(), &unhex(words[2]), &mut out);
    }
    engine
}

fn restore(text: &str) -> Engine {
    let bytes = text.lines().find_map(|line| line.strip_prefix("snapshot ")).unwrap();
    let mut piece = Some(unhex(bytes));
    Engine::restore(&mut || piece.take()).unwrap()
}

/// What can be seen of an engine, one line a thing.
fn state(engine: &Engine) -> Vec<String> {
    let totals = engine.totals();
    let mut lines = vec![format!(
        "index {} time {} epoch {} messages {} sent {} died {} expired {}",
        engine.applied_index(),
        engine.time_us(),
        engine.epoch(),
        engine.message_count(),
        totals.sent,
        totals.died,
        totals.expired
    )];
    for queue in engine.queues(NAMESPACE, "", None, 100) {
        let settings = &queue.settings;
        lines.push(format!(
            "queue {} lease {} attempts {}",
            queue.name, settings.lease_ms, settings.max_attempts
        ));
        lines.extend(messages(engine, queue.id));
    }
    lines
}

fn messages(engine: &Engine, queue: QueueId) -> Vec<String> {
    let page = engine.messages(queue, None, None, 100);
    let view = |id| engine.message(id).unwrap();
    page.items
        .iter()
        .map(|listed| view(listed.id))
        .map(|view| {
            let (state, attempts) = (view.state.name(), view.attempts);
            format!(
                "message {} {state} attempts {attempts} priority {} deadline {:?} reason {:?} history {} blob {:?}",
                view.id,
                view.priority,
                view.deadline_us,
                view.reason,
                view.history.len(),
                view.blob
            )
        })
        .collect()
}

#[test]
#[ignore = "writes the fixture of the present format; run once when it changes"]
fn write_fixture() {
    let mut driver = Driver::new();
    fill(&mut driver);
    let mut text = String::new();
    for record in &driver.log {
        writeln!(text, "record {} {} {}", record.now_us, record.index, hex(&record.body)).unwrap();
    }
    let mut bytes = Vec::new();
    driver.engine.snapshot_begin();
    while !driver.engine.snapshot_step(1 << 20, &mut bytes) {}
    writeln!(text, "snapshot {}", hex(&bytes)).unwrap();
    for line in state(&driver.engine) {
        writeln!(text, "state {line}").unwrap();
    }
    let path = format!("{}/tests/fixtures/behaviour-{BEHAVIOUR_VERSION}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, text).unwrap();
}

/// Each kind of record, and each state of a message.
fn fill(driver: &mut Driver) {
    let backoff = Backoff { kind: BackoffKind::Linear, base_ms: 500, cap_ms: 9_000, jitter_percent: 20 };
    let patch = QueuePatch { lease_ms: Some(10_000), max_attempts: Some(2), ..QueuePatch::default() };
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    driver.apply(START_US, &Command::Configure(Limits { queues: 500, ..Limits::default() }));
    driver.apply(START_US, &Command::QueueSet { namespace: NAMESPACE, queue: "jobs", patch, create: true });
    let quotas = Quotas { queues: 10, messages: 100, bytes: 0 };
    let create = Command::NamespaceCreate { number: None, name: "other", shard: 0, quotas };
    driver.apply(START_US, &create);
    let item = SendItem {
        payload: b"payload",
        content_type: "text/plain",
        headers: &[("a", "b")],
        ..SendItem::default()
    };
    let items: Vec<SendItem<'_>> = (0..8)
        .map(|n| SendItem {
            priority: n % 3,
            deliver: if n == 7 { Deliver::AfterMs(60_000) } else { Deliver::Now },
            backoff: (n == 2).then_some(backoff),
            ..item.clone()
        })
        .collect();
    send(driver, "jobs", b"key", &items);
    send(driver, "rest", b"", &items[..2]);
    let receipts = receive(driver, "jobs", 6);
    let settle = |receipt, settlement, error| SettleItem { receipt, settlement, error, result: None };
    let items = [
        settle(receipts[0], Settlement::Ack, ""),
        settle(receipts[1], Settlement::Nack { delay_ms: None }, "it broke"),
        settle(receipts[2], Settlement::Nack { delay_ms: Some(0) }, ""),
        settle(receipts[3], Settlement::Reject, "no good"),
        settle(receipts[4], Settlement::Release { delay_ms: 5 }, ""),
    ];
    driver.apply(START_US + 3_000, &Command::Settle { namespace: NAMESPACE, items: &items });
    driver
        .apply(START_US + 4_000, &Command::Extend { namespace: NAMESPACE, items: &[(receipts[5], 90_000)] });
    driver.apply(START_US + 2_000_000, &Command::Tick);
    let held = receive(driver, "rest", 1)[0].id;
    let blob = driver.engine.message(held).unwrap().blob;
    driver.apply(START_US + 2_000_001, &Command::HoldDamaged { id: held, blob });
    driver.apply(START_US + 2_000_002, &Command::NamespaceSet { namespace: NAMESPACE, quotas });
    driver.apply(START_US + 2_000_003, &Command::QueuePurge { namespace: NAMESPACE, queue: "nothing" });
}

fn send(driver: &mut Driver, queue: &str, key: &[u8], items: &[SendItem<'_>]) {
    let send = Send { namespace: NAMESPACE, queue, idempotency_key: key, request_digest: 7, items };
    driver.apply(START_US + 1_000, &Command::Send(send));
}

fn receive(driver: &mut Driver, queue: &str, max_messages: u32) -> Vec<Receipt> {
    let receive = Receive {
        namespace: NAMESPACE,
        queues: &[(queue, 0)],
        max_messages,
        max_bytes: 1 << 20,
        lease_ms: 0,
        consumer: "worker",
    };
    driver.apply(driver.engine.time_us() + 1_000, &Command::Receive(receive));
    driver.out.deliveries.iter().map(|delivery| delivery.receipt).collect()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn unhex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}
