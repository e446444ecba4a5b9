//! Waiting for results; progress and checkpoints; replies.

use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Content, Progress, ReportItem, SendItem, SettleItem, Settlement};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::SendOptions;
use sluice_engine::query::State;
use sluice_node::{Awaited, Delivered, Node};

use crate::support::{memory, options, receive, send, sending, settle};
use crate::waits::{LONG, begin, soon, until_taken_in};

async fn request(node: &Node, options: &SendOptions<'_>) -> MessageId {
    let item = SendItem { payload: b"6*7", options: Some(options), ..SendItem::default() };
    node.send(&sending(NamespaceId::DEFAULT, "work", &[item])).await.unwrap().first
}

fn kept() -> SendOptions<'static> {
    SendOptions { result_ttl_ms: 60_000, ..SendOptions::default() }
}

async fn ack(node: &Node, delivered: &[Delivered], result: &[u8]) {
    let result = Some(Content { content_type: "text/plain", bytes: result });
    let item = |given: &Delivered| SettleItem {
        receipt: given.delivery.receipt,
        settlement: Settlement::Ack,
        error: "",
        result,
        add_cost: 0,
    };
    let items: Vec<_> = delivered.iter().map(item).collect();
    assert!(node.settle(NamespaceId::DEFAULT, &items).await.unwrap().iter().all(Result::is_ok));
}

/// Returns when it waits.
async fn waiting(node: &Node, id: MessageId) -> tokio::task::JoinHandle<Result<Awaited, Error>> {
    let asking = node.clone();
    let waiting = begin(async move { soon(asking.await_result(id, LONG)).await }).await;
    until_taken_in(node).await;
    waiting
}

fn text(awaited: &Awaited) -> String {
    let Awaited::Done { result: Some(result), .. } = awaited else { panic!("{awaited:?}") };
    let blob = MessageBlob::parse(result).unwrap();
    format!("{} {}", blob.content_type, String::from_utf8_lossy(blob.payload))
}

#[tokio::test]
async fn those_who_wait_for_a_result_are_woken_by_the_ack() {
    let node = memory();
    let id = request(&node, &kept()).await;
    let first = waiting(&node, id).await;
    let second = waiting(&node, id).await;
    let delivered = receive(&node, "work", 1, 0).await.unwrap();
    ack(&node, &delivered, b"42").await;
    for waiter in [first, second] {
        assert_eq!(text(&waiter.await.unwrap().unwrap()), "text/plain 42");
    }
    assert_eq!(text(&node.await_result(id, Duration::ZERO).await.unwrap()), "text/plain 42");
    assert_eq!(node.message(id, true).await.unwrap().view.state, State::Done);
}

#[tokio::test]
async fn a_wait_ends_with_the_time_with_a_death_or_with_the_message() {
    let node = memory();
    let id = request(&node, &kept()).await;
    let pending = node.await_result(id, Duration::from_millis(30)).await.unwrap();
    assert!(matches!(pending, Awaited::Pending { state: State::Ready, progress: None }), "{pending:?}");

    let waiter = waiting(&node, id).await;
    let delivered = receive(&node, "work", 1, 0).await.unwrap();
    settle(&node, &delivered, Settlement::Reject).await;
    let dead = waiter.await.unwrap().unwrap();
    assert!(matches!(dead, Awaited::Dead { reason: Some("rejected"), .. }), "{dead:?}");

    // One that nobody keeps is gone with its ack, but who waits hears that it is done.
    let plain = send(&node, "work", &[b"plain"]).await.first;
    let waiter = waiting(&node, plain).await;
    let delivered = receive(&node, "work", 1, 0).await.unwrap();
    ack(&node, &delivered, b"lost").await;
    let done = waiter.await.unwrap().unwrap();
    assert!(matches!(done, Awaited::Done { result: None, done_at_us: None, .. }), "{done:?}");
    let gone = node.await_result(plain, Duration::from_secs(60)).await;
    assert!(matches!(gone, Err(Error::MessageNotFound { .. })), "{gone:?}");

    let purged = request(&node, &kept()).await;
    let waiter = waiting(&node, purged).await;
    node.queue_purge(NamespaceId::DEFAULT, "work").await.unwrap();
    let gone = waiter.await.unwrap();
    assert!(matches!(gone, Err(Error::MessageNotFound { .. })), "{gone:?}");
}

