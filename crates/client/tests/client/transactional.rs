//! Commits of units of work whose answers are lost, or refusals: what is asked again, and what is counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_client::{
    Client, Job, Options, Stop, Summary, Work, WorkError, Worker, WorkerEvent, WorkerOptions, WorkerTransport,
};
use tokio::sync::mpsc;

use crate::support::{Reply, Request, serve};

/// A server with one message and one document, which answers commits as told, and the last answer for ever.
struct Script {
    messages: Vec<&'static str>,
    replies: VecDeque<fn() -> Reply>,
    commits: Vec<Request>,
    /// Outcomes of settlements that are no part of a commit.
    settled: Vec<Value>,
    reads: u32,
}

impl Script {
    fn answer(&mut self, request: Request) -> Reply {
        if request.path.ends_with("/transactions") {
            self.commits.push(request);
            let reply = if self.replies.len() > 1 { self.replies.pop_front() } else { None };
            return reply.unwrap_or(*self.replies.front().unwrap())();
        }
        if request.path.contains("/documents/") {
            self.reads += 1;
            let etag = self.reads.to_string();
            let about = json!({"key": "k", "version": 1, "etag": etag, "changed_at_ms": 5, "content_bytes": 1,
                "history": 0, "content": etag});
            return Reply::Json(200, about.to_string());
        }
        let body: Value = serde_json::from_str(&request.body).unwrap();
        if request.path.ends_with("/receive") {
            let message = |id: &str| {
                json!({"id": id, "receipt": format!("r-{id}"), "queue": "q", "payload": id, "attempt": 1,
                    "max_attempts": 5, "sent_at_ms": 0, "lease_until_ms": 0})
            };
            let messages: Vec<Value> = self.messages.drain(..).map(message).collect();
            return Reply::Json(200, json!({ "messages": messages }).to_string());
        }
        let items = body["items"].as_array().or(body["receipts"].as_array()).unwrap();
        if !request.path.ends_with("/extend") {
            self.settled.extend(items.iter().cloned());
        }
        Reply::Json(200, json!({ "results": vec![json!({"ok": true}); items.len()] }).to_string())
    }
}

fn done() -> Reply {
    Reply::Json(200, json!({"results": [{}], "duplicate": false}).to_string())
}

fn lost() -> Reply {
    Reply::Break
}

fn refused(status: u16, code: &str, operation: Option<u64>) -> Reply {
    let details = operation.map_or_else(|| json!({}), |operation| json!({ "operation": operation }));
    Reply::Json(status, json!({"error": {"code": code, "message": "no", "details": details}}).to_string())
}

fn conflict() -> Reply {
    refused(409, "version_mismatch", Some(1))
}

async fn start(replies: &[fn() -> Reply]) -> (Arc<Mutex<Script>>, Client) {
    let script = Script {
        messages: vec!["m"],
        replies: replies.iter().copied().collect(),
        commits: Vec::new(),
        settled: Vec::new(),
        reads: 0,
    };
    let script = Arc::new(Mutex::new(script));
    let asked = Arc::clone(&script);
    let address = serve(move |request| {
        let reply = asked.lock().unwrap().answer(request);
        async { reply }
    })
    .await;
    let options = Options { retry_for: Duration::from_millis(200), ..Options::default() };
    (script, Client::with_options(&format!("http://{address}"), options).unwrap())
}

async fn change(work: Work) -> Result<(), WorkError> {
    let content = work.get("k").await?.ok_or("there is none")?;
    Ok(work.put("k", [&content[..], b"!"].concat())?)
}

