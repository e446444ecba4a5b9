//! The simulator's command line; see the library for what it does.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use sluice_sim::many::{Many, Sum, run_many};
use sluice_sim::plant::Plant;
use sluice_sim::run::{Kind, Run, STEPS};

const USAGE: &str = "\
Runs the server under virtual time on a faulty disk, and checks it against a model.

usage: sluice-sim [--seeds N] [--seconds N] [--first SEED] [--jobs N] [--keep-going]
                  [--steps N] [--plant NAME] [KIND]
       sluice-sim --seed SEED [--verbose] [--steps N] [--plant NAME] [KIND]
       sluice-sim --list-plants

  --seeds N      number of seeds to run (default 100; with --seconds: no limit)
  --seconds N    begin no run after this time
  --first SEED   first seed (default 0)
  --jobs N       runs at the same time (default: one for each core)
  --keep-going   go on after a failure
  --seed SEED    run this seed only
  --verbose      print each step, and compare with the model after each batch
  --steps N      steps of each run (default 1500)
  --plant NAME   plant a bug: the run has to fail
  --list-plants  list the bugs that can be planted

KIND is one of these, or none:
  --owner        no server: a journal alone, whose owner tells what is committed
  --cluster      three or five nodes, whose replicas of a shard agree on one log
  --forgetful    such a cluster that acknowledges what is not synced yet, and whose machines forget some of it
  --bad-disks    such a cluster whose disks are full or hang at times

Exit code: 0 when nothing was found, 1 when a run failed, 2 when the arguments are wrong.";

const SEEDS: u64 = 100;

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
        Ok(many) => run_all(&many),
        Err(wrong) => {
            eprintln!("{wrong}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(given: &[String]) -> Result<Many, String> {
    let mut like = Run { kind: Kind::Server, seed: 0, steps: STEPS, plant: None, verbose: false };
    let (mut seeds, mut time, mut keep_going) = (None, None, false);
    let mut jobs = thread::available_parallelism().map_or(1, usize::from);
    let mut rest = given.iter();
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--verbose" => like.verbose = true,
            "--keep-going" => keep_going = true,
            "--owner" => like.kind = Kind::Owner,
            "--cluster" => like.kind = Kind::Cluster,
            "--forgetful" => like.kind = Kind::Forgetful,
            "--bad-disks" => like.kind = Kind::BadDisks,
            _ => {
                let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
                match name.as_str() {
                    "--seeds" => seeds = Some(at_least_one(name, value)?),
                    "--seconds" => time = Some(Duration::from_secs(at_least_one(name, value)?)),
                    "--first" => like.seed = number(name, value)?,
                    "--jobs" => jobs = number(name, value)? as usize,
                    "--seed" => (like.seed, seeds) = (number(name, value)?, Some(1)),
                    "--steps" => like.steps = number(name, value)?,
                    "--plant" => like.plant = Some(value.parse()?),
                    _ => return Err(format!("{name:?} is not an option")),
                }
            }
        }
    }
    // Steps printed by several runs at the same time would be mixed up.
    let jobs = if like.verbose { 1 } else { jobs };
    let seeds = seeds.unwrap_or(if time.is_some() { u64::MAX } else { SEEDS });
    Ok(Many { like, seeds, time, jobs, keep_going })
}

fn at_least_one(name: &str, value: &str) -> Result<u64, String> {
    match number(name, value)? {
        0 => Err(format!("{name} 0: expected at least 1")),
        some => Ok(some),
    }
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} {value:?}: expected a number"))
}

fn run_all(many: &Many) -> ExitCode {
    let started = Instant::now();
    let sum = run_many(many, |failure| println!("{failure}"));
    tell(&sum, started.elapsed());
    if sum.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn tell(Sum { seeds, stats, failed }: &Sum, time: Duration) {
    let found = match failed.as_slice() {
        [] => "nothing found".to_owned(),
        failed => format!("{} failed {failed:?}", failed.len()),
    };
    println!(
        "{seeds} seeds, {found}: {} steps, {} records, {} answers, {} deliveries, {} events, {} gaps, \
         {} restarts, {} syncs, {} backups, {} losses, {} bulks, {} cuts, {} repairs, {} elections, \
         {} transfers, {} read back, {} without a leader, {} unknown, {} installed, {} rests, \
         {} renumbered, {} changes of members, {} refused, {} removed nodes back, {} leases resumed, \
         {} disks filled, {} calls for which there was no room, {} transactions over several namespaces \
         committed, {} refused in {:.1} s",
        stats.steps,
        stats.records,
        stats.answers,
        stats.delivered,
        stats.heard,
        stats.gaps,
        stats.restarts,
        stats.syncs,
        stats.backups,
        stats.lost,
        stats.bulks,
        stats.cuts,
        stats.repairs,
        stats.elections,
        stats.transfers,
        stats.fetches,
        stats.unled,
        stats.unknown,
        stats.installs,
        stats.quiets,
        stats.renumbered,
        stats.changes,
        stats.refused,
        stats.returned,
        stats.resumed,
        stats.filled,
        stats.full,
        stats.committed,
        stats.aborted,
        time.as_secs_f64()
    );
}
