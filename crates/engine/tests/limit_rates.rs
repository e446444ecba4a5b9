//! Rates that change, and limits that queues leave, with more keys than one look through them reaches: what
//! was spent stays spent, what is forgiven stays forgiven, and nothing is spent where no queue follows.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Range;

use common::Driver;
use sluice_engine::command::{Receive, Send, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::SendOptions;
use sluice_engine::limit::{Cost, LIMIT_CHANGES_MAX, LimitRules, Rate};
use sluice_engine::limits::SLICE_ITEMS;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Error};

const START_US: u64 = 1_700_000_000_000_000;
const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const DAY_MS: u64 = 24 * 3600 * 1000;
/// More keys than one look reaches.
const KEYS: usize = 2 * SLICE_ITEMS;
/// Messages that one receive gives.
const AT_ONCE: usize = 500;

fn begin(behaviour: u16) -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour });
    driver
}

/// Sets the rate of each key of the limit `l`: so much a day.
fn set_rate(driver: &mut Driver, now_us: u64, count: u32, burst: u32) -> Option<Error> {
    let rules =
        LimitRules { rate_per_key: Some(Rate { count, period_ms: DAY_MS, burst }), ..Default::default() };
    driver.apply(now_us, &Command::LimitSet { namespace: NAMESPACE, limit: "l", rules });
    driver.out.error.clone()
}

/// Lets the queue `q` follow a limit; empty: none.
fn follow(driver: &mut Driver, limit: &str) {
    let patch = QueuePatch { limit: Some(limit.into()), ..QueuePatch::default() };
    driver.apply(START_US, &Command::QueueSet { namespace: NAMESPACE, queue: "q", patch, create: true });
    assert_eq!(driver.out.error, None);
}

fn key(number: usize) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Sends a message of each of these keys.
fn send(driver: &mut Driver, keys: Range<usize>, cost: u32, priority: u8) {
    for number in keys {
        let key = key(number);
        let options = SendOptions { limit_key: &key, cost: Cost(cost), ..SendOptions::default() };
        let items = [SendItem { options: Some(&options), priority, ..SendItem::default() }];
        let send =
            Send { namespace: NAMESPACE, queue: "q", idempotency_key: b"", request_digest: 0, items: &items };
        driver.apply(START_US, &Command::Send(send));
        assert_eq!(driver.out.error, None);
    }
}

/// Receives as many messages as one receive gives; tells how many came.
fn receive(driver: &mut Driver, now_us: u64) -> usize {
    let receive = Receive {
        namespace: NAMESPACE,
        queues: &[("q", 0)],
        max_messages: AT_ONCE as u32,
        max_bytes: 1 << 20,
        lease_ms: 3_600_000,
        consumer: "",
    };
    driver.apply(now_us, &Command::Receive(receive));
    driver.out.deliveries.len()
}

/// Keys of the limit `l` that have spent so much.
fn have_spent(engine: &Engine, now_us: u64, cost: u64) -> usize {
    let spent = |number| engine.limit_key(NAMESPACE, "l", &key(number)).and_then(|view| view.spent);
    (0..KEYS).filter(|number| spent(*number).map_or(0, |spent| spent.at(now_us)) == cost).count()
}

/// Lets all happen that is due.
fn settle(driver: &mut Driver, now_us: u64) {
    while driver.engine.next_deadline().is_some_and(|due| due <= now_us) {
        driver.apply(now_us, &Command::Tick);
    }
    driver.engine.recount().unwrap();
}

fn restored(engine: &mut Engine) -> Engine {
    let mut bytes = Vec::new();
    engine.snapshot_begin();
    while !engine.snapshot_step(1 << 20, &mut bytes) {}
    let mut piece = Some(bytes);
    let restored = Engine::restore(&mut || piece.take()).unwrap();
    assert_eq!(restored.digest(), engine.digest());
    restored.recount().unwrap();
    restored
}

/// An engine with keys that have spent 90 of 100 a day each.
fn with_spent() -> Driver {
    let mut driver = begin(BEHAVIOUR_VERSION);
    set_rate(&mut driver, START_US, 100, 100);
    follow(&mut driver, "l");
    send(&mut driver, 0..KEYS, 90, 0);
    while receive(&mut driver, START_US) > 0 {}
    assert_eq!(have_spent(&driver.engine, START_US, 90), KEYS);
    driver
}

