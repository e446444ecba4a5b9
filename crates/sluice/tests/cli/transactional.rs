//! Workers whose handlers have a unit of work, and units without a worker: nothing is half done, and nothing
//! is done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sluice_client::{
    Backoff, BackoffKind, Change, Client, ClientError, DocumentChange, DocumentPatch, DocumentPut, Job,
    LockRequest, Message, MessageOptions, Note, QueueChange, Receive, Settle, Stop, Summary, Work, WorkError,
    WorkResult, Worker, WorkerEvent, WorkerOptions, WorkerTransport,
};
use tokio::sync::mpsc;

use crate::support::Server;

/// Most messages of these tests.
const MANY: u32 = 1_000;

pub(crate) fn client(server: &Server) -> Client {
    Client::new(&server.url).unwrap()
}

/// A queue whose messages come back at once after a nack, as often as it takes.
pub(crate) async fn patient_queue(client: &Client, queue: &str) {
    let backoff = Backoff { kind: BackoffKind::Fixed, base_ms: 1, cap_ms: 1, jitter_percent: 0 };
    let change = QueueChange { max_attempts: Some(MANY), backoff: Some(backoff), ..QueueChange::default() };
    client.queue_set(queue, &change, true).await.unwrap();
}

/// Sends messages with these payloads, each by itself.
pub(crate) async fn send(client: &Client, queue: &str, payloads: impl IntoIterator<Item = String>) {
    for payload in payloads {
        client.send(queue, &[Message::new(payload.as_bytes())]).await.unwrap();
    }
}

/// A worker that ends when its queue is empty.
pub(crate) fn worker(client: &Client, queue: &str) -> Worker {
    let options = WorkerOptions::new(vec![(queue.to_owned(), 0)]);
    Worker::new(client.clone(), WorkerOptions { concurrency: 4, until_empty: true, ..options })
}

/// Works until the queue is empty; what was counted, and what was told.
async fn work<Fut>(
    worker: &Worker,
    handler: impl Fn(Job, Work) -> Fut + Send + Sync + 'static,
) -> (Summary, Vec<WorkerEvent>)
where
    Fut: Future<Output = Result<(), WorkError>> + Send + 'static,
{
    let (events, mut told) = mpsc::unbounded_channel();
    let summary = worker.transactional(Stop::new(), handler, events).await.unwrap();
    (summary, std::iter::from_fn(|| told.try_recv().ok()).collect())
}

pub(crate) fn payload(job: &Job) -> &str {
    std::str::from_utf8(&job.message.payload.0).unwrap()
}

/// Contents of the messages that wait in a queue.
pub(crate) async fn waiting(client: &Client, queue: &str) -> Vec<String> {
    let receive = Receive::from_queue(queue).max(MANY);
    let mut found: Vec<String> = match client.receive(&receive).await {
        Ok(messages) => messages.iter().map(|m| String::from_utf8(m.payload.0.to_vec()).unwrap()).collect(),
        Err(error) if error.code() == Some("queue_not_found") => Vec::new(),
        Err(error) => panic!("{error}"),
    };
    found.sort();
    found
}

pub(crate) async fn content(client: &Client, key: &str) -> Option<String> {
    let document = client.document_get(key, None).await.unwrap()?;
    Some(String::from_utf8(document.content).unwrap())
}

/// Counts one up in a document, as a unit of work sees it.
async fn count_up(work: &Work, key: &str) -> Result<(), WorkError> {
    let count: u64 = match work.get(key).await? {
        Some(text) => String::from_utf8(text)?.parse()?,
        None => 0,
    };
    Ok(work.put(key, (count + 1).to_string())?)
}

fn texts(count: u32) -> impl Iterator<Item = String> {
    (0..count).map(|n| n.to_string())
}

