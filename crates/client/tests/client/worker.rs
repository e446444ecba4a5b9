//! The worker loop against a server of a few lines.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{Reply, Request, client, serve, until};
use serde_json::{Value, json};
use sluice_client::{Options, Settle, Stop, WorkResult, Worker, WorkerEvent, WorkerOptions, WorkerTransport};
use tokio::sync::mpsc;

/// A queue that leases, and remembers what it was asked.
#[derive(Default)]
struct Fake {
    ready: VecDeque<String>,
    calls: Vec<(String, Value)>,
    /// The code with which the next extend is refused.
    extend_fails: Option<&'static str>,
    /// Receipts whose next settlement is answered `in_doubt`.
    in_doubt: Vec<&'static str>,
    /// A settlement of more bytes than this is refused, with all that are in its request.
    bytes_max: Option<usize>,
    /// An extend is never answered, as when the network is cut.
    extend_hangs: bool,
    /// So many handlers have to be done before anything is settled.
    done_before_settling: usize,
    /// Handlers that are done.
    done: usize,
    settle_delay: Duration,
    /// Nacked once, a message is ready again when the nack takes effect.
    nacked: Vec<String>,
    /// The next receive is answered by a break; what it took is ready again after this time.
    lose_receive: Option<Duration>,
}

impl Fake {
    fn with(count: usize) -> Arc<Mutex<Fake>> {
        let ready = (0..count).map(|n| format!("m{n}")).collect();
        Arc::new(Mutex::new(Fake { ready, ..Fake::default() }))
    }

