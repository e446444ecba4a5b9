//! Time that tests move: what is due by then is done when the move is, and waits of callers go on.

use std::path::Path;
use std::time::Duration;

use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_node::schedule::{Missed, ScheduleSpec, When};
use sluice_node::{Node, Options};

use crate::support::{options, payloads, receive, send, sending};
use crate::waits::{LONG_MS, begin, soon, until_receives_wait};

const DEFAULT: NamespaceId = NamespaceId::DEFAULT;
const HOUR_MS: u64 = 3_600_000;

fn movable(shards: u32) -> Node {
    Node::start(Options { movable_time: true, shards, ..options(None) }).unwrap()
}

async fn advance(node: &Node, by_ms: u64) {
    soon(node.movable_time().unwrap().advance(by_ms)).await.unwrap();
}

async fn send_delayed(node: &Node, namespace: NamespaceId, delay_ms: u64) {
    let item = SendItem { payload: b"later", deliver: Deliver::AfterMs(delay_ms), ..SendItem::default() };
    node.send(&sending(namespace, "work", &[item])).await.unwrap();
}

#[tokio::test]
async fn delays_end_and_not_a_moment_too_soon() {
    let node = movable(1);
    send_delayed(&node, DEFAULT, 24 * HOUR_MS).await;
    advance(&node, 23 * HOUR_MS).await;
    assert!(receive(&node, "work", 1, 0).await.unwrap().is_empty());
    advance(&node, HOUR_MS).await;
    assert_eq!(payloads(&receive(&node, "work", 1, 0).await.unwrap()), [b"later"]);
}

#[tokio::test]
async fn leases_end() {
    let node = movable(1);
    send(&node, "work", &[b"held"]).await;
    let first = receive(&node, "work", 1, 0).await.unwrap();
    assert!(receive(&node, "work", 1, 0).await.unwrap().is_empty());
    advance(&node, 24 * HOUR_MS).await;
    let again = receive(&node, "work", 1, 0).await.unwrap();
    assert_eq!(again[0].delivery.receipt.id, first[0].delivery.receipt.id);
    assert_eq!((first[0].delivery.attempt, again[0].delivery.attempt), (1, 2));
}

/// The time passed with the server running: none of these instants was missed.
#[tokio::test]
async fn a_schedule_fires_for_each_instant_whatever_it_says_of_missed_ones() {
    let node = movable(1);
    for (name, missed) in [("once", Missed::Once), ("all", Missed::All), ("skip", Missed::Skip)] {
        let spec = ScheduleSpec { when: When::Every { every_ms: HOUR_MS }, missed };
        let item = SendItem { payload: name.as_bytes(), ..SendItem::default() };
        node.schedule_put(DEFAULT, name, name, &spec, &item).await.unwrap();
    }
    let fired = async |name: &str| node.schedule(DEFAULT, name).await.unwrap().view.fired;
    for (by_h, sum) in [(24, 24), (1, 25)] {
        advance(&node, by_h * HOUR_MS).await;
        for name in ["once", "all", "skip"] {
            assert_eq!(fired(name).await, sum, "{name}");
            let got = receive(&node, name, 1_000, 0).await.unwrap();
            // The leases of those that were received before have ended meanwhile.
            assert_eq!(got.len() as u64, sum, "{name}");
        }
    }
}

#[tokio::test]
async fn of_very_many_instants_the_latest_fire() {
    let node = movable(1);
    let spec = ScheduleSpec { when: When::Every { every_ms: 1_000 }, missed: Missed::Once };
    node.schedule_put(DEFAULT, "beat", "work", &spec, &SendItem::default()).await.unwrap();
    advance(&node, 24 * HOUR_MS).await;
    let fired = node.schedule(DEFAULT, "beat").await.unwrap().view.fired;
    assert!((1_000..1_100).contains(&fired), "{fired}");
}

#[tokio::test]
async fn who_waits_for_a_message_gets_it_and_waits_as_long_as_before() {
    let node = movable(1);
    let asking = node.clone();
    let waiting = begin(async move { soon(receive(&asking, "work", 1, LONG_MS)).await }).await;
    until_receives_wait(&node, 1).await;
    advance(&node, 24 * HOUR_MS).await;
    until_receives_wait(&node, 1).await;
    send_delayed(&node, DEFAULT, HOUR_MS).await;
    advance(&node, HOUR_MS).await;
    assert_eq!(payloads(&waiting.await.unwrap().unwrap()), [b"later"]);
}

#[tokio::test]
async fn all_shards_move_and_those_who_move_at_once_are_added_up() {
    let node = movable(3);
    let mut namespaces = vec![DEFAULT];
    for shard in 1..3 {
        let name = format!("on-{shard}");
        namespaces.push(node.namespace_create(&name, Some(shard), Default::default()).await.unwrap().id);
    }
    for namespace in &namespaces {
        send_delayed(&node, *namespace, 2 * HOUR_MS).await;
    }
    let time = node.movable_time().unwrap();
    let (one, other) = soon(async { tokio::join!(time.advance(HOUR_MS), time.advance(HOUR_MS)) }).await;
    one.and(other).unwrap();
    assert_eq!(time.ahead_ms(), 2 * HOUR_MS);
    for namespace in namespaces {
        let got = crate::support::receive_in(&node, namespace, "work", 1, 0).await.unwrap();
        assert_eq!(got.len(), 1, "{namespace:?}");
        let ahead_ms = (node.log_us(namespace).unwrap() / 1_000).abs_diff(time.now_ms());
        assert!(ahead_ms < 60_000, "{ahead_ms}");
    }
}

#[tokio::test]
async fn a_stop_answers_whoever_moves_the_time_then_or_later() {
    let node = movable(1);
    let moving = node.clone();
    let moved = begin(async move { moving.movable_time().unwrap().advance(1).await }).await;
    node.shutdown(Duration::from_secs(5)).await.unwrap();
    drop(soon(moved).await.unwrap());
    assert_eq!(node.movable_time().unwrap().advance(1).await.unwrap_err().code(), "shutting_down");
}

#[test]
fn stored_data_has_no_time_that_can_be_moved() {
    let refused = Node::start(Options { movable_time: true, ..options(Some(Path::new("/nowhere"))) });
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("/nowhere") && refused.contains("keep data in memory"), "{refused}");
}

#[tokio::test]
async fn nobody_moves_the_time_of_an_ordinary_node() {
    assert!(crate::support::memory().movable_time().is_none());
}
