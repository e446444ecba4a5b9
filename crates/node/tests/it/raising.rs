//! An older behaviour version stays in force until it is raised, whoever leads.

use std::path::Path;
use std::time::Duration;

use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION, Command};
use sluice_journal::Batch;
use sluice_node::{Node, Options};
use sluice_record::write_record;

use crate::cluster::{leader, stop, three_on};
use crate::support::{append, options, payloads, receive, send};

/// A data directory whose log begins with the oldest version that the program knows.
fn older(dir: &Path) {
    let mut batch = Batch::new();
    write_record(&mut batch, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_OLDEST });
    append(dir, &mut batch, 1);
    std::fs::write(dir.join("directory"), "shards 1\n").unwrap();
}

#[tokio::test]
async fn a_server_alone_follows_the_version_of_its_log_until_it_is_raised() {
    let dir = tempfile::tempdir().unwrap();
    older(dir.path());
    let settings = Options { accept_clock_jump: true, ..options(Some(dir.path())) };
    let start = || Node::start(settings.clone()).unwrap();
    for _ in 0..2 {
        let node = start();
        send(&node, "jobs", &[b"x"]).await;
        assert_eq!(node.behaviours().await, Ok(vec![BEHAVIOUR_OLDEST]));
        node.shutdown(Duration::from_secs(5)).await.unwrap();
    }
    let node = start();
    assert!(node.raise(0, BEHAVIOUR_VERSION + 1).await.is_err(), "it knows no such version");
    for _ in 0..2 {
        node.raise(0, BEHAVIOUR_VERSION).await.unwrap();
        assert_eq!(node.behaviours().await, Ok(vec![BEHAVIOUR_VERSION]));
    }
    node.shutdown(Duration::from_secs(5)).await.unwrap();
    let node = start();
    assert_eq!(node.behaviours().await, Ok(vec![BEHAVIOUR_VERSION]));
    assert_eq!(receive(&node, "jobs", 10, 0).await.unwrap().len(), 2);
    node.shutdown(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_leader_of_a_cluster_follows_the_version_in_force_and_any_node_raises_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("1")).unwrap();
    older(&dir.path().join("1"));
    let nodes = three_on(dir.path(), options(None));
    let at = |place: usize| nodes[place % 3].get().unwrap();
    let first = leader(&nodes);
    send(at(first), "jobs", &[b"before"]).await;
    at(first).hand_over(Duration::from_secs(10)).await;
    let next = leader(&nodes);
    send(at(next), "jobs", &[b"after"]).await;
    assert_eq!(at(next).behaviours().await, Ok(vec![BEHAVIOUR_OLDEST]));
    at(next + 1).raise(0, BEHAVIOUR_VERSION).await.unwrap();
    at(next).hand_over(Duration::from_secs(10)).await;
    let last = leader(&nodes);
    send(at(last), "jobs", &[b"raised"]).await;
    for place in 0..3 {
        at(place).catch_up(0).await.unwrap();
        assert_eq!(at(place).behaviours().await, Ok(vec![BEHAVIOUR_VERSION]));
    }
    let taken = receive(at(last), "jobs", 10, 0).await.unwrap();
    assert_eq!(payloads(&taken), [&b"before"[..], b"after", b"raised"]);
    stop(&nodes).await;
}
