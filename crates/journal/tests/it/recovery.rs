//! Torn ends, damage, and what an operator reads about them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{Rig, copy_dir, files, fixture, key, make_every_kind, options, plain, roots};

/// All files of a directory but the lock.
pub(crate) fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(dir, "")
        .into_iter()
        .filter(|path| !path.ends_with("lock"))
        .map(|path| (path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect()
}

/// Three batches, of which nothing tells that the last one was synced; where that one begins and ends.
fn three_batches(dir: &Path) -> (PathBuf, usize, usize) {
    let mut rig = Rig::open(dir);
    for text in [&b"one"[..], b"two", b"three"] {
        rig.send(&[text, b"more"]);
        rig.commit();
    }
    drop(rig);
    let log = files(dir, ".log").pop().unwrap();
    let bytes = fs::read(&log).unwrap();
    let last = bytes.windows(4).rposition(|w| w == b"SLB1").unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (log.strip_prefix(dir).unwrap().to_owned(), last, end)
}

#[test]
fn a_last_batch_torn_anywhere_is_cut_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (log, last, end) = three_batches(dir.path());
    let whole = fs::read(dir.path().join(&log)).unwrap();
    for cut in last..end {
        let mut zeros = whole.clone();
        zeros[cut..].fill(0);
        let mut garbage = whole.clone();
        garbage[cut..end].fill(0xa5);
        for bytes in [&zeros, &garbage] {
            let copy = tempfile::tempdir().unwrap();
            copy_dir(dir.path(), copy.path());
            fs::write(copy.path().join(&log), bytes).unwrap();
            let mut rig = Rig::open(copy.path());
            assert_eq!(rig.applied, 2, "cut at {cut}");
            assert_eq!(rig.journal.next_index(), 3);
            let torn = bytes[last..].iter().any(|byte| *byte != 0);
            assert_eq!(rig.report.cut.is_some(), torn, "cut at {cut}");
            if let Some(cut) = &rig.report.cut {
                assert_eq!(
                    (cut.offset as usize, cut.index),
                    (last.next_multiple_of(512).min(cut.offset as usize), 3)
                );
            }
            rig.send(&[b"instead"]);
            rig.commit();
            drop(rig);
            let mut rig = Rig::open(copy.path());
            assert_eq!(rig.live[&key(3, 0)], b"instead");
            assert!(rig.report.cut.is_none());
            rig.read_all();
        }
    }
}

#[test]
fn a_torn_batch_below_what_was_synced_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (log, last, _) = three_batches(dir.path());
    let path = dir.path().join(&log);
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes[..last].windows(4).rposition(|w| w == b"SLB1").unwrap();
    bytes[second + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let before = contents(dir.path());
    let error = Rig::try_open(options(dir.path())).err().expect("refused");
    let OpenError::Damaged(damage) = &error else { panic!("{error}") };
    assert_eq!((&damage.file, damage.record), (&path, Some(2)));
    assert!(error.to_string().contains("sluice restore"), "{error}");
    assert_eq!(contents(dir.path()), before, "nothing was changed");
    assert_eq!(check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().problems.len(), 1);
}

/// That opening this directory is refused because of this place in this file, and changes nothing; and that a
/// check finds the same.
fn assert_refused(dir: &Path, file: &Path, offset: usize, what: &str) {
    let before = contents(dir);
    let error = Rig::try_open(options(dir)).err().unwrap_or_else(|| panic!("accepted: {what}"));
    let OpenError::Damaged(damage) = &error else { panic!("{error}") };
    assert_eq!((&*damage.file, damage.offset as usize), (file, offset), "{error}");
    assert!(error.to_string().contains(what) && error.to_string().contains("sluice restore"), "{error}");
    assert_eq!(contents(dir), before, "nothing was changed");
    let report = check(Arc::new(FsDisk), dir, &roots()).unwrap();
    assert!(report.problems.contains(damage), "{report:?}");
}

#[test]
fn a_segment_that_is_shorter_than_it_was_made_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (log, last, end) = three_batches(dir.path());
    let path = dir.path().join(&log);
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, last, last + 50, end, 5000, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let what = format!("has {len} bytes and was made with {}", whole.len());
        assert_refused(dir.path(), &path, len, &what);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(Rig::open(dir.path()).applied, 3);
}

/// Where the first batch ends in the last segment.
fn first_end(dir: &Path) -> (PathBuf, usize) {
    let path = files(dir, ".log").pop().unwrap();
    let bytes = fs::read(&path).unwrap();
    let heads: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, window)| window == b"SLB1").map(|(at, _)| at).collect();
    let end = bytes[..heads[1]].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (path, end)
}

