//! A journal whose owner tells what is committed: the tail, cuts, hard states.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{copy_dir, files, options, plain, roots};

/// An open journal under `Commit::Told`, and what it has given.
pub(crate) struct Told {
    pub(crate) journal: DiskJournal,
    pub(crate) writer: Writer,
    pub(crate) maintenance: Maintenance,
    pub(crate) backups: Backups,
    pub(crate) hard_state: Vec<u8>,
    pub(crate) term: u64,
    /// Bodies of the committed records from the snapshot on.
    pub(crate) given: Vec<(u64, Vec<u8>)>,
    /// Number and term of each of their batches.
    pub(crate) batches: Vec<(u64, u64)>,
    /// Number and term of the batch with which replay ended.
    pub(crate) last: (u64, u64),
    pub(crate) failed: bool,
    pub(crate) now_us: u64,
}

pub(crate) fn settings(dir: &Path) -> Options {
    Options { commit: Commit::Told, ..options(dir) }
}

impl Told {
    pub(crate) fn open(options: Options) -> Told {
        Told::open_on(Faults::new().1, options).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Told, OpenError> {
        let opened = DiskJournal::open(disk, options)?;
        let last = (opened.last_number, opened.last_term);
        let Opened { mut journal, writer, maintenance, backups, mut replay, hard_state, report, .. } = opened;
        let (mut given, mut batches) = (Vec::new(), Vec::new());
        while let Some(batch) = replay.next_batch()? {
            given.extend(bodies(&batch));
            batches.push((batch.number, batch.term));
        }
        let keys: Vec<_> = given
            .iter()
            .map(|(index, body)| (BlobKey { index: *index, item: 0 }, body.len() as u32))
            .collect();
        journal.set_live(keys)?;
        let term = report.term;
        let (failed, now_us) = (false, 0);
        Ok(Told {
            journal,
            writer,
            maintenance,
            backups,
            hard_state,
            term,
            given,
            batches,
            last,
            failed,
            now_us,
        })
    }

    /// Proposes a batch of one record, whose blob is its body.
    pub(crate) fn append(&mut self, term: u64, body: &[u8]) -> u64 {
        let mut batch = Batch::new();
        let mut record = batch.record(1);
        record.body(body);
        record.blob(&[body]);
        drop(record);
        self.now_us += 10;
        self.journal.admit(batch.bytes(), Class::Growing).unwrap();
        let sealed = self.journal.seal(&mut batch, 1_000_000 + self.now_us);
        let first_index = sealed.first_index();
        self.journal.append(term, sealed).unwrap();
        first_index
    }

    pub(crate) fn step(&mut self) {
        self.writer.step();
        self.poll();
    }

    pub(crate) fn poll(&mut self) {
        while let Some(event) = self.journal.poll() {
            match event {
                Event::Committed(batch) => {
                    self.given.extend(bodies(&batch));
                    self.batches.push((batch.number, batch.term));
                }
                Event::Failed(_) => self.failed = true,
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn commit(&mut self, index: u64) {
        self.journal.commit(index).unwrap();
        self.poll();
    }

    pub(crate) fn cut(&mut self, index: u64) {
        assert_eq!(self.journal.cut(index), Ok(true));
    }

    pub(crate) fn settle_down(&mut self) {
        for _ in 0..400 {
            self.now_us += 10_000;
            while self.maintenance.step(self.now_us) {}
            self.poll();
        }
    }

    pub(crate) fn tail(&self) -> Vec<(u64, u64, Vec<u8>)> {
        let body = |entry: &Entry| {
            assert_eq!(entry.checksum, crc32fast::hash(&entry.bytes));
            Records::new(&entry.bytes).next().unwrap().body.to_vec()
        };
        self.journal.tail(0).map(|entry| (entry.first_index, entry.term, body(entry))).collect()
    }

    pub(crate) fn given(&self) -> Vec<&[u8]> {
        self.given.iter().map(|(_, body)| &body[..]).collect()
    }

    pub(crate) fn read(&mut self, index: u64) -> Option<Vec<u8>> {
        match self.journal.read(BlobKey { index, item: 0 }) {
            BlobRead::Cached(blob) => Some(blob.to_vec()),
            BlobRead::OnDisk(location) => Some(location.read().unwrap().to_vec()),
            BlobRead::Missing => None,
        }
    }
}

fn bodies(batch: &Committed) -> Vec<(u64, Vec<u8>)> {
    (batch.first_index..).zip(batch.records()).map(|(index, record)| (index, record.body.to_vec())).collect()
}

#[test]
fn what_is_durable_is_not_given_before_it_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(settings(dir.path()));
    told.append(1, b"one");
    told.append(1, b"two");
    assert_eq!(told.tail(), [(1, 1, b"one".to_vec()), (2, 1, b"two".to_vec())], "before it is written");
    assert_eq!((told.journal.durable_index(), told.journal.committed_index()), (0, 0));
    told.step();
    assert_eq!((told.journal.durable_index(), told.journal.committed_index()), (2, 0));
    assert!(told.given.is_empty());
    assert_eq!(told.read(1), None, "the index of blobs follows the commit");
    told.commit(1);
    assert_eq!(told.given(), [b"one"]);
    assert_eq!(told.tail(), [(2, 1, b"two".to_vec())]);
    assert_eq!(told.read(1).as_deref(), Some(&b"one"[..]));
    assert_eq!(told.journal.commit(3), Err(TailError::NotABatch { index: 3 }));
    assert_eq!(told.journal.commit(1), Ok(()), "again");
    told.commit(2);
    assert_eq!(told.given(), [b"one", b"two"]);
}

/// Others may have made a batch durable before this node has: it may be applied.
#[test]
fn a_batch_that_is_committed_before_it_is_durable_is_given_once_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut told = Told::open_on(disk, settings(dir.path())).unwrap();
    told.append(1, b"one");
    told.commit(1);
    assert!(told.given.is_empty(), "its place in the segment is not known yet");
    faults.fail_sync.store(true, Relaxed);
    told.step();
    assert_eq!(told.given(), [b"one"]);
    assert_eq!(told.journal.durable_index(), 0);
    assert!(told.failed);
}

#[test]
fn replay_stops_at_the_known_commit_and_the_rest_is_the_tail() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Told::open(settings(dir.path()));
    for body in [b"a", b"b", b"c", b"d"] {
        first.append(3, body);
    }
    first.step();
    first.commit(2);
    // The next head notes the commit.
    first.append(5, b"e");
    first.step();
    let tail = [(3, 3, b"c".to_vec()), (4, 3, b"d".to_vec()), (5, 5, b"e".to_vec())];
    assert_eq!(first.tail(), tail);
    let checksums: Vec<u32> = first.journal.tail(3).map(|entry| entry.checksum).collect();
    drop(first);
    for _ in 0..3 {
        let mut again = Told::open(settings(dir.path()));
        assert_eq!(again.given(), [b"a", b"b"]);
        assert_eq!(again.tail(), tail);
        assert_eq!(again.journal.tail(3).map(|entry| entry.checksum).collect::<Vec<_>>(), checksums);
        assert_eq!((again.journal.durable_index(), again.journal.committed_index()), (5, 2));
        assert_eq!((again.term, again.journal.next_index()), (5, 6));
        assert_eq!(again.read(3), None);
    }
    let mut again = Told::open(settings(dir.path()));
    again.commit(5);
    assert_eq!(again.given(), [b"a", b"b", b"c", b"d", b"e"]);
    assert_eq!(again.read(5).as_deref(), Some(&b"e"[..]));
    again.settle_down();
    drop(again);
    assert_eq!(Told::open(settings(dir.path())).given().len(), 5, "an idle marker notes the commit");
}

#[test]
fn the_own_rule_commits_everything_that_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Told::open(options(dir.path()));
    assert!(first.term > 0);
    let mut batch = Batch::new();
    let mut record = batch.record(1);
    record.body(b"own");
    record.blob(&[b"own"]);
    drop(record);
    first.journal.propose(&mut batch, 1, Class::Growing).unwrap();
    first.step();
    assert_eq!(first.given(), [b"own"]);
    assert_eq!(first.journal.commit(1), Err(TailError::NoTail));
    assert_eq!(first.journal.cut(1), Err(TailError::NoTail));
    assert_eq!(first.journal.tail(0).count(), 0);
    let term = first.term;
    drop(first);
    // What one node has made durable is committed when it becomes a member of several.
    let mut second = Told::open(settings(dir.path()));
    assert_eq!((second.given(), second.term), (vec![&b"own"[..]], term));
    second.append(term + 7, b"tail");
    second.step();
    drop(second);
    let second = Told::open(settings(dir.path()));
    assert_eq!((second.given().len(), second.tail().len(), second.term), (1, 1, term + 7));
    drop(second);
    let third = Told::open(options(dir.path()));
    assert_eq!(third.given(), [&b"own"[..], b"tail"]);
    assert!(third.term > term + 7, "each opening raises the term");
}

