//! Scenarios of workers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_client::{Backoff, BackoffKind, Client, Message, Receive, Settle, WorkResult, WorkerOptions};
use tokio::sync::{Barrier, Semaphore};
use tokio::time::{Instant, sleep};

use super::support::{Working, counts, eventually, is_empty, message, on, receive, send, send_all};

fn fixed(base_ms: u64) -> Option<Backoff> {
    Some(Backoff { kind: BackoffKind::Fixed, base_ms, cap_ms: base_ms, jitter_percent: 0 })
}

pub(super) async fn work_acks(client: &Client) {
    let payloads: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let messages: Vec<_> = payloads.iter().map(|payload| message(payload)).collect();
    send_all(client, "q", &messages).await.unwrap();
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handled: Arc<Mutex<BTreeMap<Vec<u8>, u32>>> = Arc::default();
    let (seen, highest, running) = (Arc::clone(&handled), Arc::clone(&most), Arc::clone(&at_once));
    let working = Working::begin(client, WorkerOptions { concurrency: 8, ..on("q") }, move |job| {
        let (seen, highest, running) = (Arc::clone(&seen), Arc::clone(&highest), Arc::clone(&running));
        async move {
            highest.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            *seen.lock().unwrap().entry(job.message.payload.0.to_vec()).or_default() += 1;
            sleep(Duration::from_millis(10)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Settle::Ack
        }
    });
    eventually("the queue is empty", async || is_empty(client, "q").await).await;
    assert_eq!(working.end().await.acked, 100);
    let handled = handled.lock().unwrap();
    assert!(handled.len() == 100 && handled.values().all(|times| *times == 1), "{handled:?}");
    assert!((2..=8).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

pub(super) async fn work_renews(client: &Client) {
    send(client, "q", message("long")).await;
    let attempts: Arc<Mutex<Vec<u32>>> = Arc::default();
    let seen = Arc::clone(&attempts);
    let options = WorkerOptions { lease: Duration::from_secs(1), ..on("q") };
    let working = Working::begin(client, options, move |job| {
        seen.lock().unwrap().push(job.message.attempt);
        async move {
            sleep(Duration::from_millis(2_500)).await;
            assert!(!job.lost.is_stopped());
            Settle::Ack
        }
    });
    eventually("the handler has begun", async || !attempts.lock().unwrap().is_empty()).await;
    for _ in 0..10 {
        let wait = Receive::from_queue("q").wait(Duration::from_millis(200));
        assert!(client.receive(&wait).await.unwrap().is_empty());
    }
    eventually("it is acked", async || is_empty(client, "q").await).await;
    assert_eq!(working.end().await.acked, 1);
    assert_eq!(*attempts.lock().unwrap(), [1]);
}

pub(super) async fn work_retries(client: &Client) {
    send(client, "q", Message { backoff: fixed(200), ..message("x") }).await;
    let began: Arc<Mutex<Vec<(u32, Instant)>>> = Arc::default();
    let seen = Arc::clone(&began);
    let working = Working::begin(client, on("q"), move |job| {
        seen.lock().unwrap().push((job.message.attempt, Instant::now()));
        async move {
            match job.message.attempt {
                1 => Settle::Nack { error: "not yet".to_owned(), delay: Some(Duration::from_millis(500)) },
                2 => Settle::Nack { error: "by the backoff".to_owned(), delay: None },
                _ => Settle::Ack,
            }
        }
    });
    eventually("it is acked", async || is_empty(client, "q").await).await;
    let summary = working.end().await;
    assert_eq!((summary.nacked, summary.acked), (2, 1));
    let began = began.lock().unwrap();
    assert_eq!(began.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(began[1].1 - began[0].1 >= Duration::from_millis(490));
    assert!(began[2].1 - began[1].1 >= Duration::from_millis(190));
}

pub(super) async fn work_dead(client: &Client) {
    let failing = Message { max_attempts: Some(2), backoff: fixed(10), ..message("each time") };
    send_all(client, "q", &[failing, message("never")]).await.unwrap();
    let working = Working::begin(client, on("q"), |job| async move {
        match &job.message.payload.0[..] {
            b"never" => Settle::Reject { error: "not an image".to_owned() },
            _ => Settle::Nack { error: "no good".to_owned(), delay: None },
        }
    });
    eventually("both are dead", async || counts(client, "q").await.dead == 2).await;
    let summary = working.end().await;
    assert_eq!((summary.nacked, summary.rejected), (2, 1));
    for dead in client.dead("q", None, 10).await.unwrap().messages {
        let errors: Vec<_> = dead.history.iter().map(|attempt| attempt.error.as_deref()).collect();
        match dead.payload.as_deref() {
            Some("never") => assert_eq!(errors, [Some("not an image")]),
            _ => assert_eq!(errors, [Some("no good"); 2]),
        }
    }
}

pub(super) async fn work_refused(client: &Client) {
    const MESSAGES: usize = 20;
    let numbers: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    let messages: Vec<Message<'_>> =
        numbers.iter().map(|n| Message { max_attempts: Some(1), ..message(n) }).collect();
    send_all(client, "q", &messages).await.unwrap();
    let all_begun = Arc::new(Barrier::new(MESSAGES));
    let working = Working::begin(client, WorkerOptions { concurrency: MESSAGES, ..on("q") }, move |job| {
        let all_begun = Arc::clone(&all_begun);
        async move {
            all_begun.wait().await;
            let bytes = if &job.message.payload.0[..] == b"5" { 300_000 } else { 2 };
            Settle::AckWith(WorkResult { content_type: None, bytes: vec![b'x'; bytes] })
        }
    });
    eventually("one is dead and no other is left", async || {
        let counts = counts(client, "q").await;
        (counts.dead, counts.leased, counts.ready) == (1, 0, 0)
    })
    .await;
    let summary = working.end().await;
    assert_eq!((summary.acked, summary.nacked, summary.unsettled), (MESSAGES as u64 - 1, 1, 0));
    let dead = &client.dead("q", None, 10).await.unwrap().messages[0];
    assert_eq!(dead.payload.as_deref(), Some("5"));
    let error = dead.history[0].error.as_deref().unwrap();
    assert!(error.contains("the ack was refused") && error.contains("262144"), "{error}");
}

pub(super) async fn work_stops(client: &Client) {
    let messages = ["0", "1", "2", "3", "4"].map(message);
    send_all(client, "q", &messages).await.unwrap();
    let (begun, go, done) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)), Arc::default());
    let (has_begun, may_go, is_done) =
        (Arc::clone(&begun), Arc::clone(&go), Arc::<Mutex<Vec<Vec<u8>>>>::clone(&done));
    let working = Working::begin(client, WorkerOptions { prefetch: 2, ..on("q") }, move |job| {
        let (has_begun, may_go, is_done) =
            (Arc::clone(&has_begun), Arc::clone(&may_go), Arc::clone(&is_done));
        async move {
            has_begun.add_permits(1);
            may_go.acquire().await.unwrap().forget();
            is_done.lock().unwrap().push(job.message.payload.0.to_vec());
            Settle::Ack
        }
    });
    begun.acquire().await.unwrap().forget();
    working.stop.stop();
    eventually("the others are given back", async || counts(client, "q").await.ready == 4).await;
    send(client, "q", message("5")).await;
    go.add_permits(1);
    let summary = working.end().await;
    assert_eq!((summary.acked, summary.nacked), (1, 0));
    assert_eq!(*done.lock().unwrap(), [b"0"]);
    let left = counts(client, "q").await;
    assert_eq!((left.ready, left.leased), (5, 0));
    // What was given back has no attempt counted.
    assert!(receive(client, "q", 5).await.iter().all(|one| one.attempt == 1));
}
