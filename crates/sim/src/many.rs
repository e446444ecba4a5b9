//! Runs of many seeds on several threads. Each run stays on one thread, and is the same on any.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{Failure, Run, run};
use crate::world::Stats;

/// Runs of many seeds.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// The first seed, and the options of all runs.
    pub like: Run,
    /// Maximum number of seeds.
    pub seeds: u64,
    /// Time after which no run is begun; `None`: no limit.
    pub time: Option<Duration>,
    /// Number of runs at the same time; 0 means 1.
    pub jobs: usize,
    /// True to go on after a failure.
    pub keep_going: bool,
}

/// Results of many runs.
#[derive(Clone, Default, Debug)]
pub struct Sum {
    /// Number of seeds run to the end, or to their failure.
    pub seeds: u64,
    /// Sum over the runs without a failure.
    pub stats: Stats,
    /// The seeds that failed, in the order of failing.
    pub failed: Vec<u64>,
}

/// State shared by the threads.
struct Shared {
    begun: AtomicU64,
    ends: AtomicBool,
    sum: Mutex<Sum>,
}

/// Runs seeds until all are done, the time is over, or, unless `keep_going`, one fails. `tell` gets each
/// failure at once.
pub fn run_many(many: &Many, tell: impl Fn(&Failure) + Sync) -> Sum {
    let shared = Shared { begun: AtomicU64::new(0), ends: AtomicBool::new(false), sum: Mutex::default() };
    let until = many.time.map(|time| Instant::now() + time);
    thread::scope(|scope| {
        for _ in 0..many.jobs.max(1) {
            scope.spawn(|| {
                while let Some(next) = shared.next(many, until) {
                    shared.note(run(next), many.keep_going, &tell);
                }
            });
        }
    });
    shared.sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The next run; `None`: no more.
    fn next(&self, many: &Many, until: Option<Instant>) -> Option<Run> {
        let over = until.is_some_and(|until| Instant::now() >= until);
        if over || self.ends.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let seed = many.like.seed.checked_add(number)?;
        (number < many.seeds).then_some(Run { seed, ..many.like })
    }

    fn note(&self, result: Result<Stats, Failure>, keep_going: bool, tell: &impl Fn(&Failure)) {
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.seeds += 1;
        match result {
            Ok(stats) => sum.stats += stats,
            Err(failure) => {
                tell(&failure);
                sum.failed.push(failure.run.seed);
                self.ends.fetch_or(!keep_going, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::Plant;
    use crate::run::Kind;

    fn many(plant: Option<Plant>, jobs: usize, keep_going: bool) -> Sum {
        let like = Run { kind: Kind::Server, seed: 0, steps: 300, plant, verbose: false };
        run_many(&Many { like, seeds: 12, time: None, jobs, keep_going }, |_| ())
    }

    #[test]
    fn threads_change_nothing() {
        let (one, three) = (many(None, 1, false), many(None, 3, false));
        assert_eq!((one.seeds, one.stats, one.failed), (12, three.stats, three.failed));
    }

    #[test]
    fn a_failure_ends_the_runs_unless_they_are_to_go_on() {
        let ended = many(Some(Plant::SkipSync), 1, false);
        let all = many(Some(Plant::SkipSync), 1, true);
        assert_eq!((ended.failed.len(), all.seeds), (1, 12));
        assert!(ended.seeds < 12 && all.failed.len() > 1, "{:?} {:?}", ended.failed, all.failed);
    }

    #[test]
    fn no_run_begins_when_time_is_over() {
        let like = Run { kind: Kind::Server, seed: 0, steps: 300, plant: None, verbose: false };
        let time = Some(Duration::ZERO);
        let sum = run_many(&Many { like, seeds: u64::MAX, time, jobs: 2, keep_going: true }, |_| ());
        assert_eq!(sum.seeds, 0);
    }
}
