//! What one start gives, no other gives again: ids, tokens and with them receipts.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::Settlement;
use sluice_journal::RootKeys;
use sluice_node::{Delivered, Node, backup};

use crate::support::{memory, options, payloads, receive, send, settle};

async fn stop(node: Node) {
    node.shutdown(Duration::from_secs(10)).await.unwrap();
}

/// A node that sends and receives one message.
async fn taken_one(node: &Node, payload: &[u8]) -> Delivered {
    send(node, "jobs", &[payload]).await;
    receive(node, "jobs", 1, 0).await.unwrap().remove(0)
}

async fn copy(node: &Node, to: &Path) {
    let mut chunks = node.backup().await.unwrap();
    let mut stream = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        stream.extend_from_slice(&chunk.unwrap());
    }
    backup::restore(&mut &stream[..], to, &RootKeys::default()).unwrap();
}

#[tokio::test]
async fn a_restored_copy_gives_other_ids_and_tokens_than_the_original_after_the_backup() {
    let dir = tempfile::tempdir().unwrap();
    let (here, elsewhere) = (dir.path().join("here"), dir.path().join("elsewhere"));
    let node = Node::start(options(Some(&here))).unwrap();
    copy(&node, &elsewhere).await;
    stop(node).await;
    let node = Node::start(options(Some(&here))).unwrap();
    let before = taken_one(&node, b"of the original").await;
    stop(node).await;
    let node = Node::start(options(Some(&elsewhere))).unwrap();
    let after = taken_one(&node, b"of the copy").await;
    assert_ne!(before.delivery.receipt.id, after.delivery.receipt.id);
    assert_ne!(before.delivery.receipt.token, after.delivery.receipt.token);
    // A worker that survived acks what it has from the original: that must not remove the copy's message.
    let acked = settle(&node, &[before], Settlement::Ack).await;
    assert!(matches!(acked[..], [Err(Error::MessageNotFound { .. } | Error::LeaseLost { .. })]), "{acked:?}");
    assert_eq!(settle(&node, &[after], Settlement::Ack).await, [Ok(())]);
}

#[tokio::test]
async fn a_start_in_memory_gives_other_ids_and_tokens_than_the_one_before() {
    let node = memory();
    let before = taken_one(&node, b"before").await;
    stop(node).await;
    let node = memory();
    let after = taken_one(&node, b"after").await;
    assert_ne!(before.delivery.receipt.id, after.delivery.receipt.id);
    assert_ne!(before.delivery.receipt.token, after.delivery.receipt.token);
    let acked = settle(&node, &[before], Settlement::Ack).await;
    assert!(acked[0].is_err(), "{acked:?}");
    assert_eq!(payloads(&[after]), [b"after"]);
}

#[tokio::test]
async fn starts_in_memory_in_one_millisecond_have_different_ids() {
    let mut ids = HashSet::new();
    for _ in 0..20 {
        let node = memory();
        ids.insert(taken_one(&node, b"one").await.delivery.receipt.id);
        stop(node).await;
    }
    assert_eq!(ids.len(), 20);
}