#[test]
fn what_an_orderly_end_left_is_missed_when_it_is_zeroed() {
    for durability in [Durability::Always, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(Options { durability, ..options(dir.path()) }).unwrap();
        for text in [&b"one"[..], b"two", b"three"] {
            rig.send(&[text]);
            rig.commit();
            rig.writer.sync().unwrap();
        }
        rig.writer.finish().unwrap();
        drop(rig);
        assert!(check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().end_known);
        let (path, end) = first_end(dir.path());
        let mut bytes = fs::read(&path).unwrap();
        bytes[end..].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_refused(dir.path(), &path, end, "though the log was synced up to byte");
        bytes.truncate(end);
        fs::write(&path, &bytes).unwrap();
        let error = Rig::try_open(options(dir.path())).err().expect("refused");
        assert!(matches!(error, OpenError::Damaged(_)), "{error}");
    }
}

#[test]
fn a_journal_that_was_not_closed_in_order_says_so_though_its_last_segment_is_all_zeros() {
    let end_known = |dir: &Path| check(Arc::new(FsDisk), dir, &roots()).unwrap().end_known;
    for before in ["nothing", "an orderly end", "an idle second"] {
        let dir = tempfile::tempdir().unwrap();
        if before != "nothing" {
            let mut rig = Rig::open(dir.path());
            rig.send(&[b"before"]);
            rig.commit();
            if before == "an idle second" {
                rig.settle_down();
            }
            rig.writer.finish().unwrap();
            drop(rig);
            assert!(end_known(dir.path()));
        }
        let mut rig = Rig::open(dir.path());
        assert!(rig.report.end_known, "after {before}");
        rig.send(&[b"lost"]);
        rig.commit();
        drop(rig);
        let path = files(dir.path(), ".log").pop().unwrap();
        let len = fs::metadata(&path).unwrap().len();
        fs::write(&path, vec![0; len as usize]).unwrap();
        assert!(!end_known(dir.path()), "after {before}");
        assert!(!Rig::open(dir.path()).report.end_known, "after {before}");
    }
}

#[test]
fn what_was_written_before_an_idle_second_is_missed_when_it_is_zeroed() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    for text in [&b"one"[..], b"two", b"three"] {
        rig.send(&[text]);
        rig.commit();
    }
    rig.settle_down();
    let fsyncs = rig.journal.status().fsyncs;
    rig.settle_down();
    assert_eq!(rig.journal.status().fsyncs, fsyncs, "once is enough");
    drop(rig);
    assert!(!check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().end_known, "it was not stopped");
    let (path, end) = first_end(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[end..].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert_refused(dir.path(), &path, end, "though the log was synced up to byte");
}

#[test]
fn a_full_disk_keeps_nobody_from_stopping_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk, Options { reserve_bytes: 0, ..options(dir.path()) }).unwrap();
    rig.send(&[b"one"]);
    rig.commit();
    faults.free.store(0, Relaxed);
    rig.settle_down();
    rig.writer.finish().unwrap();
    drop(rig);
    assert_eq!(Rig::open(dir.path()).applied, 1);
}

#[test]
fn a_sealed_segment_begins_with_the_head_of_its_first_batch() {
    let dir = tempfile::tempdir().unwrap();
    every_kind(options(dir.path()));
    for table in files(dir.path(), ".table") {
        let log = table.with_extension("log");
        let whole = fs::read(&log).unwrap();
        for at in 0..112 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&log, &bytes).unwrap();
            assert_refused(dir.path(), &log, 0, "");
        }
        fs::write(&log, &whole).unwrap();
    }
}

#[test]
fn an_idle_marker_covers_the_last_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    rig.send(&[b"last"]);
    rig.commit();
    rig.settle_down();
    let log_bytes = rig.journal.status().log_bytes;
    rig.settle_down();
    assert_eq!(rig.journal.status().log_bytes, log_bytes, "one marker is enough");
    drop(rig);
    let path = files(dir.path(), ".log").pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let marker = bytes.windows(4).rposition(|w| w == b"SLB1").unwrap();
    let last = bytes[..marker].windows(4).rposition(|w| w == b"SLB1").unwrap();
    bytes[last + 120] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(Rig::try_open(options(dir.path())), Err(OpenError::Damaged(_))));
}

