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

/// One test for each bug, so that they run at the same time.
macro_rules! are_found {
    ($($test:ident: $plant:ident,)*) => {
        $(
            #[test]
            fn $test() {
                finds(Plant::$plant);
            }
        )*

        #[test]
        fn each_bug_planted_in_the_journal_has_its_test() {
            let tested = [$(Plant::$plant),*];
            let missing = Plant::ALL.iter().find(|plant| plant.in_journal().is_some() && !tested.contains(plant));
            assert_eq!(missing, None);
        }
    };
}

are_found! {
    skip_sync: SkipSync,
    cut_valid_record_at_recovery: CutValidRecordAtRecovery,
    older_snapshot_fallback: OlderSnapshotFallback,
    cut_without_manifest: CutWithoutManifest,
    note_commit_across_cut: NoteCommitAcrossCut,
    hard_state_unsynced: HardStateUnsynced,
    restart_numbers: RestartNumbers,
    forget_growing_segment: ForgetGrowingSegment,
    seal_unsynced: SealUnsynced,
    free_before_installed: FreeBeforeInstalled,
    forget_whole_from: ForgetWholeFrom,
    durable_before_sync: DurableBeforeSync,
    copies_left_out: CopiesLeftOut,
    drop_ready_named: DropReadyNamed,
}
