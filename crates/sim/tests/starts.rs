//! Starts that are interrupted, one after the other: the next one finds all that was synced.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_journal::{Batch, Commit, DiskJournal, OpenError, Opened, Options, SealedBatch};
use sluice_sim::disk::{Crash, SimDisk};
use sluice_sim::rng::Rng;

/// Powers that are lost at each place: what of the last writes is on the disk differs.
const SEEDS: u64 = 20;
/// Numbers of calls to the disk that a start may take.
const CALLS: RangeInclusive<u64> = 10..=60;
/// Batches of the journal, of one record each.
const BATCHES: u64 = 3;

fn start(disk: &SimDisk) -> Result<Opened, OpenError> {
    let mut options = Options::new(PathBuf::from("/data"));
    (options.commit, options.reserve_bytes, options.identity) = (Commit::Told, 0, 7);
    options.segment_bytes = 4 << 10;
    DiskJournal::open(Arc::new(disk.for_next_process()), options)
}

/// The disk of a journal that has lost power: its batches are synced, and nobody knows that they are
/// committed, so that each start copies them.
fn written(seed: u64) -> SimDisk {
    let disk = SimDisk::new(Path::new("/"), 1 << 30, Rng::new(seed));
    let Opened { mut journal, writer, .. } = start(&disk).expect("an empty disk");
    for number in 1..=BATCHES {
        let mut batch = Batch::new();
        batch.record(0).body(b"work");
        let (bytes, records) = batch.take();
        let batch = SealedBatch::received(number, records, number, bytes).expect("one whole record");
        journal.append(1, batch).expect("a journal that works");
        writer.step();
    }
    disk.crash(Crash::Power);
    disk
}

/// Ends a start after so many calls to the disk, in this way. False: it was over before.
fn interrupt(disk: &SimDisk, calls: u64, how: Crash) -> bool {
    disk.halt_after(calls);
    let started = start(disk);
    let is_interrupted = disk.is_halted();
    drop(started);
    disk.crash(how);
    is_interrupted
}

/// Kills a start after `first` calls, lets the next one lose power after `second`, and starts once more.
/// `None`: the first was over before; else true if the second was not.
fn start_thrice(seed: u64, first: u64, second: u64) -> Option<bool> {
    let disk = written((seed << 32) + (first << 16) + second);
    if !interrupt(&disk, first, Crash::Kill) {
        return None;
    }
    let is_interrupted = interrupt(&disk, second, Crash::Power);
    let opened = start(&disk);
    let Opened { journal, .. } =
        opened.unwrap_or_else(|error| panic!("seed {seed}, calls {first} and {second}: {error}"));
    let found = journal.tail(1).map(|entry| u64::from(entry.records)).sum::<u64>();
    assert_eq!(found, BATCHES, "seed {seed}, calls {first} and {second}");
    Some(is_interrupted)
}

#[test]
fn a_start_that_loses_power_after_one_that_was_killed_leaves_a_journal_that_opens() {
    for seed in 0..SEEDS {
        let pairs = |first| (0..).map_while(move |second| start_thrice(seed, first, second));
        let firsts = (0..).take_while(|first| pairs(*first).take_while(|is_more| *is_more).count() > 0);
        let calls = firsts.count() as u64;
        assert!(CALLS.contains(&calls), "a start took {calls} calls");
    }
}