/// A directory with every kind of file, as opening it has left it: what is new in it is encrypted.
fn every_kind(made: Options) -> BTreeMap<BlobKey, Vec<u8>> {
    let dir = made.dir.clone();
    make_every_kind(made);
    Rig::open(&dir).live
}

#[test]
fn a_flipped_byte_in_any_file_is_never_believed() {
    [plain, options].into_iter().for_each(believe_no_flipped_byte);
}

fn believe_no_flipped_byte(made: fn(&Path) -> Options) {
    let dir = tempfile::tempdir().unwrap();
    let live = every_kind(made(dir.path()));
    for (name, bytes) in contents(dir.path()) {
        if name.ends_with("reserve") {
            continue;
        }
        let step = if bytes.len() > 500 { 151 } else { 3 };
        for at in (0..bytes.len()).step_by(step) {
            let copy = tempfile::tempdir().unwrap();
            copy_dir(dir.path(), copy.path());
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            fs::write(copy.path().join(&name), &flipped).unwrap();
            believe_nothing_wrong(copy.path(), &name, &format!("flipped at {at}"), &live);
        }
    }
}

/// Opening fails, names the file and changes nothing; or what comes out is right, or a blob is found damaged
/// when it is read.
pub(crate) fn believe_nothing_wrong(dir: &Path, name: &Path, what: &str, live: &BTreeMap<BlobKey, Vec<u8>>) {
    let before = contents(dir);
    match Rig::try_open(options(dir)) {
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(&*name.to_string_lossy()), "{name:?} {what}: {text}");
            assert!(text.contains("nothing was changed"), "{name:?} {what}: {text}");
            assert_eq!(contents(dir), before, "{name:?} {what}: nothing was changed");
        }
        Ok(mut rig) => {
            assert_eq!(&rig.live, live, "{name:?} {what}");
            for (key, blob) in live {
                match rig.journal.read(*key) {
                    BlobRead::Cached(bytes) => assert_eq!(&bytes[..], &blob[..]),
                    BlobRead::OnDisk(location) => match location.read() {
                        Ok(bytes) => assert_eq!(&bytes[..], &blob[..]),
                        Err(BlobError::Damaged(_)) => {}
                        Err(BlobError::Io(error)) => panic!("{name:?} {what}: {error}"),
                    },
                    BlobRead::Missing => panic!("{name:?} {what}: {key:?} is missing"),
                }
            }
        }
    }
}

#[test]
fn a_missing_file_is_refused_or_rebuilt() {
    [plain, options].into_iter().for_each(miss_each_file);
}

fn miss_each_file(made: fn(&Path) -> Options) {
    let dir = tempfile::tempdir().unwrap();
    let live = every_kind(made(dir.path()));
    for name in contents(dir.path()).into_keys() {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        fs::remove_file(copy.path().join(&name)).unwrap();
        match Rig::try_open(options(copy.path())) {
            Err(error) => assert!(error.to_string().contains(&*name.to_string_lossy()), "{name:?}: {error}"),
            Ok(mut rig) => {
                let derived = name.ends_with("reserve") || name.extension().is_some_and(|e| e == "table");
                assert!(derived, "{name:?}");
                assert_eq!(rig.live, live);
                rig.read_all();
                drop(rig);
                let rig = Rig::open(copy.path());
                assert_eq!(rig.report.notes, [""; 0], "it is there again");
            }
        }
    }
}

#[test]
fn a_directory_in_use_names_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let _rig = Rig::open(dir.path());
    let error = Rig::try_open(options(dir.path())).err().expect("refused").to_string();
    assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
    assert!(matches!(check(Arc::new(FsDisk), dir.path(), &roots()), Err(OpenError::InUse { .. })));
}

#[test]
fn another_format_is_refused_and_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    copy_dir(&fixture(), dir.path());
    let path = dir.path().join("manifest");
    let mut bytes = fs::read(&path).unwrap();
    let known = bytes[8];
    for (other, writer) in [(known - 1, "an older sluice"), (known + 1, "a newer sluice")] {
        bytes[8] = other;
        fs::write(&path, &bytes).unwrap();
        let before = contents(dir.path());
        let error = Rig::try_open(options(dir.path())).err().expect("refused").to_string();
        let told = format!(
            "{} has format version {other}, and this program reads only version {known}: \
             it was written by {writer}",
            path.display()
        );
        assert!(error.contains(&told), "{error}");
        let error = check(Arc::new(FsDisk), dir.path(), &roots()).unwrap_err().to_string();
        assert!(error.contains(&told), "{error}");
        assert_eq!(contents(dir.path()), before);
    }
}

