//! Numbers of batches: they count from 1 without holes, whatever becomes of the segments.

use sluice_journal::*;

use crate::rig::{Rig, key};
use crate::told::{Told, settings};

/// Numbers and terms of the tail.
fn tail(told: &Told) -> Vec<(u64, u64)> {
    told.journal.tail(0).map(|entry| (entry.number, entry.term)).collect()
}

#[test]
fn numbers_count_batches_through_cuts_and_starts() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::open(settings(dir.path()));
    assert_eq!(told.last, (0, 0));
    for body in [b"a", b"b", b"c"] {
        told.append(3, body);
        told.step();
        told.settle_down();
    }
    told.commit(1);
    told.append(4, b"d");
    assert_eq!((&told.batches[..], tail(&told)), (&[(1, 3)][..], vec![(2, 3), (3, 3), (4, 4)]));
    told.cut(3);
    told.append(7, b"C");
    told.step();
    assert_eq!(tail(&told), [(2, 3), (3, 7)]);
    told.commit(2);
    told.settle_down();
    drop(told);
    for _ in 0..3 {
        let told = Told::open(settings(dir.path()));
        assert_eq!((told.last, &told.batches[..]), ((2, 3), &[(1, 3), (2, 3)][..]));
        assert_eq!(tail(&told), [(3, 7)]);
    }
    let mut told = Told::open(settings(dir.path()));
    told.append(8, b"e");
    told.step();
    told.commit(4);
    assert_eq!(told.batches, [(1, 3), (2, 3), (3, 7), (4, 8)]);
}

/// Segments are dropped, copied and sealed, and idle markers are written; the next term is another one.
#[test]
fn one_node_numbers_its_batches_as_a_member_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    let mut terms = vec![rig.report.term];
    for _ in 0..12 {
        let index = rig.send(&[&[7; 20 << 10], b"stays"]);
        rig.settle(key(index, 0));
        rig.commit();
    }
    rig.snapshot();
    drop(rig);
    let mut rig = Rig::open(dir.path());
    terms.push(rig.report.term);
    rig.settle_down();
    rig.send(&[b"last"]);
    rig.commit();
    rig.settle_down();
    rig.snapshot();
    drop(rig);
    // An opening that writes nothing but a marker has no batch.
    let mut rig = Rig::open(dir.path());
    rig.settle_down();
    drop(rig);
    let opened = DiskJournal::open(std::sync::Arc::new(FsDisk), settings(dir.path())).unwrap();
    assert_eq!((opened.last_number, opened.last_term), (25, terms[1]));
    let mut journal = opened.journal;
    let mut batch = Batch::new();
    batch.record(0).body(b"a member's");
    let sealed = journal.seal(&mut batch, 1);
    journal.append(terms[1], sealed).unwrap();
    assert_eq!(journal.tail(0).map(|entry| entry.number).collect::<Vec<_>>(), [26]);
}

#[test]
fn a_journal_in_memory_numbers_its_batches() {
    let mut journal = MemoryJournal::new();
    for number in 1..4 {
        let mut batch = Batch::new();
        (0..number).for_each(|_| batch.record(0).body(b"x"));
        journal.propose(&mut batch, 1, Class::Growing).unwrap();
        let Some(Event::Committed(committed)) = journal.poll() else { panic!("nothing is committed") };
        assert_eq!((committed.number, committed.term), (number, 1));
    }
}
