//! A journal at rest gives back the room that it has taken ahead, and is as quick as before when it wakes.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{Rig, encryption, files, key, plain, roots};
use crate::told::Told;

const REST_US: u64 = 60_000_000;
const SECOND_US: u64 = 1_000_000;
/// Room that a journal at rest may take, in bytes.
const AT_REST_BYTES: u64 = 8 << 20;

/// The sizes of a server.
fn usual(dir: &Path) -> Options {
    Options { segment_bytes: 64 << 20, snapshot_log_bytes: 64 << 20, reserve_bytes: 0, ..plain(dir) }
}

/// Room that the files of a directory take on the disk, as `du` tells it.
fn taken(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum()
}

/// Runs as threads would, with a snapshot when one is wanted.
fn pass(rig: &mut Rig, us: u64) {
    let end_us = rig.now_us + us;
    while rig.now_us < end_us {
        // What is told to the shard gives maintenance more to do.
        for _ in 0..3 {
            while rig.maintenance.step(rig.now_us) {}
            rig.poll();
        }
        if rig.journal.wants_snapshot() {
            rig.snapshot();
        }
        let idle_us = rig.maintenance.idle_us(rig.now_us).unwrap_or(u64::MAX);
        rig.now_us = rig.now_us.saturating_add(idle_us.max(1)).min(end_us.max(rig.now_us));
    }
}

/// Sends so many MiB, of which nothing stays but the first message.
fn work(rig: &mut Rig, mib: usize) {
    for at in 0..10 * mib {
        let index = rig.send(&[&[at as u8; 100_000]]);
        if at > 0 {
            rig.settle(key(index, 0));
        }
        rig.commit();
        rig.now_us += 1_000;
        while rig.maintenance.step(rig.now_us) {}
    }
}

#[test]
fn what_was_taken_ahead_is_given_back_and_taken_again() {
    for durability in [Durability::Always, Durability::Os] {
        for encryption in [Encryption::default(), encryption(roots())] {
            let dir = tempfile::tempdir().unwrap();
            let settings = Options { durability, encryption, ..usual(dir.path()) };
            let mut rig = Rig::try_open(settings.clone()).unwrap();
            for _ in 0..3 {
                work(&mut rig, 20);
                assert!(taken(dir.path()) > 2 * AT_REST_BYTES, "it is at work");
                pass(&mut rig, REST_US + 5 * SECOND_US);
                let (found, files) = (taken(dir.path()), files(dir.path(), ".log"));
                assert!(found <= AT_REST_BYTES, "{durability:?}: {found} bytes, {files:?}");
                rig.read_all();
            }
            assert_eq!(rig.journal.status().late_segments, 0, "{durability:?}");
            let live = rig.live.clone();
            drop(rig);
            let mut rig = Rig::try_open(settings).unwrap();
            assert!(rig.live == live && rig.report.cut.is_none(), "{:?}", rig.report);
            rig.read_all();
        }
    }
}

#[test]
fn a_journal_at_rest_that_is_used_no_more_does_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::try_open(usual(dir.path())).unwrap();
    work(&mut rig, 3);
    pass(&mut rig, REST_US + 5 * SECOND_US);
    let before = (files(dir.path(), ""), rig.journal.status().log_bytes, rig.journal.status().snapshots);
    pass(&mut rig, 20 * REST_US);
    let after = (files(dir.path(), ""), rig.journal.status().log_bytes, rig.journal.status().snapshots);
    assert_eq!(before, after);
}

#[test]
fn a_journal_that_was_hardly_used_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::try_open(usual(dir.path())).unwrap();
    let index = rig.send(&[b"one message"]);
    rig.settle(key(index, 0));
    rig.commit();
    pass(&mut rig, 5 * SECOND_US);
    let before = (files(dir.path(), ""), rig.journal.status().log_bytes);
    pass(&mut rig, 3 * REST_US);
    assert_eq!((files(dir.path(), ""), rig.journal.status().log_bytes), before);
}

#[test]
fn a_batch_that_comes_in_between_is_written_at_once() {
    // After as many steps of maintenance, from the one with which the rest begins.
    for steps in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(usual(dir.path())).unwrap();
        work(&mut rig, 3);
        pass(&mut rig, 5 * SECOND_US);
        rig.now_us += REST_US;
        for _ in 0..steps {
            rig.maintenance.step(rig.now_us);
        }
        rig.send(&[b"it wakes"]);
        let next_index = rig.applied + 1;
        rig.commit();
        assert_eq!(rig.applied, next_index, "after {steps} steps");
        pass(&mut rig, SECOND_US);
        rig.read_all();
        let live = rig.live.clone();
        drop(rig);
        assert_eq!(Rig::try_open(usual(dir.path())).unwrap().live, live, "after {steps} steps");
    }
}

#[test]
fn a_full_disk_gets_the_room_back() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk.clone(), usual(dir.path())).unwrap();
    work(&mut rig, 3);
    pass(&mut rig, 5 * SECOND_US);
    assert!(taken(dir.path()) > 64 << 20, "the next segment is made");
    // Room for a snapshot, and none for zeros.
    faults.free.store(1_000_000, Relaxed);
    pass(&mut rig, REST_US + 5 * SECOND_US);
    let found = taken(dir.path());
    assert!(found <= AT_REST_BYTES, "{found}");
    rig.read_all();
    faults.free.store(1 << 40, Relaxed);
    pass(&mut rig, SECOND_US);
    work(&mut rig, 3);
    drop(rig);
    Rig::try_open_on(disk, usual(dir.path())).unwrap().read_all();
}

/// A tail that is not committed stays: it can be read, cut, and committed.
#[test]
fn a_tail_outlasts_a_rest() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { commit: Commit::Told, rest_after: Duration::from_secs(1), ..usual(dir.path()) };
    let mut told = Told::open(settings.clone());
    for _ in 0..20 {
        told.append(1, &[7; 100_000]);
    }
    told.step();
    told.commit(5);
    told.settle_down();
    assert_eq!(files(dir.path(), ".log").len(), 2, "the tail is in a segment that has ended");
    assert_eq!(told.tail().len(), 15);
    told.cut(18);
    told.append(2, b"in the place of the cut ones");
    told.step();
    told.commit(18);
    assert_eq!((told.tail().len(), told.given.len()), (0, 18));
    told.settle_down();
    drop(told);
    let told = Told::open(settings);
    assert_eq!((told.given.len(), told.given().last()), (18, Some(&&b"in the place of the cut ones"[..])));
}
