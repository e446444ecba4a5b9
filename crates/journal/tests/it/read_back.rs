//! Committed batches read back from the disk, for members that are behind.

use std::path::Path;

use sluice_journal::*;

use crate::rig::{files, plain};
use crate::told::{Told, settings};

/// Reads everything from a batch on that a journal shows, in pieces of up to this many bytes.
fn read_all(told: &Told, number: u64, bytes_max: usize) -> Result<Vec<Entry>, LogGone> {
    let mut reader = LogReader::new(number);
    let mut all = Vec::new();
    loop {
        told.journal.read_on(&mut reader)?;
        let before = all.len();
        loop {
            let entries = reader.read(bytes_max).unwrap();
            let bytes: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
            assert!(bytes <= bytes_max || entries.len() == 1, "{bytes} bytes");
            if entries.is_empty() {
                break;
            }
            all.extend(entries);
        }
        if all.len() == before {
            return Ok(all);
        }
    }
}

/// A journal with a log of 30 batches over several segments, the last of which is not committed.
fn long_log(options: Options) -> (Told, Vec<Entry>) {
    let mut told = Told::open(options);
    let mut log = Vec::new();
    for number in 1..=30_u8 {
        let index = told.append(1 + u64::from(number) / 7, &vec![number; 12 << 10]);
        log.extend(told.journal.tail(index).cloned());
        told.step();
        told.commit(u64::from(number) - 1);
        told.settle_down();
    }
    (told, log)
}

#[test]
fn what_was_given_is_read_back_as_it_was_proposed() {
    let dir = tempfile::tempdir().unwrap();
    for options in [settings(&dir.path().join("sealed")), told_plain(&dir.path().join("plain"))] {
        let (mut told, log) = long_log(options.clone());
        assert!(files(&options.dir, ".log").len() > 3);
        for number in [1, 2, 17, 29] {
            for bytes_max in [0, 50 << 10, 1 << 30] {
                let expected = &log[number as usize - 1..29];
                assert_eq!(read_all(&told, number, bytes_max).unwrap(), expected, "from {number}");
            }
        }
        assert_eq!(read_all(&told, 30, 1 << 20), Ok(Vec::new()), "it is in the tail");
        // A reader sees on when more is committed, and something else than what was cut.
        let mut reader = LogReader::new(29);
        told.journal.read_on(&mut reader).unwrap();
        // Any thread may read.
        let read = std::thread::spawn(move || (reader.read(1 << 20).unwrap(), reader));
        let (entries, mut reader) = read.join().unwrap();
        assert_eq!(entries, log[28..29]);
        told.cut(30);
        told.append(9, b"instead");
        let instead: Vec<Entry> = told.journal.tail(30).cloned().collect();
        told.step();
        told.commit(30);
        assert_eq!(reader.read(1 << 20).unwrap(), [], "nothing more was shown");
        told.journal.read_on(&mut reader).unwrap();
        assert_eq!((reader.read(1 << 20).unwrap(), reader.next_number()), (instead, 31));
        drop(told);
        let told = Told::open(options);
        assert_eq!(read_all(&told, 1, 1 << 20).unwrap()[..29], log[..29]);
    }
}

fn told_plain(dir: &Path) -> Options {
    Options { commit: Commit::Told, ..plain(dir) }
}

/// Checks behind which batch a journal tells the last bytes of its log, and those behind a record, to be: of
/// its first `len` batches all behind `gone` can be read.
fn check_before_last(journal: &DiskJournal, log: &[Entry], gone: u64, len: u64) {
    let term = |number: u64| log.get((number as usize).wrapping_sub(1)).map_or(0, |batch| batch.term);
    assert_eq!(journal.before_last(u64::MAX, u64::MAX), (gone, term(gone)));
    let mut shorter = gone;
    for batches in (0..len - gone).rev() {
        let (number, at) = journal.before_last(batches * (12 << 10), u64::MAX);
        assert!((shorter..=len).contains(&number) && at == term(number), "{number}, {at}");
        shorter = number;
    }
    assert!(shorter > gone, "in segments");
    for batch in &log[gone as usize..len as usize] {
        let (number, _) = journal.before_last(0, batch.last_index());
        assert!((gone..=batch.number).contains(&number), "all behind {} is asked for", batch.number);
    }
}

/// Releases all blobs behind a snapshot, so that whatever is not kept goes.
fn let_go(told: &mut Told, upto: u64) {
    told.journal.snapshot_begin(upto, 1, 1);
    told.journal.snapshot_finish();
    told.settle_down();
    (1..=upto).for_each(|index| told.journal.release(BlobKey { index, item: 0 }));
    told.settle_down();
}

#[test]
fn what_compaction_has_taken_away_is_refused_and_what_is_kept_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (mut told, log) = long_log(settings(dir.path()));
    told.journal.keep_from(12);
    let mut behind = LogReader::new(1);
    told.journal.read_on(&mut behind).unwrap();
    check_before_last(&told.journal, &log, 0, 29);
    let_go(&mut told, 29);
    let gone = read_all(&told, 1, 1 << 20).unwrap_err();
    check_before_last(&told.journal, &log, gone.first_number - 1, 29);
    assert!((2..=12).contains(&gone.first_number), "{gone:?}");
    assert_eq!(told.journal.read_on(&mut behind), Err(gone));
    assert_eq!(behind.read(1 << 20).unwrap()[0], log[0], "what a reader was shown stays readable");
    for number in [12, gone.first_number] {
        assert_eq!(read_all(&told, number, 1 << 20).unwrap(), log[number as usize - 1..29]);
    }
    told.journal.keep_from(29);
    told.settle_down();
    let later = read_all(&told, 12, 1 << 20).unwrap_err();
    assert!((13..=29).contains(&later.first_number), "{later:?}");
    assert_eq!(read_all(&told, 29, 1 << 20).unwrap(), log[28..29]);
    drop(told);
    let opened = DiskJournal::open(std::sync::Arc::new(FsDisk), settings(dir.path())).unwrap();
    let mut reader = LogReader::new(later.first_number);
    opened.journal.read_on(&mut reader).unwrap();
    assert_eq!(reader.read(0).unwrap(), log[later.first_number as usize - 1..][..1]);
    let refused = opened.journal.read_on(&mut LogReader::new(later.first_number - 1));
    assert_eq!(refused, Err(later), "after a start as before");
    check_before_last(&opened.journal, &log, later.first_number - 1, 29);
}

#[test]
fn a_damaged_batch_is_told_and_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (told, log) = long_log(told_plain(dir.path()));
    let path = &files(dir.path(), ".log")[1];
    let mut bytes = std::fs::read(path).unwrap();
    let damaged =
        log.iter().find(|entry| bytes.windows(64).any(|part| part == &entry.bytes[4_000..4_064])).unwrap();
    let at = bytes.windows(64).position(|part| part == &damaged.bytes[4_000..4_064]).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let mut reader = LogReader::new(damaged.number);
    told.journal.read_on(&mut reader).unwrap();
    for _ in 0..2 {
        let error = reader.read(1 << 20).unwrap_err();
        assert!(matches!(&error, BlobError::Damaged(what) if what.contains("is not whole")), "{error:?}");
        assert_eq!(reader.next_number(), damaged.number);
    }
}
