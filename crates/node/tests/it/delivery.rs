//! Sending, receiving, waiting, settling.

use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_engine::command::Settlement;
use sluice_engine::id::NamespaceId;
use sluice_engine::query::State;
use sluice_node::{Delivered, Node};
use tokio::task::JoinHandle;

use crate::support::{memory, options, payloads, receive, send, settle};
use crate::waits::{LONG_MS, begin, soon, until_receives_wait};

/// A receive of one message; returns when `count` receives wait.
async fn waiting(node: &Node, count: u64) -> JoinHandle<Result<Vec<Delivered>, Error>> {
    let asking = node.clone();
    let waiting = begin(async move { soon(receive(&asking, "jobs", 1, LONG_MS)).await }).await;
    until_receives_wait(node, count).await;
    waiting
}

#[tokio::test]
async fn what_is_sent_is_received_in_order_and_acked_once() {
    let node = memory();
    let sent = send(&node, "jobs", &[b"a", b"b", b"c"]).await;
    assert_eq!(sent.count, 3);
    let delivered = receive(&node, "jobs", 10, 0).await.unwrap();
    assert_eq!(payloads(&delivered), [b"a", b"b", b"c"]);
    assert_eq!(delivered[0].delivery.receipt.id, sent.first);
    assert_eq!(settle(&node, &delivered, Settlement::Ack).await, vec![Ok(()); 3]);
    let again = settle(&node, &delivered, Settlement::Ack).await;
    assert!(again.iter().all(|result| matches!(result, Err(Error::AlreadySettled { .. }))), "{again:?}");
    assert_eq!(node.queue(NamespaceId::DEFAULT, "jobs").await.unwrap().counters.acked, 3);
}

#[tokio::test]
async fn a_waiting_receive_is_woken_by_a_send_and_costs_no_record() {
    let node = memory();
    receive(&node, "jobs", 1, 0).await.unwrap(); // makes the queue
    let before = node.metrics().await.shards[0].journal.records;
    let waiting = waiting(&node, 1).await;
    assert_eq!(node.metrics().await.shards[0].journal.records, before);
    send(&node, "jobs", &[b"x"]).await;
    assert_eq!(payloads(&waiting.await.unwrap().unwrap()), [b"x"]);
}

#[tokio::test]
async fn a_wait_ends_empty() {
    let node = memory();
    let began = Instant::now();
    assert!(receive(&node, "jobs", 1, 80).await.unwrap().is_empty());
    assert!(began.elapsed() >= Duration::from_millis(80));
}

#[tokio::test]
async fn those_who_wait_longest_are_served_first() {
    let node = memory();
    let waiters = [waiting(&node, 1).await, waiting(&node, 2).await, waiting(&node, 3).await];
    for (payload, waiter) in [&b"1"[..], b"2", b"3"].into_iter().zip(waiters) {
        send(&node, "jobs", &[payload]).await;
        assert_eq!(payloads(&waiter.await.unwrap().unwrap()), [payload]);
    }
}

#[tokio::test]
async fn a_receive_whose_caller_has_gone_leaves_nothing_leased() {
    let node = memory();
    for round in 0..50 {
        let receiving =
            tokio::time::timeout(Duration::from_micros(round * 20), receive(&node, "jobs", 1, LONG_MS));
        let (received, _) = tokio::join!(receiving, send(&node, "jobs", &[b"x"]));
        let taken = match received {
            Ok(delivered) => delivered.unwrap(),
            Err(_) => soon(receive(&node, "jobs", 1, LONG_MS)).await.unwrap(),
        };
        assert_eq!(taken.len(), 1, "round {round}");
        assert_eq!(settle(&node, &taken, Settlement::Ack).await, [Ok(())]);
    }
    let counters = node.queue(NamespaceId::DEFAULT, "jobs").await.unwrap().counters;
    assert_eq!(counters.states, [0; 7]);
}