#[test]
fn a_read_only_a_full_and_an_impossible_directory_say_so() {
    let dir = tempfile::tempdir().unwrap();
    drop(Rig::open(dir.path()));
    let (faults, disk) = Faults::new();
    faults.read_only.store(true, Relaxed);
    let error = Rig::try_open_on(disk, options(dir.path())).err().expect("refused").to_string();
    assert!(error.contains("mount the disk for writing"), "{error}");
    let (faults, disk) = Faults::new();
    fs::remove_file(dir.path().join("reserve")).unwrap();
    faults.free.store(100, Relaxed);
    let error = Rig::try_open_on(disk, options(dir.path())).err().expect("refused").to_string();
    assert!(error.contains("free some space"), "{error}");
    assert!(Rig::try_open(options(dir.path())).is_ok(), "nothing was harmed");
    let file = dir.path().join("manifest");
    let error = Rig::try_open(options(&file)).err().expect("refused").to_string();
    assert!(error.contains("manifest"), "{error}");
    let error = Rig::try_open(Options { segment_bytes: 5, ..options(dir.path()) }).err().expect("refused");
    assert!(error.to_string().contains("segment_bytes is 5"), "{error}");
}

#[test]
fn a_failed_sync_ends_it_all() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk, options(dir.path())).unwrap();
    rig.send(&[b"synced"]);
    rig.commit();
    faults.fail_sync.store(true, Relaxed);
    rig.send(&[b"not synced"]);
    rig.writer.step();
    assert!(matches!(rig.journal.poll(), Some(Event::Failed(what)) if what.contains("planted")));
    assert!(rig.journal.poll().is_none(), "told once");
    faults.fail_sync.store(false, Relaxed);
    assert!(!rig.writer.step());
    assert!(rig.writer.sync().is_err());
    assert!(matches!(rig.propose(b"", &[], Class::Draining), Err(Refused::Failed(_))));
    assert!(!rig.maintenance.step(1));
    assert!(rig.journal.poll().is_none());
}

#[test]
fn a_manifest_that_is_missing_is_damage_after_the_first_start_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    rig.send(&[b"acknowledged"]);
    rig.commit();
    drop(rig);
    fs::remove_file(dir.path().join("manifest")).unwrap();
    let error = Rig::try_open(options(dir.path())).err().expect("refused").to_string();
    assert!(error.contains("the manifest is missing, though 000000000001.log is there"), "{error}");
}

#[test]
fn a_half_finished_start_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("000000000001.log"), [0; 4096]).unwrap();
    fs::write(dir.path().join("manifest.tmp"), b"left over").unwrap();
    let mut rig = Rig::open(dir.path());
    rig.send(&[b"blob"]);
    rig.commit();
    drop(rig);
    fs::write(dir.path().join("000000000099.snapshot"), b"left over").unwrap();
    fs::write(dir.path().join("mine.txt"), b"kept").unwrap();
    let mut rig = Rig::open(dir.path());
    rig.read_all();
    assert!(files(dir.path(), ".snapshot").is_empty() && files(dir.path(), ".tmp").is_empty());
    assert_eq!(files(dir.path(), ".txt").len(), 1);
}

#[test]
fn many_restarts_do_not_add_up() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..20u8 {
        let mut rig = Rig::open(dir.path());
        rig.send(&[&[round; 100]]);
        rig.commit();
        rig.settle_down();
        rig.snapshot();
        rig.read_all();
        assert_eq!(rig.live.len(), usize::from(round) + 1);
        assert!(rig.journal.status().segments < 6, "{:?}", rig.journal.status());
    }
}

#[test]
fn check_reads_everything_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let live = every_kind(options(dir.path()));
    let before = contents(dir.path());
    let report = check(Arc::new(FsDisk), dir.path(), &roots()).unwrap();
    assert_eq!(report.problems, []);
    assert!(report.blobs >= live.len() as u64);
    assert!(report.files.len() >= 5, "{report:?}");
    assert_eq!(contents(dir.path()), before);
    let missing = dir.path().join("nowhere");
    assert!(check(Arc::new(FsDisk), &missing, &roots()).is_err());
    assert!(!missing.exists());
}

#[test]
fn a_wait_ends_when_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let opened = DiskJournal::open(Arc::new(FsDisk), options(dir.path())).unwrap();
    let writer = opened.writer.clone();
    let thread = std::thread::spawn(move || while writer.wait() {});
    opened.writer.notify();
    opened.writer.stop();
    thread.join().unwrap();
    assert!(!opened.maintenance.wait(None));
}
