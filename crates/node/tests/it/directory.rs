//! The data directory as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sluice_engine::command::SendItem;
use sluice_engine::settings::Quotas;
use sluice_journal::RootKeys;
use sluice_node::directory::problems;
use sluice_node::{Node, Options, backup};

use crate::support::{options, send, sending};

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
        assert!(refused.contains(shard) && refused.contains("restore the latest backup"), "{refused}");
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
    for other in [1, 3] {
        let changed = text.replace("\nformat 2\n", &format!("\nformat {other}\n"));
        fs::write(&marker, &changed).unwrap();
        let refused = refusal(three(dir.path()));
        let told = format!("has format version {other}, and this program reads only version 2");
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
    for behind in [&b"x"[..], &stream] {
        let longer = [&stream, behind].concat();
        let part = dir.path().join(format!("longer-{}", behind.len()));
        let refused = backup::restore(&mut &longer[..], &part, &RootKeys::default()).expect_err("longer");
        assert!(refused.to_string().contains("more behind its end"), "{refused}");
        assert!(refusal(three(&part)).contains("not finished"));
    }
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

/// Copies a directory and what is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(fs::copy(entry.path(), target))
        }
    }
}

/// Path and content of each file that is data.
pub fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else if !["lock", "reserve"].contains(&entry.file_name().to_string_lossy().as_ref()) {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

async fn stop(node: Node) {
    node.shutdown(std::time::Duration::from_secs(10)).await.unwrap();
}

/// Starts, sends a message into a namespace on shards 1 and 2, each made when missing, and stops.
async fn use_namespaces(data_dir: &Path) {
    let node = Node::start(three(data_dir)).unwrap();
    for (name, shard) in [("one", 1), ("two", 2)] {
        let (view, _) = node.namespace_put(name, Some(shard), |quotas| quotas).await.unwrap();
        node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
    }
    stop(node).await;
}

/// Messages in the two namespaces.
async fn messages(data_dir: &Path) -> [u64; 2] {
    let node = Node::start(three(data_dir)).unwrap();
    let found = [node.namespace("one").await.unwrap(), node.namespace("two").await.unwrap()];
    stop(node).await;
    found.map(|view| view.messages)
}

/// A start and a check say the same, and change nothing.
fn assert_refused(data_dir: &Path, told: &[&str]) {
    let before = contents(data_dir);
    let refused = refusal(three(data_dir));
    assert!(told.iter().all(|part| refused.contains(part)), "{refused}");
    assert_eq!(problems(data_dir)[0], refused);
    assert!(contents(data_dir) == before, "nothing was changed");
}

#[tokio::test]
async fn shards_that_were_exchanged_are_refused_until_each_is_back() {
    let dir = tempfile::tempdir().unwrap();
    use_namespaces(dir.path()).await;
    let exchange = || {
        let [one, two, aside] = ["shard-001", "shard-002", "aside"].map(|name| dir.path().join(name));
        for (from, to) in [(&one, &aside), (&two, &one), (&aside, &two)] {
            fs::rename(from, to).unwrap();
        }
    };
    exchange();
    assert_refused(dir.path(), &["shard-001 is not where it belongs", "rename it to", "shard-002"]);
    exchange();
    assert_eq!(messages(dir.path()).await, [1, 1]);
}

#[tokio::test]
async fn a_shard_of_another_server_or_of_its_restored_copy_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [own, other, restored, aside] =
        ["own", "other", "restored", "aside"].map(|name| dir.path().join(name));
    use_namespaces(&own).await;
    use_namespaces(&other).await;
    let node = Node::start(three(&own)).unwrap();
    let mut stream = Vec::new();
    let mut chunks = node.backup().await.unwrap();
    while let Some(chunk) = chunks.recv().await {
        stream.extend_from_slice(&chunk.unwrap());
    }
    stop(node).await;
    backup::restore(&mut &stream[..], &restored, &RootKeys::default()).unwrap();
    fs::rename(own.join("shard-001"), &aside).unwrap();
    for foreign in [&other, &restored] {
        copy(&foreign.join("shard-001"), &own.join("shard-001"));
        assert_refused(&own, &["shard-001 does not belong to", "another server made it"]);
        fs::remove_dir_all(own.join("shard-001")).unwrap();
    }
    fs::rename(&aside, own.join("shard-001")).unwrap();
    assert_eq!(messages(&own).await, [1, 1]);
    assert_eq!(messages(&restored).await, [1, 1]);
}

