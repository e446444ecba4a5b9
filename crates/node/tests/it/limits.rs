//! The limits of a cluster are those of its log, whatever the settings of its nodes are.

use std::path::Path;
use std::time::{Duration, Instant};

use sluice_engine::command::SendItem;
use sluice_engine::id::NamespaceId;
use sluice_engine::settings::Quotas;
use sluice_engine::{Error, Limits};
use sluice_node::{Node, Options, StartError};

use crate::cluster::{Nodes, leader, stop, three_on};
use crate::support::{options, sending};

fn settings(payload_bytes: u32) -> Options {
    let limits = Limits { payload_bytes, ..Limits::default() };
    Options { shards: 2, limits, ..options(None) }
}

/// Three nodes whose settings have another limit than the log has, from when one of them was alone.
async fn three(dir: &Path, in_log: u32, in_settings: u32) -> Nodes {
    let alone = Node::start(Options { data_dir: Some(dir.join("1")), ..settings(in_log) }).unwrap();
    alone.namespace_create("shop", Some(1), Quotas::default()).await.unwrap();
    alone.shutdown(Duration::from_secs(10)).await.unwrap();
    three_on(dir, settings(in_settings))
}

/// Waits until all nodes check requests by this limit.
async fn await_payload(nodes: &Nodes, bytes: u32) {
    let began = Instant::now();
    for node in nodes.iter().map(|node| node.get().unwrap()) {
        while node.limits().payload_bytes != bytes {
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", node.limits());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The error of a send of that many bytes to a queue that is not there, on whatever node leads the shard.
async fn refused(nodes: &Nodes, namespace: NamespaceId, bytes: usize) -> Error {
    let payload = vec![b'x'; bytes];
    let items = [SendItem { payload: &payload, ..SendItem::default() }];
    let began = Instant::now();
    loop {
        for node in nodes.iter().map(|node| node.get().unwrap()) {
            match node.send(&sending(namespace, "new", &items)).await {
                Err(Error::NotLeader { .. } | Error::NoLeader {} | Error::ShuttingDown {}) => {}
                sent => return sent.unwrap_err(),
            }
        }
        assert!(began.elapsed() < Duration::from_secs(20), "no node leads");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn fewer(limits: Limits) -> Limits {
    Limits { payload_bytes: 100, auto_create: false, ..limits }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_limits_holds_on_all_nodes_and_shards_whoever_leads() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = three(dir.path(), 500, 900).await;
    let at = |place: usize| nodes[place % 3].get().unwrap();
    await_payload(&nodes, 500).await;
    assert_eq!(at(0).own_limits().payload_bytes, 900);
    let leads = leader(&nodes);
    let elsewhere = at(leads + 1).change_limits(fewer).await;
    assert_eq!(elsewhere, Err(Error::NotLeader { leader: leads as u64 + 1 }));
    let senseless = at(leads).change_limits(|limits| Limits { payload_bytes: 0, ..limits }).await;
    assert!(matches!(senseless, Err(Error::InvalidArgument { .. })), "{senseless:?}");
    for _ in 0..2 {
        assert_eq!(at(leads).change_limits(fewer).await, Ok(fewer(Limits::default())));
    }
    await_payload(&nodes, 100).await;
    let shop = at(0).namespace_id("shop").unwrap();
    for _ in 0..2 {
        for namespace in [NamespaceId::DEFAULT, shop] {
            let told = refused(&nodes, namespace, 101).await;
            assert!(matches!(told, Error::PayloadTooLarge { .. }), "the front: {told:?}");
            let told = refused(&nodes, namespace, 100).await;
            assert!(matches!(told, Error::QueueNotFound { .. }), "the shard: {told:?}");
        }
        at(leader(&nodes)).hand_over(Duration::from_secs(10)).await;
    }
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_had_no_leader_while_limits_were_changed_follows() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = three(dir.path(), 500, 900).await;
    let leads = leader(&nodes);
    let gone = (leads + 1) % 3;
    let at = |place: usize| nodes[place].get().unwrap();
    while !at(gone).leaders()[1].is_here() {
        at(leads).transfer(1, gone as u64 + 1).await.unwrap();
    }
    at(gone).shutdown(Duration::from_secs(10)).await.unwrap();
    let changed = at(leads).change_limits(fewer).await;
    assert!(matches!(changed, Ok(_) | Err(Error::OutcomeUnknown {})), "{changed:?}");
    let keeps = [leads, 3 - leads - gone].map(|place| {
        let node = at(place).clone();
        tokio::spawn(async move { node.keep_placement().await })
    });
    let shop = at(leads).namespace_id("shop").unwrap();
    let began = Instant::now();
    while !matches!(refused(&nodes, shop, 100).await, Error::QueueNotFound { .. }) {
        assert!(began.elapsed() < Duration::from_secs(20), "the shard does not follow");
    }
    stop(&nodes).await;
    keeps.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn a_node_does_not_start_with_limits_that_cannot_be() {
    let refused = Node::start(settings(0)).unwrap_err();
    assert!(matches!(&refused, StartError::Refused(why) if why.contains("limits.payload")), "{refused}");
}
