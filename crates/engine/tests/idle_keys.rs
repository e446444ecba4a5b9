//! Keys without messages: they are kept in a bounded number, nobody sees them, and they go with their queue.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::command::{Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::{OnDuplicate, SendOptions, Unique, UniqueUntil};
use sluice_engine::limit::LimitRules;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine};

const START_US: u64 = 1_700_000_000_000_000;
const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// More keys than are kept.
const MANY: u64 = 1_000;

/// An engine whose queue follows a limit per key.
fn begin() -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    let rules = LimitRules { in_flight_per_key: Some(1), ..LimitRules::default() };
    driver.apply(START_US, &Command::LimitSet { namespace: NAMESPACE, limit: "l", rules });
    make_queue(&mut driver);
    driver
}

fn make_queue(driver: &mut Driver) {
    let patch = QueuePatch { limit: Some("l".into()), ..QueuePatch::default() };
    driver.apply(START_US, &Command::QueueSet { namespace: NAMESPACE, queue: "q", patch, create: true });
    assert_eq!(driver.out.error, None);
}

/// Sends a message with this key of each kind.
fn send(driver: &mut Driver, key: u64) {
    let key = key.to_string();
    let key = key.as_bytes();
    let unique = Unique { key, window_ms: 60_000, until: UniqueUntil::Gone, on_duplicate: OnDuplicate::Keep };
    let options = SendOptions {
        ordering_key: key,
        fair_key: key,
        limit_key: key,
        unique: Some(unique),
        ..SendOptions::default()
    };
    let items = [SendItem { options: Some(&options), ..SendItem::default() }];
    let send =
        Send { namespace: NAMESPACE, queue: "q", idempotency_key: b"", request_digest: 0, items: &items };
    driver.apply(START_US, &Command::Send(send));
    assert!(driver.out.error.is_none() && driver.out.duplicates.is_empty(), "{:?}", driver.out);
}

/// Takes the next message and acks it.
fn work(driver: &mut Driver) {
    let receive = Receive {
        namespace: NAMESPACE,
        queues: &[("q", 0)],
        max_messages: 1,
        max_bytes: 1_000,
        lease_ms: 0,
        consumer: "",
    };
    driver.apply(START_US, &Command::Receive(receive));
    let receipt = driver.out.deliveries[0].receipt;
    let ack = [SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }];
    driver.apply(START_US, &Command::Settle { namespace: NAMESPACE, items: &ack });
    assert_eq!(driver.out.results, [Ok(())]);
}

fn snapshot(engine: &mut Engine) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine.snapshot_begin();
    while !engine.snapshot_step(1 << 20, &mut bytes) {}
    bytes
}

fn limit_keys(engine: &Engine) -> usize {
    engine.limit_keys(NAMESPACE, "l", false, None, 1_000).items.len()
}

#[test]
fn keys_without_messages_are_bounded_and_nobody_sees_them() {
    let mut driver = begin();
    let mut sizes = Vec::new();
    for key in 0..MANY {
        send(&mut driver, key);
        assert_eq!(limit_keys(&driver.engine), 1);
        work(&mut driver);
        assert_eq!(limit_keys(&driver.engine), 0);
        assert_eq!(driver.engine.limit_key(NAMESPACE, "l", key.to_string().as_bytes()), None);
        if key >= MANY / 2 && key % 100 == 0 {
            driver.engine.recount().unwrap();
            sizes.push(snapshot(&mut driver.engine).len());
        }
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
}

#[test]
fn an_engine_that_is_restored_among_idle_keys_goes_on_as_the_other_one() {
    let mut driver = begin();
    for key in 0..MANY {
        send(&mut driver, key % 300);
        work(&mut driver);
    }
    let mut pieces = Some(snapshot(&mut driver.engine));
    let mut restored = Engine::restore(&mut || pieces.take()).unwrap();
    restored.recount().unwrap();
    let from = driver.log.len();
    for key in 0..MANY {
        send(&mut driver, key % 301);
        work(&mut driver);
    }
    for record in &driver.log[from..] {
        restored.apply(record.now_us, record.index, &record.body, &mut driver.out);
    }
    assert_eq!(restored.digest(), driver.engine.digest());
}

#[test]
fn a_queue_in_the_place_of_another_one_finds_none_of_its_keys() {
    let mut driver = begin();
    for round in 0..10 {
        for key in 0..20 {
            send(&mut driver, key);
        }
        (0..10).for_each(|_| work(&mut driver));
        if round % 2 == 0 {
            driver.apply(START_US, &Command::QueuePurge { namespace: NAMESPACE, queue: "q" });
        }
        driver.apply(START_US, &Command::QueueDelete { namespace: NAMESPACE, queue: "q" });
        driver.engine.recount().unwrap();
        make_queue(&mut driver);
    }
    driver.apply(START_US, &Command::QueueDelete { namespace: NAMESPACE, queue: "q" });
    driver.apply(START_US, &Command::LimitDelete { namespace: NAMESPACE, limit: "l" });
    assert_eq!(driver.out.error, None);
    driver.engine.recount().unwrap();
}
