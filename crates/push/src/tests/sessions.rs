//! Messages that wait for their turn while an endpoint is held or gone, a setting changes, or the server
//! stops.

use std::sync::atomic::Ordering;
use std::time::Instant;

use sluice_engine::change::{Change, ChangeAction};

use super::*;

const LATER: &str = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
const MUCH_LATER: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n";
const NOW: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
const GONE: &str = "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n";
/// Longer than a change of settings needs to be noticed.
const NOTICED: Duration = Duration::from_millis(900);

fn body(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

fn concurrency(number: u16) -> QueuePatch {
    QueuePatch { push_concurrency: Some(number), ..once() }
}

impl Endpoint {
    /// Bodies of the requests that have come and that nobody has looked at.
    fn bodies(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok())
            .map(|request| body(&request).to_owned())
            .collect()
    }
}

impl Bed {
    async fn send_all(&self, payloads: std::ops::Range<u32>) -> Vec<MessageId> {
        let mut sent = Vec::new();
        for payload in payloads {
            sent.push(self.send(&payload.to_string()).await);
        }
        sent
    }

    async fn queue(&self) -> QueueView {
        self.node.queue(NAMESPACE, QUEUE).await.unwrap()
    }

    /// Sets the address of a queue that is paused meanwhile, so that all its messages are there at once.
    async fn paused(endpoint: &Endpoint, patch: QueuePatch) -> Bed {
        Bed::to(endpoint, QueuePatch { push_paused: Some(true), ..patch }).await
    }

    async fn resume(&self) {
        self.set(QueuePatch { push_paused: Some(false), ..QueuePatch::default() }).await;
    }
}

#[tokio::test]
async fn a_message_that_was_never_pushed_is_delivered_no_more_often_than_holds_begin() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(LATER)]).await;
    let bed = Bed::paused(&endpoint, QueuePatch { max_deliveries: Some(3), ..concurrency(16) }).await;
    bed.send_all(0..100).await;
    bed.resume().await;
    for _ in 0..20 {
        endpoint.next().await;
    }
    let queue = bed.queue().await;
    // All that are held at first are delivered, and one for each push.
    assert!(queue.counters.delivered <= 64 + 20 + 4, "{}", queue.counters.delivered);
    assert_eq!(in_state(&queue, State::Dead), 0);
}

#[tokio::test]
async fn an_endpoint_that_is_busy_and_says_at_once_is_asked_once_a_second() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(NOW)]).await;
    let bed = Bed::paused(&endpoint, concurrency(1)).await;
    bed.send_all(0..20).await;
    let began = Instant::now();
    bed.resume().await;
    endpoint.next().await;
    endpoint.next().await;
    sleep(Duration::from_millis(1_500)).await;
    let (came, seconds) = (endpoint.bodies().len() + 1, began.elapsed().as_secs_f32());
    assert!(came as f32 <= seconds + 0.1, "{came} behind the first in {seconds} s");
    assert_eq!(bed.logged().await.delay_ms, Some(1_000));
}

#[tokio::test]
async fn what_waits_in_a_short_hold_is_pushed_behind_it_in_order_and_delivered_once() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(LATER), Treat::Answer(OK)]).await;
    let bed = Bed::paused(&endpoint, concurrency(1)).await;
    bed.send_all(0..4).await;
    let began = Instant::now();
    bed.resume().await;
    assert_eq!(body(&endpoint.next().await), "0");
    let queue = bed.until("all acks", |queue| queue.counters.acked == 4).await;
    assert!(began.elapsed() > Duration::from_millis(900));
    assert_eq!(queue.counters.delivered, 5, "one came twice");
    let mut came = endpoint.bodies();
    came.retain(|body| body != "0");
    assert_eq!(came, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_long_hold_keeps_nothing_and_ends_by_the_clock_of_the_server() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(MUCH_LATER), Treat::Answer(OK)]).await;
    let bed = Bed::paused(&endpoint, concurrency(1)).await;
    bed.send_all(0..4).await;
    bed.resume().await;
    endpoint.next().await;
    let is_back =
        |queue: &QueueView| (in_state(queue, State::Ready), in_state(queue, State::Delayed)) == (3, 1);
    bed.until("what waits is back", is_back).await;
    let began_at_ms = bed.logged().await.at_ms;
    sleep(NOTICED).await;
    assert!(endpoint.bodies().is_empty());
    bed.node.movable_time().unwrap().advance(3_600_000).await.unwrap();
    let queue = bed.until("all acks", |queue| queue.counters.acked == 4).await;
    assert!(queue.counters.delivered <= 8, "{}", queue.counters.delivered);
    assert!(bed.logged().await.at_ms >= began_at_ms + 3_600_000);
}

