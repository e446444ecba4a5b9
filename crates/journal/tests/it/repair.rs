//! A damaged blob of which there is a whole copy is replaced on the disk, wherever it lies.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use sluice_journal::*;

use crate::rig::{Rig, files, key, options, plain, roots};

/// Longer than two chunks of an encrypted file, so that the damage in the middle touches nothing else.
const LARGE: usize = 30_000;

type Settings = fn(&Path) -> Options;
const BOTH: [Settings; 2] = [options, plain];

fn open(settings: Settings, dir: &Path) -> Rig {
    Rig::try_open(Options { scrub_bytes_per_s: 0, ..settings(dir) }).unwrap()
}

/// A record with a large blob between two small ones; all of its blobs.
fn send(rig: &mut Rig, byte: u8) -> [BlobKey; 3] {
    let index = rig.send(&[b"before", &vec![byte; LARGE], b"behind"]);
    rig.commit();
    [0, 1, 2].map(|item| key(index, item))
}

/// Makes the newest segment a complete one.
fn fill(rig: &mut Rig) {
    for _ in 0..4 {
        rig.send(&[&vec![1; LARGE]]);
        rig.commit();
    }
    rig.settle_down();
}

/// Flips a bit of a file, at a place of its first so many bytes.
fn flip(file: &Path, at: usize) {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    opened.read_exact_at(&mut byte, at as u64).unwrap();
    opened.write_all_at(&[byte[0] ^ 1], at as u64).unwrap();
}

fn is_damaged(rig: &mut Rig, key: BlobKey) -> bool {
    let BlobRead::OnDisk(location) = rig.journal.read(key) else { return false };
    matches!(location.read(), Err(BlobError::Damaged(_)))
}

/// Lets maintenance replace what is damaged, with the snapshots that it asks for.
fn replace(rig: &mut Rig) {
    for _ in 0..4 {
        rig.settle_down();
        if rig.journal.wants_snapshot() {
            rig.snapshot();
        }
    }
}

/// Everything is whole: in memory, on the disk, and for the next start.
fn is_whole(mut rig: Rig, settings: Settings, dir: &Path) {
    rig.read_all();
    drop(rig);
    let report = check(Arc::new(FsDisk), dir, &roots()).unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    open(settings, dir).read_all();
}

#[test]
fn a_blob_is_read_from_its_copy_at_once_and_replaced_in_the_background() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = open(settings, dir.path());
        let damaged = send(&mut rig, 7)[1];
        fill(&mut rig);
        flip(&files(dir.path(), ".log")[0], LARGE / 2);
        assert!(is_damaged(&mut rig, damaged));
        assert!(rig.journal.repair(damaged, &[7; LARGE]));
        assert_eq!(rig.read(damaged), [7; LARGE]);
        assert_eq!(rig.journal.status().repaired_blobs, 0);
        rig.settle_down();
        assert!(rig.journal.wants_snapshot(), "the log is not replaced by a snapshot yet");
        rig.snapshot();
        replace(&mut rig);
        assert!(!rig.journal.wants_snapshot());
        assert_eq!(rig.journal.status().repaired_blobs, 1);
        is_whole(rig, settings, dir.path());
    }
}

#[test]
fn a_segment_that_grows_ends_for_it() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = open(settings, dir.path());
        let damaged = send(&mut rig, 7)[1];
        flip(&files(dir.path(), ".log")[0], LARGE / 2);
        assert!(rig.journal.repair(damaged, &[7; LARGE]));
        assert_eq!(rig.read(damaged), [7; LARGE]);
        replace(&mut rig);
        assert_eq!(rig.journal.status().repaired_blobs, 1);
        is_whole(rig, settings, dir.path());
    }
}

#[test]
fn a_copied_blob_is_replaced_too_and_others_that_are_damaged_stay_so() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = open(settings, dir.path());
        let [first, second] = [7, 9].map(|byte| {
            let [_, large, _] = send(&mut rig, byte);
            let index = rig.send(&[&vec![8; LARGE + 2_000]]);
            rig.settle(key(index, 0));
            rig.commit();
            large
        });
        fill(&mut rig);
        rig.snapshot();
        rig.settle_down();
        let copied = files(dir.path(), ".blobs").remove(0);
        [LARGE / 2, 3 * LARGE / 2].iter().for_each(|at| flip(&copied, *at));
        assert!(is_damaged(&mut rig, first) && is_damaged(&mut rig, second));
        assert!(rig.journal.repair(first, &[7; LARGE]));
        replace(&mut rig);
        assert!(!is_damaged(&mut rig, first) && is_damaged(&mut rig, second));
        assert!(rig.journal.repair(second, &[9; LARGE]));
        replace(&mut rig);
        assert_eq!(rig.journal.status().repaired_blobs, 2);
        is_whole(rig, settings, dir.path());
    }
}

#[test]
fn only_a_live_blob_of_the_same_length_is_repaired_and_a_release_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = open(plain, dir.path());
    let [first, second, _] = send(&mut rig, 7);
    assert_eq!(rig.journal.blob_len(first), Some(6));
    for (key, blob) in [(first, &b"other length"[..]), (key(99, 0), b"before")] {
        assert!(!rig.journal.repair(key, blob), "{key:?}");
    }
    assert!(rig.journal.repair(second, &[7; LARGE]));
    rig.settle(second);
    rig.commit();
    assert_eq!(rig.journal.blob_len(second), None);
    assert!(matches!(rig.journal.read(second), BlobRead::Missing));
    replace(&mut rig);
    assert_eq!(rig.journal.status().repaired_blobs, 0);
    is_whole(rig, plain, dir.path());
}

#[test]
fn who_reads_damage_can_wait_for_a_copy_where_there_is_somebody_to_ask() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = open(plain, dir.path());
    let [first, second, third] = send(&mut rig, 7);
    fill(&mut rig);
    let location = |rig: &mut Rig, key| match rig.journal.read(key) {
        BlobRead::OnDisk(location) => location,
        other => panic!("{other:?}"),
    };
    let at = location(&mut rig, second);
    assert!(!at.seek_copy());
    assert_eq!((at.copy(), rig.journal.poll().is_none()), (BlobCopy::Lost, true));
    rig.journal.ask_others();
    let at = [first, second, third].map(|key| location(&mut rig, key));
    assert!(at.iter().all(BlobLocation::seek_copy));
    assert_eq!(at[1].copy(), BlobCopy::Awaited);
    for expected in [first, second, third] {
        assert!(matches!(rig.journal.poll(), Some(Event::Damaged(key)) if key == expected));
    }
    assert!(rig.journal.poll().is_none());
    assert!(rig.journal.repair(second, &[7; LARGE]));
    rig.journal.lose(third);
    let copies = at.map(|at| at.copy());
    assert_eq!(copies, [BlobCopy::Awaited, BlobCopy::Whole(vec![7; LARGE].into()), BlobCopy::Lost]);
}