/// Works on the message with this lease.
async fn work(client: &Client, stop: &Stop, lease: Duration) -> (Summary, Vec<WorkerEvent>) {
    let options = WorkerOptions {
        lease,
        until_empty: true,
        transport: WorkerTransport::Http,
        ..WorkerOptions::new(vec![("q".to_owned(), 0)])
    };
    let (events, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(client.clone(), options);
    let summary = worker.transactional(stop.clone(), |_: Job, work| change(work), events).await.unwrap();
    (summary, std::iter::from_fn(|| told.try_recv().ok()).collect())
}

fn bodies(script: &Script) -> Vec<Value> {
    script.commits.iter().map(|commit| serde_json::from_str(&commit.body).unwrap()).collect()
}

fn keys(script: &Script) -> Vec<&str> {
    script.commits.iter().map(|commit| commit.idempotency_key.as_deref().unwrap()).collect()
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_a_conflict_read_anew_under_the_receipt() {
    let (script, client) = start(&[conflict, lost, lost, done]).await;
    let (summary, events) = work(&client, &Stop::new(), LONG).await;
    assert_eq!(summary, Summary { acked: 1, ..Summary::default() });
    assert!(events.is_empty(), "{events:?}");
    let script = script.lock().unwrap();
    let body = |etag: &str| {
        json!({"operations": [
            {"settle": {"receipt": "r-m", "outcome": "ack"}},
            {"put": {"key": "k", "content": format!("{etag}!"), "if_etag": etag}},
        ]})
    };
    assert_eq!(bodies(&script), [body("1"), body("2"), body("2"), body("2")]);
    assert_eq!(keys(&script), ["r-m"; 4]);
    assert!(script.settled.is_empty(), "{:?}", script.settled);
}

#[tokio::test]
async fn what_the_receipt_cannot_settle_is_lost_and_not_settled_again() {
    let refusals: [fn() -> Reply; 3] = [
        || refused(409, "lease_lost", Some(0)),
        || refused(409, "already_settled", Some(0)),
        // An earlier try was committed after all.
        || refused(409, "idempotency_mismatch", None),
    ];
    for refusal in refusals {
        let (script, client) = start(&[refusal]).await;
        let (summary, events) = work(&client, &Stop::new(), LONG).await;
        assert_eq!(summary, Summary { lost: 1, ..Summary::default() });
        assert!(matches!(&events[..], [WorkerEvent::SettleFailed { outcome: "ack", .. }]), "{events:?}");
        let script = script.lock().unwrap();
        assert_eq!((script.commits.len(), script.settled.len()), (1, 0));
    }
}

#[tokio::test]
async fn what_is_refused_otherwise_is_nacked_with_the_reason() {
    let refusals: [fn() -> Reply; 3] = [
        || refused(429, "queue_full", Some(1)),
        // The lease of a lock, not that of the message.
        || refused(409, "lease_lost", Some(1)),
        || refused(507, "disk_full", None),
    ];
    for refusal in refusals {
        let (script, client) = start(&[refusal]).await;
        let (summary, _) = work(&client, &Stop::new(), LONG).await;
        assert_eq!(summary, Summary { nacked: 1, ..Summary::default() });
        let script = script.lock().unwrap();
        assert_eq!(script.commits.len(), 1);
        assert_eq!(script.settled[0]["outcome"], "nack");
        assert!(script.settled[0]["error"].as_str().unwrap().starts_with("no ("), "{:?}", script.settled);
    }
}

#[tokio::test]
async fn a_document_that_went_after_it_was_read_is_a_conflict() {
    let (script, client) = start(&[|| refused(404, "document_not_found", Some(1)), done]).await;
    assert_eq!(work(&client, &Stop::new(), LONG).await.0.acked, 1);
    assert_eq!(script.lock().unwrap().commits.len(), 2);
}

#[tokio::test]
async fn a_commit_that_is_never_answered_is_repeated_as_long_as_the_lease_and_left_open() {
    let (script, client) = start(&[lost]).await;
    let (summary, events) = work(&client, &Stop::new(), Duration::from_secs(1)).await;
    assert_eq!(summary, Summary { unsettled: 1, ..Summary::default() });
    assert!(matches!(&events[..], [WorkerEvent::SettleFailed { outcome: "ack", .. }]), "{events:?}");
    let script = script.lock().unwrap();
    assert!(script.commits.len() > 3 && script.reads == 1, "the same is asked: {:?}", script.commits);
    assert!(script.settled.is_empty(), "{:?}", script.settled);
}

#[tokio::test]
async fn a_conflict_is_given_up_after_some_tries_or_when_the_worker_stops() {
    let (script, client) = start(&[conflict]).await;
    let stop = Stop::new();
    let giving = stop.clone();
    let watched = Arc::clone(&script);
    tokio::spawn(async move {
        crate::support::until(|| watched.lock().unwrap().commits.len() == 2).await;
        giving.stop();
    });
    assert_eq!(work(&client, &stop, LONG).await.0.nacked, 1);
    {
        let mut script = script.lock().unwrap();
        assert!((2..20).contains(&script.commits.len()), "{}", script.commits.len());
        script.commits.clear();
    }
    let error = client.transact(change).await.unwrap_err();
    let code = error.downcast_ref::<sluice_client::ClientError>().and_then(|error| error.code());
    assert_eq!(code, Some("version_mismatch"));
    let script = script.lock().unwrap();
    assert_eq!(script.commits.len(), 20);
    assert!(keys(&script).iter().all(|key| *key == keys(&script)[0]), "one unit has one key");
}
