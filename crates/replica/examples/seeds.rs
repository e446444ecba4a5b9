//! Runs seeds of the simulation: `cargo run --release -p sluice-replica --example seeds -- FROM COUNT`. With
//! `plants` behind it each planted bug is looked for in these seeds instead, or those that are named.

#[path = "../tests/sim/mod.rs"]
mod sim;

use sim::checker::Coverage;
// For the network, which the simulator of whole members shares.
use sim::rng;
use sluice_replica::plant::{Plant, plant};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(from), Some(count)) = (number(0), number(1)) else {
        eprintln!("seeds FROM COUNT [plants [NAME...]]");
        std::process::exit(2);
    };
    match words.get(2) {
        None => clean(from, count),
        Some(_) => plants(from, count, &words[3..]),
    }
}

fn plants(from: u64, count: u64, names: &[String]) {
    std::panic::set_hook(Box::new(|_| {}));
    let is_named = |bug: &Plant| names.is_empty() || names.contains(&format!("{bug:?}"));
    for bug in Plant::ALL.into_iter().filter(is_named) {
        plant(Some(bug));
        match (from..from + count).find_map(|seed| Some((seed, sim::run(seed).err()?))) {
            Some((seed, wrong)) => println!("{bug:?}: seed {seed}: {wrong}"),
            None => println!("{bug:?}: NOT FOUND"),
        }
    }
}

fn clean(from: u64, count: u64) {
    let mut total = Coverage::default();
    for seed in from..from + count {
        match sim::run(seed) {
            Ok(coverage) => total.add(&coverage),
            Err(wrong) => {
                println!("seed {seed}: {wrong}");
                std::process::exit(1);
            }
        }
    }
    println!("{count} seeds from {from} are clean; {} operations: {total:?}", total.operations());
}
