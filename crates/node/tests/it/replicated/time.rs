//! The time of the log, whoever leads.

use sluice_node::clock::Clock;

use super::{Trio, node};
use crate::rig::{SECOND_US, START_US};

/// Difference from a second before the wall clocks that a tick and the slewing of some seconds may make, in
/// microseconds.
const CLOSE_US: u64 = 60_000;

#[test]
fn a_node_that_caught_up_from_an_old_log_leads_with_the_time_of_the_log() {
    let mut trio = Trio::new(1 << 30);
    let old = trio.leader();
    trio.send(old, 10);
    trio.pass(300 * SECOND_US);
    let new = (old + 1) % 3;
    trio.machines.remove(new);
    let machine = trio.open(new);
    trio.machines.insert(new, machine);
    // Wall clocks say nothing of use any more.
    trio.time.jump(-3_600 * SECOND_US as i64);
    trio.pass(SECOND_US);
    trio.machines[old].inbox.transfer_leader(node(new));
    trio.pass(SECOND_US);
    assert!(trio.machines[new].leads());
    trio.send(new, 1);
    let (logged_us, now_us) =
        (trio.machines[new].shard.engine().time_us(), START_US + trio.time.monotonic_us());
    // The first leader began behind the wall clocks, by a second at most, and was slewed towards them.
    let behind_us = now_us - logged_us;
    assert!(behind_us < SECOND_US + CLOSE_US, "{logged_us} was logged at {now_us}");
}

#[test]
fn after_a_start_of_all_nodes_the_time_is_a_second_before_the_wall_clocks() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    trio.send(leader, 10);
    trio.machines.clear();
    trio.time.advance(300 * SECOND_US);
    trio.machines = (0..3).map(|place| trio.open(place)).collect();
    let leader = trio.leader();
    trio.send(leader, 1);
    let (logged_us, now_us) =
        (trio.machines[leader].shard.engine().time_us(), START_US + trio.time.monotonic_us());
    assert!(logged_us.abs_diff(now_us - SECOND_US) < CLOSE_US, "{logged_us} was logged at {now_us}");
}
