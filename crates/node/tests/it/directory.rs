//! The data directory as a whole.

use std::fs;
use std::path::Path;

use sluice_journal::RootKeys;
use sluice_node::directory::problems;
use sluice_node::{Node, Options, backup};

use crate::support::{options, send};

fn three(data_dir: &Path) -> Options {
    Options { shards: 3, ..options(Some(data_dir)) }
}

async fn start_and_stop(data_dir: &Path) {
    let node = Node::start(three(data_dir)).unwrap();
    send(&node, "q", &[b"kept"]).await;
    node.shutdown(std::time::Duration::from_secs(10)).await.unwrap();
}

fn refusal(options: Options) -> String {
    Node::start(options).expect_err("refused").to_string()
}

#[tokio::test]
async fn a_lost_shard_is_missed_wherever_it_stood() {
    for shard in ["shard-000", "shard-001", "shard-002"] {
        let dir = tempfile::tempdir().unwrap();
        start_and_stop(dir.path()).await;
        assert_eq!(problems(dir.path()), [""; 0]);
        fs::remove_dir_all(dir.path().join(shard)).unwrap();
        let refused = refusal(three(dir.path()));
        assert!(refused.contains(shard) && refused.contains("restore a backup"), "{refused}");
        assert_eq!(problems(dir.path()), [refused]);
        assert!(!dir.path().join(shard).exists(), "nothing was made in its place");
    }
}

#[tokio::test]
async fn a_strange_shard_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    start_and_stop(dir.path()).await;
    fs::create_dir(dir.path().join("shard-005")).unwrap();
    let refused = refusal(three(dir.path()));
    assert!(refused.contains("shard-005") && refused.contains("has 3 shards"), "{refused}");
}

#[tokio::test]
async fn a_directory_may_grow_and_goes_on_where_that_was_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    start_and_stop(dir.path()).await;
    let five = Options { shards: 5, ..options(Some(dir.path())) };
    Node::start(five.clone()).unwrap().shutdown(std::time::Duration::from_secs(10)).await.unwrap();
    // As a crash would have left it in the middle.
    let marker = dir.path().join("directory");
    let text = fs::read_to_string(&marker).unwrap();
    assert!(text.contains("shards 5\nstate complete\n"), "{text}");
    fs::write(&marker, "shards 4").unwrap();
    fs::remove_dir_all(dir.path().join("shard-004")).unwrap();
    Node::start(five).unwrap().shutdown(std::time::Duration::from_secs(10)).await.unwrap();
    let fewer = refusal(three(dir.path()));
    assert!(fewer.contains("--shards 5"), "{fewer}");
}

#[tokio::test]
async fn a_lost_marker_is_missed_until_the_number_of_shards_is_stated() {
    let dir = tempfile::tempdir().unwrap();
    start_and_stop(dir.path()).await;
    let marker = dir.path().join("directory");
    for lost in [None, Some(""), Some("sluice data"), Some("shards 0\n"), Some("shards x")] {
        match lost {
            None => fs::remove_file(&marker).unwrap(),
            Some(text) => fs::write(&marker, text).unwrap(),
        }
        let refused = refusal(three(dir.path()));
        assert!(refused.contains("/directory is ") && refused.contains("sluice restore"), "{refused}");
        assert!(refused.contains("echo shards "), "{refused}");
        assert_eq!(problems(dir.path()), [refused]);
    }
    fs::write(&marker, "shards 4\n").unwrap();
    assert!(refusal(three(dir.path())).contains("shard-003 is missing"));
    fs::write(&marker, "shards 3\n").unwrap();
    start_and_stop(dir.path()).await;
    assert!(fs::read_to_string(&marker).unwrap().contains("state complete"));
}

#[tokio::test]
async fn a_marker_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    start_and_stop(dir.path()).await;
    let marker = dir.path().join("directory");
    let text = fs::read_to_string(&marker).unwrap();
    for other in [0, 2] {
        let changed = text.replace("\nformat 1\n", &format!("\nformat {other}\n"));
        fs::write(&marker, &changed).unwrap();
        let refused = refusal(three(dir.path()));
        let told = format!("has format version {other}, and this program reads only version 1");
        assert!(refused.contains("/directory ") && refused.contains(&told), "{refused}");
        assert_eq!(fs::read_to_string(&marker).unwrap(), changed);
    }
}

#[tokio::test]
async fn a_backup_that_is_cut_anywhere_leaves_nothing_that_opens() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(three(&dir.path().join("data"))).unwrap();
    send(&node, "q", &[b"kept"]).await;
    let mut stream = Vec::new();
    let mut chunks = node.backup().await.unwrap();
    while let Some(chunk) = chunks.recv().await {
        stream.extend_from_slice(&chunk.unwrap());
    }
    let whole = dir.path().join("whole");
    backup::restore(&mut &stream[..], &whole, &RootKeys::default()).unwrap();
    assert_eq!(problems(&whole), [""; 0]);
    Node::start(three(&whole)).unwrap().shutdown(std::time::Duration::from_secs(10)).await.unwrap();
    let step = stream.len() / 23;
    for (at, cut) in (20..stream.len()).step_by(step).chain([stream.len() - 1]).enumerate() {
        let part = dir.path().join(format!("cut-{at}"));
        backup::restore(&mut &stream[..cut], &part, &RootKeys::default()).expect_err("cut");
        if !part.exists() {
            assert!(cut < 100, "nothing is made only before the first file has a name");
            continue;
        }
        let refused = refusal(three(&part));
        assert!(refused.contains("not finished") && refused.contains("remove the directory"), "{refused}");
        assert_eq!(problems(&part).len(), 1);
    }
}
