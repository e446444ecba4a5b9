//! Backups of a node whose copies of the shards are not of one moment, while transactions over several
//! namespaces are decided.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::Command;
use sluice_engine::command::Transaction;
use sluice_engine::id::NamespaceId;
use sluice_journal::RootKeys;
use sluice_node::backup::restore;
use sluice_node::{Asking, ClusterOptions, Link, Node, Options, Transport};
use sluice_replica::{Envelope, NodeId, StateMessage};

use crate::cluster::{InMemory, Nodes, cluster, leader_of, stop, three_through};
use crate::resolving::putting;
use crate::support::options;

/// Time by which the last node's copy of shard 0 is behind.
const BEHIND: Duration = Duration::from_millis(50);

/// Ways on which messages of shard 0 to the last node take long.
#[derive(Debug)]
struct Slow(Nodes);

impl Transport for Slow {
    fn send(&self, shard: u32, envelope: Envelope) {
        let nodes = InMemory(Arc::clone(&self.0));
        if shard != 0 || envelope.message.to.get() != 3 {
            return nodes.send(shard, envelope);
        }
        std::thread::spawn(move || {
            std::thread::sleep(BEHIND);
            nodes.send(shard, envelope);
        });
    }

    fn send_state(&self, shard: u32, message: StateMessage) {
        InMemory(Arc::clone(&self.0)).send_state(shard, message);
    }

    fn ask(&self, node: NodeId, question: Bytes, within: Duration) -> Asking<'_> {
        let to = self.0[node.get() as usize - 1].get();
        Box::pin(async move { tokio::time::timeout(within, to?.answer(&question)).await.ok()? })
    }

    fn nodes(&self) -> Vec<NodeId> {
        InMemory(Arc::clone(&self.0)).nodes()
    }

    fn link(&self, node: NodeId) -> Link {
        InMemory(Arc::clone(&self.0)).link(node)
    }
}

/// Writes a document in two namespaces together.
async fn write(node: &Node, other: NamespaceId, number: u64) -> bool {
    let key = format!("k{number}");
    let of = |namespace, operations| Transaction {
        namespace,
        idempotency_key: b"",
        request_digest: 0,
        operations,
    };
    let own = [Command::DocumentPut(putting(NamespaceId::DEFAULT, &key))];
    let others = [Command::DocumentPut(putting(other, &key))];
    node.commit_across(of(NamespaceId::DEFAULT, &own), &[of(other, &others)]).await.is_ok()
}

/// Numbers of the documents of a namespace.
async fn numbers(node: &Node, namespace: NamespaceId, most: u64) -> Vec<u64> {
    let mut found = Vec::new();
    for number in 0..most {
        if node.document(namespace, &format!("k{number}"), None, |_| Ok(true)).await.is_ok() {
            found.push(number);
        }
    }
    found
}

/// A server alone with what a backup has, when nothing in it is in doubt any more.
async fn restored(bytes: &[u8], dir: &Path, other: NamespaceId) -> Node {
    restore(&mut &bytes[..], dir, &RootKeys::default()).unwrap();
    let alone = Node::start(Options { shards: 2, data_dir: Some(dir.to_owned()), ..options(None) }).unwrap();
    let finishing = alone.clone();
    tokio::spawn(async move { finishing.finish_transactions().await });
    let began = Instant::now();
    while !alone.in_doubt(other, None, 1).await.unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "what is prepared is finished");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    alone
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_has_no_half_of_a_transaction_where_a_shard_is_behind() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { shards: 2, ..options(None) };
    let first = Node::start(Options { data_dir: Some(dir.path().join("1")), ..settings.clone() }).unwrap();
    let other = first.namespace_create("b", Some(1), Default::default()).await.unwrap().id;
    first.shutdown(Duration::from_secs(10)).await.unwrap();
    let through = |number, nodes: &Nodes| ClusterOptions {
        transport: Arc::new(Slow(Arc::clone(nodes))),
        ..cluster(number, nodes)
    };
    let nodes = three_through(dir.path(), settings, through);
    // The last node does not lead shard 0, so its copy is behind.
    nodes[leader_of(&nodes, 0)].get().unwrap().transfer(0, 1).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let (leader, is_done) = (nodes[0].get().unwrap().clone(), Arc::clone(&done));
    let writer = tokio::spawn(async move {
        let mut written = 0;
        while !is_done.load(Ordering::Relaxed) {
            written += u64::from(write(&leader, other, written).await);
        }
        written
    });
    let mut copies = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut stream = nodes[2].get().unwrap().backup().await.unwrap();
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.recv().await {
            bytes.extend_from_slice(&chunk.unwrap());
        }
        copies.push(bytes);
    }
    done.store(true, Ordering::Relaxed);
    let written = writer.await.unwrap();
    assert!(written > 10, "{written}");
    for (at, bytes) in copies.iter().enumerate() {
        let alone = restored(bytes, &dir.path().join(format!("restored{at}")), other).await;
        let own = numbers(&alone, NamespaceId::DEFAULT, written + 1).await;
        assert_eq!(own, numbers(&alone, other, written + 1).await);
        assert!(!own.is_empty());
        alone.shutdown(Duration::from_secs(10)).await.unwrap();
    }
    stop(&nodes).await;
}
