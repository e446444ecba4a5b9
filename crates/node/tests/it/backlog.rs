//! A backlog that lies on the disk, worked by consumers and receives beside each other.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use sluice_engine::command::{Attach, DETACH_GRACE_MS, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::query::State;
use sluice_node::{Delivered, Event, Node};
use tokio::sync::watch;

use crate::support::{options, payloads, receive, send, settle};
use crate::waits::until;

const MESSAGES: usize = 6_000;

fn payload(number: usize) -> Vec<u8> {
    format!("message {number} ").into_bytes().repeat(1 + number % 20)
}

/// Sends them, and starts anew, so that none is in the cache.
async fn backlog(dir: &Path) -> Node {
    let node = Node::start(options(Some(dir))).unwrap();
    let all: Vec<Vec<u8>> = (0..MESSAGES).map(payload).collect();
    for batch in all.chunks(150) {
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        send(&node, "jobs", &batch).await;
    }
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    Node::start(options(Some(dir))).unwrap()
}

/// Flips a byte of this message wherever it lies.
fn damage(dir: &Path, number: usize) {
    let words = format!("message {number} message");
    let mut found = 0;
    for entry in std::fs::read_dir(dir.join("shard-000")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(words.len()).position(|window| window == words.as_bytes()) {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.write_all_at(b"M", at as u64).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "message {number} is in no file");
}

/// Works like a consumer with little credit, until it is told that all is done.
async fn consume(node: Node, mut done: watch::Receiver<bool>) -> Vec<Vec<u8>> {
    let attach = Attach {
        namespace: NamespaceId::DEFAULT,
        name: "",
        queues: &["jobs"],
        credit: 150,
        lease_ms: 0,
        grace_ms: DETACH_GRACE_MS,
    };
    let mut consumer = node.attach(&attach).await.unwrap();
    let mut worked = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            event = consumer.next(64, 1 << 20) => event.unwrap(),
            _ = done.wait_for(|done| *done) => return worked,
        };
        let Event::Delivered(delivered) = event else { panic!("only messages were to come") };
        worked.extend(work(&node, &delivered).await);
    }
}

async fn work(node: &Node, delivered: &[Delivered]) -> Vec<Vec<u8>> {
    let results = settle(node, delivered, Settlement::Ack).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    payloads(delivered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_comes_once_as_it_was_sent_and_a_damaged_one_is_held() {
    const DAMAGED: [usize; 3] = [2_999, 3_001, 5_998];
    let dir = tempfile::tempdir().unwrap();
    let node = backlog(dir.path()).await;
    DAMAGED.iter().for_each(|number| damage(dir.path(), *number));
    let (all_done, done) = watch::channel(false);
    let consumers: Vec<_> = (0..4).map(|_| tokio::spawn(consume(node.clone(), done.clone()))).collect();
    let mut worked: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let mut count = |payloads: Vec<Vec<u8>>| {
        payloads.into_iter().for_each(|payload| *worked.entry(payload).or_default() += 1);
    };
    loop {
        let delivered = receive(&node, "jobs", 90, 0).await.unwrap();
        if delivered.is_empty() {
            break;
        }
        count(work(&node, &delivered).await);
    }
    until(async || {
        let states = node.queue(NamespaceId::DEFAULT, "jobs").await.unwrap().counters.states;
        states.iter().sum::<u64>() == states[State::Held as usize]
    })
    .await;
    all_done.send(true).unwrap();
    for consumer in consumers {
        count(consumer.await.unwrap());
    }
    let expected =
        (0..MESSAGES).filter(|number| !DAMAGED.contains(number)).map(|number| (payload(number), 1));
    assert_eq!(worked, expected.collect());
    let states = node.queue(NamespaceId::DEFAULT, "jobs").await.unwrap().counters.states;
    assert_eq!(states[State::Held as usize], DAMAGED.len() as u64);
    let misses = node.metrics().await.shards[0].journal.cache_misses as usize;
    // Upkeep may have found a damaged one before anybody was given it.
    assert!(misses >= MESSAGES - DAMAGED.len(), "{misses} were not in the cache");
}
