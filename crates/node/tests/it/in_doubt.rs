//! Calls about documents of a prepared part, as the other shards of its transaction leave it for a moment, or
//! for as long as they are silent.

use std::time::{Duration, Instant};

use sluice_engine::command::{DocumentPut, LockAcquire, Transaction, TransactionPrepare};
use sluice_engine::documents::{DocumentCondition, DocumentView};
use sluice_engine::id::TransactionId;
use sluice_engine::locks::LockMode;
use sluice_engine::outcome::Reply;
use sluice_engine::{Command, Error, NamespaceId};
use sluice_node::Node;
use sluice_node::shard::request::{Granted, Proposal, ReplyTo, Request};
use tokio::sync::oneshot;

use crate::support::memory;
use crate::waits::{LONG, begin, soon, until};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// A transaction whose coordinator is elsewhere.
const ID: TransactionId = TransactionId { coordinator: NamespaceId(99), number: 1 };

/// Proposes a record that no call makes by itself.
async fn propose(node: &Node, namespace: NamespaceId, command: &Command<'_>) -> Result<Reply, Error> {
    let (sender, receiver) = oneshot::channel();
    let proposal = Proposal::new(command, ReplyTo::Once(sender));
    node.mailbox(namespace).unwrap().push(Request::Propose(proposal)).unwrap();
    soon(receiver).await.unwrap().result
}

fn put(content: &[u8]) -> DocumentPut<'_> {
    DocumentPut {
        namespace: NAMESPACE,
        key: "k",
        when: DocumentCondition::default(),
        ttl_ms: None,
        history: None,
        request: 0,
        content_type: "",
        attributes: &[],
        content,
        terms: &[],
    }
}

/// A node with a document.
async fn with_document() -> Node {
    let node = memory();
    node.document_put(&put(b"first")).await.unwrap();
    node
}

/// A node on which a part is prepared that writes the second version of the document.
async fn prepared() -> Node {
    let node = with_document().await;
    prepare(&node, NAMESPACE).await;
    node
}

/// Prepares a part in a namespace, which writes the document of the key.
pub async fn prepare(node: &Node, namespace: NamespaceId) {
    let operations = [Command::DocumentPut(DocumentPut { namespace, ..put(b"second") })];
    let part = Transaction { namespace, idempotency_key: b"", request_digest: 0, operations: &operations };
    let prepare = TransactionPrepare { id: ID, shard: 0, until_us: u64::MAX, part };
    let command = Command::TransactionPrepare(prepare);
    assert_eq!(propose(node, namespace, &command).await, Ok(Reply::Prepared));
}

/// Finishes the part.
pub async fn finish(node: &Node, namespace: NamespaceId, commit: bool) {
    let finish = Command::TransactionFinish { namespace, id: ID, commit };
    assert_eq!(propose(node, namespace, &finish).await, Ok(Reply::Finished { known: true }));
}

/// The number of the current version.
async fn read(node: Node) -> Result<u64, Error> {
    Ok(node.document(NAMESPACE, "k", None, |_| Ok(false)).await?.0.version.version)
}

/// The numbers of all versions.
async fn read_versions(node: Node) -> Result<Vec<u64>, Error> {
    let number = |view: &DocumentView| view.version.version;
    Ok(node.document_versions(NAMESPACE, "k").await?.iter().map(number).collect())
}

fn is_in_doubt<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::InDoubt { what }) if what == "document \"k\"")
}

#[tokio::test]
async fn a_read_waits_for_the_decision() {
    for (commit, version) in [(true, 2), (false, 1)] {
        let node = prepared().await;
        let (current, all) = (begin(read(node.clone())).await, begin(read_versions(node.clone())).await);
        finish(&node, NAMESPACE, commit).await;
        assert_eq!(soon(current).await.unwrap(), Ok(version));
        assert_eq!(soon(all).await.unwrap(), Ok(vec![version]));
    }
}

#[tokio::test]
async fn a_read_that_has_waited_for_a_second_is_in_doubt() {
    let node = prepared().await;
    let since = Instant::now();
    let all = begin(read_versions(node.clone())).await;
    let current = soon(read(node.clone())).await;
    assert!(since.elapsed() >= Duration::from_secs(1), "{:?}", since.elapsed());
    assert!(is_in_doubt(&current), "{current:?}");
    let all = soon(all).await.unwrap();
    assert!(is_in_doubt(&all), "{all:?}");
    let listed = node.documents(NAMESPACE, "", None, 10).await.unwrap();
    assert_eq!(listed[0].version.version, 1, "a list shows it as it was, at once");
    finish(&node, NAMESPACE, true).await;
    assert_eq!(read(node).await, Ok(2));
}

/// Acquires the lock of the document, with the document.
async fn acquire(node: Node, owner: &'static str, wait: Duration) -> Result<Granted, Error> {
    let acquire = LockAcquire {
        namespace: NAMESPACE,
        keys: &["k"],
        owner,
        mode: LockMode::Exclusive,
        ttl_ms: 60_000,
        wait_ms: 0,
        if_absent: false,
        request: [0; 2],
    };
    node.lock_acquire(acquire, wait, true, std::future::pending()).await
}

/// Holders of the lock, and those that wait.
async fn counts(node: &Node) -> (u32, u32) {
    let view = node.lock(NAMESPACE, "k", 0).await.unwrap();
    view.map_or((0, 0), |view| (view.holder_count, view.waiter_count))
}

#[tokio::test]
async fn a_grant_with_a_document_in_doubt_goes_back() {
    let node = prepared().await;
    let refused = soon(acquire(node.clone(), "a", Duration::ZERO)).await;
    assert!(is_in_doubt(&refused), "{refused:?}");
    until(async || counts(&node).await == (0, 0)).await;
    finish(&node, NAMESPACE, true).await;
    let granted = soon(acquire(node, "a", Duration::ZERO)).await.unwrap();
    assert_eq!(granted.document.unwrap().view.version.version, 2);
}

#[tokio::test]
async fn a_grant_that_was_waited_for_goes_back_too() {
    let node = with_document().await;
    let first = soon(acquire(node.clone(), "a", Duration::ZERO)).await.unwrap();
    let second = begin(acquire(node.clone(), "b", LONG)).await;
    until(async || counts(&node).await == (1, 1)).await;
    prepare(&node, NAMESPACE).await;
    node.lock_release(NAMESPACE, first.grant.token).await.unwrap();
    let refused = soon(second).await.unwrap();
    assert!(is_in_doubt(&refused), "{refused:?}");
    until(async || counts(&node).await == (0, 0)).await;
}