#[tokio::test]
async fn a_handler_that_fails_half_way_leaves_nothing() {
    let server = Server::start();
    let client = client(&server);
    patient_queue(&client, "jobs").await;
    send(&client, "jobs", ["error", "panic", "ok"].map(str::to_owned)).await;
    let handler = |job: Job, work: Work| async move {
        work.put(payload(&job), "written")?;
        work.send("mail", Message::new(payload(&job).as_bytes()))?;
        match (payload(&job), job.message.attempt) {
            ("error", 1) => Err("not this time".into()),
            ("error", _) => {
                Ok(work.settle(&job.message.receipt, Settle::Reject { error: "never".to_owned() })?)
            }
            ("panic", 1..3) => panic!("half way"),
            ("panic", _) => Err("after a panic".into()),
            _ => Ok(()),
        }
    };
    let options = WorkerOptions { until_empty: true, ..WorkerOptions::new(vec![("jobs".to_owned(), 0)]) };
    let change = QueueChange { max_attempts: Some(3), ..QueueChange::default() };
    client.queue_set("jobs", &change, false).await.unwrap();
    let (summary, events) = work(&Worker::new(client.clone(), options), handler).await;
    assert_eq!((summary.acked, summary.nacked, summary.rejected), (1, 4, 1), "{summary:?}");
    assert!(events.is_empty(), "{events:?}");
    // What was rejected has its effects, in the same transaction.
    assert_eq!(waiting(&client, "mail").await, ["error", "ok"]);
    assert_eq!(content(&client, "error").await.as_deref(), Some("written"));
    assert_eq!(content(&client, "panic").await, None);
    let dead = client.dead("jobs", None, 10).await.unwrap().messages;
    let reasons: Vec<_> = dead.iter().map(|message| format!("{message:?}")).collect();
    assert!(reasons.iter().any(|text| text.contains("after a panic")), "{reasons:?}");
    assert!(reasons.iter().any(|text| text.contains("not this time")), "{reasons:?}");
}

/// A worker whose process hangs loses its leases; what it does late must not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_lose_no_update_and_count_nothing_twice() {
    const MESSAGES: u32 = 60;
    let server = Server::start();
    let client = client(&server);
    patient_queue(&client, "jobs").await;
    send(&client, "jobs", texts(MESSAGES)).await;
    // Now and then a handler hangs with all of its process, for longer than the lease.
    let hung = Arc::new(AtomicU32::new(0));
    let handler = |hung: Arc<AtomicU32>| {
        move |job: Job, work: Work| {
            let hung = Arc::clone(&hung);
            async move {
                count_up(&work, "total").await?;
                count_up(&work, &format!("by/{}", payload(&job))).await?;
                work.send("done", Message::new(&job.message.payload.0))?;
                if hung.fetch_add(1, Ordering::Relaxed) % 20 == 10 && job.message.attempt == 1 {
                    // Nothing else runs on this thread, nor are leases extended.
                    std::thread::sleep(Duration::from_millis(1_600));
                }
                Ok(())
            }
        }
    };
    let lives: Vec<_> = (0..2)
        .map(|_| {
            let (url, handler) = (server.url.clone(), handler(Arc::clone(&hung)));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let options = WorkerOptions {
                        concurrency: 4,
                        until_empty: true,
                        lease: Duration::from_secs(1),
                        ..WorkerOptions::new(vec![("jobs".to_owned(), 0)])
                    };
                    work(&Worker::new(Client::new(&url).unwrap(), options), handler).await
                })
            })
        })
        .collect();
    let ended = tokio::task::spawn_blocking(move || {
        lives.into_iter().map(|life| life.join().unwrap()).collect::<Vec<_>>()
    });
    let ended = ended.await.unwrap();
    // What came back while a worker was ending is left for another.
    let (rest, _) = work(&worker(&client, "jobs"), |job: Job, work: Work| async move {
        count_up(&work, "total").await?;
        count_up(&work, &format!("by/{}", payload(&job))).await?;
        Ok(work.send("done", Message::new(&job.message.payload.0))?)
    })
    .await;
    let acked: u64 = ended.iter().map(|(summary, _)| summary.acked).sum();
    assert_eq!(acked + rest.acked, u64::from(MESSAGES), "{ended:?}");
    let lost: u64 = ended.iter().map(|(summary, _)| summary.lost).sum();
    assert!(lost > 0, "no lease was lost: {ended:?}");
    assert_eq!(content(&client, "total").await, Some(MESSAGES.to_string()));
    for text in texts(MESSAGES) {
        assert_eq!(content(&client, &format!("by/{text}")).await.as_deref(), Some("1"), "{text}");
    }
    assert_eq!(waiting(&client, "done").await.len(), MESSAGES as usize);
}

