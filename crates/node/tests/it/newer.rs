//! What another version has written is refused, and left as it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION, Command};
use sluice_journal::{Batch, Opened};
use sluice_node::shard::recover::recover;
use sluice_node::{Node, StartError};
use sluice_record::write_record;

use crate::support::{append, open, options, send};

async fn used(dir: &Path) {
    let node = Node::start(options(Some(dir))).unwrap();
    send(&node, "jobs", &[b"x"]).await;
    node.shutdown(Duration::from_secs(5)).await.unwrap();
}

/// Name and content of each file but the lock.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir.join("shard-000")).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let files = named.filter(|(name, _)| name != "lock" && name != "reserve");
    files.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

fn refused(dir: &Path) -> String {
    let before = files(dir);
    let error = Node::start(options(Some(dir))).unwrap_err();
    assert_eq!(files(dir), before, "nothing was changed");
    let StartError::Refused(told) = error else { panic!("{error:?}") };
    assert!(told.contains("start the version that wrote it"), "{told}");
    told
}

/// Time of the records that another version has written, in microseconds since the Unix epoch.
const LATER: u64 = 2_000_000_000_000_000;

/// Other behaviour versions, and who is said to have written them.
const OTHERS: [(u16, &str); 2] =
    [(BEHAVIOUR_OLDEST - 1, "an older version"), (BEHAVIOUR_VERSION + 1, "a newer version")];

#[tokio::test]
async fn a_log_of_another_behaviour_version() {
    for (behaviour, writer) in OTHERS {
        let dir = tempfile::tempdir().unwrap();
        used(dir.path()).await;
        let mut batch = Batch::new();
        write_record(&mut batch, &Command::Epoch { number: 99, behaviour });
        append(dir.path(), &mut batch, LATER);
        let refused = refused(dir.path());
        let told = format!(
            "behaviour version {behaviour}, this program knows only versions {BEHAVIOUR_OLDEST} to {BEHAVIOUR_VERSION}: \
             it was written by {writer}"
        );
        assert!(refused.contains(&told), "{refused}");
    }
}

#[tokio::test]
async fn a_record_of_an_unknown_kind() {
    let dir = tempfile::tempdir().unwrap();
    used(dir.path()).await;
    let mut batch = Batch::new();
    write_record(&mut batch, &Command::Tick);
    batch.record(0).body(&[250, 1, 7]);
    append(dir.path(), &mut batch, LATER);
    let refused = refused(dir.path());
    assert!(refused.contains("a record of kind 250"), "{refused}");
}

#[tokio::test]
async fn a_snapshot_of_another_behaviour_version() {
    for (behaviour, writer) in OTHERS {
        let dir = tempfile::tempdir().unwrap();
        used(dir.path()).await;
        write_snapshot(dir.path(), behaviour);
        let refused = refused(dir.path());
        let told = format!(
            "behaviour version {behaviour}, this program knows only versions {BEHAVIOUR_OLDEST} to {BEHAVIOUR_VERSION}"
        );
        assert!(refused.contains(".snapshot") && refused.contains(&told), "{refused}");
        assert!(refused.contains(writer), "{refused}");
    }
}

fn write_snapshot(dir: &Path, behaviour: u16) {
    let Opened { mut journal, writer, mut maintenance, snapshot, replay, .. } = open(dir);
    let mut engine = recover(snapshot, replay, &mut journal).unwrap();
    journal.snapshot_begin(engine.applied_index(), engine.time_us(), behaviour.into());
    engine.snapshot_begin();
    let mut piece = Vec::new();
    assert!(engine.snapshot_step(usize::MAX, &mut piece));
    journal.snapshot_piece(piece).unwrap();
    journal.snapshot_finish();
    while maintenance.step(0) {}
    writer.finish().unwrap();
}
