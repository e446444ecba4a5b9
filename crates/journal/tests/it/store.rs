//! What goes in comes out: blobs, snapshots, compaction, backups.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{BEHAVIOUR, Rig, copy_dir, files, fixture, key, make_every_kind, options, plain, roots};

#[test]
fn what_was_committed_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::try_open_on(Arc::new(FsDisk), options(dir.path())).unwrap();
    assert!(rig.report.fresh);
    assert_eq!(rig.journal.next_index(), 1);
    for i in 0..100u32 {
        rig.send(&[format!("first {i}").as_bytes(), b"second"]);
        rig.commit();
    }
    rig.settle(key(3, 1));
    rig.commit();
    rig.read_all();
    let live = rig.live.clone();
    for restart in 0..3 {
        drop(rig);
        rig = Rig::open(dir.path());
        assert!(!rig.report.fresh);
        assert_eq!(rig.report.term, 1_000 * (restart + 2));
        assert!(rig.report.cut.is_none(), "{:?}", rig.report.cut);
        assert_eq!(rig.live, live);
        assert_eq!(rig.journal.next_index(), 102);
        assert!(rig.report.last_time_us > 1_000_000);
        rig.read_all();
    }
}

#[test]
fn what_is_written_as_the_durability_asks_is_durable_and_committed() {
    for durability in [Durability::Always, Durability::Interval(Duration::from_secs(1)), Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let opened =
            DiskJournal::open(Arc::new(FsDisk), Options { durability, ..options(dir.path()) }).unwrap();
        let (mut journal, writer) = (opened.journal, opened.writer);
        let ends = |journal: &DiskJournal| (journal.durable_index(), journal.committed_index());
        let mut batch = Batch::new();
        batch.record(0).body(b"first");
        batch.record(0).body(b"second");
        journal.propose(&mut batch, 1, Class::Growing).unwrap();
        assert_eq!(ends(&journal), (0, 0), "{durability:?}");
        assert!(writer.step());
        assert_eq!(ends(&journal), (2, 2), "{durability:?}");
        assert!(matches!(journal.poll(), Some(Event::Committed(batch)) if batch.first_index == 1));
        drop((journal, writer, opened.maintenance, opened.backups, opened.keyring, opened.replay));
        let opened = DiskJournal::open(Arc::new(FsDisk), options(dir.path())).unwrap();
        assert_eq!(ends(&opened.journal), (2, 2), "after a restart");
    }
}

#[test]
fn blobs_beyond_the_cache_are_read_back_across_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    for i in 0..500u32 {
        rig.send(&[&vec![i as u8; 1000], &i.to_le_bytes()]);
        if i % 7 == 0 {
            rig.commit();
            rig.settle_down();
        }
    }
    rig.commit();
    rig.settle_down();
    let status = rig.journal.status();
    assert!(status.segments > 5, "{status:?}");
    assert!(status.cache_bytes <= 8 << 10);
    rig.read_all();
    assert!(rig.journal.status().cache_misses > 900);
    drop(rig);
    Rig::open(dir.path()).read_all();
}

#[test]
fn a_batch_larger_than_a_segment_has_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    rig.send(&[b"small"]);
    rig.send(&[&vec![1; 300 << 10]]);
    rig.send(&[b"small"]);
    rig.commit();
    rig.settle_down();
    rig.read_all();
    drop(rig);
    Rig::open(dir.path()).read_all();
}

#[test]
fn a_snapshot_shortens_replay_and_frees_what_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    for i in 0..500u32 {
        let index = rig.send(&[&vec![i as u8; 1000]]);
        rig.commit();
        if i > 0 {
            rig.settle(key(index, 0));
            rig.commit();
        }
        rig.maintenance.step(0);
    }
    rig.settle_down();
    assert!(rig.journal.wants_snapshot());
    let before = rig.journal.status();
    rig.snapshot();
    let after = rig.journal.status();
    assert!(!rig.journal.wants_snapshot());
    assert!(after.disk_bytes * 2 < before.disk_bytes, "{before:?} {after:?}");
    assert!(after.compacted_bytes >= 1000, "the old message was copied: {after:?}");
    assert_eq!(after.snapshots, 1);
    rig.read_all();
    let applied = rig.applied;
    rig.send(&[b"after"]);
    rig.commit();
    let live = rig.live.clone();
    drop(rig);
    let mut rig = Rig::open(dir.path());
    assert_eq!(rig.replayed, [(applied + 1, b"send".to_vec())]);
    assert_eq!(rig.live, live);
    rig.read_all();
    assert_eq!(rig.report.notes, [""; 0]);
    drop(rig);
    let report = check(Arc::new(FsDisk), dir.path(), &roots()).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.snapshot_index, applied);
}