#[test]
fn a_cut_takes_effect_at_once_and_never_comes_back() {
    for durability in [Durability::Always, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, ..settings(dir.path()) };
        let mut told = Told::open(options.clone());
        for body in [b"a", b"b", b"c", b"d"] {
            told.append(2, body);
        }
        told.step();
        told.commit(1);
        assert_eq!(told.journal.cut(1), Err(TailError::Committed { committed_index: 1 }));
        assert_eq!(told.journal.cut(9), Err(TailError::NotABatch { index: 9 }));
        assert_eq!(told.journal.cut(5), Ok(false), "there is nothing after the last record");
        told.cut(3);
        assert_eq!((told.journal.next_index(), told.journal.durable_index()), (3, 2));
        assert_eq!(told.append(2, b"C"), 3);
        assert_eq!(told.tail(), [(2, 2, b"b".to_vec()), (3, 2, b"C".to_vec())]);
        assert_eq!((told.journal.orders(), told.journal.durable_orders()), (6, 4), "a cut is an order");
        told.step();
        assert_eq!((told.journal.durable_orders(), told.journal.durable_index()), (6, 3));
        drop(told);
        let mut told = Told::open(options.clone());
        assert_eq!(told.tail(), [(2, 2, b"b".to_vec()), (3, 2, b"C".to_vec())]);
        told.commit(3);
        assert_eq!(told.given(), [b"a", b"b", b"C"]);
        assert_eq!(told.read(3).as_deref(), Some(&b"C"[..]));
        drop(told);
        assert_eq!(check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().problems, []);
    }
}

