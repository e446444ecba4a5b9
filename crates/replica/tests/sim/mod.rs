//! A simulation of one to five replicas by a seed: each with a disk of its own, over a network that loses,
//! repeats, delays, reorders and cuts, with crashes, pauses and clocks of different speed.
//!
//! Map: [`rng`] chance, [`disk`] what survives a crash, [`network`] what arrives, [`node`] the owner of a
//! replica, [`owner`] what it does in its own time, [`operator`] changes of the members, [`checker`] what has
//! to be true, [`faults`] what goes wrong, [`world`] events in their order.

pub(crate) mod checker;
pub(crate) mod disk;
pub(crate) mod faults;
#[path = "../../../sim/src/cluster/network.rs"]
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod operator;
pub(crate) mod owner;
pub(crate) mod rng;
pub(crate) mod world;

use std::panic::{self, AssertUnwindSafe};

use checker::Coverage;
use world::World;

/// Runs a seed, and tells what it covered or what was wrong.
pub(crate) fn run(seed: u64) -> Result<Coverage, String> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
    outcome.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        Err(text.unwrap_or_else(|| payload.downcast_ref::<&str>().unwrap_or(&"panic").to_string()))
    })
}
