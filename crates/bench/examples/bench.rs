//! `sluice bench` alone: `cargo run --release -p sluice-bench --example bench -- bench engine --counts`. A
//! release build of the whole program takes several times as long.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sluice_bench::BenchVerb;
use sluice_client::Credentials;

/// The allocator of the program, which counts.
#[global_allocator]
static ALLOCATOR: sluice_alloc_count::Counting = sluice_alloc_count::Counting;

#[derive(Parser)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a benchmark that starts no server.
    #[command(subcommand)]
    Bench(BenchVerb),
}

fn main() -> ExitCode {
    let Verb::Bench(verb) = Program::parse().verb;
    match sluice_bench::run(&verb, || Ok(Credentials::default())) {
        Ok(outcome) => {
            print!("{}", outcome.text);
            if outcome.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