#[test]
fn compaction_keeps_what_is_live_while_it_dies_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    let mut keys = Vec::new();
    for i in 0..3000u32 {
        let index = rig.send(&[&i.to_le_bytes().repeat(30)]);
        keys.push(key(index, 0));
        rig.commit();
        rig.maintenance.step(0);
    }
    for (i, key) in keys.iter().enumerate() {
        if i % 4 != 0 {
            rig.settle(*key);
        }
    }
    rig.commit();
    rig.snapshot();
    let compacted = rig.journal.status().compacted_bytes;
    assert!(compacted > 0);
    // More die, step by step, while files are compacted again.
    for (round, key) in keys.iter().enumerate().filter(|(i, _)| i % 4 == 0) {
        if round % 8 == 0 {
            rig.settle(*key);
            rig.commit();
        }
        rig.now_us += 100_000;
        rig.maintenance.step(rig.now_us);
        rig.poll();
    }
    rig.settle_down();
    assert!(rig.journal.status().compacted_bytes > compacted);
    rig.read_all();
    let live = rig.live.clone();
    drop(rig);
    let mut rig = Rig::open(dir.path());
    assert_eq!(rig.live, live);
    rig.read_all();
}

#[test]
fn settled_messages_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    for round in 0..20 {
        let mut keys = Vec::new();
        for _ in 0..100 {
            keys.push(key(rig.send(&[&[7; 1000]]), 0));
        }
        rig.commit();
        keys.into_iter().for_each(|key| rig.settle(key));
        rig.commit();
        rig.settle_down();
        if rig.journal.wants_snapshot() {
            rig.snapshot();
        }
        let status = rig.journal.status();
        assert!(status.disk_bytes < 600 << 10, "round {round}: {status:?}");
    }
}

#[test]
fn every_durability_commits() {
    for durability in
        [Durability::Always, Durability::Os, Durability::Interval(std::time::Duration::from_millis(20))]
    {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, ..options(dir.path()) };
        let mut rig = Rig::try_open(options.clone()).unwrap();
        let before = rig.journal.status().fsyncs;
        for _ in 0..50 {
            rig.send(&[b"blob"]);
            rig.commit();
        }
        assert_eq!(rig.applied, 50);
        let syncs = rig.journal.status().fsyncs - before;
        assert_eq!(syncs, if durability == Durability::Always { 50 } else { 0 }, "{durability:?}");
        rig.settle_down();
        let syncs = rig.journal.status().fsyncs - before;
        assert_eq!(syncs > 0, durability != Durability::Os);
        rig.writer.sync().unwrap();
        drop(rig);
        assert_eq!(Rig::try_open(options).unwrap().applied, 50);
    }
}

#[test]
fn a_group_is_synced_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    let before = rig.journal.status().fsyncs;
    for _ in 0..50 {
        rig.send(&[b"blob"]);
    }
    rig.commit();
    assert_eq!(rig.journal.status().fsyncs - before, 1);
}

fn backup(rig: &Rig) -> Vec<u8> {
    let mut backup = rig.backups.begin();
    let mut stream = Vec::new();
    while let Some(chunk) = backup.next_chunk().unwrap() {
        stream.extend_from_slice(&chunk);
    }
    stream
}

fn busy(dir: &Path) -> Rig {
    let mut rig = Rig::open(dir);
    for i in 0..300u32 {
        let index = rig.send(&[&vec![i as u8; 700], b"two"]);
        rig.commit();
        if i % 3 != 0 {
            rig.settle(key(index, 0));
        }
        if i % 100 == 50 {
            rig.snapshot();
        }
        rig.commit();
        rig.maintenance.step(rig.now_us);
    }
    rig
}

#[test]
fn a_backup_taken_while_serving_restores_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = busy(dir.path());
    let live = rig.live.clone();
    let mut backup = rig.backups.begin();
    // Everything changes under it.
    for (key, _) in live.clone() {
        rig.settle(key);
    }
    rig.commit();
    rig.snapshot();
    rig.settle_down();
    let mut stream = Vec::new();
    while let Some(chunk) = backup.next_chunk().unwrap() {
        stream.extend_from_slice(&chunk);
    }
    let target = tempfile::tempdir().unwrap();
    let path = target.path().join("restored");
    let mut input = &stream[..];
    restore(&mut input, &path, &roots()).unwrap();
    assert!(input.is_empty());
    let mut restored = Rig::open(&path);
    assert_eq!(restored.live, live);
    assert!(restored.report.cut.is_none());
    restored.read_all();
    let error = restore(&mut &stream[..], &path, &roots()).unwrap_err();
    assert!(matches!(error, RestoreError::NotEmpty(_)), "{error}");
}

