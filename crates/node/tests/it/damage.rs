//! A shard whose data is damaged or missing on one node of a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::command::SendItem;
use sluice_engine::settings::Quotas;
use sluice_node::api::ShardDamage;
use sluice_node::{ClusterOptions, Node, Options, StartError};
use sluice_replica::{Members, NodeId};

use crate::cluster::{cluster, leader, stop, three};
use crate::directory::{contents, copy};
use crate::support::{options, send, sending};

/// Data of the third of three nodes with two shards that each hold a queue.
async fn third(dir: &Path) -> PathBuf {
    let settings = Options { shards: 2, ..options(None) };
    let nodes = three(dir, settings, async |alone| {
        send(alone, "jobs", &[b"on shard 0"]).await;
        alone.namespace_create("other", Some(1), Quotas::default()).await.unwrap();
        let items = [SendItem { payload: b"on shard 1", ..SendItem::default() }];
        let other = alone.namespace_id("other").unwrap();
        alone.send(&sending(other, "jobs", &items)).await.unwrap();
    })
    .await;
    leader(&nodes);
    stop(&nodes).await;
    dir.join("3")
}

/// Starts a node that has joined, and is not heard by others.
fn start(data: &Path, number: u64, is_new: bool) -> Result<Node, StartError> {
    let settings = Options { shards: 2, ..options(Some(data)) };
    let id = NodeId::new(number).unwrap();
    let alone = cluster(1, &Arc::default());
    Node::start_in_cluster(settings, ClusterOptions { id, members: Members::default(), is_new, ..alone })
}

/// Damage and number of queues of both shards, whether the node has forgotten something, and notes of its
/// start; of a node that is stopped then.
async fn seen(node: Node) -> ([(Option<ShardDamage>, u64); 2], bool, Vec<String>) {
    let metrics = node.metrics().await;
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    let shards = [0, 1].map(|shard| (metrics.shards[shard].damage.clone(), metrics.shards[shard].queues));
    let notes = node.recovery_reports().iter().flat_map(|report| report.notes.clone()).collect();
    (shards, node.has_forgotten(), notes)
}

/// Flips a bit in the middle of what a file holds.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let len = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[len / 2] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// The oldest file of a shard with this ending.
fn oldest(shard: &Path, ending: &str) -> PathBuf {
    let paths = fs::read_dir(shard).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == ending)).min().unwrap()
}

/// A harm to the directory of a shard, with its name.
type Harm = (&'static str, fn(&Path));

/// Harms that can come to a shard.
const HARMS: [Harm; 5] = [
    ("a manifest that is damaged", |shard| flip(&shard.join("manifest"))),
    ("a segment that is damaged", |shard| flip(&oldest(shard, "log"))),
    ("a manifest that is missing", |shard| fs::remove_file(shard.join("manifest")).unwrap()),
    ("a segment that is missing", |shard| fs::remove_file(oldest(shard, "log")).unwrap()),
    ("a shard that is missing", |shard| fs::remove_dir_all(shard).unwrap()),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_shard_stays_as_it_is_until_the_node_has_another_number() {
    let dir = tempfile::tempdir().unwrap();
    let whole = third(dir.path()).await;
    for (harm, hurt) in HARMS {
        let data = dir.path().join(harm);
        copy(&whole, &data);
        let (shard, aside) = (data.join("shard-000"), data.join("shard-000.damaged"));
        hurt(&shard);
        let is_gone = !shard.exists();
        let before = || (shard.exists().then(|| contents(&shard)), fs::read(data.join("directory")).unwrap());
        let found = before();
        for _ in 0..2 {
            let ([first, second], has_forgotten, _) = seen(start(&data, 3, false).unwrap()).await;
            assert!(has_forgotten && second == (None, 1), "{harm}: {second:?}");
            let (Some(ShardDamage::Found(what)), 0) = &first else { panic!("{harm}: {first:?}") };
            assert!(what.contains("shard-000"), "{harm}: {what}");
            assert!(before() == found && !aside.exists(), "{harm}");
        }
        for is_new in [true, false] {
            let ([first, second], has_forgotten, notes) = seen(start(&data, 4, is_new).unwrap()).await;
            assert!(!has_forgotten && second == (None, 1), "{harm}: {second:?}");
            let kept = (!is_gone).then(|| ShardDamage::SetAside(aside.clone()));
            assert_eq!(first, (kept, 0), "{harm}");
            assert_eq!(notes.len(), usize::from(is_new && !is_gone), "{harm}: {notes:?}");
        }
        let kept = aside.exists().then(|| contents(&aside).len());
        assert_eq!(kept, found.0.map(|files| files.len()), "{harm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_was_cut_goes_on_and_another_keeps_the_first_copy() {
    let dir = tempfile::tempdir().unwrap();
    let data = third(dir.path()).await;
    let (shard, aside) = (data.join("shard-000"), data.join("shard-000.damaged"));
    flip(&shard.join("manifest"));
    let first = fs::read(shard.join("manifest")).unwrap();
    fs::rename(&shard, &aside).unwrap();
    let (_, has_forgotten, _) = seen(start(&data, 3, false).unwrap()).await;
    assert!(has_forgotten, "under its former number the shard is missing");
    for number in [4, 5] {
        let ([refilled, _], has_forgotten, _) = seen(start(&data, number, true).unwrap()).await;
        assert!(!has_forgotten);
        assert_eq!(refilled, (Some(ShardDamage::SetAside(aside.clone())), 0));
        assert_eq!(fs::read(aside.join("manifest")).unwrap(), first);
        // Damaged again before it has everything; a removal of it was cut.
        fs::remove_file(shard.join("manifest")).unwrap();
        fs::write(shard.join("000000000009.log"), "rest").unwrap();
        assert!(seen(start(&data, number, false).unwrap()).await.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gets_its_data_from_nobody_or_cannot_read_it_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = third(dir.path()).await;
    let manifest = data.join("shard-000/manifest");
    let whole = fs::read(&manifest).unwrap();
    flip(&manifest);
    let found = contents(&data);
    let settings = Options { shards: 2, ..options(Some(&data)) };
    // Members that the settings name, or the first node of a cluster.
    let refused = Node::start_in_cluster(settings, cluster(3, &Arc::default())).unwrap_err();
    assert!(matches!(&refused, StartError::Damaged(damage) if damage.file == manifest), "{refused:?}");
    assert!(refused.to_string().contains("sluice restore"), "{refused}");
    // Another version, and what the system does not let read.
    let mut newer = whole;
    newer[8] ^= 1;
    fs::write(&manifest, newer).unwrap();
    for is_new in [false, true] {
        let refused = start(&data, 3, is_new).unwrap_err();
        assert!(
            matches!(&refused, StartError::Refused(told) if told.contains("format version")),
            "{refused:?}"
        );
    }
    assert!(contents(&data).keys().eq(found.keys()));
    fs::remove_file(&manifest).unwrap();
    fs::create_dir(&manifest).unwrap();
    for is_new in [false, true] {
        let refused = start(&data, 3, is_new).unwrap_err();
        assert!(matches!(refused, StartError::Refused(_)), "{refused:?}");
    }
    assert!(manifest.exists() && !data.join("shard-000.damaged").exists());
}