/// The tail spans segments; what is before the cut stays, the others go, and the rest is sealed later.
#[test]
fn a_cut_gives_back_the_room_of_whole_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(settings(dir.path()));
    let long = vec![7; 20 << 10];
    for _ in 0..24 {
        told.append(1, &long);
        told.step();
        told.settle_down();
    }
    let before = std::fs::read_dir(dir.path()).unwrap().count();
    told.commit(2);
    told.cut(4);
    assert_eq!(told.append(2, b"instead"), 4);
    told.step();
    assert_eq!(told.journal.durable_orders(), told.journal.orders());
    told.settle_down();
    let after = std::fs::read_dir(dir.path()).unwrap().count();
    assert!(after + 4 <= before, "{after} files of {before}");
    for index in 5..40 {
        assert_eq!(told.append(2, &long), index);
        told.step();
    }
    told.commit(39);
    told.settle_down();
    assert_eq!(told.read(4).as_deref(), Some(&b"instead"[..]));
    assert_eq!(told.read(39), Some(long.clone()));
    drop(told);
    assert_eq!(check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().problems, []);
    assert_eq!(Told::open(settings(dir.path())).given().len(), 39);
}

#[test]
fn cuts_that_follow_each_other_before_anything_is_written_take_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(settings(dir.path()));
    for body in [b"a", b"b", b"c"] {
        told.append(1, body);
    }
    told.cut(2);
    told.append(2, b"B");
    told.append(2, b"C");
    told.cut(1);
    told.append(3, b"x");
    told.commit(1);
    told.step();
    assert_eq!((told.journal.durable_orders(), told.given()), (8, vec![&b"x"[..]]));
    assert_eq!(told.read(1).as_deref(), Some(&b"x"[..]));
    drop(told);
    let told = Told::open(settings(dir.path()));
    let (given, tail) = (told.given(), told.tail());
    assert!(given == [b"x"] || tail == [(1, 3, b"x".to_vec())], "{given:?} {tail:?}");
}

#[test]
fn a_crash_before_a_cut_is_done_leaves_the_whole_tail() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut told = Told::open_on(disk, settings(dir.path())).unwrap();
    for body in [b"a", b"b", b"c"] {
        told.append(1, body);
        told.step();
    }
    told.cut(2);
    told.append(9, b"B");
    // Committed by the others: of the tail that is still on the disk nothing may count as that.
    told.commit(2);
    let taken = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), taken.path());
    let left = Told::open(settings(taken.path()));
    assert_eq!(left.given().len() + left.tail().len(), 3);
    assert_eq!(left.given(), Vec::<&[u8]>::new());
    drop(left);
    faults.fail_sync.store(true, Relaxed);
    told.step();
    assert!(told.failed);
    assert_eq!((told.journal.orders(), told.journal.durable_orders()), (5, 3));
    drop(told);
    let left = Told::open(settings(dir.path()));
    assert_eq!(left.tail().len(), 3);
}

