//! Replicas agree through whatever goes wrong, and bugs that are planted are found.
#![allow(clippy::unwrap_used)] // A test that fails says where.

mod sim;

use sim::checker::Coverage;
// For the network, which the simulator of whole members shares.
use sim::rng;
use sluice_replica::plant::{Plant, plant};

/// Seeds within which each planted bug has to be found.
const SEEDS: u64 = 1_000;

#[test]
fn seeds_are_clean() {
    let mut total = Coverage::default();
    for seed in 0..40 {
        let coverage = sim::run(seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        assert!(coverage.operations() >= 2_000 && coverage.elections >= 3, "{coverage:?}");
        total.add(&coverage);
    }
    println!("{total:?}");
    let Coverage { overwritten, full, transfers, crashes, cuts_of_tails, stale, damaged, .. } = total;
    let Coverage { late, compactions, installs, failed_transfers, changes, strangers, .. } = total;
    let Coverage { sizes: [_, one, two, three, four, five], losses, fallbacks, removed, .. } = total;
    let counts = [
        overwritten,
        full,
        transfers,
        crashes,
        cuts_of_tails,
        stale,
        damaged,
        late,
        compactions,
        installs,
        failed_transfers,
        changes,
        strangers,
        one,
        two,
        three,
        four,
        five,
        losses,
        fallbacks,
        removed,
    ];
    assert!(counts.iter().all(|count| *count > 0));
}

#[test]
fn a_seed_runs_the_same_each_time() {
    let [first, second] = [7, 7].map(|seed| format!("{:?}", sim::run(seed).unwrap()));
    assert_eq!(first, second);
}

#[test]
fn planted_bugs_are_found() {
    let missed: Vec<Plant> = Plant::ALL
        .into_iter()
        .filter(|bug| {
            plant(Some(*bug));
            let is_found = (0..SEEDS).any(|seed| sim::run(seed).is_err());
            plant(None);
            !is_found
        })
        .collect();
    assert_eq!(missed, []);
}
