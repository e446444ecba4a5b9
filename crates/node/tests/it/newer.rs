//! What a newer version has written is refused, and left as it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::{BEHAVIOUR_VERSION, Command};
use sluice_journal::{Batch, Class, DiskJournal, FsDisk, Journal, Opened};
use sluice_node::shard::recover::recover;
use sluice_node::shard::request::write_record;
use sluice_node::{Node, StartError};

use crate::support::{options, send};

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

fn open(dir: &Path) -> Opened {
    let options = sluice_journal::Options::new(dir.join("shard-000"));
    DiskJournal::open(Arc::new(FsDisk), options).unwrap()
}

fn append(dir: &Path, records: &mut Batch) {
    let mut opened = open(dir);
    opened.journal.propose(records, 2_000_000_000_000_000, Class::Growing).unwrap();
    opened.writer.step();
    opened.writer.finish().unwrap();
}

fn refused(dir: &Path) -> StartError {
    let before = files(dir);
    let refused = Node::start(options(Some(dir))).unwrap_err();
    assert_eq!(files(dir), before, "nothing was changed");
    assert!(refused.0.contains("newer") && refused.0.contains("start that version"), "{refused}");
    refused
}

#[tokio::test]
async fn a_log_of_a_newer_behaviour_version() {
    let dir = tempfile::tempdir().unwrap();
    used(dir.path()).await;
    let mut batch = Batch::new();
    write_record(&mut batch, &Command::Epoch { number: 99, behaviour: BEHAVIOUR_VERSION + 1 });
    append(dir.path(), &mut batch);
    let refused = refused(dir.path());
    let versions =
        format!("behaviour version {}, this program knows up to {BEHAVIOUR_VERSION}", BEHAVIOUR_VERSION + 1);
    assert!(refused.0.contains(&versions), "{refused}");
}

#[tokio::test]
async fn a_record_of_an_unknown_kind() {
    let dir = tempfile::tempdir().unwrap();
    used(dir.path()).await;
    let mut batch = Batch::new();
    write_record(&mut batch, &Command::Tick);
    batch.record(0).body(&[250, 1, 7]);
    append(dir.path(), &mut batch);
    let refused = refused(dir.path());
    assert!(refused.0.contains("a record of kind 250"), "{refused}");
}

#[tokio::test]
async fn a_snapshot_of_a_newer_behaviour_version() {
    let dir = tempfile::tempdir().unwrap();
    used(dir.path()).await;
    let Opened { mut journal, writer, mut maintenance, snapshot, replay, .. } = open(dir.path());
    let mut engine = recover(snapshot, replay, &mut journal).unwrap();
    journal.snapshot_begin(engine.applied_index(), engine.time_us(), u32::from(BEHAVIOUR_VERSION) + 1);
    engine.snapshot_begin();
    let mut piece = Vec::new();
    assert!(engine.snapshot_step(usize::MAX, &mut piece));
    journal.snapshot_piece(piece).unwrap();
    journal.snapshot_finish();
    while maintenance.step(0) {}
    writer.finish().unwrap();
    drop((journal, writer, maintenance));
    let refused = refused(dir.path());
    assert!(refused.0.contains("snapshot") && refused.0.contains("behaviour version"), "{refused}");
}
