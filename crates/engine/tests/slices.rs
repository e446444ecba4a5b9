//! A million timers due in one second, or messages that are too many, do not stall anybody: each apply
//! handles a slice, and the next is due at once.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::command::{Deliver, Send, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::{Expires, SendOptions};
use sluice_engine::limits::SLICE_ITEMS;
use sluice_engine::query::State;
use sluice_engine::settings::{Overflow, QueuePatch};
use sluice_engine::{BEHAVIOUR_VERSION, Command};

const START_US: u64 = 1_700_000_000_000_000;
const MESSAGES: u64 = 1_000_000;
const BATCH: u64 = 10_000;

/// Sends a million of the same message.
fn send_all(item: &SendItem<'_>) -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    let items = vec![item.clone(); BATCH as usize];
    let send = Command::Send(Send {
        namespace: NamespaceId::DEFAULT,
        queue: "q",
        idempotency_key: &[],
        request_digest: 0,
        items: &items,
    });
    for _ in 0..MESSAGES / BATCH {
        driver.apply(START_US, &send);
    }
    driver
}

/// Ticks at `now_us` until nothing is due; each tick moves at most a slice out of a state. Returns how many
/// there were.
fn tick_all(driver: &mut Driver, now_us: u64, from: State) -> u64 {
    let mut ticks = 0;
    while driver.engine.next_deadline().is_some_and(|due| due <= now_us) {
        let before = driver.engine.totals().states[from as usize];
        driver.apply(now_us, &Command::Tick);
        let moved = before - driver.engine.totals().states[from as usize];
        assert!(moved <= SLICE_ITEMS as u64, "{moved} at once");
        ticks += 1;
    }
    ticks
}

#[test]
fn a_million_delayed_messages_become_ready_in_slices() {
    let mut driver = send_all(&SendItem { deliver: Deliver::AfterMs(3_600_000), ..SendItem::default() });
    tick_all(&mut driver, START_US + 3_599_999_000, State::Delayed);
    assert_eq!(driver.engine.totals().states[State::Ready as usize], 0, "none is early");
    let ticks = tick_all(&mut driver, START_US + 3_600_000_000, State::Delayed);
    assert_eq!(driver.engine.totals().states[State::Ready as usize], MESSAGES);
    assert!((MESSAGES / SLICE_ITEMS as u64..MESSAGES / 300).contains(&ticks), "{ticks} ticks");
}

#[test]
fn a_million_messages_end_in_slices() {
    let options = SendOptions { expires: Expires::AfterMs(3_600_000), ..SendOptions::default() };
    let mut driver = send_all(&SendItem { options: Some(&options), ..SendItem::default() });
    let ticks = tick_all(&mut driver, START_US + 3_600_000_000, State::Ready);
    assert_eq!(driver.engine.totals().states[State::Dead as usize], MESSAGES);
    assert!((MESSAGES / SLICE_ITEMS as u64..MESSAGES / 300).contains(&ticks), "{ticks} ticks");
}

#[test]
fn a_million_messages_make_room_in_slices() {
    let mut driver = send_all(&SendItem::default());
    let patch = QueuePatch {
        max_messages: Some(10),
        overflow: Some(Overflow::DeadLetterOldest),
        ..QueuePatch::default()
    };
    let namespace = NamespaceId::DEFAULT;
    driver.apply(START_US, &Command::QueueSet { namespace, queue: "q", patch, create: false });
    assert_eq!(driver.engine.next_deadline(), None, "nothing happens before the next send");
    let items = [SendItem::default()];
    let send = Send { namespace, queue: "q", idempotency_key: &[], request_digest: 0, items: &items };
    driver.apply(START_US, &Command::Send(send));
    let dead = driver.engine.totals().states[State::Dead as usize];
    assert!(dead <= SLICE_ITEMS as u64, "{dead} at once");
    let ticks = tick_all(&mut driver, START_US, State::Ready);
    assert_eq!(driver.engine.totals().states[State::Ready as usize], 10);
    assert!((MESSAGES / SLICE_ITEMS as u64..MESSAGES / 200).contains(&ticks), "{ticks} ticks");
}
