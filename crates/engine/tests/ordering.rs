//! A message that comes back to its ordering key finds its place by the order of sending, however many wait before it.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::command::{Deliver, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::options::SendOptions;
use sluice_engine::settings::{OrderingRetry, QueuePatch};
use sluice_engine::{BEHAVIOUR_VERSION, Command};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const START_US: u64 = 1_700_000_000_000_000;

fn send(driver: &mut Driver, count: usize, deliver: Deliver) {
    let options = SendOptions { ordering_key: b"k", ..SendOptions::default() };
    let items = vec![SendItem { deliver, options: Some(&options), ..SendItem::default() }; count];
    let send =
        Send { namespace: NAMESPACE, queue: "q", idempotency_key: b"", request_digest: 0, items: &items };
    driver.apply(START_US, &Command::Send(send));
    assert_eq!(driver.out.error, None);
}

/// Takes the next message and acks it; gives its place in the order of sending.
fn work(driver: &mut Driver, now_us: u64) -> u64 {
    let queues = [("q", 0)];
    let receive = Receive {
        namespace: NAMESPACE,
        queues: &queues,
        max_messages: 10,
        max_bytes: 1_000,
        lease_ms: 0,
        consumer: "",
    };
    driver.apply(now_us, &Command::Receive(receive));
    let [delivery] = driver.out.deliveries[..] else { panic!("{:?}", driver.out.deliveries) };
    let receipt = delivery.receipt;
    let items = [SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None }];
    driver.apply(now_us, &Command::Settle { namespace: NAMESPACE, items: &items });
    receipt.id.sequence & 0xffff
}

#[test]
fn one_that_steps_aside_comes_back_behind_all_that_were_sent_before_it() {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    let patch = QueuePatch { ordering_retry: Some(OrderingRetry::StepAside), ..QueuePatch::default() };
    driver.apply(START_US, &Command::QueueSet { namespace: NAMESPACE, queue: "q", patch, create: true });
    for _ in 0..3 {
        send(&mut driver, 200, Deliver::Now);
        send(&mut driver, 1, Deliver::AfterMs(1_000));
    }
    send(&mut driver, 200, Deliver::Now);
    let now_us = START_US + 2_000_000;
    driver.apply(now_us, &Command::Tick);
    driver.engine.recount().unwrap();
    let given: Vec<u64> = (0..803).map(|_| work(&mut driver, now_us)).collect();
    assert_eq!(given, (1..=803).collect::<Vec<u64>>());
    driver.engine.recount().unwrap();
}