#[tokio::test]
async fn too_many_waiting_receives_are_refused() {
    let mut few = options(None);
    few.waiting_receives = 1;
    let node = Node::start(few).unwrap();
    let first = waiting(&node, 1).await;
    let refused = soon(receive(&node, "jobs", 1, LONG_MS)).await;
    assert!(matches!(refused, Err(Error::Overloaded { .. })), "{refused:?}");
    node.drain();
    assert!(first.await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn nacked_messages_come_back_after_their_delay_by_themselves() {
    let node = memory();
    send(&node, "jobs", &[b"x"]).await;
    let first = receive(&node, "jobs", 1, 0).await.unwrap();
    let began = Instant::now();
    assert_eq!(settle(&node, &first, Settlement::Nack { delay_ms: Some(120) }).await, [Ok(())]);
    let second = soon(receive(&node, "jobs", 1, LONG_MS)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(120));
    assert_eq!(second[0].delivery.attempt, 2);
}

#[tokio::test]
async fn looking_does_not_take() {
    let node = memory();
    let sent = send(&node, "jobs", &[b"a", b"b"]).await;
    let (peeked, truncated) = node.peek(NamespaceId::DEFAULT, "jobs", 10, 1 << 20).await.unwrap();
    assert!(!truncated);
    assert_eq!(peeked.len(), 2);
    let listed =
        node.messages(NamespaceId::DEFAULT, "jobs", Some(State::Ready), None, 1, true).await.unwrap();
    assert_eq!(listed.items[0].view.id, sent.first);
    let rest = node
        .messages(NamespaceId::DEFAULT, "jobs", Some(State::Ready), listed.next, 10, false)
        .await
        .unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    assert!(matches!(node.queue(NamespaceId::DEFAULT, "none").await, Err(Error::QueueNotFound { .. })));
    assert_eq!(receive(&node, "jobs", 10, 0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_deleted_queue_ends_the_waits_for_it() {
    let node = memory();
    let waiting = waiting(&node, 1).await;
    node.queue_delete(NamespaceId::DEFAULT, "jobs").await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn stopping_wakes_those_who_wait_and_refuses_those_who_come() {
    let node = memory();
    let waiting = waiting(&node, 1).await;
    node.shutdown(Duration::from_secs(5)).await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_empty());
    assert!(!node.ready());
    assert!(matches!(receive(&node, "jobs", 1, 0).await, Err(Error::ShuttingDown {})));
}

#[tokio::test]
async fn a_pull_that_waits_for_a_queue_which_is_deleted_and_made_anew_is_served() {
    let node = memory();
    for round in 0..200 {
        let sent = send(&node, "jobs", &[b"old"]).await;
        assert_eq!(sent.count, 1);
        let (pulled, deleted) = tokio::join!(soon(receive(&node, "jobs", 1, LONG_MS)), async {
            let deleted = node.queue_delete(NamespaceId::DEFAULT, "jobs").await;
            send(&node, "jobs", &[b"new"]).await;
            deleted
        });
        deleted.unwrap();
        // The pull either took the old message, or was ended by the deletion, or was served from the new
        // queue.
        assert!(pulled.unwrap().len() <= 1, "round {round}");
        node.queue_delete(NamespaceId::DEFAULT, "jobs").await.unwrap();
    }
}

#[tokio::test]
async fn a_settle_of_many_has_a_result_for_each() {
    let node = memory();
    for _ in 0..3 {
        send(&node, "jobs", &vec![&b"x"[..]; 1_000]).await;
    }
    let mut taken = Vec::new();
    while taken.len() < 3_000 {
        taken.extend(receive(&node, "jobs", 1_000, 0).await.unwrap());
    }
    taken.push(taken[0].clone());
    let results = settle(&node, &taken, Settlement::Ack).await;
    assert_eq!(results.len(), 3_001);
    assert!(results[..3_000].iter().all(Result::is_ok));
    assert!(matches!(results[3_000], Err(Error::AlreadySettled { .. })), "in order: {:?}", results[3_000]);
    let many = vec![taken[0].clone(); 10_001];
    let item = |d: &sluice_node::Delivered| sluice_engine::command::SettleItem {
        receipt: d.delivery.receipt,
        settlement: Settlement::Ack,
        error: "",
        result: None,
        add_cost: 0,
    };
    let items: Vec<_> = many.iter().map(item).collect();
    let refused = node.settle(NamespaceId::DEFAULT, &items).await;
    assert!(matches!(refused, Err(Error::BatchTooLarge { size: 10_001, .. })), "{refused:?}");
}
