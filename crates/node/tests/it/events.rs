//! Reading events: what comes, in which order, and what a reader hears of what it has missed.

use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::Settlement;
use sluice_engine::event::EventKind;
use sluice_engine::id::NamespaceId;
use sluice_engine::settings::{QueuePatch, Quotas};
use sluice_node::api::EventOptions;
use sluice_node::{EventPosition, Gap, GapReason, Heard, Node, Options, Reader, ToldDetail};

use crate::support::{memory, options, receive, send, settle};
use crate::waits::{PATIENCE, soon, until, until_taken_in};

const DEFAULT: NamespaceId = NamespaceId::DEFAULT;

fn keeping(window: usize, keep: Duration) -> Node {
    let events = EventOptions { window, keep, ..EventOptions::default() };
    Node::start(Options { events, ..options(None) }).unwrap()
}

async fn next(reader: &mut Reader) -> Heard {
    soon(reader.next(100)).await
}

/// The next `count` events as `kind queue`.
async fn read(reader: &mut Reader, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    while found.len() < count {
        match next(reader).await {
            Heard::Events(events) => {
                found.extend(events.iter().map(|(_, told)| format!("{} {}", told.kind.name(), told.queue)));
            }
            other => panic!("{other:?} after {found:?}"),
        }
    }
    found
}

/// Nothing is left to hear of all that has happened.
async fn nothing(node: &Node, reader: &mut Reader) {
    until_taken_in(node).await;
    let heard = tokio::time::timeout(Duration::ZERO, reader.next(100)).await;
    assert!(heard.is_err(), "{heard:?}");
}