#[tokio::test]
async fn an_older_copy_of_any_shard_or_of_the_marker_is_refused_until_the_newer_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let [data, old, aside] = ["data", "old", "aside"].map(|name| dir.path().join(name));
    use_namespaces(&data).await;
    copy(&data, &old);
    use_namespaces(&data).await;
    for shard in ["shard-000", "shard-001", "shard-002"] {
        fs::rename(data.join(shard), &aside).unwrap();
        copy(&old.join(shard), &data.join(shard));
        assert_refused(&data, &[shard, "last used at start 1", "has since had start 2", "older copy"]);
        fs::remove_dir_all(data.join(shard)).unwrap();
        fs::rename(&aside, data.join(shard)).unwrap();
    }
    assert_eq!(messages(&data).await, [2, 2]);
    fs::copy(old.join("directory"), data.join("directory")).unwrap();
    assert_refused(&data, &["directory is from start 1", "last used at start 3", "echo shards 3"]);
    fs::write(data.join("directory"), "shards 3\n").unwrap();
    assert_eq!(messages(&data).await, [2, 2]);
}

#[tokio::test]
async fn a_start_that_ended_between_any_two_of_its_writes_is_followed_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let [data, before, after] = ["data", "before", "after"].map(|name| dir.path().join(name));
    use_namespaces(&data).await;
    copy(&data, &before);
    assert_eq!(messages(&data).await, [1, 1]);
    copy(&data, &after);
    for opened in 0..=3 {
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
        fs::copy(before.join("directory"), data.join("directory")).unwrap();
        for shard in 0..3 {
            let from = if shard < opened { &after } else { &before };
            let name = format!("shard-{shard:03}");
            copy(&from.join(&name), &data.join(&name));
        }
        assert_eq!(problems(&data), [""; 0], "{opened} shards were opened");
        assert_eq!(messages(&data).await, [1, 1]);
        assert_eq!(messages(&data).await, [1, 1]);
    }
}

#[tokio::test]
async fn a_namespace_that_shard_0_does_not_know_is_kept_unless_shard_0_has_deleted_it() {
    let dir = tempfile::tempdir().unwrap();
    let [data, old] = ["data", "old"].map(|name| dir.path().join(name));
    start_and_stop(&data).await;
    copy(&data, &old);
    use_namespaces(&data).await;
    // As though the newest records of shard 0 were lost.
    fs::remove_dir_all(data.join("shard-000")).unwrap();
    copy(&old.join("shard-000"), &data.join("shard-000"));
    fs::copy(old.join("directory"), data.join("directory")).unwrap();
    let node = Node::start(three(&data)).unwrap();
    let notes: Vec<_> = node.recovery_reports().iter().flat_map(|report| report.notes.clone()).collect();
    let kept =
        |name: &str| notes.iter().any(|note| note.contains(&format!("the namespace {name} was not known")));
    assert!(kept("one") && kept("two"), "{notes:?}");
    let view = node.namespace("one").await.unwrap();
    assert_eq!((view.shard, view.messages), (1, 1));
    let next = node.namespace_create("three", Some(1), Quotas::default()).await.unwrap();
    assert!(next.id > node.namespace("two").await.unwrap().id, "numbers are not given twice");
    node.namespace_delete("one", true).await.unwrap();
    stop(node).await;
    let node = Node::start(three(&data)).unwrap();
    assert!(node.namespace("one").await.is_err());
    assert_eq!(node.namespace("two").await.unwrap().messages, 1);
    stop(node).await;
}

#[tokio::test]
async fn a_missing_manifest_is_told_from_a_missing_directory() {
    let dir = tempfile::tempdir().unwrap();
    let one = options(Some(dir.path()));
    stop(Node::start(one.clone()).unwrap()).await;
    fs::remove_file(dir.path().join("shard-000/manifest")).unwrap();
    let refused = refusal(one);
    assert!(
        refused.contains("the manifest is missing, though") && refused.contains("shard-000/0"),
        "{refused}"
    );
    assert_eq!(problems(dir.path()), [refused]);
}

#[tokio::test]
async fn only_its_owner_reads_the_marker() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    start_and_stop(dir.path()).await;
    assert_eq!(fs::metadata(dir.path().join("directory")).unwrap().permissions().mode() & 0o777, 0o600);
}
