//! A shard among replicas: leaderships begin and end at any moment, and every caller is told the truth.

mod agreement;
pub mod calls;
mod judge;
mod machine;
mod rng;
mod stepping_down;
mod world;

use judge::Seen;
use world::World;

/// Number of seeds of a run; `SLUICE_REPLICA_SEEDS` gives another.
const SEEDS: u64 = 30;
/// Moments of trouble of a seed.
const MOMENTS: u32 = 1_500;

/// Everything that has to happen in the seeds together.
const MUST_HAPPEN: [&str; 16] = [
    "election",
    "committed by a later leader",
    "sent",
    "pulled",
    "empty",
    "acked",
    "attached",
    "handed",
    "detached",
    "counted",
    "awaited",
    "delivered again",
    "asked of a leader that was replaced",
    "not_leader",
    "no_leader",
    "outcome_unknown",
];

#[test]
fn callers_are_told_the_truth_whoever_leads() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("SLUICE_REPLICA_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SLUICE_REPLICA_SEEDS").unwrap_or(SEEDS),
    };
    let mut seen = Seen::default();
    let many = seeds.end - seeds.start >= SEEDS;
    for seed in seeds {
        match World::new(seed).run(MOMENTS) {
            Ok(of_seed) => seen.add(&of_seed),
            Err(why) => panic!("SLUICE_REPLICA_SEED={seed}: {why}"),
        }
    }
    println!("{:?}", seen.0);
    let missing: Vec<_> = MUST_HAPPEN.iter().filter(|what| !seen.0.contains_key(*what)).collect();
    assert!(!many || missing.is_empty(), "never happened: {missing:?}");
}
