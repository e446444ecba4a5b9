//! Creating and deleting a namespace takes a step on each of two shards: whoever goes away, and whatever
//! stops in between, it is never half there.

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use sluice_engine::command::{Command, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::Limits;
use sluice_engine::settings::Quotas;
use sluice_engine::{Engine, Error, ReceiptKey};
use sluice_journal::MemoryJournal;
use sluice_node::clock::{LogClock, SystemClock};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::request::{Proposal, Read, ReplyTo, Request};
use sluice_node::shard::{Parts, Shard};
use sluice_node::{Node, Options};
use tokio::sync::oneshot;

use crate::support::{options, receive_in, sending};

fn two_shards(data_dir: Option<&Path>) -> Options {
    Options { shards: 2, ..options(data_dir) }
}

/// Begins what the future does, and goes away.
fn begin_and_leave<T>(future: impl Future<Output = T>) {
    let mut future = pin!(future);
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

/// One step, past the node: on the shard of this namespace.
async fn step(node: &Node, shard_of: NamespaceId, command: &Command<'_>) {
    let (sender, answer) = oneshot::channel();
    let proposal = Proposal::new(command, ReplyTo::Once(sender));
    node.mailbox(shard_of).unwrap().push(Request::Propose(proposal)).unwrap();
    answer.await.unwrap().result.unwrap();
}

async fn restarted(node: Node, options: Options) -> Node {
    node.shutdown(Duration::from_secs(5)).await.unwrap();
    Node::start(options).unwrap()
}

#[tokio::test]
async fn a_creation_is_whole_though_its_caller_went() {
    let node = Node::start(two_shards(None)).unwrap();
    begin_and_leave(node.namespace_create("far", Some(1), Quotas::default()));
    let again = node.namespace_create("far", Some(1), Quotas::default()).await;
    assert!(matches!(again, Err(Error::NamespaceExists { .. })), "{again:?}");
    let view = node.namespace("far").await.unwrap();
    node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
}

#[tokio::test]
async fn a_deletion_is_whole_though_its_caller_went() {
    let node = Node::start(two_shards(None)).unwrap();
    for force in [false, true] {
        let old = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
        begin_and_leave(node.namespace_delete("far", force));
        let new = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
        assert_ne!(old.id, new.id);
        node.send(&sending(new.id, "jobs", &[SendItem::default()])).await.unwrap();
        node.namespace_delete("far", true).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_without_force_never_takes_an_acknowledged_message() {
    let node = Node::start(two_shards(None)).unwrap();
    for round in 0..500 {
        let view = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
        let sender = {
            let node = node.clone();
            tokio::spawn(async move {
                let items = [SendItem::default()];
                node.send(&sending(view.id, "jobs", &items)).await.is_ok()
            })
        };
        for _ in 0..round % 50 {
            tokio::task::yield_now().await;
        }
        let deleted = node.namespace_delete("far", false).await;
        if sender.await.unwrap() {
            assert!(matches!(deleted, Err(Error::NamespaceNotEmpty { .. })), "round {round}: {deleted:?}");
            assert_eq!(receive_in(&node, view.id, "jobs", 1, 0).await.unwrap().len(), 1);
            node.namespace_delete("far", true).await.unwrap();
        } else {
            deleted.unwrap();
        }
    }
}

#[tokio::test]
async fn a_start_finishes_a_creation() {
    let dir = tempfile::tempdir().unwrap();
    let options = two_shards(Some(dir.path()));
    let node = Node::start(options.clone()).unwrap();
    let create = Command::NamespaceCreate { number: None, name: "far", shard: 1, quotas: Quotas::default() };
    step(&node, NamespaceId::DEFAULT, &create).await;
    let node = restarted(node, options).await;
    let view = node.namespace("far").await.unwrap();
    node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
}

#[tokio::test]
async fn a_start_finishes_a_deletion_with_force() {
    let dir = tempfile::tempdir().unwrap();
    let options = two_shards(Some(dir.path()));
    let node = Node::start(options.clone()).unwrap();
    let view = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
    node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
    let delete = Command::NamespaceDelete { namespace: view.id, force: true };
    step(&node, NamespaceId::DEFAULT, &delete).await;
    let node = restarted(node, options).await;
    assert!(node.namespace("far").await.is_err());
    let anew = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
    assert_eq!(anew.queues, 0);
}

#[tokio::test]
async fn a_start_undoes_a_deletion_without_force() {
    let dir = tempfile::tempdir().unwrap();
    let options = two_shards(Some(dir.path()));
    let node = Node::start(options.clone()).unwrap();
    let view = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
    step(&node, view.id, &Command::NamespaceDelete { namespace: view.id, force: false }).await;
    let node = restarted(node, options).await;
    let view = node.namespace("far").await.unwrap();
    assert_eq!((view.queues, view.messages), (0, 0));
    node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
}

#[tokio::test]
async fn a_start_brings_quotas_into_line() {
    let dir = tempfile::tempdir().unwrap();
    let options = two_shards(Some(dir.path()));
    let node = Node::start(options.clone()).unwrap();
    let quotas = Quotas { messages: 7, ..Quotas::default() };
    let view = node.namespace_create("far", Some(1), quotas).await.unwrap();
    let set = Command::NamespaceSet { namespace: view.id, quotas: Quotas::default() };
    step(&node, view.id, &set).await;
    let node = restarted(node, options).await;
    assert_eq!(node.namespace("far").await.unwrap().quotas, quotas);
}

#[tokio::test]
async fn a_creation_that_its_shard_refuses_is_undone() {
    let node = Node::start(Options { mailbox_requests: 16, ..two_shards(None) }).unwrap();
    let near = node.namespace_create("near", Some(1), Quotas::default()).await.unwrap();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let (begun, begins) = std::sync::mpsc::channel::<()>();
    let wait = Read(Box::new(move |_| {
        let _ = begun.send(());
        let _ = blocked.recv();
    }));
    let shard = node.mailbox(near.id).unwrap();
    shard.push(Request::Read(wait)).unwrap();
    // It takes nothing in any more; then its mailbox is full.
    begins.recv().unwrap();
    while shard.push(Request::Read(Read(Box::new(|_| {})))).is_ok() {}
    let refused = node.namespace_create("far", Some(1), Quotas::default()).await;
    assert!(matches!(refused, Err(Error::Overloaded { .. })), "{refused:?}");
    drop(release);
    let view = loop {
        match node.namespace_create("far", Some(1), Quotas::default()).await {
            Ok(view) => break view,
            Err(Error::Overloaded { .. }) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    };
    node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
}

#[test]
fn a_namespace_is_made_anew_once_its_number_is_free() {
    let (clock, mailbox) = (SystemClock::new(), Mailbox::new(16));
    let mut shard = Shard::new(Parts {
        number: 1,
        engine: Engine::new(),
        store: MemoryJournal::new(),
        log_clock: LogClock::start(&clock, 0, false).unwrap(),
        clock,
        mailbox: mailbox.clone(),
        waiting_max: 1,
        events: Default::default(),
    });
    shard.begin(&Limits::default(), 0, ReceiptKey([7; 16]));
    shard.step();
    let ask = |command: &Command<'_>| {
        mailbox.push(Request::Propose(Proposal::new(command, ReplyTo::Nobody))).unwrap();
    };
    let namespace = NamespaceId(7);
    let create = Command::NamespaceCreate {
        number: Some(namespace),
        name: "far",
        shard: 1,
        quotas: Quotas::default(),
    };
    ask(&create);
    ask(&Command::Send(sending(namespace, "jobs", &vec![SendItem::default(); 5_000])));
    shard.step();
    shard.step();
    let mut placed = [shard.engine().namespace(namespace).unwrap()];
    placed[0].quotas.messages = 9;
    ask(&Command::QueueDelete { namespace, queue: "jobs" });
    ask(&Command::NamespaceDelete { namespace, force: false });
    shard.step();
    let mut tries = 0;
    while shard.in_flight() > 0 || !shard.follow_placement(&placed) {
        shard.step();
        tries += 1;
    }
    assert!(tries > 3, "swept in slices");
    assert_eq!(shard.engine().namespace(namespace).unwrap().quotas.messages, 9);
}
