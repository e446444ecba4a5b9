//! Three nodes with their threads in one process, between which messages are handed over in memory.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_engine::command::SendItem;
use sluice_engine::id::NamespaceId;
use sluice_node::{ClusterOptions, Durability, Node, Options, StartError, Transport};
use sluice_replica::{Envelope, Members, NodeId};

use crate::support::{options, payloads, receive, send, sending};

/// Nodes by their numbers, from 1.
type Nodes = Arc<[OnceLock<Node>; 3]>;

#[derive(Debug)]
struct InMemory(Nodes);

impl Transport for InMemory {
    fn send(&self, shard: u32, envelope: Envelope) {
        let place = envelope.message.to.get() as usize - 1;
        if let Some(node) = self.0[place].get() {
            // A shard that is not there changes nothing.
            node.deliver(shard as u16 + 9, envelope.clone());
            node.deliver(shard as u16, envelope);
        }
    }
}

fn cluster(number: u64, nodes: &Nodes) -> ClusterOptions {
    let ids = [1, 2, 3].map(|number| NodeId::new(number).unwrap());
    let members = Members::new(ids.to_vec(), Vec::new(), 3).unwrap();
    let id = NodeId::new(number).unwrap();
    ClusterOptions { id, members, transport: Arc::new(InMemory(Arc::clone(nodes))) }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, from) = entry.map(|entry| (to.join(entry.file_name()), entry.path())).unwrap();
        if from.is_dir() {
            copy(&from, &entry);
        } else {
            std::fs::copy(from, entry).unwrap();
        }
    }
}

/// The place of the node that leads.
fn leader(nodes: &Nodes) -> usize {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let named = nodes.iter().filter_map(|node| node.get()?.leaders()[0].elsewhere());
        let named: Vec<u64> = named.collect();
        if named.len() == 2 && named[0] == named[1] {
            return named[0] as usize - 1;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no node leads");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_agree_on_one_log_whatever_the_durability() {
    agree(Durability::Always).await;
    agree(Durability::Os).await;
}

async fn agree(durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let data = |number: u64| dir.path().join(number.to_string());
    let alone = Node::start(options(Some(&data(1)))).unwrap();
    send(&alone, "jobs", &[b"alone"]).await;
    alone.shutdown(Duration::from_secs(10)).await.unwrap();
    (2..=3).for_each(|number| copy(&data(1), &data(number)));
    let nodes: Nodes = Arc::default();
    for number in 1..=3 {
        let options = Options { durability, ..options(Some(&data(number))) };
        let node = Node::start_in_cluster(options, cluster(number, &nodes));
        nodes[number as usize - 1].set(node.unwrap()).unwrap();
    }
    let leads = leader(&nodes);
    let at = |place: usize| nodes[place % 3].get().unwrap();
    send(at(leads), "jobs", &[b"together"]).await;
    let items = [SendItem { payload: b"elsewhere", ..SendItem::default() }];
    let refused = at(leads + 1).send(&sending(NamespaceId::DEFAULT, "jobs", &items)).await;
    assert_eq!(refused, Err(Error::NotLeader { leader: leads as u64 + 1 }));
    let taken = receive(at(leads), "jobs", 10, 0).await.unwrap();
    assert_eq!(payloads(&taken), [&b"alone"[..], b"together"]);
    let began = Instant::now();
    at(leads).hand_over(Duration::from_secs(10)).await;
    let next = leader(&nodes);
    assert!(next != leads && began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    send(at(next), "jobs", &[b"afterwards"]).await;
    // The threads of a node end with it, those between nodes among them.
    for place in 0..3 {
        at(place).shutdown(Duration::from_secs(10)).await.unwrap();
    }
}

#[test]
fn a_node_of_a_cluster_has_a_data_directory() {
    let refused = Node::start_in_cluster(options(None), cluster(1, &Nodes::default())).unwrap_err();
    assert!(matches!(refused, StartError::Refused(_)), "{refused}");
}

#[test]
fn a_node_of_a_cluster_does_not_begin_without_data_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let refused = Node::start_in_cluster(options(Some(&data)), cluster(1, &Nodes::default())).unwrap_err();
    assert!(matches!(&refused, StartError::Refused(why) if why.contains("copy")), "{refused}");
    assert!(!data.exists());
}
