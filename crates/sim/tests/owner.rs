//! A journal whose owner tells what is committed: nothing is found, and planted bugs are.

use sluice_sim::plant::Plant;
use sluice_sim::run::{Kind, Run, STEPS, run};

/// Seeds that are run without a bug; CI runs more of them, by the binary.
const SEEDS_CLEAN: u64 = 40;
/// Seeds within which a planted bug must be found.
const SEEDS_MAX: u64 = 200;
/// Seeds that once found a fault of the journal.
const SEEDS_ONCE_FAILED: [u64; 1] = [112];

fn like(seed: u64, plant: Option<Plant>) -> Run {
    Run { kind: Kind::Owner, seed, steps: STEPS, plant, verbose: false }
}

fn finds(plant: Plant) {
    let found = (0..SEEDS_MAX).find_map(|seed| run(like(seed, Some(plant))).err());
    let failure = found.unwrap_or_else(|| panic!("{plant} was not found within {SEEDS_MAX} seeds"));
    println!("{failure}");
}

#[test]
fn without_a_planted_bug_nothing_is_found() {
    for seed in (0..SEEDS_CLEAN).chain(SEEDS_ONCE_FAILED) {
        if let Err(failure) = run(like(seed, None)) {
            panic!("{failure}");
        }
    }
}

#[test]
fn skipped_syncs_are_found() {
    finds(Plant::SkipSync);
}

#[test]
fn a_record_that_is_cut_too_many_is_found() {
    finds(Plant::CutValidRecordAtRecovery);
}

#[test]
fn an_older_manifest_is_found() {
    finds(Plant::OlderSnapshotFallback);
}