async fn gap(reader: &mut Reader) -> Gap {
    match next(reader).await {
        Heard::Gap(gap) => gap,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn readers_of_a_queue_and_of_the_namespace_hear_what_happens() {
    let node = memory();
    send(&node, "mail", &[b"before"]).await;
    let mut all = node.watch(DEFAULT, None, None).await.unwrap();
    let mut mail = node.watch(DEFAULT, Some("mail"), None).await.unwrap();
    send(&node, "other", &[b"x"]).await;
    let delivered = receive(&node, "mail", 1, 0).await.unwrap();
    settle(&node, &delivered, Settlement::Reject).await;
    let patch = QueuePatch { dead_letter_queue: Some("other".into()), ..QueuePatch::default() };
    node.queue_set(DEFAULT, "mail", patch, false).await.unwrap();
    node.dead_redrive(DEFAULT, "mail", &[]).await.unwrap();
    let delivered = receive(&node, "mail", 1, 0).await.unwrap();
    settle(&node, &delivered, Settlement::Reject).await;
    let of_mail = [
        "delivered mail",
        "rejected mail",
        "died mail",
        "redriven mail",
        "delivered mail",
        "rejected mail",
        "died mail",
        "moved other",
    ];
    assert_eq!(read(&mut mail, 8).await, of_mail);
    assert_eq!(read(&mut all, 9).await[1..], of_mail);
    nothing(&node, &mut mail).await;

    node.queue_delete(DEFAULT, "other").await.unwrap();
    let Heard::Events(events) = next(&mut all).await else { panic!("an event") };
    let (_, told) = &events[0];
    assert_eq!((told.kind, &*told.queue, told.id), (EventKind::Dropped, "other", None));
    assert!(matches!(told.detail, ToldDetail::Many(2, "queue_deleted")));
    // A queue that comes again goes on in the feed of its name, and those wait for it who come back
    // meanwhile.
    node.queue_delete(DEFAULT, "mail").await.unwrap();
    let mut back = node.watch(DEFAULT, Some("mail"), Some(mail.position())).await.unwrap();
    assert!(node.watch(DEFAULT, Some("other"), None).await.is_err());
    send(&node, "mail", &[b"again"]).await;
    assert_eq!(read(&mut mail, 1).await, ["sent mail"]);
    assert_eq!(read(&mut back, 1).await, ["sent mail"]);
}

#[tokio::test]
async fn who_comes_back_gets_what_has_happened_since() {
    let node = memory();
    let mut first = node.watch(DEFAULT, None, None).await.unwrap();
    let begin = first.position();
    send(&node, "a", &[b"1", b"2"]).await;
    send(&node, "b", &[b"3"]).await;
    let Heard::Events(events) = next(&mut first).await else { panic!("events") };
    let after_one = events[0].0;
    drop(first);
    send(&node, "a", &[b"4"]).await;
    let mut again = node.watch(DEFAULT, None, Some(after_one)).await.unwrap();
    assert_eq!(read(&mut again, 3).await, ["sent a", "sent b", "sent a"]);
    let mut again = node.watch(DEFAULT, None, Some(begin)).await.unwrap();
    assert_eq!(read(&mut again, 4).await, ["sent a", "sent a", "sent b", "sent a"]);
    // A position has the same form as an id, and there and back it is the same.
    assert_eq!(begin.to_string().parse(), Ok(begin));
}

#[tokio::test]
async fn a_slow_reader_is_told_how_much_it_has_missed_and_holds_up_nobody() {
    let node = keeping(10, Duration::from_secs(60));
    let mut slow = node.watch(DEFAULT, None, None).await.unwrap();
    let begin = slow.position();
    // What a send brings about may be told after its reply.
    let mut quick = node.watch(DEFAULT, None, None).await.unwrap();
    for _ in 0..30 {
        send(&node, "a", &[b"x".as_slice(); 5]).await;
        assert_eq!(read(&mut quick, 5).await.len(), 5);
    }
    assert_eq!(gap(&mut slow).await, Gap { why: GapReason::Slow, lost: Some(140) });
    let behind = slow.position();
    assert_eq!(read(&mut slow, 10).await.len(), 10);
    nothing(&node, &mut slow).await;
    let mut late = node.watch(DEFAULT, None, Some(begin)).await.unwrap();
    assert_eq!(gap(&mut late).await, Gap { why: GapReason::Window, lost: Some(140) });
    let mut late = node.watch(DEFAULT, None, Some(behind)).await.unwrap();
    assert_eq!(read(&mut late, 10).await.len(), 10);
}

#[tokio::test]
async fn a_feed_is_kept_for_a_while_after_its_last_reader() {
    let node = keeping(100, PATIENCE);
    let reader = node.watch(DEFAULT, None, None).await.unwrap();
    send(&node, "a", &[b"1"]).await;
    let begin = reader.position();
    drop(reader);
    let mut again = node.watch(DEFAULT, None, Some(begin)).await.unwrap();
    assert_eq!(read(&mut again, 1).await, ["sent a"]);
}

#[tokio::test]
async fn a_feed_is_kept_no_longer_than_for_a_while() {
    let node = keeping(100, Duration::from_millis(1));
    let position = node.watch(DEFAULT, None, None).await.unwrap().position();
    let mut late = None;
    until(async || {
        send(&node, "a", &[b"1"]).await;
        // Whoever comes back in time finds at least that, and has it kept anew.
        let mut back = node.watch(DEFAULT, None, Some(position)).await.unwrap();
        let Heard::Gap(gap) = next(&mut back).await else { return false };
        assert_eq!(gap, Gap { why: GapReason::Unwatched, lost: None });
        late = Some(back);
        true
    })
    .await;
    let mut late = late.unwrap();
    send(&node, "a", &[b"2"]).await;
    assert_eq!(read(&mut late, 1).await, ["sent a"]);
    assert_eq!(node.metrics().await.shards[0].event_readers, 1);
}

#[tokio::test]
async fn a_position_of_another_start_is_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let started = || Node::start(options(Some(directory.path()))).unwrap();
    let node = started();
    let reader = node.watch(DEFAULT, None, None).await.unwrap();
    let before = reader.position();
    drop(reader);
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    drop(node);
    let node = started();
    let mut reader = node.watch(DEFAULT, None, Some(before)).await.unwrap();
    assert_eq!(gap(&mut reader).await, Gap { why: GapReason::Restarted, lost: None });
    let ahead = EventPosition { index: 1 << 40, ..reader.position() };
    let mut reader = node.watch(DEFAULT, None, Some(ahead)).await.unwrap();
    assert_eq!(gap(&mut reader).await, Gap { why: GapReason::Restarted, lost: None });
}

#[tokio::test]
async fn a_feed_ends_with_its_namespace_and_with_the_node() {
    let node = memory();
    let team = node.namespace_create("team", None, Quotas::default()).await.unwrap().id;
    node.queue_set(team, "q", QueuePatch::default(), true).await.unwrap();
    let mut of_team = node.watch(team, Some("q"), None).await.unwrap();
    let mut others = node.watch(DEFAULT, None, None).await.unwrap();
    node.namespace_delete("team", true).await.unwrap();
    assert!(matches!(next(&mut of_team).await, Heard::Ended));
    assert!(matches!(next(&mut of_team).await, Heard::Ended));
    assert_eq!(node.metrics().await.shards[0].event_readers, 1);
    drop(of_team);
    assert_eq!(node.metrics().await.shards[0].event_readers, 1);
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    assert!(matches!(next(&mut others).await, Heard::Ended));
    assert!(matches!(node.watch(DEFAULT, None, None).await, Err(Error::ShuttingDown {})));
}

#[tokio::test]
async fn what_is_not_there_and_too_many_readers_are_refused() {
    let events = EventOptions { readers: 2, ..EventOptions::default() };
    let node = Node::start(Options { events, ..options(None) }).unwrap();
    assert_eq!(node.watch(DEFAULT, Some("nil"), None).await.unwrap_err().code(), "queue_not_found");
    assert_eq!(node.watch(NamespaceId(77), None, None).await.unwrap_err().code(), "namespace_not_found");
    let first = node.watch(DEFAULT, None, None).await.unwrap();
    let _second = node.watch(DEFAULT, None, None).await.unwrap();
    assert_eq!(node.watch(DEFAULT, None, None).await.unwrap_err().code(), "overloaded");
    drop(first);
    node.watch(DEFAULT, None, None).await.unwrap();
    // A caller that does not wait for its reader takes no place for good.
    for _ in 0..10 {
        let _ = tokio::time::timeout(Duration::ZERO, node.watch(DEFAULT, None, None)).await;
    }
    node.watch(DEFAULT, None, None).await.unwrap();
}

#[tokio::test]
async fn many_feeds_share_the_memory_and_the_oldest_that_nobody_reads_makes_room() {
    let node = keeping(1_000_000, Duration::from_secs(60));
    for number in 0..300 {
        let queue = format!("q{number}");
        node.queue_set(DEFAULT, &queue, QueuePatch::default(), true).await.unwrap();
        drop(node.watch(DEFAULT, Some(&queue), None).await.unwrap());
    }
    let mut reader = node.watch(DEFAULT, Some("q7"), None).await.unwrap();
    let mut readers = Vec::new();
    // Of 256, one namespace has 192.
    for number in 0..191 {
        readers.push(node.watch(DEFAULT, Some(&format!("q{}", number + 40)), None).await.unwrap());
    }
    assert_eq!(node.watch(DEFAULT, Some("q1"), None).await.unwrap_err().code(), "overloaded");
    for _ in 0..40 {
        send(&node, "q7", &[b"".as_slice(); 100]).await;
    }
    let Gap { why: GapReason::Slow, lost: Some(lost) } = gap(&mut reader).await else { panic!("a gap") };
    assert!((1_000..3_500).contains(&lost), "{lost}");
}