#[test]
fn a_hard_state_is_synced_before_what_is_proposed_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Os, ..settings(dir.path()) };
    let mut told = Told::open(options.clone());
    assert_eq!(told.hard_state, b"");
    told.journal.hard_state(b"term 1", false);
    told.append(1, b"a");
    told.journal.hard_state(b"term 2, voted", false);
    assert_eq!(told.journal.durable_orders(), 0);
    told.writer.step();
    assert_eq!((told.journal.durable_orders(), told.journal.durable_index()), (3, 0), "before it is polled");
    told.poll();
    assert_eq!((told.journal.durable_orders(), told.journal.durable_index()), (3, 1));
    drop(told);
    let told = Told::open(options);
    assert_eq!(told.hard_state, b"term 2, voted");
    // A copy has not voted.
    let mut stream = Vec::new();
    let mut backup = told.backups.begin();
    while let Some(chunk) = backup.next_chunk().unwrap() {
        stream.extend_from_slice(&chunk);
    }
    let restored = dir.path().join("restored");
    restore(&mut &stream[..], &restored, &roots()).unwrap();
    assert_eq!(Told::open(settings(&restored)).hard_state, b"");
}

/// Otherwise a start that knows less of the commit would need the files again.
#[test]
fn a_file_goes_only_with_a_note_of_the_commit_that_released_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(settings(dir.path()));
    let long = vec![7; 20 << 10];
    for _ in 0..12 {
        told.append(1, &long);
        told.step();
    }
    told.commit(12);
    told.journal.snapshot_begin(12, 1, 1);
    told.journal.snapshot_finish();
    told.settle_down();
    let before = files(dir.path(), ".log").len();
    told.append(1, b"settles");
    told.step();
    told.commit(13);
    (1..=12).for_each(|index| told.journal.release(BlobKey { index, item: 0 }));
    told.now_us += 60_000;
    // The files' names go once nobody holds them; no time passes in which an idle marker could be written.
    for _ in 0..10 {
        told.maintenance.step(told.now_us);
        told.poll();
    }
    assert!(files(dir.path(), ".log").len() < before);
    let copy = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), copy.path());
    let opened = DiskJournal::open(Arc::new(FsDisk), settings(copy.path())).unwrap();
    assert_eq!(opened.journal.committed_index(), 13);
}

#[test]
fn backups_and_sealed_segments_hold_nothing_uncommitted() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(Options { commit: Commit::Told, ..plain(dir.path()) });
    let long = |byte: u8| vec![byte; 20 << 10];
    for index in 1..=12 {
        told.append(1, &long(index));
        told.step();
    }
    told.settle_down();
    assert_eq!(files(dir.path(), ".table"), Vec::<std::path::PathBuf>::new(), "nothing is committed");
    told.commit(5);
    told.settle_down();
    let sealed = files(dir.path(), ".table").len();
    assert!((1..=5).contains(&sealed), "{sealed} segments are sealed");
    told.cut(8);
    told.append(2, b"new");
    told.step();
    for committed in [5, 6, 8] {
        told.commit(committed);
        let mut stream = Vec::new();
        let mut backup = told.backups.begin();
        while let Some(chunk) = backup.next_chunk().unwrap() {
            stream.extend_from_slice(&chunk);
        }
        assert!(
            !stream.windows(1000).any(|part| part.iter().all(|byte| *byte as u64 > committed && *byte < 13))
        );
        let restored = tempfile::tempdir().unwrap();
        restore(&mut &stream[..], &restored.path().join("data"), &roots()).unwrap();
        let copy = Told::open(Options { commit: Commit::Told, ..plain(&restored.path().join("data")) });
        assert_eq!((copy.given().len() as u64, copy.tail().len()), (committed, 0));
    }
}

/// The waker is called for orders that give nothing to poll.
#[test]
fn whoever_waits_is_woken_for_each_durable_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(settings(dir.path()));
    let woken = Arc::new(AtomicU64::new(0));
    let counted = woken.clone();
    told.journal.set_waker(Arc::new(move || _ = counted.fetch_add(1, Relaxed)));
    for order in 1..4 {
        let before = woken.load(Relaxed);
        told.journal.hard_state(b"term and vote", false);
        assert_eq!(told.journal.orders(), order);
        assert!(told.writer.step());
        assert_eq!(told.journal.durable_orders(), order);
        assert!(woken.load(Relaxed) > before && told.journal.poll().is_none());
    }
}
