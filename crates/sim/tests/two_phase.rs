//! Transactions over several namespaces whose driver stops between two records, each of them in turn: before
//! the decision nothing is done, from then on everything.

use sluice_sim::across::{Stop, Stopped};
use sluice_sim::cluster::ClusterWorld;
use sluice_sim::world::World;

const STOPS: [Stop; 3] = [Stop::Alone, Stop::Kill, Stop::Power];
/// More than the records of any transaction here: prepare and finish in each of four namespaces at most, the
/// decision, and word that it is not needed any more.
const RECORDS_MAX: u32 = 9;

fn stops_everywhere(seeds: u64, stopped_after: fn(u64, u32, Stop) -> Result<Stopped, String>) {
    for seed in 0..seeds {
        for (records, how) in (0..=RECORDS_MAX).flat_map(|records| STOPS.map(|how| (records, how))) {
            let stopped = stopped_after(seed, records, how);
            let Stopped { parts, is_done } =
                stopped.unwrap_or_else(|wrong| panic!("seed {seed}, {how:?} behind {records}: {wrong}"));
            let is_decided = records as usize >= parts;
            assert_eq!(is_done, is_decided, "seed {seed}, {how:?} behind {records} records of {parts} parts");
        }
    }
}

#[test]
fn a_server_finishes_what_was_decided_and_nothing_else() {
    stops_everywhere(8, World::stopped_after);
}

#[test]
fn a_cluster_finishes_what_was_decided_and_nothing_else() {
    stops_everywhere(3, ClusterWorld::stopped_after);
}
