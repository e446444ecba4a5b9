//! A shard that is behind pushes back before memory grows.

use std::sync::mpsc;

use sluice_engine::Error;
use sluice_engine::command::{SendItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_node::shard::request::{Read, Request};
use sluice_node::{Node, Options};

use crate::support::{options, receive, send, sending, settle};
use crate::waits::{begin, until};

const MIB: usize = 1 << 20;

/// Keeps a shard busy until the sender is dropped; from now on, since it takes in what has come before it
/// looks.
fn block(node: &Node) -> mpsc::Sender<()> {
    let (release, blocked) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel::<()>();
    let wait = Read(Box::new(move |_| {
        let _ = begun.send(());
        let _ = blocked.recv();
    }));
    node.mailbox(NamespaceId::DEFAULT).unwrap().push(Request::Read(wait)).unwrap();
    begins.recv().unwrap();
    release
}

async fn send_a_mib(node: &Node) -> Result<(), Error> {
    let payload = vec![7; MIB - 1_000];
    let items = [SendItem { payload: &payload, ..SendItem::default() }];
    node.send(&sending(NamespaceId::DEFAULT, "large", &items)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_is_bounded_in_bytes_and_settling_comes_last() {
    let node = Node::start(Options { mailbox_bytes: 8 << 20, ..options(None) }).unwrap();
    send(&node, "jobs", &[b"one"]).await;
    let held = receive(&node, "jobs", 1, 0).await.unwrap();
    let release = block(&node);
    let sends: Vec<_> = (0..30)
        .map(|_| {
            let node = node.clone();
            tokio::spawn(async move { send_a_mib(&node).await })
        })
        .collect();
    until(async || sends.iter().filter(|send| send.is_finished()).count() >= 22).await;
    let settled = {
        let node = node.clone();
        begin(async move { settle(&node, &held, Settlement::Ack).await }).await
    };
    assert!(!settled.is_finished(), "it waits for the shard");
    drop(release);
    assert_eq!(settled.await.unwrap(), [Ok(())]);
    let mut sent = 0;
    for send in sends {
        match send.await.unwrap() {
            Ok(()) => sent += 1,
            Err(Error::Overloaded { what: "requests", .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(sent, 8);
    send_a_mib(&node).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_a_shard_whose_mailbox_is_full_come_later_and_in_their_place() {
    let node = Node::start(Options { mailbox_requests: 1, shards: 2, ..options(None) }).unwrap();
    let release = block(&node);
    let mailbox = node.mailbox(NamespaceId::DEFAULT).unwrap();
    mailbox.push(Request::Read(Read(Box::new(|_| {})))).unwrap();
    assert!(mailbox.push(Request::Read(Read(Box::new(|_| {})))).is_err(), "it is full");
    let metrics = {
        let node = node.clone();
        begin(async move { node.metrics().await }).await
    };
    assert!(!metrics.is_finished(), "it waits for room");
    drop(release);
    let shards = metrics.await.unwrap().shards;
    assert_eq!(shards.len(), 2);
}
