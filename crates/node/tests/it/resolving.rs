//! Transactions over several namespaces that are in doubt, and what operators do about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use sluice_engine::Command;
use sluice_engine::command::{Transaction, TransactionDecide, TransactionPrepare};
use sluice_engine::documents::{DocumentCondition, DocumentPut};
use sluice_engine::id::{NamespaceId, TransactionId};
use sluice_engine::outcome::Reply;
use sluice_node::shard::request::{Proposal, ReplyTo, Request};
use sluice_node::{Asking, ClusterOptions, InDoubt, Link, Node, NotResolved, Options, Transport};
use sluice_replica::{Envelope, NodeId, StateMessage};

use crate::cluster::{InMemory, Nodes, cluster, leader_of, stop, three_through};
use crate::support::options;

/// Proposes a record at the leader of a namespace.
async fn propose(node: &Node, namespace: NamespaceId, command: Command<'_>) -> Reply {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let proposal = Proposal::new(&command, ReplyTo::Once(sender));
    assert!(node.mailbox(namespace).unwrap().push(Request::Propose(proposal)).is_ok());
    receiver.await.unwrap().result.unwrap()
}

fn id(number: u64) -> TransactionId {
    TransactionId { coordinator: NamespaceId::DEFAULT, number }
}

/// Time for which the shortest may be decided: a busy machine prepares it within.
const SHORT_US: u64 = 3_000_000;

/// Waits until that of the shortest is over.
async fn until_over() {
    tokio::time::sleep(Duration::from_micros(SHORT_US + 100_000)).await;
}

fn now_us(node: &Node) -> u64 {
    node.clock().now_ms() * 1_000
}

/// A write of a document without conditions.
pub fn putting(namespace: NamespaceId, key: &str) -> DocumentPut<'_> {
    DocumentPut {
        namespace,
        key,
        when: DocumentCondition::default(),
        ttl_ms: None,
        history: None,
        request: 0,
        content_type: "",
        attributes: &[],
        content: b"new",
        terms: &[],
    }
}

/// Prepares a transaction of `default` in another namespace.
async fn prepare(node: &Node, namespace: NamespaceId, number: u64, until_us: u64) {
    let key = format!("k{number}");
    let part = Transaction {
        namespace,
        idempotency_key: b"",
        request_digest: 0,
        operations: &[Command::DocumentPut(putting(namespace, &key))],
    };
    let prepare = TransactionPrepare { id: id(number), shard: 0, until_us, part };
    assert_eq!(propose(node, namespace, Command::TransactionPrepare(prepare)).await, Reply::Prepared);
}

/// Decides a transaction of `default`, which has no operations there.
async fn decide(node: &Node, other: (NamespaceId, u32), number: u64) {
    let namespace = NamespaceId::DEFAULT;
    let part = Transaction { namespace, idempotency_key: b"", request_digest: 0, operations: &[] };
    let until_us = now_us(node) + 60_000_000;
    let decide = TransactionDecide { id: id(number), until_us, participants: &[other], part };
    let reply = propose(node, namespace, Command::TransactionDecide(decide)).await;
    assert_eq!(reply, Reply::Committed { duplicate: false });
}

async fn ids(node: &Node, namespace: NamespaceId) -> Vec<u64> {
    let found = node.in_doubt(namespace, None, 10).await.unwrap();
    found.iter().map(|one| one.id().number).collect()
}

