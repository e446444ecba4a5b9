//! Unique keys within a batch: a message that is cancelled at once for its parents has none, so that the next
//! one with its key is no duplicate.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::command::{Send, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::{DependsOn, Expires, OnParentFailed, SendOptions, Unique, UniqueUntil};
use sluice_engine::query::State;
use sluice_engine::{BEHAVIOUR_VERSION, Command};

const START_US: u64 = 1_700_000_000_000_000;

/// Sends a parent that is over, a child of it, and a message with the child's unique key; returns which are
/// duplicates, and what is ready.
fn send(until: UniqueUntil, on_parent_failed: OnParentFailed) -> (Vec<u32>, u64) {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    let unique = Some(Unique { key: b"k", window_ms: 60_000, until, on_duplicate: Default::default() });
    let first = [0u32.to_le_bytes()];
    let depends_on = DependsOn { ids: &[], places: &first, mode: Default::default(), on_parent_failed };
    let over = SendOptions { expires: Expires::AtUs(1_000), ..SendOptions::default() };
    let child = SendOptions { depends_on: Some(depends_on), unique, ..SendOptions::default() };
    let important = SendOptions { unique, ..SendOptions::default() };
    let items = [&over, &child, &important].map(|of| SendItem { options: Some(of), ..SendItem::default() });
    let (namespace, queue) = (NamespaceId::DEFAULT, "q");
    let send = Send { namespace, queue, idempotency_key: &[], request_digest: 0, items: &items };
    driver.apply(START_US, &Command::Send(send));
    assert_eq!(driver.out.error, None);
    let duplicates = driver.out.duplicates.clone();
    driver.engine.recount().unwrap();
    (duplicates, driver.engine.totals().states[State::Ready as usize])
}

#[test]
fn what_is_cancelled_with_its_batch_has_no_key() {
    assert_eq!(send(UniqueUntil::Gone, OnParentFailed::Cancel), (vec![], 1));
}

#[test]
fn a_window_counts_all_the_same() {
    assert_eq!(send(UniqueUntil::Window, OnParentFailed::Cancel), (vec![2], 0));
}

#[test]
fn one_that_runs_or_is_held_has_its_key() {
    assert_eq!(send(UniqueUntil::Gone, OnParentFailed::Run), (vec![2], 1));
    assert_eq!(send(UniqueUntil::Gone, OnParentFailed::Hold), (vec![2], 0));
}