/// Answers are lost: a commit that was done may not be done again, and one that was not has to be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_changes_no_count() {
    const MESSAGES: u32 = 150;
    let mut server = Server::at_one_address();
    let client = client(&server);
    patient_queue(&client, "jobs").await;
    send(&client, "jobs", texts(MESSAGES)).await;
    let options = WorkerOptions {
        concurrency: 4,
        until_empty: true,
        lease: Duration::from_secs(3),
        ..WorkerOptions::new(vec![("jobs".to_owned(), 0)])
    };
    let worker = Worker::new(client.clone(), options);
    let handler = |job: Job, work: Work| async move {
        count_up(&work, &format!("total/{}", job.message.payload.0.len())).await?;
        count_up(&work, &format!("by/{}", payload(&job))).await?;
        Ok(work.send("done", Message::new(&job.message.payload.0))?)
    };
    let working = tokio::spawn(async move { work(&worker, handler).await.0 });
    let mut kills = 0;
    while !working.is_finished() {
        tokio::time::sleep(Duration::from_millis(150)).await;
        if kills < 4 {
            kills += 1;
            server = tokio::task::block_in_place(|| server.kill_and_restart());
        }
    }
    let summary = working.await.unwrap();
    let least = summary.acked + summary.lost + summary.unsettled;
    assert!((summary.acked..=least).contains(&u64::from(MESSAGES)), "{summary:?}");
    for (length, count) in [(1, 10), (2, 90), (3, 50)] {
        assert_eq!(
            content(&client, &format!("total/{length}")).await,
            Some(count.to_string()),
            "{summary:?}"
        );
    }
    for text in texts(MESSAGES) {
        assert_eq!(content(&client, &format!("by/{text}")).await.as_deref(), Some("1"), "{text}");
    }
    assert_eq!(waiting(&client, "done").await.len(), MESSAGES as usize);
}

#[tokio::test]
async fn a_conflict_is_tried_again_on_fresh_reads() {
    let server = Server::start();
    let client = client(&server);
    send(&client, "jobs", texts(1)).await;
    client.document_put("read", &DocumentPut::new(b"0")).await.unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    let (counted, other) = (Arc::clone(&tries), client.clone());
    let handler = move |_: Job, work: Work| {
        let (counted, other) = (Arc::clone(&counted), other.clone());
        async move {
            let seen = work.get("read").await?.ok_or("there is none")?;
            let tried = counted.fetch_add(1, Ordering::Relaxed);
            assert_eq!(work.get("absent").await?.is_some(), tried > 1);
            match tried {
                // Others change what was only read, and make what was not there.
                0 => drop(other.document_put("read", &DocumentPut::new(b"1")).await?),
                1 => drop(other.document_put("absent", &DocumentPut::new(b"")).await?),
                // An error of the work itself, from a call beside the unit.
                2 => return Err(conflict().into()),
                _ => {}
            }
            Ok(work.put("written", seen)?)
        }
    };
    let (summary, events) = work(&worker(&client, "jobs"), handler).await;
    assert_eq!((summary.nacked, summary.acked, events.len()), (0, 1, 0), "{summary:?} {events:?}");
    assert_eq!(tries.load(Ordering::Relaxed), 4);
    assert_eq!(content(&client, "written").await.as_deref(), Some("1"));
}

fn conflict() -> ClientError {
    ClientError::Server {
        status: 409,
        code: "version_mismatch".to_owned(),
        message: "another was faster".to_owned(),
        details: serde_json::Value::Null,
        retry_after: None,
    }
}