#[test]
fn what_keys_have_spent_stays_also_where_no_look_has_come_since() {
    let mut driver = with_spent();
    for (count, at_us) in [(1_000, 1), (10_000, 2), (200, 3)] {
        assert_eq!(set_rate(&mut driver, START_US + at_us, count, 200), None);
        assert_eq!(have_spent(&driver.engine, START_US + at_us, 90), KEYS);
        assert_eq!(have_spent(&restored(&mut driver.engine), START_US + at_us, 90), KEYS);
    }
    settle(&mut driver, START_US + 3);
    assert_eq!(have_spent(&driver.engine, START_US + 3, 90), KEYS);
    // At 200 a day.
    assert_eq!(have_spent(&driver.engine, START_US + DAY_MS * 1_000 / 10, 70), KEYS);
}

#[test]
fn what_keys_are_forgiven_does_not_come_back() {
    let mut driver = with_spent();
    assert_eq!(set_rate(&mut driver, START_US, 100, 1), None);
    assert_eq!(have_spent(&driver.engine, START_US, 1), KEYS);
    let later_us = START_US + DAY_MS * 1_000 / 100;
    assert_eq!(have_spent(&driver.engine, later_us, 0), KEYS);
    assert_eq!(set_rate(&mut driver, later_us, 100, 100), None);
    assert_eq!(have_spent(&driver.engine, later_us, 0), KEYS);
    settle(&mut driver, later_us);
    assert_eq!(have_spent(&driver.engine, later_us, 0), KEYS);
}

#[test]
fn a_rate_that_is_taken_away_forgets_what_was_spent() {
    let mut driver = with_spent();
    driver.apply(
        START_US,
        &Command::LimitSet { namespace: NAMESPACE, limit: "l", rules: LimitRules::default() },
    );
    assert_eq!(set_rate(&mut driver, START_US, 100, 100), None);
    assert_eq!(have_spent(&driver.engine, START_US, 0), KEYS);
    settle(&mut driver, START_US);
    assert_eq!(have_spent(&driver.engine, START_US, 0), KEYS);
}

#[test]
fn changes_beyond_what_keys_can_follow_are_refused_until_all_were_looked_at() {
    let mut driver = with_spent();
    let change = |driver: &mut Driver, number: usize| set_rate(driver, START_US, 100 + number as u32, 100);
    for number in 1..=LIMIT_CHANGES_MAX {
        assert_eq!(change(&mut driver, number), None);
    }
    let most = Error::Overloaded { what: "changes of this limit", retry_after_ms: 1_000 };
    assert_eq!(change(&mut driver, 0), Some(most));
    assert_eq!(change(&mut driver, LIMIT_CHANGES_MAX), None, "the same rules change nothing");
    restored(&mut driver.engine);
    assert_eq!(have_spent(&driver.engine, START_US, 90), KEYS);
    settle(&mut driver, START_US);
    assert_eq!(change(&mut driver, 0), None);
    assert_eq!(have_spent(&driver.engine, START_US, 90), KEYS);
}

#[test]
fn deliveries_of_a_queue_that_has_left_its_limit_spend_nothing() {
    let mut driver = begin(BEHAVIOUR_VERSION);
    set_rate(&mut driver, START_US, 1_000, 1_000);
    follow(&mut driver, "l");
    send(&mut driver, 0..KEYS, 0, 0);
    send(&mut driver, KEYS - AT_ONCE..KEYS, 100, 9);
    follow(&mut driver, "");
    assert_eq!(receive(&mut driver, START_US), AT_ONCE);
    assert_eq!(have_spent(&driver.engine, START_US, 0), KEYS);
    let in_flight =
        |number| driver.engine.limit_key(NAMESPACE, "l", &key(number)).map_or(0, |view| view.in_flight);
    assert_eq!((0..KEYS).map(in_flight).sum::<u64>(), 0);
    driver.engine.recount().unwrap();
    settle(&mut driver, START_US);
    assert!(driver.engine.limit_keys(NAMESPACE, "l", false, None, 10).items.is_empty());
}

#[test]
fn before_version_17_what_was_spent_follows_the_rate() {
    let mut driver = begin(16);
    set_rate(&mut driver, START_US, 100, 1_000);
    follow(&mut driver, "l");
    send(&mut driver, 0..KEYS, 100, 0);
    while receive(&mut driver, START_US) > 0 {}
    set_rate(&mut driver, START_US, 1_000, 1_000);
    settle(&mut driver, START_US);
    assert_eq!(have_spent(&driver.engine, START_US, 1_000), KEYS);
    driver.apply(START_US, &Command::Raise { behaviour: BEHAVIOUR_VERSION });
    assert_eq!(have_spent(&restored(&mut driver.engine), START_US, 1_000), KEYS);
    set_rate(&mut driver, START_US, 10_000, 10_000);
    assert_eq!(have_spent(&restored(&mut driver.engine), START_US, 1_000), KEYS);
    settle(&mut driver, START_US);
    assert_eq!(have_spent(&restored(&mut driver.engine), START_US, 1_000), KEYS);
}
