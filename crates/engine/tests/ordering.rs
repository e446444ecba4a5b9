//! A message that comes back to its ordering key finds its place by the order of sending, however many wait
//! before it; and however many step aside at once, none of them keeps an apply long.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{Deliver, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::SendOptions;
use sluice_engine::limits::SLICE_ITEMS;
use sluice_engine::outcome::Reply;
use sluice_engine::query::State;
use sluice_engine::settings::{OrderingRetry, QueuePatch};
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Outcome};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const START_US: u64 = 1_700_000_000_000_000;
/// Messages that step aside at once.
const MANY: usize = 150_000;
const BATCH: usize = 10_000;
/// A slice of what is due, and another one of what follows from that.
const AT_ONCE: u64 = 2 * SLICE_ITEMS as u64;

fn begin() -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    driver
}

/// Sends messages of one key; gives the id of the first.
fn send(driver: &mut Driver, count: usize, deliver: Deliver) -> MessageId {
    let options = SendOptions { ordering_key: b"k", ..SendOptions::default() };
    let items = vec![SendItem { deliver, options: Some(&options), ..SendItem::default() }; count];
    let send =
        Send { namespace: NAMESPACE, queue: "q", idempotency_key: b"", request_digest: 0, items: &items };
    driver.apply(START_US, &Command::Send(send));
    let Reply::Sent { first, .. } = driver.out.reply else { panic!("{:?}", driver.out.error) };
    first
}

fn let_step_aside(driver: &mut Driver) {
    let patch = QueuePatch { ordering_retry: Some(OrderingRetry::StepAside), ..QueuePatch::default() };
    driver.apply(START_US, &Command::QueueSet { namespace: NAMESPACE, queue: "q", patch, create: true });
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
    let items = [SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }];
    driver.apply(now_us, &Command::Settle { namespace: NAMESPACE, items: &items });
    receipt.id.sequence & 0xffff
}

fn blocked(driver: &Driver) -> u64 {
    driver.engine.totals().states[State::Blocked as usize]
}

/// Acks the message that others wait for, and ticks until nothing is due.
fn ack_and_tick(driver: &mut Driver) {
    let before = blocked(driver);
    work(driver, START_US);
    assert!(before - blocked(driver) <= AT_ONCE, "one ack lets go too many");
    tick_all(driver, START_US);
}

fn tick_all(driver: &mut Driver, now_us: u64) {
    while driver.engine.next_deadline().is_some_and(|due| due <= now_us) {
        let before = blocked(driver);
        driver.apply(now_us, &Command::Tick);
        let moved = before.abs_diff(blocked(driver));
        assert!(moved <= AT_ONCE, "{moved} at once");
    }
    driver.engine.recount().unwrap();
}

/// Checks that a replay of the log gives the same state.
fn check_replay(driver: &Driver) {
    let (mut replayed, mut out) = (Engine::new(), Outcome::default());
    for record in &driver.log {
        replayed.apply(record.now_us, record.index, &record.body, &mut out);
    }
    assert_eq!(replayed.digest(), driver.engine.digest());
}

#[test]
fn one_that_steps_aside_comes_back_behind_all_that_were_sent_before_it() {
    let mut driver = begin();
    let_step_aside(&mut driver);
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

#[test]
fn very_many_that_are_delayed_step_aside_in_slices() {
    let mut driver = begin();
    send(&mut driver, 1, Deliver::Now);
    for _ in 0..MANY / BATCH {
        send(&mut driver, BATCH, Deliver::AfterMs(100_000));
    }
    assert_eq!(blocked(&driver), MANY as u64, "they wait for the first");
    let_step_aside(&mut driver);
    ack_and_tick(&mut driver);
    assert_eq!(driver.engine.totals().states[State::Delayed as usize], MANY as u64);
    let now_us = START_US + 100_000_000;
    tick_all(&mut driver, now_us);
    assert_eq!(blocked(&driver), MANY as u64 - 1, "they wait for each other");
    assert_eq!(work(&mut driver, now_us), 2);
    check_replay(&driver);
}

#[test]
fn very_many_whose_delay_is_changed_step_aside_in_slices() {
    let mut driver = begin();
    let_step_aside(&mut driver);
    send(&mut driver, 1, Deliver::Now);
    let first = send(&mut driver, BATCH, Deliver::Now);
    let fields = NewFields { deliver: Some(Deliver::AfterMs(100_000)), ..NewFields::default() };
    let of = |n: usize| (MessageId { sequence: first.sequence + n as u64, ..first }, 0);
    let items: Vec<(MessageId, u64)> = (0..BATCH).map(of).collect();
    for items in items.chunks(1_000) {
        let change =
            Change { namespace: NAMESPACE, items, action: ChangeAction::Set(fields), by: "", why: "" };
        driver.apply(START_US, &Command::Change(change));
        assert!(driver.out.results.iter().all(Result::is_ok));
    }
    ack_and_tick(&mut driver);
    assert_eq!(driver.engine.totals().states[State::Delayed as usize], BATCH as u64);
    check_replay(&driver);
}