#[tokio::test]
async fn a_lock_that_is_held_is_waited_for_by_trying_again() {
    let server = Server::start();
    let client = client(&server);
    send(&client, "jobs", texts(1)).await;
    let held = client.lock(&LockRequest::new("slot")).await.unwrap();
    let handler = |_: Job, work: Work| async move {
        work.acquire(&LockRequest { ttl: Duration::from_secs(600), ..LockRequest::new("slot") })?;
        Ok(work.put("done", "")?)
    };
    let worker = worker(&client, "jobs");
    let working = tokio::spawn(async move { work(&worker, handler).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(content(&client, "done").await, None);
    held.release().await.unwrap();
    assert_eq!(working.await.unwrap().0.acked, 1);
    assert_eq!(client.lock_show("slot").await.unwrap().holder_count, 1);
}

#[tokio::test]
async fn a_unit_sees_its_own_writes_alone_and_writes_each_document_once() {
    let server = Server::start();
    let client = client(&server);
    let put = DocumentPut {
        content_type: Some("text/plain"),
        attributes: vec![("a", "b")],
        ..DocumentPut::new(b"1")
    };
    for key in ["changed", "deleted", "checked"] {
        client.document_put(key, &put).await.unwrap();
    }
    client.document_put("n", &DocumentPut::new(b"{\"n\":1}")).await.unwrap();
    let looking = client.clone();
    let ((), committed) = client
        .transact(|work: Work| {
            let looking = looking.clone();
            async move {
                assert_eq!(work.get("changed").await?.as_deref(), Some(&b"1"[..]));
                work.put("changed", "2")?;
                work.put("changed", "3")?;
                assert_eq!(work.get("changed").await?.as_deref(), Some(&b"3"[..]));
                assert_eq!(work.read("changed").await?.ok_or("none")?.content, b"1");
                work.delete("deleted")?;
                assert_eq!(work.get("deleted").await?, None);
                assert!(work.get("checked").await?.is_some());
                // What is written and deleted again is expected to be absent still.
                assert_eq!(work.get("absent").await?, None);
                work.put("absent", "x")?;
                work.delete("absent")?;
                let increment = DocumentPatch::new(DocumentChange::Increment(vec![("/n", "2")]));
                work.patch("n", &increment)?;
                assert_eq!(work.get("n").await.unwrap_err().code(), Some("invalid_argument"));
                assert_eq!(work.put("n", "").unwrap_err().code(), Some("invalid_argument"));
                let conditional = DocumentPut { if_absent: true, ..DocumentPut::new(b"") };
                assert_eq!(work.put_with("new", &conditional).unwrap_err().code(), Some("invalid_argument"));
                work.put_with(
                    "new",
                    &DocumentPut { attributes: vec![("c", "d")], ..DocumentPut::new(b"4") },
                )?;
                work.send("mail", Message::new(b"sent"))?;
                assert_eq!(looking.document_show("changed", None).await?.content, b"1");
                Ok(())
            }
        })
        .await
        .unwrap();
    assert_eq!(committed.results.len(), 7);
    assert!(committed.results[0].id.is_some(), "messages come first: {committed:?}");
    let changed = client.document_show("changed", None).await.unwrap();
    assert_eq!((&*changed.content, changed.about.version), (&b"3"[..], 2));
    assert_eq!((changed.content_type.as_deref(), &*changed.attributes["a"]), (Some("text/plain"), "b"));
    assert_eq!(client.document_show("new", None).await.unwrap().attributes["c"], "d");
    assert_eq!(content(&client, "n").await.as_deref(), Some("{\"n\":3}"));
    assert_eq!(content(&client, "deleted").await, None);
    assert_eq!(content(&client, "absent").await, None);
    assert_eq!(client.document_show("checked", None).await.unwrap().about.version, 1);
}

#[tokio::test]
async fn units_that_only_read_show_one_moment() {
    let server = Server::start();
    let client = client(&server);
    for key in ["a", "b"] {
        client.document_put(key, &DocumentPut::new(b"0")).await.unwrap();
    }
    let (moving, stop) = (client.clone(), Stop::new());
    let stopped = stop.clone();
    let mover = tokio::spawn(async move {
        for n in 1..u32::MAX {
            let text = n.to_string();
            let moved = moving.transact(|work: Work| {
                let text = text.clone();
                async move {
                    work.put("a", text.clone())?;
                    work.put("b", text)?;
                    Ok(())
                }
            });
            moved.await.unwrap();
            if stopped.is_stopped() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let mut shown = 0;
    while shown < 30 {
        let both = |work: Work| async move { Ok((work.get("a").await?, work.get("b").await?)) };
        match client.transact(both).await {
            Ok(((a, b), _)) => {
                assert_eq!(a, b);
                shown += 1;
            }
            // On a busy machine the mover may be faster than each of its tries.
            Err(error) => assert!(error.to_string().contains("version_mismatch"), "{error}"),
        }
    }
    stop.stop();
    mover.await.unwrap();
}

#[tokio::test]
async fn a_unit_is_bounded_and_ends_with_its_work() {
    let server = Server::start();
    let client = client(&server);
    let kept = client
        .transact(|work: Work| async move {
            for n in 0..999 {
                work.send("mail", Message::new(n.to_string().as_bytes()))?;
            }
            work.put("last", "x")?;
            work.put("last", vec![b'y'; 4 << 20])?;
            assert_eq!(work.put("more", "").unwrap_err().code(), Some("batch_too_large"));
            assert_eq!(work.get("more").await.unwrap_err().code(), Some("batch_too_large"));
            Ok(work)
        })
        .await;
    let (work, committed) = kept.unwrap();
    assert_eq!(committed.results.len(), 1_000);
    assert_eq!(work.send("mail", Message::new(b"late")).unwrap_err().code(), Some("wrong_state"));
    assert_eq!(work.get("last").await.unwrap_err().code(), Some("wrong_state"));
    let large = client.transact(|work: Work| async move {
        for n in 0..5 {
            work.put(&n.to_string(), vec![0; 4 << 20])?;
        }
        Ok(())
    });
    let error = large.await.unwrap_err();
    assert!(error.to_string().contains("it would stage 20971520 bytes of at most 16777216"), "{error}");
    assert_eq!(content(&client, "0").await, None);
}

#[tokio::test]
async fn a_message_is_acked_with_its_result() {
    let server = Server::start();
    let client = client(&server);
    let options = MessageOptions { result_ttl_ms: Some(60_000), ..MessageOptions::default() };
    let asked = Message { options: Some(Box::new(options)), ..Message::new(b"6") };
    let sent = client.send("jobs", &[asked]).await.unwrap();
    let id = sent.decode().unwrap().ids[0].to_string();
    let handler = |job: Job, work: Work| async move {
        let result = WorkResult { bytes: b"42".to_vec(), content_type: None };
        work.put("asked", payload(&job))?;
        Ok(work.settle(&job.message.receipt, Settle::AckWith(result))?)
    };
    let worker = worker(&client, "jobs");
    let (summary, _) = work(&worker, handler).await;
    assert_eq!(summary.acked, 1);
    let awaited = client.result(&id, Duration::ZERO).await.unwrap();
    assert!(format!("{awaited:?}").contains("42"), "{awaited:?}");
}

#[tokio::test]
async fn a_message_that_is_cancelled_or_settled_meanwhile_leaves_nothing() {
    let server = Server::start();
    let client = client(&server);
    for transport in [WorkerTransport::Http, WorkerTransport::Session] {
        send(&client, "jobs", ["cancelled", "settled"].map(str::to_owned)).await;
        let other = client.clone();
        let handler = move |job: Job, work: Work| {
            let other = other.clone();
            async move {
                work.put("effect", "")?;
                match payload(&job) {
                    "cancelled" => {
                        other.message_change(&job.message.id, &Change::Cancel, &Note::default(), None).await?
                    }
                    _ => other.ack(&job.message.receipt).await?,
                }
                Ok(())
            }
        };
        let options = WorkerOptions {
            transport,
            until_empty: true,
            ..WorkerOptions::new(vec![("jobs".to_owned(), 0)])
        };
        let (summary, events) = work(&Worker::new(client.clone(), options), handler).await;
        assert_eq!((summary.cancelled, summary.lost, summary.acked), (1, 1, 0), "{summary:?} {events:?}");
        let failed = events.iter().filter(|event| matches!(event, WorkerEvent::SettleFailed { .. })).count();
        let cancelled = events.iter().filter(|event| matches!(event, WorkerEvent::Cancelled(_))).count();
        assert_eq!((failed, cancelled, events.len()), (1, 1, 2), "{events:?}");
        assert_eq!(content(&client, "effect").await, None);
    }
}