#[tokio::test]
async fn a_hold_outlives_changes_of_settings_but_not_another_endpoint() {
    let mut held = Endpoint::new(&[Treat::Answer(MUCH_LATER)]).await;
    let mut other = Endpoint::new(&[Treat::Answer(OK)]).await;
    let bed = Bed::to(&held, concurrency(1)).await;
    bed.send("one").await;
    held.next().await;
    bed.send("two").await;
    for patch in [
        QueuePatch { push_timeout_ms: Some(5_000), ..QueuePatch::default() },
        QueuePatch { push_paused: Some(true), ..QueuePatch::default() },
        QueuePatch { push_paused: Some(false), ..QueuePatch::default() },
    ] {
        bed.set(patch).await;
        sleep(NOTICED).await;
    }
    assert!(held.bodies().is_empty());
    bed.set(QueuePatch { push_url: Some(PushUrl(other.url().into())), ..QueuePatch::default() }).await;
    assert_eq!(body(&other.next().await), "two");
}

#[tokio::test]
async fn a_hold_lets_the_pushes_of_others_end() {
    let mut endpoint =
        Endpoint::new(&[Treat::After(6_500, OK), Treat::Answer(MUCH_LATER), Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, concurrency(2)).await;
    bed.send("slow").await;
    endpoint.next().await;
    bed.send("held").await;
    let queue = bed.until("an ack", |queue| queue.counters.acked == 1).await;
    assert_eq!(in_state(&queue, State::Delayed), 1);
    assert_eq!(endpoint.bodies(), ["held"]);
}

#[tokio::test]
async fn messages_are_pushed_in_order_and_one_that_was_cancelled_is_not() {
    let mut endpoint = Endpoint::new(&[Treat::After(2_000, OK), Treat::Answer(OK)]).await;
    let bed = Bed::paused(&endpoint, concurrency(1)).await;
    let sent = bed.send_all(0..4).await;
    bed.resume().await;
    assert_eq!(body(&endpoint.next().await), "0");
    let change = Change {
        namespace: NAMESPACE,
        items: &[(sent[2], 0)],
        action: ChangeAction::Cancel,
        by: "",
        why: "",
    };
    bed.node.change(&change).await.unwrap().into_iter().for_each(|changed| changed.unwrap());
    bed.until("the other acks", |queue| queue.counters.acked == 3).await;
    assert_eq!(endpoint.bodies(), ["1", "3"]);
    let left = bed.until("nothing is left", |queue| in_state(queue, State::Leased) == 0).await;
    assert_eq!(in_state(&left, State::Ready), 0);
}

#[tokio::test]
async fn nothing_begins_after_a_stop_and_what_waits_goes_back_at_once() {
    let mut endpoint = Endpoint::new(&[Treat::After(3_000, OK)]).await;
    let bed = Bed::paused(&endpoint, concurrency(1)).await;
    bed.send_all(0..6).await;
    bed.resume().await;
    endpoint.next().await;
    let Bed { node, pushing, pushes } = bed;
    let stopping = tokio::spawn(pushing.stop());
    let back = async {
        loop {
            let queue = node.queue(NAMESPACE, QUEUE).await.unwrap();
            if in_state(&queue, State::Ready) >= 5 {
                return in_state(&queue, State::Leased);
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert_eq!(timeout(PATIENCE, back).await.expect("what waits goes back"), 1);
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
    assert!(endpoint.bodies().is_empty());
    assert_eq!(node.queue(NAMESPACE, QUEUE).await.unwrap().counters.acked, 1);
    assert_eq!(pushes.counts().in_flight.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn nothing_begins_once_a_pause_of_the_queue_or_of_its_pushes_counts() {
    let pushes_paused = QueuePatch { push_paused: Some(true), ..QueuePatch::default() };
    for patch in [pushes_paused, QueuePatch { paused: Some(true), ..QueuePatch::default() }] {
        let mut endpoint = Endpoint::new(&[Treat::After(600, OK)]).await;
        let bed = Bed::paused(&endpoint, concurrency(1)).await;
        bed.send_all(0..8).await;
        bed.resume().await;
        endpoint.next().await;
        bed.set(patch).await;
        let idle = |queue: &QueueView| in_state(queue, State::Leased) == 0;
        let queue = bed.until("what waits is back", idle).await;
        endpoint.bodies();
        sleep(NOTICED).await;
        assert!(queue.counters.acked < 8 && endpoint.bodies().is_empty(), "{}", queue.counters.acked);
    }
}

#[tokio::test]
async fn a_queue_that_is_made_anew_without_an_endpoint_is_pushed_nowhere() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, concurrency(1)).await;
    bed.send("old").await;
    endpoint.next().await;
    bed.until("an ack", |queue| queue.counters.acked == 1).await;
    bed.node.queue_delete(NAMESPACE, QUEUE).await.unwrap();
    bed.node.queue_set(NAMESPACE, QUEUE, QueuePatch::default(), true).await.unwrap();
    bed.send_all(0..10).await;
    sleep(2 * NOTICED).await;
    bed.until("all wait", |queue| in_state(queue, State::Ready) == 10).await;
    assert!(endpoint.bodies().is_empty());
}

#[tokio::test]
async fn an_endpoint_that_is_gone_gets_nothing_more_and_pauses_no_other_one() {
    let mut gone = Endpoint::new(&[Treat::After(300, GONE)]).await;
    let bed = Bed::paused(&gone, concurrency(1)).await;
    bed.send_all(0..8).await;
    bed.resume().await;
    bed.until("the pause", |queue| queue.settings.push_paused).await;
    bed.until("all wait", |queue| in_state(queue, State::Ready) == 8).await;
    sleep(NOTICED).await;
    assert_eq!(gone.bodies(), ["0"]);

    let mut gone = Endpoint::new(&[Treat::After(2_000, GONE)]).await;
    let mut other = Endpoint::new(&[Treat::Answer(OK)]).await;
    let bed = Bed::to(&gone, concurrency(1)).await;
    bed.send("m").await;
    gone.next().await;
    bed.set(QueuePatch { push_url: Some(PushUrl(other.url().into())), ..QueuePatch::default() }).await;
    other.next().await;
    let queue = bed.until("an ack", |queue| queue.counters.acked == 1).await;
    assert!(!queue.settings.push_paused);
}

#[tokio::test]
async fn a_message_whose_endpoint_is_gone_is_not_delivered_again() {
    let endpoint = Endpoint::new(&[Treat::Answer(GONE)]).await;
    let bed = Bed::to(&endpoint, QueuePatch { max_deliveries: Some(2), ..concurrency(4) }).await;
    bed.send("m").await;
    bed.until("the pause", |queue| queue.settings.push_paused).await;
    let queue = bed.until("it waits", |queue| in_state(queue, State::Leased) == 0).await;
    assert_eq!((in_state(&queue, State::Ready), queue.counters.delivered), (1, 1));
}

#[tokio::test]
async fn an_address_in_an_answer_that_is_long_when_it_is_written_out_can_be_told() {
    let to = "\u{e0001}".repeat(512);
    let moved = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    let endpoint = Endpoint::new(Box::leak(Box::new([Treat::Answer(moved.leak())]))).await;
    let bed = Bed::to(&endpoint, once()).await;
    bed.send("m").await;
    let error = bed.until_dead().await;
    assert!(error.starts_with("HTTP 302 Found: redirects are not followed"), "{error}");
    assert_eq!(&*bed.logged().await.unsettled, "");
}

#[tokio::test]
async fn what_the_endpoint_has_taken_is_acked_though_the_shard_has_too_much_to_do() {
    const MESSAGES: u32 = 128;
    let endpoint = Endpoint::new(&[Treat::After(500, OK)]).await;
    let patch = QueuePatch { push_paused: Some(true), ..concurrency(MESSAGES as u16) };
    let bed = Bed::with_mailbox(8, &endpoint.url(), patch, options("127.0.0.0/8")).await;
    bed.send_all(0..MESSAGES).await;
    bed.resume().await;
    let mut acked = 0;
    let began = Instant::now();
    while acked < MESSAGES.into() && began.elapsed() < PATIENCE {
        sleep(Duration::from_millis(100)).await;
        // It may be refused as well.
        acked = bed.node.queue(NAMESPACE, QUEUE).await.map_or(acked, |queue| queue.counters.acked);
    }
    let log = bed.pushes.log(NAMESPACE, QUEUE, 100);
    let unsettled = log.iter().filter(|push| !push.unsettled.is_empty()).count();
    assert_eq!((acked, unsettled), (MESSAGES.into(), 0), "{:?}", log.first());
}
