//! Each planted bug is found, and without one nothing is.

use sluice_sim::plant::Plant;
use sluice_sim::run::{Run, STEPS, run};

/// Seeds within which a planted bug must be found.
const SEEDS_MAX: u64 = 1_000;
/// Seeds that are run without a bug; CI runs more of them, by the binary.
const SEEDS_CLEAN: u64 = 200;

fn finds(plant: Plant) {
    let found = (0..SEEDS_MAX)
        .find_map(|seed| run(Run { seed, steps: STEPS, plant: Some(plant), verbose: false }).err());
    let failure = found.unwrap_or_else(|| panic!("{plant} was not found within {SEEDS_MAX} seeds"));
    println!("{failure}");
}

#[test]
fn skip_sync_is_found() {
    finds(Plant::SkipSync);
}

#[test]
fn reply_before_sync_is_found() {
    finds(Plant::ReplyBeforeSync);
}

#[test]
fn drop_counter_is_found() {
    finds(Plant::DropCounter);
}

#[test]
fn deliver_twice_is_found() {
    finds(Plant::DeliverTwice);
}

#[test]
fn cut_valid_record_at_recovery_is_found() {
    finds(Plant::CutValidRecordAtRecovery);
}

#[test]
fn stale_token_is_found() {
    finds(Plant::StaleToken);
}

#[test]
fn pass_ordering_key_is_found() {
    finds(Plant::PassOrderingKey);
}

#[test]
fn exceed_limit_is_found() {
    finds(Plant::ExceedLimit);
}

#[test]
fn older_snapshot_fallback_is_found() {
    finds(Plant::OlderSnapshotFallback);
}

#[test]
fn reuse_id_after_lost_tail_is_found() {
    finds(Plant::ReuseIdAfterLostTail);
}

#[test]
fn without_a_planted_bug_nothing_is_found() {
    for seed in 0..SEEDS_CLEAN {
        if let Err(failure) = run(Run { seed, steps: STEPS, plant: None, verbose: false }) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_means_the_same_run_each_time() {
    let go = || run(Run { seed: 11, steps: STEPS, plant: None, verbose: false }).expect("a clean seed");
    assert_eq!(go(), go());
}
