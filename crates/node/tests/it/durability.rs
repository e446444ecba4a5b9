//! What is on disk after the process has gone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_engine::command::{SettleItem, Settlement};
use sluice_engine::id::{EPOCH_SHIFT, NamespaceId};
use sluice_journal::RootKeys;
use sluice_node::api::LastError;
use sluice_node::{Durability, Node, Options, StartError};

use crate::support::{options, payloads, receive, send, settle};
use crate::waits::until;

async fn stop(node: Node) {
    node.shutdown(Duration::from_secs(10)).await.unwrap();
}

fn open(dir: &Path, durability: Durability) -> Node {
    let mut options = options(Some(dir));
    options.durability = durability;
    Node::start(options).unwrap()
}

#[tokio::test]
async fn messages_and_settlements_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    for durability in [Durability::Always, Durability::Os, Durability::Interval(Duration::from_millis(10))] {
        let node = open(dir.path(), durability);
        send(&node, "jobs", &[b"a", b"b", b"c"]).await;
        let taken = receive(&node, "jobs", 1, 0).await.unwrap();
        settle(&node, &taken, Settlement::Ack).await;
        stop(node).await;
        let node = open(dir.path(), durability);
        let rest = receive(&node, "jobs", 10, 0).await.unwrap();
        assert_eq!(payloads(&rest), [b"b", b"c"], "{durability:?}");
        assert_eq!(settle(&node, &rest, Settlement::Ack).await, vec![Ok(()); 2]);
        stop(node).await;
    }
}

#[tokio::test]
async fn after_an_orderly_stop_damage_to_the_last_batch_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path(), Durability::Always);
    send(&node, "jobs", &[b"the last message"]).await;
    stop(node).await;
    let segments =
        std::fs::read_dir(dir.path().join("shard-000")).unwrap().map(|entry| entry.unwrap().path());
    let damage = |path: std::path::PathBuf| {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(16).position(|window| window == b"the last message")?;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).ok()
    };
    assert_eq!(segments.filter_map(damage).count(), 1);
    let refused = Node::start(options(Some(dir.path()))).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
}

/// Damages the bytes in the log of the first shard.
fn damage(dir: &Path, forgotten: &[u8]) {
    let damage = |path: PathBuf| {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(forgotten.len()).position(|window| window == forgotten)?;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).ok()
    };
    let segments = std::fs::read_dir(dir.join("shard-000")).unwrap();
    assert_eq!(segments.filter_map(|entry| damage(entry.unwrap().path())).count(), 1);
}

#[tokio::test]
async fn an_error_text_that_is_damaged_is_told_from_one_that_was_not_given() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path(), Durability::Always);
    for error in ["what the disk forgets", "", "timeout"] {
        send(&node, "jobs", &[b"x"]).await;
        let receipt = receive(&node, "jobs", 1, 0).await.unwrap()[0].delivery.receipt;
        let item = SettleItem { receipt, settlement: Settlement::Reject, error, result: None, add_cost: 0 };
        node.settle(NamespaceId::DEFAULT, &[item]).await.unwrap()[0].clone().unwrap();
    }
    // Out of the cache.
    let payload = vec![7u8; 64 << 10];
    for _ in 0..100 {
        send(&node, "other", &[&payload]).await;
    }
    damage(dir.path(), b"what the disk forgets");
    let page = node.dead_errors(NamespaceId::DEFAULT, "jobs", None, 9).await.unwrap();
    let timeout = LastError::Text("timeout".into(), sluice_engine::error_fingerprint(b"timeout"));
    assert_eq!(page.items, [LastError::Damaged, LastError::NoText, timeout]);
    stop(node).await;
}

#[tokio::test]
async fn a_list_with_payloads_says_which_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path(), Durability::Always);
    let id = send(&node, "jobs", &[b"what the disk forgets"]).await.first;
    // Out of the cache.
    let payload = vec![7u8; 64 << 10];
    for _ in 0..100 {
        send(&node, "jobs", &[&payload]).await;
    }
    damage(dir.path(), b"what the disk forgets");
    let page = node.messages(NamespaceId::DEFAULT, "jobs", None, None, 3, true).await.unwrap();
    let seen = page.items.iter().map(|stored| (stored.damaged, stored.blob.is_some()));
    assert_eq!(seen.collect::<Vec<_>>(), [(true, false), (false, true), (false, true)]);
    let page = node.messages(NamespaceId::DEFAULT, "jobs", None, None, 1, false).await.unwrap();
    assert!(!page.items[0].damaged, "nobody has looked");
    assert_eq!(node.message(id, true).await.unwrap_err().code(), "payload_damaged");
    stop(node).await;
}