#[tokio::test]
async fn waits_are_bounded_and_a_caller_who_goes_takes_its_wait_along() {
    let node = Node::start(sluice_node::Options { waiting_receives: 3, ..options(None) }).unwrap();
    let id = request(&node, &kept()).await;
    let waiters = [waiting(&node, id).await, waiting(&node, id).await, waiting(&node, id).await];
    let refused = node.await_result(id, Duration::from_secs(1)).await;
    assert!(matches!(refused, Err(Error::Overloaded { .. })), "{refused:?}");
    for waiter in waiters {
        waiter.abort();
        assert!(waiter.await.is_err(), "it still waited");
    }
    let pending = node.await_result(id, Duration::from_millis(1)).await.unwrap();
    assert!(matches!(pending, Awaited::Pending { .. }));
    let too_long = node.await_result(id, Duration::from_secs(61)).await;
    assert!(matches!(too_long, Err(Error::InvalidArgument { .. })), "{too_long:?}");

    let waiter = waiting(&node, id).await;
    node.drain();
    assert!(matches!(waiter.await.unwrap(), Ok(Awaited::Pending { .. })));
}

#[tokio::test]
async fn the_next_attempt_gets_the_checkpoint_of_the_last_one() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(options(Some(dir.path()))).unwrap();
    let id = request(&node, &SendOptions { correlation_id: b"c-1", ..kept() }).await;
    let delivered = receive(&node, "work", 1, 0).await.unwrap();
    let report = ReportItem {
        receipt: delivered[0].delivery.receipt,
        lease_ms: 0,
        progress: Some(Progress { percent: 40, note: "two of five" }),
        checkpoint: Some(b"row 2"),
        add_cost: 0,
    };
    assert_eq!(node.report(NamespaceId::DEFAULT, &[report]).await.unwrap(), [Ok(())]);
    let pending = node.await_result(id, Duration::ZERO).await.unwrap();
    let Awaited::Pending { progress: Some(progress), .. } = pending else { panic!("{pending:?}") };
    assert_eq!((progress.percent, progress.note.as_deref()), (40, Some("two of five")));
    settle(&node, &delivered, Settlement::Release { delay_ms: 0 }).await;
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    drop(node);

    let node = Node::start(options(Some(dir.path()))).unwrap();
    let again = receive(&node, "work", 1, 0).await.unwrap();
    let details = again[0].details.as_deref().unwrap();
    let checkpoint = MessageBlob::parse(details.checkpoint.as_ref().unwrap()).unwrap();
    assert_eq!((&*details.correlation_id, checkpoint.payload), (&b"c-1"[..], &b"row 2"[..]));
    let stored = node.message(id, true).await.unwrap();
    assert_eq!(stored.note.as_deref(), Some("two of five"));
    assert_eq!(MessageBlob::parse(&stored.checkpoint.unwrap()).unwrap().payload, b"row 2");
    ack(&node, &again, b"all five").await;
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    drop(node);

    let node = Node::start(options(Some(dir.path()))).unwrap();
    assert_eq!(text(&node.await_result(id, Duration::ZERO).await.unwrap()), "text/plain all five");
    node.shutdown(Duration::from_secs(10)).await.unwrap();
}

#[tokio::test]
async fn a_reply_outlives_the_request_through_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(options(Some(dir.path()))).unwrap();
    let wish = SendOptions { reply_to: "answers", correlation_id: b"q", ..kept() };
    request(&node, &wish).await;
    request(&node, &SendOptions { reply_to: "answers", ..SendOptions::default() }).await;
    let delivered = receive(&node, "work", 2, 0).await.unwrap();
    ack(&node, &delivered[..1], b"42").await;
    settle(&node, &delivered[1..], Settlement::Ack).await;
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    drop(node);

    let node = Node::start(options(Some(dir.path()))).unwrap();
    let replies = receive(&node, "answers", 2, 0).await.unwrap();
    let payload = |at: usize| MessageBlob::parse(&replies[at].blob).unwrap().payload.to_vec();
    assert_eq!((payload(0), payload(1)), (b"42".to_vec(), Vec::new()));
    assert_eq!(&*replies[0].details.as_ref().unwrap().correlation_id, b"q");
    settle(&node, &replies, Settlement::Ack).await;
    assert_eq!(
        text(&node.await_result(delivered[0].delivery.receipt.id, Duration::ZERO).await.unwrap()),
        "text/plain 42"
    );
    node.shutdown(Duration::from_secs(10)).await.unwrap();
}