#[test]
fn a_damaged_or_cut_backup_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let rig = busy(dir.path());
    let stream = backup(&rig);
    let (_, disk) = Faults::new();
    let target = tempfile::tempdir().unwrap();
    for round in 0..40 {
        let at = stream.len() * round / 40;
        let path = target.path().join(format!("cut{round}"));
        assert!(restore_on(disk.clone(), &mut &stream[..at], &path, &roots()).is_err(), "cut at {at}");
        let opened = path.exists().then(|| DiskJournal::open(disk.clone(), options(&path)));
        assert!(opened.is_none_or(|opened| opened.is_err()), "cut at {at}");
        let mut flipped = stream.clone();
        flipped[at] ^= 4;
        let path = target.path().join(format!("flipped{round}"));
        assert!(restore_on(disk.clone(), &mut &flipped[..], &path, &roots()).is_err(), "flipped at {at}");
    }
}

#[test]
fn a_backup_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = backup(&busy(dir.path()));
    let known = stream[8];
    for (other, writer) in [(known - 1, "an older sluice"), (known + 1, "a newer sluice")] {
        stream[8] = other;
        let target = dir.path().join("restored");
        let error = restore(&mut &stream[..], &target, &roots()).unwrap_err().to_string();
        let told = format!("format version {other}, and this program reads only version {known}");
        assert!(error.contains(&told) && error.contains(writer), "{error}");
        assert!(!target.exists());
    }
}

#[test]
fn a_backup_does_not_write_elsewhere() {
    let mut stream = b"SLUICEBK\x09\0\0\0\x01".to_vec();
    let name = b"../evil";
    stream.extend_from_slice(&(name.len() as u16).to_le_bytes());
    stream.extend_from_slice(name);
    let target = tempfile::tempdir().unwrap();
    let error = restore(&mut &stream[..], &target.path().join("data"), &roots()).unwrap_err();
    assert!(error.to_string().contains("../evil"), "{error}");
}

#[test]
fn the_scrub_finds_a_damaged_blob() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { scrub_bytes_per_s: 100 << 20, ..plain(dir.path()) };
    let mut rig = Rig::try_open(options).unwrap();
    for i in 0..200u32 {
        rig.send(&[&vec![i as u8; 1000]]);
        rig.commit();
        rig.maintenance.step(0);
    }
    rig.settle_down();
    let path = files(dir.path(), ".log").remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(1000).position(|w| w == [5; 1000]).unwrap();
    bytes[at + 10] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let damaged = (0..1000).find_map(|_| {
        // A round of the scrub begins every hour.
        rig.now_us += 60_000_000;
        while rig.maintenance.step(rig.now_us) {}
        std::iter::from_fn(|| rig.journal.poll()).find_map(|event| match event {
            Event::Damaged(key) => Some(key),
            _ => None,
        })
    });
    assert_eq!(damaged, Some(key(6, 0)));
    assert!(rig.journal.status().damaged_blobs > 0);
    let BlobRead::OnDisk(location) = rig.journal.read(key(6, 0)) else { panic!("cached") };
    assert!(matches!(location.read(), Err(BlobError::Damaged(_))));
    drop(rig);
    let report = check(Arc::new(FsDisk), dir.path(), &roots()).unwrap();
    assert!(!report.problems.is_empty());
    assert_eq!(report.problems[0].file, path);
}

/// `SLUICE_BLESS=1 cargo test -p sluice-journal the_fixture_opens` makes the fixture anew, after the version
/// of the format has changed.
#[test]
fn the_fixture_opens() {
    if std::env::var_os("SLUICE_BLESS").is_some() {
        std::fs::remove_dir_all(fixture()).unwrap();
        make_every_kind(options(&fixture()));
    }
    let dir = tempfile::tempdir().unwrap();
    copy_dir(&fixture(), dir.path());
    assert_eq!(check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().problems, []);
    let mut rig = Rig::open(dir.path());
    assert_eq!(rig.behaviour, Some(BEHAVIOUR));
    assert_eq!(rig.live.len(), 5);
    assert_eq!(rig.live[&key(1, 1)], b"in a copied file");
    rig.read_all();
    rig.snapshot();
    drop(rig);
    assert_eq!(Rig::open(dir.path()).behaviour, Some(BEHAVIOUR), "after a snapshot");
}
