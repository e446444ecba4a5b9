//! States of other nodes: reading one, receiving it, installing it.

use std::path::Path;
use std::sync::Arc;

use sluice_journal::*;

use crate::rig::{files, key, roots};
use crate::told::{Told, settings};

/// Batches of one record each, of term 3, all committed.
fn log_of(dir: &Path, batches: u64) -> Told {
    let mut told = Told::open(settings(dir));
    for number in 1..=batches {
        told.append(3, format!("batch {number}").as_bytes());
    }
    told.step();
    told.commit(batches);
    told
}

/// A journal with a snapshot of record 8, and the log up to record 10.
fn leader(dir: &Path) -> Told {
    let mut leader = log_of(dir, 8);
    leader.journal.label_snapshots(b"members");
    leader.journal.snapshot_begin(8, 7, 1);
    for piece in [&b"a state "[..], b"in pieces"] {
        leader.journal.snapshot_piece(piece.to_vec()).unwrap();
    }
    leader.journal.snapshot_finish();
    leader.settle_down();
    leader.append(3, b"batch 9");
    leader.append(3, b"batch 10");
    leader.step();
    leader.commit(10);
    leader
}

/// Sends the leader's state with the blobs of these records.
fn send(leader: &mut Told, follower: &Told, blobs: &[u64]) -> Received {
    let mut reader = leader.journal.read_state().unwrap();
    let mut receiving = follower.journal.receive();
    receiving.begin(reader.head()).unwrap();
    let checksum = loop {
        let part = reader.read(receiving.snapshot_bytes(), 5).unwrap();
        receiving.add(&part.bytes).unwrap();
        if let Some(checksum) = part.end {
            break checksum;
        }
    };
    let mut state = receiving.end(checksum).unwrap().unwrap();
    let mut read = Vec::new();
    while let Some(piece) = state.next_piece().unwrap() {
        read.extend(piece);
    }
    assert_eq!(read, b"a state in pieces");
    for index in blobs {
        let blob = leader.read(*index).unwrap();
        assert!(receiving.add_blob(key(*index, 0), &blob).unwrap());
    }
    receiving.finish().unwrap()
}

fn live(records: impl IntoIterator<Item = u64>) -> Vec<(BlobKey, u32)> {
    records.into_iter().map(|index| (key(index, 0), b"batch 1".len() as u32)).collect()
}

#[test]
fn a_state_takes_the_place_of_the_log_and_brings_the_blobs_that_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let mut leader = leader(&dir.path().join("leader"));
    let path = dir.path().join("follower");
    let mut follower = log_of(&path, 3);
    follower.append(3, b"never committed");
    let received = send(&mut leader, &follower, &[4, 6, 8]);
    assert_eq!(received.head().label, b"members");
    follower.journal.hard_state(b"before", false);
    // Blobs 2 and 7 are released; 5 is gone, since record 10 releases it.
    follower.journal.install(received, 10, live([1, 3, 4, 5, 6, 8])).unwrap();
    assert_eq!((follower.journal.next_index(), follower.journal.next_number()), (9, 9));
    assert_eq!(follower.journal.tail(0).count(), 0);
    follower.append(4, b"batch 9");
    follower.step();
    follower.settle_down();
    assert_eq!(follower.journal.durable_orders(), follower.journal.orders());
    follower.commit(9);
    follower.settle_down();
    for (index, expected) in (1..).zip([true, false, true, true, false, true, false, true, true]) {
        let blob = format!("batch {index}").into_bytes();
        assert_eq!(follower.read(index), expected.then_some(blob), "record {index}");
    }
    drop(follower);

    let opened = DiskJournal::open(Arc::new(FsDisk), settings(&path)).unwrap();
    assert_eq!((opened.last_number, opened.last_term, &opened.hard_state[..]), (9, 4, &b"before"[..]));
    let mut journal = opened.journal;
    assert!(journal.set_live(live([1, 3, 4, 5, 6, 8, 9])).is_ok(), "record 10 is not committed");
    assert!(journal.holds(key(3, 0)) && !journal.holds(key(5, 0)));
    assert_eq!(journal.read_state().unwrap().head().number, 8);
}

#[test]
fn what_is_missing_when_its_release_will_never_come_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut leader = leader(&dir.path().join("leader"));
    let path = dir.path().join("follower");
    let mut follower = log_of(&path, 3);
    let received = send(&mut leader, &follower, &[4, 6, 8]);
    assert!(!follower.journal.may_miss_blobs());
    follower.journal.install(received, 10, live([1, 3, 4, 5, 6, 8])).unwrap();
    assert!(follower.journal.may_miss_blobs());
    follower.step();
    follower.settle_down();
    follower.journal.go_on_without_blobs().unwrap();
    // Others come in place of record 10, which would have released blob 5.
    for _ in 9..=11 {
        follower.append(5, b"another");
    }
    follower.step();
    follower.commit(11);
    follower.settle_down();
    drop(follower);
    let mut journal = DiskJournal::open(Arc::new(FsDisk), settings(&path)).unwrap().journal;
    assert!(journal.set_live(live([1, 3, 4, 5, 6, 8, 9, 10, 11])).is_ok(), "what is gone is no damage");
}

#[test]
fn what_is_missing_in_a_backup_is_no_damage_where_it_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let mut leader = leader(&dir.path().join("leader"));
    let mut follower = log_of(&dir.path().join("follower"), 3);
    let received = send(&mut leader, &follower, &[4, 6, 8]);
    follower.journal.install(received, 10, live([1, 3, 4, 5, 6, 8])).unwrap();
    follower.step();
    follower.settle_down();
    let (mut backup, mut stream) = (follower.backups.begin(), Vec::new());
    while let Some(chunk) = backup.next_chunk().unwrap() {
        stream.extend_from_slice(&chunk);
    }
    let path = dir.path().join("restored");
    restore(&mut &stream[..], &path, &roots()).unwrap();
    let mut restored = Told::open(settings(&path));
    // Others come in place of record 10, which would have released blob 5.
    for _ in 9..=11 {
        restored.append(5, b"another");
    }
    restored.step();
    restored.commit(11);
    restored.settle_down();
    drop(restored);
    let mut journal = DiskJournal::open(Arc::new(FsDisk), settings(&path)).unwrap().journal;
    assert!(journal.set_live(live([1, 3, 4, 5, 6, 8, 9, 10, 11])).is_ok(), "what is gone is no damage");
}

#[test]
fn what_does_not_fit_is_not_installed_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut leader = leader(&dir.path().join("leader"));
    let path = dir.path().join("follower");
    let mut follower = log_of(&path, 3);
    let received = send(&mut leader, &follower, &[4, 6]);
    let refused = follower.journal.install(received, 8, live([1, 4, 5, 6]));
    assert_eq!(refused, Err(InstallError::Blob(key(5, 0))));
    assert_eq!(follower.read(3), Some(b"batch 3".to_vec()), "nothing was changed");

    let mut receiving = follower.journal.receive();
    receiving.begin(leader.journal.read_state().unwrap().head()).unwrap();
    receiving.add(b"something else").unwrap();
    assert!(receiving.end(1).unwrap().is_none());
    drop(receiving);
    assert_eq!(files(&path, ".snapshot").len() + files(&path, ".blobs").len(), 0);

    let mut ahead = log_of(&dir.path().join("ahead"), 8);
    let received = send(&mut leader, &ahead, &[]);
    let refused = ahead.journal.install(received, 0, live([1]));
    assert_eq!(refused, Err(InstallError::Behind { committed_index: 8 }));
}
