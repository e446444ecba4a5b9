//! The simulator's command line; see the library for what it does.

use std::process::ExitCode;
use std::time::Instant;

use sluice_sim::plant::Plant;
use sluice_sim::run::{Run, STEPS, run};
use sluice_sim::world::Stats;

const USAGE: &str = "\
Runs the server under virtual time on a faulty disk, and checks it against a model.

usage: sluice-sim [--seeds N] [--first SEED] [--steps N] [--plant NAME]
       sluice-sim --seed SEED [--verbose] [--steps N] [--plant NAME]
       sluice-sim --list-plants

  --seeds N      run so many seeds (default 100)
  --first SEED   the first of them (default 0)
  --seed SEED    run this one
  --verbose      tell each step, and compare with the model after each batch
  --steps N      steps of each run (default 1500)
  --plant NAME   plant a bug: the run has to fail
  --list-plants  name the bugs that can be planted

Ends with 0 when nothing was found, 1 when something was, 2 when the arguments are wrong.";

struct Arguments {
    first: u64,
    seeds: u64,
    verbose: bool,
    steps: u64,
    plant: Option<Plant>,
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if given.iter().any(|argument| argument == "--list-plants") {
        Plant::ALL.iter().for_each(|plant| println!("{plant}"));
        return ExitCode::SUCCESS;
    }
    match parse(&given) {
        Ok(arguments) => run_all(&arguments),
        Err(wrong) => {
            eprintln!("{wrong}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(given: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments { first: 0, seeds: 100, verbose: false, steps: STEPS, plant: None };
    let mut rest = given.iter();
    while let Some(name) = rest.next() {
        if name == "--verbose" {
            arguments.verbose = true;
            continue;
        }
        let mut value = || rest.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--seeds" => arguments.seeds = number(name, value()?)?,
            "--first" => arguments.first = number(name, value()?)?,
            "--seed" => (arguments.first, arguments.seeds) = (number(name, value()?)?, 1),
            "--steps" => arguments.steps = number(name, value()?)?,
            "--plant" => arguments.plant = Some(value()?.parse()?),
            _ => return Err(format!("{name:?} is not an option")),
        }
    }
    Ok(arguments)
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value:?}: expected a number"))
}

fn run_all(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let mut total = Stats::default();
    for seed in arguments.first..arguments.first.saturating_add(arguments.seeds) {
        let Arguments { steps, plant, verbose, .. } = *arguments;
        match run(Run { seed, steps, plant, verbose }) {
            Ok(stats) => total += stats,
            Err(failure) => {
                println!("{failure}");
                return ExitCode::from(1);
            }
        }
    }
    println!(
        "{} seeds, nothing found: {} steps, {} records, {} answers, {} deliveries, {} restarts, {} syncs, {} backups, \
         {} losses in {:.1} s",
        arguments.seeds,
        total.steps,
        total.records,
        total.answers,
        total.delivered,
        total.restarts,
        total.syncs,
        total.backups,
        total.lost,
        started.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}