    fn settled(&self, outcome: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (path, body) in &self.calls {
            if path.ends_with("/ack") && outcome == "ack" {
                found.extend(
                    body["receipts"].as_array().unwrap().iter().map(|r| r.as_str().unwrap().to_owned()),
                );
            }
            for item in body["items"].as_array().unwrap_or(&Vec::new()) {
                if path.ends_with("/settle") && item["outcome"] == outcome {
                    found.push(item["receipt"].as_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    fn put_back_nacked(&mut self, body: &Value) {
        for item in body["items"].as_array().unwrap_or(&Vec::new()) {
            let id = item["receipt"].as_str().unwrap().trim_start_matches("r-").to_owned();
            if item["outcome"] == "nack" && !self.nacked.contains(&id) {
                self.nacked.push(id.clone());
                self.ready.push_back(id);
            }
        }
    }

    /// The result of an item, or a receipt alone, of a settlement or an extend.
    fn result(&mut self, extend: bool, item: &Value) -> Value {
        let receipt = item.as_str().or(item["receipt"].as_str()).unwrap();
        let code = if extend {
            self.extend_fails.take()
        } else {
            let at = self.in_doubt.iter().position(|open| *open == receipt);
            at.map(|at| self.in_doubt.swap_remove(at)).map(|_| "in_doubt")
        };
        match code {
            Some(code) => json!({"ok": false, "error": {"code": code, "message": "no"}}),
            None => json!({"ok": true}),
        }
    }

    fn calls(&self, end: &str) -> usize {
        self.calls.iter().filter(|(path, _)| path.ends_with(end)).count()
    }
}

/// What is ready, or becomes so within this time.
async fn take(fake: &Mutex<Fake>, max: usize, wait: Duration) -> Vec<String> {
    let until = tokio::time::Instant::now() + wait;
    loop {
        {
            let ready = &mut fake.lock().unwrap().ready;
            let count = max.min(ready.len());
            if count > 0 || tokio::time::Instant::now() >= until {
                return ready.drain(..count).collect();
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn answer(fake: Arc<Mutex<Fake>>, request: Request) -> Reply {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    fake.lock().unwrap().calls.push((request.path.clone(), body.clone()));
    if request.path.ends_with("/receive") {
        let max = body["max"].as_u64().unwrap() as usize;
        let wait = Duration::from_millis(body["wait_ms"].as_u64().unwrap());
        let taken = take(&fake, max, wait).await;
        let lost = fake.lock().unwrap().lose_receive.take();
        if let Some(after) = lost {
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                fake.lock().unwrap().ready.extend(taken);
            });
            return Reply::Break;
        }
        let messages: Vec<Value> = taken
            .iter()
            .map(|id| {
                json!({"id": id, "receipt": format!("r-{id}"), "queue": "q", "payload": id, "attempt": 1,
                "max_attempts": 5, "sent_at_ms": 0, "lease_until_ms": 0})
            })
            .collect();
        return Reply::Json(200, json!({ "messages": messages }).to_string());
    }
    let extend = request.path.ends_with("/extend");
    let (hangs, delay) = {
        let fake = fake.lock().unwrap();
        (fake.extend_hangs && extend, fake.settle_delay)
    };
    if hangs {
        return std::future::pending().await;
    }
    tokio::time::sleep(delay).await;
    until(|| {
        let fake = fake.lock().unwrap();
        fake.done >= fake.done_before_settling
    })
    .await;
    let mut fake = fake.lock().unwrap();
    let items = body["items"].as_array().or(body["receipts"].as_array()).unwrap();
    let most = fake.bytes_max.unwrap_or(usize::MAX);
    if items.iter().any(|item| item["result"].as_str().is_some_and(|result| result.len() > most)) {
        let error = json!({"code": "invalid_argument", "message": "result has too many bytes"});
        return Reply::Json(400, json!({ "error": error }).to_string());
    }
    fake.put_back_nacked(&body);
    let results: Vec<Value> = items.iter().map(|item| fake.result(extend, item)).collect();
    Reply::Json(200, json!({ "results": results }).to_string())
}

async fn worker(fake: &Arc<Mutex<Fake>>, change: impl FnOnce(&mut WorkerOptions)) -> Worker {
    let fake = Arc::clone(fake);
    let address = serve(move |request| answer(Arc::clone(&fake), request)).await;
    let mut options = WorkerOptions::new(vec![("q".to_owned(), 0)]);
    options.until_empty = true;
    options.transport = WorkerTransport::Http;
    change(&mut options);
    Worker::new(client(address), options)
}

fn events() -> (mpsc::UnboundedSender<WorkerEvent>, mpsc::UnboundedReceiver<WorkerEvent>) {
    mpsc::unbounded_channel()
}

#[tokio::test]
async fn every_message_is_settled_as_its_handler_said() {
    let fake = Fake::with(4);
    let worker = worker(&fake, |o| o.concurrency = 2).await;
    let handler = |job: sluice_client::Job| async move {
        match job.message.id.as_str() {
            "m0" => Settle::Ack,
            "m1" => Settle::Nack { error: "no".into(), delay: None },
            "m2" => Settle::Reject { error: "never".into() },
            _ => panic!("a handler that panics"),
        }
    };
    let summary = worker.run(Stop::new(), handler, events().0).await.unwrap();
    assert_eq!((summary.acked, summary.nacked, summary.rejected), (1, 4, 1));
    let fake = fake.lock().unwrap();
    assert_eq!(fake.settled("ack"), ["r-m0"]);
    assert_eq!(
        fake.settled("nack"),
        ["r-m1", "r-m1", "r-m3", "r-m3"],
        "each once more, then the fake drops it"
    );
    assert_eq!(fake.settled("reject"), ["r-m2"]);
}

#[tokio::test]
async fn a_settlement_that_is_refused_is_a_nack_of_its_message_alone() {
    let fake = Fake::with(12);
    {
        let mut fake = fake.lock().unwrap();
        (fake.done_before_settling, fake.bytes_max) = (12, Some(100));
        // A nack is the end.
        fake.nacked = vec!["m5".to_owned(), "m7".to_owned()];
    }
    let worker = worker(&fake, |o| o.concurrency = 12).await;
    let counting = Arc::clone(&fake);
    let handler = move |job: sluice_client::Job| {
        counting.lock().unwrap().done += 1;
        let bytes = match job.message.id.as_str() {
            "m5" => 101,
            "m7" => 5 << 20,
            _ => 99,
        };
        async move { Settle::AckWith(WorkResult { content_type: None, bytes: vec![b'x'; bytes] }) }
    };
    let (sender, mut heard) = events();
    let summary = worker.run(Stop::new(), handler, sender).await.unwrap();
    assert_eq!((summary.acked, summary.nacked, summary.unsettled), (10, 2, 0));
    let mut told = Vec::new();
    while let Ok(WorkerEvent::SettleFailed { id, outcome, reason }) = heard.try_recv() {
        assert_eq!(outcome, "ack");
        told.push((id, reason));
    }
    told.sort();
    let [(five, refused), (seven, too_large)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((five.as_str(), seven.as_str()), ("m5", "m7"));
    assert_eq!(refused, "the ack was refused: result has too many bytes (invalid_argument)");
    assert_eq!(too_large, "the ack was refused: its 5242880 bytes are more than 4194304 (batch_too_large)");
    let fake = fake.lock().unwrap();
    assert_eq!(fake.settled("nack"), ["r-m5", "r-m7"]);
}

#[tokio::test]
async fn acks_gather_while_a_settle_is_under_way() {
    let fake = Fake::with(64);
    fake.lock().unwrap().done_before_settling = 64;
    // A server without sessions: it is found out, and receives do.
    let worker = worker(&fake, |o| {
        o.concurrency = 64;
        o.transport = WorkerTransport::Auto;
    })
    .await;
    let counting = Arc::clone(&fake);
    let handler = move |_| {
        counting.lock().unwrap().done += 1;
        async { Settle::Ack }
    };
    let summary = worker.run(Stop::new(), handler, events().0).await.unwrap();
    assert_eq!(summary.acked, 64);
    assert!(fake.lock().unwrap().calls("/ack") <= 3, "{}", fake.lock().unwrap().calls("/ack"));
}

#[tokio::test]
async fn stopping_finishes_what_runs_and_releases_what_has_not_started() {
    let fake = Fake::with(5);
    let worker = worker(&fake, |o| {
        o.prefetch = 2;
        o.until_empty = false;
    })
    .await;
    let stop = Stop::new();
    let (give, seen) = (stop.clone(), Arc::clone(&fake));
    let handler = move |_| {
        let (give, seen) = (give.clone(), Arc::clone(&seen));
        async move {
            give.stop();
            until(|| seen.lock().unwrap().settled("release").len() == 2).await;
            Settle::Ack
        }
    };
    let summary = worker.run(stop, handler, events().0).await.unwrap();
    assert_eq!((summary.acked, summary.released), (1, 2));
    let fake = fake.lock().unwrap();
    assert_eq!(fake.settled("ack"), ["r-m0"]);
    assert_eq!(fake.settled("release"), ["r-m1", "r-m2"]);
    assert_eq!(fake.ready.len(), 2, "no more was taken");
}

#[tokio::test]
async fn a_lease_is_extended_at_half_time_while_the_handler_runs() {
    let fake = Fake::with(1);
    let worker = worker(&fake, |o| o.lease = Duration::from_secs(2)).await;
    let (seen, began) = (Arc::clone(&fake), Instant::now());
    let handler = move |_| {
        let seen = Arc::clone(&seen);
        async move {
            for half in 1..=2 {
                until(|| seen.lock().unwrap().calls("/extend") == half as usize).await;
                assert!(began.elapsed() >= half * Duration::from_millis(950), "{:?}", began.elapsed());
            }
            Settle::Ack
        }
    };
    let (sender, mut heard) = events();
    let summary = worker.run(Stop::new(), handler, sender).await.unwrap();
    assert_eq!((summary.acked, fake.lock().unwrap().calls("/extend")), (1, 2));
    assert!(heard.recv().await.is_none(), "the lease was never lost");
}

#[tokio::test]
async fn a_handler_hears_that_its_lease_is_lost() {
    let fake = Fake::with(1);
    fake.lock().unwrap().extend_fails = Some("lease_lost");
    let worker = worker(&fake, |o| o.lease = Duration::from_secs(1)).await;
    let handler = |job: sluice_client::Job| async move {
        job.lost.stopped().await;
        Settle::Release { delay: None }
    };
    let (sender, mut heard) = events();
    worker.run(Stop::new(), handler, sender).await.unwrap();
    assert!(matches!(heard.recv().await, Some(WorkerEvent::LeaseLost(id)) if id == "m0"));
}

#[tokio::test]
async fn a_lease_in_doubt_is_not_lost() {
    let fake = Fake::with(1);
    fake.lock().unwrap().extend_fails = Some("in_doubt");
    let worker = worker(&fake, |o| o.lease = Duration::from_secs(4)).await;
    let seen = Arc::clone(&fake);
    let handler = move |job: sluice_client::Job| {
        let seen = Arc::clone(&seen);
        async move {
            until(|| seen.lock().unwrap().calls("/extend") == 2).await;
            assert!(!job.lost.is_stopped());
            Settle::Ack
        }
    };
    let (sender, mut heard) = events();
    let summary = worker.run(Stop::new(), handler, sender).await.unwrap();
    assert_eq!((summary.acked, summary.lost), (1, 0));
    assert!(heard.recv().await.is_none(), "nothing was lost");
}

#[tokio::test]
async fn a_settlement_in_doubt_is_repeated_until_it_is_decided() {
    let fake = Fake::with(3);
    {
        let mut fake = fake.lock().unwrap();
        // The first to be done settles alone, the others together, of whom one is in doubt.
        (fake.done_before_settling, fake.in_doubt) = (3, vec!["r-m2", "r-m2"]);
    }
    let worker = worker(&fake, |o| o.concurrency = 3).await;
    let counting = Arc::clone(&fake);
    let handler = move |_| {
        counting.lock().unwrap().done += 1;
        async { Settle::Ack }
    };
    let (sender, mut heard) = events();
    let summary = worker.run(Stop::new(), handler, sender).await.unwrap();
    assert_eq!((summary.acked, summary.lost, summary.unsettled), (3, 0, 0));
    assert!(heard.recv().await.is_none(), "no settlement has failed");
    let fake = fake.lock().unwrap();
    let tries = fake.settled("ack").iter().filter(|receipt| *receipt == "r-m2").count();
    assert_eq!((tries, fake.in_doubt.len()), (3, 0));
}

#[tokio::test]
async fn a_queue_is_not_empty_while_a_nack_is_on_its_way() {
    let fake = Fake::with(1);
    // Longer than the half second in which nothing may come.
    fake.lock().unwrap().settle_delay = Duration::from_millis(900);
    let worker = worker(&fake, |_| {}).await;
    let handler = |job: sluice_client::Job| async move {
        let _ = job;
        Settle::Nack { error: "no".into(), delay: None }
    };
    let summary = worker.run(Stop::new(), handler, events().0).await.unwrap();
    assert_eq!(summary.nacked, 2, "it was ready again when the nack had taken effect");
    assert!(fake.lock().unwrap().ready.is_empty());
}

#[tokio::test]
async fn a_lease_that_cannot_be_extended_ends_by_the_workers_own_clock() {
    let fake = Fake::with(2);
    fake.lock().unwrap().extend_hangs = true;
    let worker = worker(&fake, |o| {
        o.lease = Duration::from_secs(2);
        o.prefetch = 1;
    })
    .await;
    let started = Instant::now();
    let handler = |job: sluice_client::Job| async move {
        job.lost.stopped().await;
        Settle::Release { delay: None }
    };
    let (sender, mut heard) = events();
    let summary = worker.run(Stop::new(), handler, sender).await.unwrap();
    let took = started.elapsed();
    let request_timeout = Options::default().request_timeout;
    assert!((Duration::from_secs(2)..request_timeout).contains(&took), "{took:?}");
    assert_eq!(summary.released, 1, "what had not started is nobody's business any more");
    let mut ended = Vec::new();
    while let Ok(WorkerEvent::LeaseEnded(id)) = heard.try_recv() {
        ended.push(id);
    }
    ended.sort();
    assert_eq!(ended, ["m0", "m1"]);
}

#[tokio::test]
async fn a_queue_is_not_empty_while_a_lost_answer_may_hold_messages() {
    let fake = Fake::with(1);
    fake.lock().unwrap().lose_receive = Some(Duration::from_millis(1_500));
    let worker = worker(&fake, |o| o.lease = Duration::from_secs(4)).await;
    let summary = worker.run(Stop::new(), |_| async { Settle::Ack }, events().0).await.unwrap();
    assert_eq!(summary.acked, 1, "it came back when the lease was over");
}