#[tokio::test]
async fn ids_and_tokens_are_new_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path(), Durability::Always);
    let before = send(&node, "jobs", &[b"a"]).await.first;
    stop(node).await;
    let node = open(dir.path(), Durability::Always);
    let after = send(&node, "jobs", &[b"b"]).await.first;
    assert!(after > before);
    assert_ne!(after.sequence >> EPOCH_SHIFT, before.sequence >> EPOCH_SHIFT, "another epoch");
    stop(node).await;
}

#[tokio::test]
async fn a_backlog_larger_than_the_cache_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path(), Durability::Os);
    let payload = vec![7u8; 64 << 10];
    for _ in 0..100 {
        send(&node, "jobs", &[&payload]).await;
    }
    for _ in 0..100 {
        let taken = receive(&node, "jobs", 1, 0).await.unwrap();
        assert_eq!(payloads(&taken), std::slice::from_ref(&payload));
        assert_eq!(settle(&node, &taken, Settlement::Ack).await, [Ok(())]);
    }
    assert!(node.metrics().await.shards[0].journal.cache_misses > 0);
    stop(node).await;
}

#[tokio::test]
async fn a_disk_below_the_low_water_mark_is_told() {
    let dir = tempfile::tempdir().unwrap();
    for (low_water_bytes, is_low) in [(0, false), (u64::MAX, true)] {
        let node = Node::start(Options { low_water_bytes, ..options(Some(dir.path())) }).unwrap();
        assert_eq!(node.metrics().await.shards[0].journal.low, is_low);
        stop(node).await;
    }
}

#[tokio::test]
async fn a_backup_under_load_restores_to_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(&dir.path().join("data"), Durability::Os);
    for i in 0u32..2_000 {
        send(&node, "jobs", &[&i.to_le_bytes()]).await;
    }
    let load = tokio::spawn({
        let node = node.clone();
        async move {
            for i in 2_000u32..4_000 {
                send(&node, "jobs", &[&i.to_le_bytes()]).await;
            }
        }
    });
    let mut stream = Vec::new();
    let mut chunks = node.backup().await.unwrap();
    while let Some(chunk) = chunks.recv().await {
        stream.extend_from_slice(&chunk.unwrap());
    }
    load.await.unwrap();
    stop(node).await;

    let restored = dir.path().join("restored");
    sluice_node::backup::restore(&mut &stream[..], &restored, &RootKeys::default()).unwrap();
    let node = open(&restored, Durability::Os);
    let mut seen = 0u32;
    loop {
        let taken = receive(&node, "jobs", 1_000, 0).await.unwrap();
        if taken.is_empty() {
            break;
        }
        for payload in payloads(&taken) {
            assert_eq!(payload, seen.to_le_bytes(), "no hole, in order");
            seen += 1;
        }
    }
    assert!((2_000..=4_000).contains(&seen), "{seen}");
    stop(node).await;

    let cut = sluice_node::backup::restore(
        &mut &stream[..stream.len() - 9],
        &dir.path().join("cut"),
        &RootKeys::default(),
    );
    assert!(cut.is_err());
    let used = sluice_node::backup::restore(&mut &stream[..], &restored, &RootKeys::default());
    assert!(used.unwrap_err().to_string().contains("not empty"));
}

#[tokio::test]
async fn a_directory_is_used_by_one_node_and_keeps_its_shards() {
    let dir = tempfile::tempdir().unwrap();
    let mut three = options(Some(dir.path()));
    three.shards = 3;
    let node = Node::start(three.clone()).unwrap();
    let second = Node::start(three.clone()).unwrap_err();
    assert!(matches!(&second, StartError::InUse(told) if told.contains("in use")), "{second}");
    stop(node).await;
    three.shards = 2;
    let fewer = Node::start(three).unwrap_err();
    assert!(matches!(&fewer, StartError::Refused(told) if told.contains("--shards 3")), "{fewer}");
}

#[tokio::test]
async fn snapshots_and_compaction_keep_every_message() {
    let dir = tempfile::tempdir().unwrap();
    let node = open(dir.path(), Durability::Os);
    let payload = vec![1u8; 200 << 10];
    send(&node, "kept", &[b"old"]).await;
    for _ in 0..1_200 {
        send(&node, "jobs", &[&payload]).await;
        let taken = receive(&node, "jobs", 1, 0).await.unwrap();
        assert_eq!(settle(&node, &taken, Settlement::Ack).await, [Ok(())]);
    }
    // 240 MB of log have passed, so a snapshot is at least on its way.
    until(async || node.metrics().await.shards[0].journal.snapshots > 0).await;
    stop(node).await;
    let node = open(dir.path(), Durability::Os);
    assert_eq!(payloads(&receive(&node, "kept", 10, 0).await.unwrap()), [b"old"]);
    assert_eq!(node.queue(NamespaceId::DEFAULT, "jobs").await.unwrap().counters.acked, 1_200);
    stop(node).await;
}