/// True if the document of a transaction is there.
async fn is_done(node: &Node, namespace: NamespaceId, number: u64) -> bool {
    node.document(namespace, &format!("k{number}"), None, |_| Ok(true)).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_doubt_is_listed_and_finished_as_it_was_decided() {
    let node = Node::start(Options { shards: 2, ..options(None) }).unwrap();
    let other = node.namespace_create("b", Some(1), Default::default()).await.unwrap().id;
    let long = now_us(&node) + 60_000_000;
    prepare(&node, other, 3, long).await;
    prepare(&node, other, 1, now_us(&node) + SHORT_US).await;
    prepare(&node, other, 2, long).await;
    decide(&node, (other, 1), 2).await;
    decide(&node, (other, 1), 9).await;
    assert_eq!(
        (ids(&node, other).await, ids(&node, NamespaceId::DEFAULT).await),
        (vec![1, 2, 3], vec![2, 9])
    );
    let page = node.in_doubt(other, Some(id(1)), 1).await.unwrap();
    assert!(matches!(&page[..], [InDoubt::Prepared(view)] if view.id == id(2) && view.operations == 1));
    let (_, operations) = node.in_doubt_shown(other, id(3)).await.unwrap().unwrap();
    assert_eq!((operations[0].kind, &operations[0].about[..]), ("put", &["k3".to_owned()][..]));
    assert_eq!(operations[0].content_bytes, Some(3));
    assert_eq!(node.in_doubt_shown(other, id(9)).await, Ok(None));

    let resolve = |namespace, number, force| node.resolve_in_doubt(namespace, id(number), force);
    for force in [None, Some(true), Some(false)] {
        assert_eq!(resolve(other, 3, force).await, Err(NotResolved::TooEarly));
        assert_eq!(resolve(other, 9, force).await, Err(NotResolved::NotInDoubt));
    }
    assert_eq!(resolve(other, 2, Some(false)).await, Err(NotResolved::Decided(true)));
    assert_eq!(resolve(NamespaceId::DEFAULT, 2, Some(false)).await, Err(NotResolved::Decided(true)));
    assert_eq!(resolve(other, 2, Some(true)).await, Ok((true, false)), "as decided, so not forced");
    assert_eq!(resolve(NamespaceId::DEFAULT, 2, None).await, Ok((true, false)));
    assert_eq!(resolve(NamespaceId::DEFAULT, 9, None).await, Ok((true, false)), "its part is finished");
    until_over().await;
    assert_eq!(resolve(other, 1, Some(true)).await, Err(NotResolved::Decided(false)));
    assert_eq!(resolve(other, 1, None).await, Ok((false, false)));
    assert_eq!((ids(&node, other).await, ids(&node, NamespaceId::DEFAULT).await), (vec![3], vec![]));
    assert!(is_done(&node, other, 2).await && !is_done(&node, other, 1).await);
    node.shutdown(Duration::from_secs(10)).await.unwrap();
}

/// Ways on which nothing of shard 0 goes any more from some moment on.
#[derive(Debug)]
struct Cut(InMemory, Arc<AtomicBool>);

impl Cut {
    fn passes(&self, shard: u32) -> bool {
        shard != 0 || !self.1.load(Ordering::Relaxed)
    }
}

impl Transport for Cut {
    fn send(&self, shard: u32, envelope: Envelope) {
        if self.passes(shard) {
            self.0.send(shard, envelope);
        }
    }

    fn send_state(&self, shard: u32, message: StateMessage) {
        if self.passes(shard) {
            self.0.send_state(shard, message);
        }
    }

    fn ask(&self, node: NodeId, question: Bytes, within: Duration) -> Asking<'_> {
        self.0.ask(node, question, within)
    }

    fn nodes(&self) -> Vec<NodeId> {
        self.0.nodes()
    }

    fn link(&self, node: NodeId) -> Link {
        self.0.link(node)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_whose_coordinator_is_lost_is_finished_by_force_alone() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { shards: 2, ..options(None) };
    let first = Node::start(Options { data_dir: Some(dir.path().join("1")), ..settings.clone() }).unwrap();
    let other = first.namespace_create("b", Some(1), Default::default()).await.unwrap().id;
    first.shutdown(Duration::from_secs(10)).await.unwrap();
    let is_cut = Arc::new(AtomicBool::new(false));
    let through = |number, nodes: &Nodes| {
        let transport = Arc::new(Cut(InMemory(Arc::clone(nodes)), Arc::clone(&is_cut)));
        ClusterOptions { transport, ..cluster(number, nodes) }
    };
    let nodes = three_through(dir.path(), settings, through);
    leader_of(&nodes, 0);
    let node = nodes[leader_of(&nodes, 1)].get().unwrap();
    for number in 1..=2 {
        prepare(node, other, number, now_us(node) + SHORT_US).await;
    }
    is_cut.store(true, Ordering::Relaxed);
    until_over().await;
    assert_eq!(node.resolve_in_doubt(other, id(1), None).await, Err(NotResolved::Silent));
    assert_eq!(node.resolve_in_doubt(other, id(1), Some(true)).await, Ok((true, true)));
    assert_eq!(node.resolve_in_doubt(other, id(2), Some(false)).await, Ok((false, true)));
    assert!(is_done(node, other, 1).await && !is_done(node, other, 2).await);
    assert_eq!(ids(node, other).await, Vec::<u64>::new());
    is_cut.store(false, Ordering::Relaxed);
    stop(&nodes).await;
}
