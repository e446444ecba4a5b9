//! Few file handles, or none for a while.

use std::sync::atomic::Ordering::Relaxed;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{Rig, key, options, roots};

/// Sends messages that fill many segments.
fn fill(rig: &mut Rig, messages: u32) {
    for i in 0..messages {
        rig.send(&[&i.to_le_bytes().repeat(500)]);
        rig.commit();
        rig.now_us += 1_000;
        rig.maintenance.step(rig.now_us);
    }
}

#[test]
fn many_segments_need_few_handles() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    faults.open_max.store(24, Relaxed);
    let settings = Options { segment_bytes: 16 << 10, open_files: 8, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk.clone(), settings.clone()).unwrap();
    fill(&mut rig, 700);
    rig.settle_down();
    assert!(rig.journal.status().segments > 80, "{:?}", rig.journal.status());
    rig.read_all();
    let mut backup = rig.backups.begin();
    // The backup holds what is there now, whatever becomes of it.
    for index in (1..=700).filter(|index| index % 8 != 0) {
        rig.settle(key(index, 0));
    }
    rig.commit();
    rig.snapshot();
    rig.settle_down();
    assert!(rig.journal.status().compacted_bytes > 0);
    let mut stream = Vec::new();
    while let Some(chunk) = backup.next_chunk().unwrap() {
        stream.extend_from_slice(&chunk);
    }
    drop(backup);
    rig.settle_down();
    assert!(rig.journal.status().disk_bytes < 600_000, "{:?}", rig.journal.status());
    let named = std::fs::read_dir(dir.path()).unwrap().count();
    assert!(named < 60, "what the backup kept is gone: {named}");
    let live = rig.live.clone();
    drop(rig);
    let mut rig = Rig::try_open_on(disk.clone(), settings).unwrap();
    assert_eq!(rig.live, live);
    rig.read_all();

    let restored = dir.path().join("restored");
    restore_on(disk, &mut &stream[..], &restored, &roots()).unwrap();
    assert_eq!(Rig::open(&restored).live.len(), 700);
    assert!(faults.open_peak.load(Relaxed) <= 20, "{}", faults.open_peak.load(Relaxed));
}

#[test]
fn without_handles_the_background_waits_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { segment_bytes: 16 << 10, open_files: 4, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    fill(&mut rig, 20);
    faults.open_max.store(1, Relaxed);
    // As long as there is a segment, the log goes on; then it waits, and refuses more until it can go on.
    let mut refused = 0;
    for i in 0..60u32 {
        match rig.propose(b"send", &[&i.to_le_bytes().repeat(500)], Class::Growing) {
            Ok(_) => rig.commit(),
            Err(Refused::Full { .. }) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        rig.now_us += 200_000;
        rig.maintenance.step(rig.now_us);
    }
    assert!(refused > 0);
    let notices = rig.maintenance.notices();
    assert!(matches!(&notices[..], [Notice::OutOfHandles { .. }]), "told once a minute: {notices:?}");
    faults.open_max.store(0, Relaxed);
    rig.settle_down();
    assert_eq!(rig.live.len(), 80 - refused);
    rig.snapshot();
    rig.read_all();
    let live = rig.live.clone();
    drop(rig);
    assert_eq!(Rig::open(dir.path()).live, live);
}

#[test]
fn looking_at_an_idle_journal_opens_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk, options(dir.path())).unwrap();
    fill(&mut rig, 100);
    rig.settle_down();
    // It comes to rest before.
    rig.now_us += options(dir.path()).rest_after.as_micros() as u64;
    rig.settle_down();
    faults.open_max.store(1, Relaxed);
    for _ in 0..100 {
        rig.now_us += 1_000_000;
        rig.maintenance.step(rig.now_us);
        rig.poll();
    }
    assert_eq!(rig.maintenance.notices(), []);
}
