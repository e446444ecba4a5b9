//! Consumers that are attached: messages come to them.

use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::change::{Change, ChangeAction};
use sluice_engine::command::{Attach, DETACH_GRACE_MS, Settlement};
use sluice_engine::id::{ConsumerId, NamespaceId};
use sluice_engine::query::{ConsumerState, State};
use sluice_node::{Consumer, Delivered, DetachedBy, Event, Node};

use crate::support::{memory, options, payloads, receive, send, settle};
use crate::waits::{LONG_MS, soon, until, until_taken_in};

const DEFAULT: NamespaceId = NamespaceId::DEFAULT;

/// A consumer without a time of grace.
fn attaching<'a>(queues: &'a [&'a str], credit: u32) -> Attach<'a> {
    Attach { namespace: DEFAULT, name: "worker", queues, credit, lease_ms: 0, grace_ms: 0 }
}

async fn attach(node: &Node, queues: &[&str], credit: u32) -> Consumer {
    node.attach(&Attach { grace_ms: DETACH_GRACE_MS, ..attaching(queues, credit) }).await.unwrap()
}

async fn event(consumer: &mut Consumer) -> Event {
    soon(consumer.next(100, 1 << 20)).await.unwrap()
}

async fn delivered(consumer: &mut Consumer, count: usize) -> Vec<Delivered> {
    let mut all = Vec::new();
    while all.len() < count {
        match event(consumer).await {
            Event::Delivered(delivered) => all.extend(delivered),
            other => panic!("{other:?} instead of messages"),
        }
    }
    assert_eq!(all.len(), count);
    all
}

/// Nothing has come for it of all that has happened.
async fn no_event(node: &Node, consumer: &mut Consumer) {
    until_taken_in(node).await;
    let next = tokio::time::timeout(Duration::ZERO, consumer.next(100, 1 << 20)).await;
    assert!(next.is_err(), "{next:?}");
}

/// The states of a queue's messages: ready and leased.
async fn ready_and_leased(node: &Node, queue: &str) -> (u64, u64) {
    let states = node.queue(DEFAULT, queue).await.unwrap().counters.states;
    (states[State::Ready as usize], states[State::Leased as usize])
}

#[tokio::test]
async fn messages_come_as_they_are_sent_and_a_settlement_gives_credit_back() {
    let node = memory();
    let mut consumer = attach(&node, &["jobs"], 2).await;
    let before = node.metrics().await.shards[0].journal.records;
    send(&node, "jobs", &[b"a", b"b", b"c"]).await;
    let first = delivered(&mut consumer, 2).await;
    assert_eq!((payloads(&first), &*first[0].queue), (vec![b"a".to_vec(), b"b".to_vec()], "jobs"));
    no_event(&node, &mut consumer).await;
    assert_eq!(settle(&node, &first[..1], Settlement::Ack).await, [Ok(())]);
    let third = delivered(&mut consumer, 1).await;
    assert_eq!(payloads(&third), [b"c"]);
    assert_eq!(node.metrics().await.shards[0].journal.records, before + 2, "a send and a settlement");
    settle(&node, &first[1..], Settlement::Nack { delay_ms: Some(0) }).await;
    assert_eq!(delivered(&mut consumer, 1).await[0].delivery.attempt, 2);
    let (view, held) = node.consumer_with_held(DEFAULT, consumer.id(), 9).await.unwrap();
    assert_eq!((view.in_flight, view.credit, view.state), (2, 2, ConsumerState::Attached));
    assert_eq!(held.iter().map(|held| held.attempt).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn credit_can_change_at_any_time() {
    let node = memory();
    let mut consumer = attach(&node, &["jobs"], 0).await;
    send(&node, "jobs", &[b"a", b"b"]).await;
    no_event(&node, &mut consumer).await;
    node.credit(DEFAULT, consumer.id(), 1).await.unwrap();
    let first = delivered(&mut consumer, 1).await;
    node.credit(DEFAULT, consumer.id(), 0).await.unwrap();
    settle(&node, &first, Settlement::Ack).await;
    no_event(&node, &mut consumer).await;
    node.credit(DEFAULT, consumer.id(), 10_000).await.unwrap();
    assert_eq!(payloads(&delivered(&mut consumer, 1).await), [b"b"]);
    let refused = node.credit(DEFAULT, consumer.id(), 10_001).await;
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    let unknown = node.credit(DEFAULT, ConsumerId(99), 1).await;
    assert!(matches!(unknown, Err(Error::ConsumerNotFound { .. })), "{unknown:?}");
}

#[tokio::test]
async fn a_slow_reader_holds_back_only_itself_and_keeps_few_bytes() {
    let node = memory();
    let mut slow = attach(&node, &["big"], 100).await;
    let mut quick = attach(&node, &["jobs"], 100).await;
    let payload = vec![b'x'; 100_000];
    for _ in 0..10 {
        send(&node, "big", &[payload.as_slice(); 3]).await;
    }
    send(&node, "jobs", &[b"a"]).await;
    assert_eq!(payloads(&delivered(&mut quick, 1).await), [b"a"]);
    // Of 3 MB one is kept; the others are fetched.
    let all = delivered(&mut slow, 30).await;
    assert!(all.iter().all(|delivered| payloads(std::slice::from_ref(delivered))[0] == payload));
    let results = settle(&node, &all, Settlement::Ack).await;
    assert!(results.iter().all(Result::is_ok));
}

#[tokio::test]
async fn what_a_reader_has_not_taken_goes_back_when_it_goes_and_does_not_count() {
    let node = memory();
    let mut consumer = attach(&node, &["jobs"], 10).await;
    send(&node, "jobs", &[b"a", b"b", b"c"]).await;
    let Event::Delivered(taken) = consumer.next(1, 1).await.unwrap() else { panic!("no message") };
    drop(consumer);
    let rest = soon(receive(&node, "jobs", 10, LONG_MS)).await.unwrap();
    assert_eq!(payloads(&rest), [b"b", b"c"]);
    assert!(rest.iter().all(|delivered| delivered.delivery.attempt == 1), "{rest:?}");
    // What it did take stays its own for a while.
    assert_eq!(ready_and_leased(&node, "jobs").await, (0, 3));
    let gone = node.consumers(DEFAULT, None, 10).await.unwrap();
    assert_eq!((gone[0].state, gone[0].in_flight), (ConsumerState::Detached, 1));
    assert_eq!(settle(&node, &taken, Settlement::Ack).await, [Ok(())]);
    assert!(node.consumers(DEFAULT, None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_taken_and_not_sent_on_goes_back_too() {
    let node = memory();
    let mut consumer = node.attach(&attaching(&["jobs"], 10)).await.unwrap();
    send(&node, "jobs", &[b"a", b"b"]).await;
    let taken = delivered(&mut consumer, 2).await;
    consumer.abandon([taken[1].delivery.receipt]);
    until(async || ready_and_leased(&node, "jobs").await == (2, 0)).await;
    // What was sent on counts, since it may be what the consumer was lost of.
    assert_eq!(attempts(&node).await, [(b"a".to_vec(), 2), (b"b".to_vec(), 1)]);
}

/// Payloads and attempts of what is ready.
async fn attempts(node: &Node) -> Vec<(Vec<u8>, u16)> {
    let received = receive(node, "jobs", 10, 0).await.unwrap();
    let attempt = received.iter().map(|delivered| delivered.delivery.attempt);
    let mut attempts: Vec<_> = payloads(&received).into_iter().zip(attempt).collect();
    attempts.sort_unstable();
    attempts
}

#[tokio::test]
async fn what_was_given_out_counts_when_its_consumer_is_lost_and_not_when_it_is_detached() {
    let node = memory();
    for (lost, attempt) in [(true, 2), (false, 1)] {
        let mut consumer = node.attach(&attaching(&["jobs"], 10)).await.unwrap();
        send(&node, "jobs", &[b"a"]).await;
        delivered(&mut consumer, 1).await;
        if !lost {
            node.detach(DEFAULT, consumer.id(), 0).await.unwrap();
        }
        drop(consumer);
        until(async || ready_and_leased(&node, "jobs").await == (1, 0)).await;
        let received = receive(&node, "jobs", 10, 0).await.unwrap();
        assert_eq!(received[0].delivery.attempt, attempt);
        settle(&node, &received, Settlement::Ack).await;
    }
}

#[tokio::test]
async fn what_a_consumer_went_on_with_counts_too_when_it_is_lost() {
    let node = memory();
    let mut first = attach(&node, &["jobs"], 10).await;
    send(&node, "jobs", &[b"a", b"b"]).await;
    let held = delivered(&mut first, 2).await;
    node.credit(DEFAULT, first.id(), 0).await.unwrap();
    let mut second = node.attach(&attaching(&["jobs"], 0)).await.unwrap();
    assert_eq!(second.resume(&[held[0].delivery.receipt]).await.unwrap(), [Ok(())]);
    node.credit(DEFAULT, second.id(), 10).await.unwrap();
    send(&node, "jobs", &[b"c"]).await;
    drop(second);
    until(async || ready_and_leased(&node, "jobs").await == (2, 1)).await;
    assert_eq!(attempts(&node).await, [(b"a".to_vec(), 2), (b"c".to_vec(), 1)]);
}

#[tokio::test]
async fn whoever_gives_up_attaching_leaves_nobody_attached() {
    let node = memory();
    send(&node, "jobs", &[b"a"]).await;
    for wait_us in 0..60 {
        let attaching = attaching(&["jobs"], 10);
        let attaching = node.attach(&attaching);
        let _ = tokio::time::timeout(Duration::from_micros(wait_us * 5), attaching).await;
    }
    until(async || node.consumers(DEFAULT, None, 10).await.unwrap().is_empty()).await;
    let received = soon(receive(&node, "jobs", 1, LONG_MS)).await.unwrap();
    assert_eq!(received[0].delivery.attempt, 1);
}

#[tokio::test]
async fn a_consumer_hears_that_it_was_detached_and_that_messages_were_cancelled() {
    let node = memory();
    let mut consumer = attach(&node, &["jobs"], 10).await;
    send(&node, "jobs", &[b"a", b"b"]).await;
    let held = delivered(&mut consumer, 2).await;
    let ids = [(held[0].delivery.receipt.id, 0)];
    let (by, why) = ("ann", "not needed");
    let cancel = Change { namespace: DEFAULT, items: &ids, action: ChangeAction::Cancel, by, why };
    assert_eq!(node.change(&cancel).await.unwrap(), [Ok(())]);
    let Event::Cancelled(cancelled) = event(&mut consumer).await else { panic!("not cancelled") };
    assert_eq!(cancelled, [held[0].delivery.receipt]);
    node.detach(DEFAULT, consumer.id(), 60_000).await.unwrap();
    for _ in 0..2 {
        assert!(matches!(event(&mut consumer).await, Event::Detached(DetachedBy::Asked)));
    }
    let again = node.detach(DEFAULT, consumer.id(), 0).await;
    assert!(matches!(again, Err(Error::ConsumerNotFound { .. })), "{again:?}");
    assert_eq!(settle(&node, &held, Settlement::Ack).await, [Ok(()), Ok(())]);
}

#[tokio::test]
async fn who_takes_what_was_ready_does_not_wait_when_it_is_gone() {
    let node = memory();
    let mut consumer = attach(&node, &["jobs"], 10).await;
    // More than a consumer is given the bytes of ahead.
    let large = vec![b'x'; 700_000];
    send(&node, "jobs", &[&large[..], &large[..], &large[..]]).await;
    while consumer.ready(10, u64::MAX).await < 3 * large.len() as u64 {
        tokio::task::yield_now().await;
    }
    node.queue_delete(DEFAULT, "jobs").await.unwrap();
    assert!(consumer.ready(10, u64::MAX).await > 0);
    let taking = async { while consumer.take_ready(10, u64::MAX).await.unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(20), taking).await.unwrap();
}

#[tokio::test]
async fn a_consumer_that_comes_back_goes_on_with_what_it_held() {
    let node = memory();
    let mut first = attach(&node, &["jobs"], 10).await;
    send(&node, "jobs", &[b"a", b"b"]).await;
    let held = delivered(&mut first, 2).await;
    drop(first);
    let mut second = attach(&node, &["jobs"], 10).await;
    assert_eq!(second.resume(&[held[0].delivery.receipt]).await.unwrap(), [Ok(())]);
    let consumers = node.consumers(DEFAULT, None, 10).await.unwrap();
    let in_flight: Vec<_> = consumers.iter().map(|consumer| (consumer.id, consumer.in_flight)).collect();
    assert_eq!(in_flight, [(ConsumerId(1), 1), (second.id(), 1)]);
}

#[tokio::test]
async fn a_server_that_is_about_to_stop_says_so_and_takes_settlements() {
    let node = memory();
    let mut consumer = attach(&node, &["jobs"], 1).await;
    send(&node, "jobs", &[b"a"]).await;
    let held = delivered(&mut consumer, 1).await;
    node.drain();
    assert!(matches!(event(&mut consumer).await, Event::Detached(DetachedBy::Draining)));
    send(&node, "jobs", &[b"b"]).await;
    assert_eq!(settle(&node, &held, Settlement::Ack).await, [Ok(())]);
    let late = node.attach(&attaching(&["jobs"], 1)).await;
    assert!(matches!(late, Err(Error::ShuttingDown {})), "{late:?}");
}

#[tokio::test]
async fn a_restart_detaches_and_what_was_not_read_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(options(Some(dir.path()))).unwrap();
    let mut reader = attach(&node, &["jobs"], 1).await;
    let idle = attach(&node, &["jobs"], 1).await;
    send(&node, "jobs", &[b"a", b"b"]).await;
    let held = delivered(&mut reader, 1).await;
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    assert!(matches!(event(&mut reader).await, Event::Detached(DetachedBy::Draining)));
    drop((node, reader, idle));
    let node = Node::start(options(Some(dir.path()))).unwrap();
    let consumers = node.consumers(DEFAULT, None, 10).await.unwrap();
    assert_eq!(consumers.len(), 1);
    assert_eq!(consumers[0].state, ConsumerState::Detached);
    assert_eq!(settle(&node, &held, Settlement::Ack).await, [Ok(())]);
    let rest = receive(&node, "jobs", 9, 0).await.unwrap();
    assert_eq!((rest.len(), rest[0].delivery.attempt), (1, 1));
    node.shutdown(Duration::from_secs(10)).await.unwrap();
}
