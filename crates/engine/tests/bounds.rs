//! One record does no more than a slice of what follows from it, and little for each item that it has.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::Driver;
use sluice_engine::command::{Attach, Group, QueueItem, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::SendOptions;
use sluice_engine::limits::SLICE_ITEMS;
use sluice_engine::query::State;
use sluice_engine::settings::{Overflow, QueuePatch};
use sluice_engine::{BEHAVIOUR_VERSION, Command};

const START_US: u64 = 1_700_000_000_000_000;

fn timed(driver: &mut Driver, command: &Command<'_>) -> Duration {
    command.check(driver.engine.limits()).unwrap();
    let begun = Instant::now();
    driver.apply(START_US, command);
    assert_eq!(driver.out.error, None);
    begun.elapsed()
}

fn driver(patterns: usize) -> Driver {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    for n in 0..patterns {
        // It does not match, and is long in finding out.
        let pattern = format!("*{}{n:03}b", "a".repeat(60));
        let command = Command::DefaultsSet { namespace, pattern: &pattern, patch: QueuePatch::default() };
        timed(&mut driver, &command);
    }
    driver
}

fn one_send(patterns: usize) -> Duration {
    let mut driver = driver(patterns);
    let queue = "a".repeat(128);
    let items = [SendItem::default()];
    let namespace = NamespaceId::DEFAULT;
    let send = Send { namespace, queue: &queue, idempotency_key: &[], request_digest: 0, items: &items };
    timed(&mut driver, &Command::Send(send))
}

fn one_group(patterns: usize, members: usize) -> Duration {
    let mut driver = driver(patterns);
    let names: Vec<String> = (0..members).map(|n| format!("{}{n:05}", "a".repeat(123))).collect();
    let member = |queue| QueueItem { queue, item: SendItem::default() };
    let members: Vec<_> = names.iter().map(|name| member(name.as_str())).collect();
    let callback = member("callback");
    timed(
        &mut driver,
        &Command::Group(Group {
            namespace: NamespaceId::DEFAULT,
            idempotency_key: &[],
            request_digest: 0,
            members: &members,
            callback: &callback,
        }),
    )
}

/// Far more than a record takes whose work grows with its items, and far less than one whose work explodes.
const AMPLE: Duration = Duration::from_secs(5);

/// The names of new queues are compared with 1,000 patterns, each of which is long in finding out.
#[test]
fn many_patterns_cost_a_send_to_a_new_queue_little() {
    let (none, all) = (one_group(0, 50), one_group(1_000, 50));
    println!("group of 50: no pattern {none:?}, 1,000 patterns {all:?}");
    let (one, with_all) = (one_send(0), one_send(1_000));
    println!("send: no pattern {one:?}, 1,000 patterns {with_all:?}");
    assert!(all.max(with_all) < AMPLE);
}

/// A queue of 300,000 messages that may hold 2,000 from now on.
fn queue_that_is_too_long() -> Driver {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = driver(0);
    let items = vec![SendItem::default(); 10_000];
    let send = Send { namespace, queue: "q", idempotency_key: &[], request_digest: 0, items: &items };
    for _ in 0..30 {
        timed(&mut driver, &Command::Send(send.clone()));
    }
    let patch = QueuePatch {
        max_messages: Some(2_000),
        overflow: Some(Overflow::DeadLetterOldest),
        ..QueuePatch::default()
    };
    timed(&mut driver, &Command::QueueSet { namespace, queue: "q", patch, create: false });
    driver
}

/// A group of 1,000 members for one queue that is too long lets go of a slice, and of five messages for each
/// member, in its record.
#[test]
fn a_group_makes_room_in_slices() {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = queue_that_is_too_long();
    let member = |queue| QueueItem { queue, item: SendItem::default() };
    let members = vec![member("q"); 1_000];
    let callback = member("callback");
    let group =
        Group { namespace, idempotency_key: &[], request_digest: 0, members: &members, callback: &callback };
    let took = timed(&mut driver, &Command::Group(group));
    let dead = driver.engine.totals().states[State::Dead as usize];
    assert!(dead <= (SLICE_ITEMS + 5 * members.len()) as u64, "{dead} at once, in {took:?}");
}

/// A group whose members go to 100 queues that are too long lets go of a slice in all, and of five messages
/// for each member; so does the tick that comes next.
#[test]
fn a_group_to_many_queues_makes_room_in_slices() {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = driver(0);
    let names: Vec<String> = (0..100).map(|n| format!("q{n}")).collect();
    let items = vec![SendItem::default(); 2_000];
    for queue in &names {
        let send = Send { namespace, queue, idempotency_key: &[], request_digest: 0, items: &items };
        timed(&mut driver, &Command::Send(send));
        let patch = QueuePatch {
            max_messages: Some(10),
            overflow: Some(Overflow::DeadLetterOldest),
            ..QueuePatch::default()
        };
        timed(&mut driver, &Command::QueueSet { namespace, queue, patch, create: false });
    }
    let member = |queue| QueueItem { queue, item: SendItem::default() };
    let members: Vec<_> = names.iter().map(|name| member(name.as_str())).collect();
    let callback = member("callback");
    let group =
        Group { namespace, idempotency_key: &[], request_digest: 0, members: &members, callback: &callback };
    for command in [Command::Group(group), Command::Tick] {
        let dead = |driver: &Driver| driver.engine.totals().states[State::Dead as usize];
        let before = dead(&driver);
        let took = timed(&mut driver, &command);
        let more = dead(&driver) - before;
        assert!(more <= (SLICE_ITEMS + 5 * members.len()) as u64, "{more} at once, in {took:?}");
    }
}

/// Deleting and making a queue of 5,000 consumers, and detaching all of them, are each done at once, not in
/// slices.
#[test]
fn many_consumers_leave_and_join_at_once() {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = driver(0);
    let names: Vec<String> = (0..64).map(|n| format!("q{n}")).collect();
    let queues: Vec<&str> = names.iter().map(String::as_str).collect();
    for queue in &queues {
        timed(
            &mut driver,
            &Command::QueueSet { namespace, queue, patch: QueuePatch::default(), create: true },
        );
    }
    let attach = Attach { namespace, name: "", queues: &queues, credit: 1, lease_ms: 0, grace_ms: 0 };
    for _ in 0..5_000 {
        timed(&mut driver, &Command::Attach(attach));
    }
    let deleted = timed(&mut driver, &Command::QueueDelete { namespace, queue: "q7" });
    let create = Command::QueueSet { namespace, queue: "q7", patch: QueuePatch::default(), create: true };
    let created = timed(&mut driver, &create);
    let epoch = Command::Epoch { number: 2, behaviour: BEHAVIOUR_VERSION };
    let detached = timed(&mut driver, &epoch);
    println!(
        "delete of the queue: {deleted:?}, creation: {created:?}, detaching all (an epoch): {detached:?}"
    );
    assert!(deleted.max(created).max(detached) < AMPLE);
}

/// As for a group: 1,000 replies go to one queue that is too long.
#[test]
fn replies_make_room_in_slices() {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = queue_that_is_too_long();
    let options = SendOptions { reply_to: "q", ..SendOptions::default() };
    let items = vec![SendItem { options: Some(&options), ..SendItem::default() }; 1_000];
    let send = Send { namespace, queue: "work", idempotency_key: &[], request_digest: 0, items: &items };
    timed(&mut driver, &Command::Send(send));
    let receive = Receive {
        namespace,
        queues: &[("work", 0)],
        max_messages: 1_000,
        max_bytes: 1 << 20,
        lease_ms: 0,
        consumer: "",
    };
    timed(&mut driver, &Command::Receive(receive));
    let items: Vec<_> = driver
        .out
        .deliveries
        .iter()
        .map(|delivery| SettleItem {
            receipt: delivery.receipt,
            settlement: Settlement::Ack,
            error: "",
            result: None,
            add_cost: 0,
        })
        .collect();
    assert_eq!(items.len(), 1_000);
    let took = timed(&mut driver, &Command::Settle { namespace, items: &items });
    let dead = driver.engine.totals().states[State::Dead as usize];
    assert!(dead <= (SLICE_ITEMS + 5 * items.len()) as u64, "{dead} at once, in {took:?}");
}
