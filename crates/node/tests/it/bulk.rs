//! Bulks: they change what matches and nothing else, and count exactly.

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::{SendItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::query::State;
use sluice_node::Node;
use sluice_node::bulk::{BulkAction, BulkRequest, BulkState, BulkView};
use sluice_node::search::MessageFilter;

use crate::support::{memory, receive, send, sending, settle};

fn filter(text: &str) -> Arc<MessageFilter> {
    Arc::new(MessageFilter::parse(text).unwrap())
}

/// Moves the messages of a queue to `b`.
fn moving(queue: &str) -> BulkRequest {
    BulkRequest {
        namespace: NamespaceId::DEFAULT,
        queue: queue.into(),
        filter: filter("{}"),
        action: BulkAction::Move { to: "b".to_owned() },
        by: String::new(),
        why: String::new(),
        dry_run: false,
        per_second: None,
    }
}

async fn ended(node: &Node, begun: BulkView) -> BulkView {
    loop {
        let view = node.bulk(NamespaceId::DEFAULT, begun.id).unwrap();
        if view.state != BulkState::Running {
            assert_eq!(view.matched, view.changed + view.skipped);
            return view;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn figures(view: &BulkView) -> [u64; 4] {
    [view.scanned, view.matched, view.changed, view.skipped]
}

async fn states(node: &Node, queue: &str) -> [u64; State::COUNT] {
    node.queue(NamespaceId::DEFAULT, queue).await.unwrap().counters.states
}

#[tokio::test(flavor = "multi_thread")]
async fn it_begins_and_ends_by_the_clock_however_long_nothing_was_done() {
    let node = memory();
    send(&node, "a", &[b"x"]).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let condition = filter(r#"{"/sent_at_ms":{"gt":{"now":"-400ms"}}}"#);
    let request = BulkRequest { filter: condition, action: BulkAction::Hold, ..moving("a") };
    let begun = node.bulk_start(request).await.unwrap();
    let bulk = ended(&node, begun).await;
    assert_eq!(figures(&bulk), [1, 0, 0, 0], "it was sent before");
    let ended_at_us = bulk.ended_at_us.unwrap();
    assert!(bulk.started_at_us <= ended_at_us && ended_at_us <= node.clock().now_ms() * 1_000 + 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_there_moves_and_what_comes_later_does_not() {
    let node = memory();
    send(&node, "b", &[b"there"]).await;
    let payloads: Vec<&[u8]> = vec![b"x"; 1_000];
    send(&node, "a", &payloads).await;
    let leased = receive(&node, "a", 10, 0).await.unwrap();
    let begun = node.bulk_start(moving("a")).await.unwrap();
    send(&node, "a", &[b"later"]).await;
    assert_eq!((begun.state, begun.total), (BulkState::Running, 1_000));
    let view = ended(&node, begun).await;
    assert_eq!((view.state, figures(&view)), (BulkState::Done, [1_000, 1_000, 990, 10]));
    assert_eq!(states(&node, "a").await[State::Ready as usize], 1);
    assert_eq!(states(&node, "b").await[State::Ready as usize], 991);
    assert!(settle(&node, &leased, Settlement::Ack).await.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_looks_at_tags_headers_errors_and_numbers() {
    let node = memory();
    send(&node, "b", &[b"there"]).await;
    let items = [
        SendItem { payload: b"1", tags: &["red"], headers: &[("to", "ann")], ..SendItem::default() },
        SendItem { payload: b"2", tags: &["blue", "red"], headers: &[("to", "bob")], ..SendItem::default() },
        SendItem { payload: b"3", headers: &[("red", "red")], ..SendItem::default() },
    ];
    node.send(&sending(NamespaceId::DEFAULT, "a", &items)).await.unwrap();
    let count = async |text: &str| {
        let request = BulkRequest { dry_run: true, filter: filter(text), ..moving("a") };
        let view = ended(&node, node.bulk_start(request).await.unwrap()).await;
        view.changed
    };
    assert_eq!(count("{}").await, 3);
    assert_eq!(count(r#"{"/tags":{"contains":"red"}}"#).await, 2);
    assert_eq!(count(r#"{"/headers/to":"bob"}"#).await, 1);
    assert_eq!(count(r#"{"/payload":{"in":[2,3]}}"#).await, 2);
    assert_eq!(count(r#"{"/attempts":{"ge":1}}"#).await, 0);
    assert_eq!(count(r#"{"/sent_at_ms":{"lt":{"now":"-1h"}}}"#).await, 0);
    let taken = receive(&node, "a", 1, 0).await.unwrap();
    let failed = Settlement::Nack { delay_ms: Some(60_000) };
    let item = sluice_engine::command::SettleItem {
        receipt: taken[0].delivery.receipt,
        settlement: failed,
        error: "smtp: 451 try later",
        result: None,
        add_cost: 0,
    };
    node.settle(NamespaceId::DEFAULT, &[item]).await.unwrap();
    assert_eq!(count(r#"{"/errors":{"contains":"451"}}"#).await, 1);
    assert_eq!(count(r#"{"/attempts":{"ge":1}}"#).await, 1);
    assert_eq!(count(r#"{"/state":"delayed"}"#).await, 1);
    assert_eq!(states(&node, "a").await.iter().sum::<u64>(), 3, "a dry run changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_before_anything_is_done() {
    let node = memory();
    send(&node, "a", &[b"x"]).await;
    let start = async |change: fn(&mut BulkRequest)| {
        let mut request = moving("a");
        request.action = BulkAction::Hold;
        change(&mut request);
        node.bulk_start(request).await.map(|_| ()).unwrap_err()
    };
    let named = |error: &Error, field: &str| {
        assert!(matches!(error, Error::InvalidArgument { field: of, .. } if of == field), "{error}");
    };
    let error = start(|request| request.filter = filter(r#"{"/state":"dead"}"#)).await;
    named(&error, "filter.where./state");
    let error = start(|request| request.queue = "nowhere".into()).await;
    assert!(matches!(error, Error::QueueNotFound { .. }));
    let error = start(|request| request.action = BulkAction::Move { to: "b".into() }).await;
    assert!(matches!(error, Error::QueueNotFound { .. }));
    named(&start(|request| request.action = BulkAction::Move { to: "a".into() }).await, "to");
    assert!(node.bulks(NamespaceId::DEFAULT).is_empty());
    assert!(matches!(node.bulk(NamespaceId::DEFAULT, 7), Err(Error::BulkNotFound { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_bulk_leaves_the_rest() {
    let node = memory();
    let payloads: Vec<&[u8]> = vec![b"x"; 10_000];
    for _ in 0..3 {
        send(&node, "a", &payloads).await;
    }
    let request = BulkRequest { action: BulkAction::Cancel, ..moving("a") };
    let begun = node.bulk_start(request).await.unwrap();
    let view = node.bulk_cancel(NamespaceId::DEFAULT, begun.id).await.unwrap();
    assert_eq!(view.state, BulkState::Cancelled);
    assert!(view.changed < 30_000, "{}", view.changed);
    assert_eq!(states(&node, "a").await[State::Ready as usize], 30_000 - view.changed);
    assert_eq!(node.bulks(NamespaceId::DEFAULT), [view]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_at_a_rate_takes_its_time_and_ends_when_it_is_cancelled() {
    let node = memory();
    let payloads: Vec<&[u8]> = vec![b"x"; 300];
    send(&node, "a", &payloads).await;
    let request = BulkRequest { action: BulkAction::Hold, per_second: Some(1_000), ..moving("a") };
    let begun = std::time::Instant::now();
    let view = ended(&node, node.bulk_start(request).await.unwrap()).await;
    assert_eq!((view.state, figures(&view)), (BulkState::Done, [300, 300, 300, 0]));
    // The first record goes at once, and each other one of ten messages a hundredth of a second later.
    assert!(begun.elapsed() >= Duration::from_millis(290), "{:?}", begun.elapsed());

    let request = BulkRequest { action: BulkAction::Approve, per_second: Some(1), ..moving("a") };
    let begun = node.bulk_start(request).await.unwrap();
    while node.bulk(NamespaceId::DEFAULT, begun.id).unwrap().changed == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let view = node.bulk_cancel(NamespaceId::DEFAULT, begun.id).await.unwrap();
    assert_eq!((view.state, view.matched), (BulkState::Cancelled, view.changed + view.skipped));
    assert!((1..128).contains(&view.changed), "{}", view.changed);
    assert_eq!(states(&node, "a").await[State::Held as usize], 300 - view.changed);
    let request =
        BulkRequest { action: BulkAction::Cancel, per_second: Some(1), dry_run: true, ..moving("a") };
    assert_eq!(
        ended(&node, node.bulk_start(request).await.unwrap()).await.changed,
        300,
        "a dry run does not wait"
    );
}
