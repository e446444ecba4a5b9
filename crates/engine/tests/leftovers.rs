//! What is left for later ticks gets its turn, whatever else is due.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::command::{Receive, Send, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::{Expires, SendOptions};
use sluice_engine::limit::LimitRules;
use sluice_engine::outcome::Reply;
use sluice_engine::query::State;
use sluice_engine::settings::{QueuePatch, Quotas};
use sluice_engine::{BEHAVIOUR_VERSION, Command};

const START_US: u64 = 1_700_000_000_000_000;

fn driver() -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    driver
}

fn send<'a>(namespace: NamespaceId, queue: &'a str, items: &'a [SendItem<'a>]) -> Command<'a> {
    Command::Send(Send { namespace, queue, idempotency_key: &[], request_digest: 0, items })
}

fn lease(driver: &mut Driver, now_us: u64, namespace: NamespaceId, queue: &str, messages: u32) {
    let receive = Receive {
        namespace,
        queues: &[(queue, 0)],
        max_messages: messages,
        max_bytes: 1 << 20,
        lease_ms: 1_000,
        consumer: "",
    };
    driver.apply(now_us, &Command::Receive(receive));
    assert_eq!(driver.out.deliveries.len(), messages as usize);
}

/// Deletes a namespace of 2,000 queues with leased messages that are over when their leases end, and ticks
/// every `tick_us`. Returns whether nothing is left to do within 20,000 ticks.
///
/// The messages have to end although their namespace is deleted. Else their timers are due in each tick,
/// which comes to no other work of the shard.
fn sweep_with_ends(messages: u32, tick_us: u64) -> bool {
    let mut driver = driver();
    let create = Command::NamespaceCreate { number: None, name: "n", shard: 0, quotas: Quotas::default() };
    driver.apply(START_US, &create);
    let Reply::Namespace { namespace } = driver.out.reply else { panic!() };
    for n in 0..2_000 {
        let queue = format!("q{n:04}");
        let set = Command::QueueSet { namespace, queue: &queue, patch: QueuePatch::default(), create: true };
        driver.apply(START_US, &set);
    }
    let options = SendOptions { expires: Expires::AfterMs(500), ..SendOptions::default() };
    let items = vec![SendItem { options: Some(&options), ..SendItem::default() }; messages as usize];
    for items in items.chunks(1_000) {
        driver.apply(START_US, &send(namespace, "z", items));
        lease(&mut driver, START_US, namespace, "z", items.len() as u32);
    }
    // Somebody else's message, which ends a little later.
    driver.apply(START_US, &send(NamespaceId::DEFAULT, "other", &items[..1]));

    let mut now_us = START_US + 499_000;
    while driver.engine.next_deadline().is_some_and(|due_us| due_us <= now_us) {
        driver.apply(now_us, &Command::Tick);
    }
    now_us = START_US + 999_900;
    driver.apply(now_us, &Command::NamespaceDelete { namespace, force: true });
    now_us = START_US + 1_001_000;
    let mut ticks = 0;
    while driver.engine.next_deadline().is_some_and(|due_us| due_us <= now_us) && ticks < 20_000 {
        driver.apply(now_us, &Command::Tick);
        now_us += tick_us;
        ticks += 1;
    }
    let totals = driver.engine.totals();
    println!(
        "{messages} message(s), {tick_us} us a tick: {ticks} ticks, {} s; \
         leased {}, delayed {}, ready {}, dead {}",
        (now_us - START_US) / 1_000_000,
        totals.states[State::Leased as usize],
        totals.states[State::Delayed as usize],
        totals.states[State::Ready as usize],
        totals.states[State::Dead as usize],
    );
    ticks < 20_000
}

/// Many messages, and ticks at odd times.
#[test]
fn messages_that_are_over_in_a_deleted_namespace_do_not_stop_the_shard() {
    assert!(sweep_with_ends(10_000, 301));
}

/// One message, and ticks at whole milliseconds: then its timer is due in the tick that sets it.
#[test]
fn a_message_that_is_over_in_a_deleted_namespace_does_not_stop_the_shard() {
    assert!(sweep_with_ends(1, 1_000));
}

/// A limit that is set to the same rules does not begin the look through its keys anew: the later keys have
/// their turn, too.
#[test]
fn a_limit_that_is_set_again_and_again_still_lets_all_keys_go_on() {
    let namespace = NamespaceId::DEFAULT;
    let mut driver = driver();
    let rules = |most| LimitRules { in_flight_per_key: Some(most), ..LimitRules::default() };
    driver.apply(START_US, &Command::LimitSet { namespace, limit: "l", rules: rules(1) });
    let patch = QueuePatch { limit: Some("l".into()), ..QueuePatch::default() };
    driver.apply(START_US, &Command::QueueSet { namespace, queue: "q", patch, create: true });
    let keys: Vec<String> = (0..5_000).map(|n| format!("k{n}")).collect();
    for key in &keys {
        let options = SendOptions { limit_key: key.as_bytes(), ..SendOptions::default() };
        let items = vec![SendItem { options: Some(&options), ..SendItem::default() }; 2];
        driver.apply(START_US, &send(namespace, "q", &items));
    }
    for _ in 0..5 {
        lease(&mut driver, START_US, namespace, "q", 1_000);
    }
    assert_eq!(driver.engine.totals().states[State::Blocked as usize], 5_000);
    // 100 times as many ticks as it takes.
    for n in 0..1_000 {
        driver.apply(START_US + n * 900, &Command::LimitSet { namespace, limit: "l", rules: rules(2) });
        driver.apply(START_US + n * 900, &Command::Tick);
    }
    assert_eq!(driver.engine.totals().states[State::Blocked as usize], 0, "they may all go on");
}
