//! Measuring a row: time over several rounds, then what it takes from the allocator.

use std::time::{Duration, Instant};

use sluice_alloc_count::{Counts, Mode, counts, set_mode};

use crate::rows::{Prepared, Row};
use crate::stats::{Samples, per};

/// The result of a row, per message.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Time, in nanoseconds: the median of the rounds.
    pub ns: f64,
    /// Difference of the slowest and the fastest round, in percent of the median.
    pub spread_percent: f64,
    /// Allocations.
    pub allocs: f64,
    /// Bytes that were allocated.
    pub bytes: f64,
    /// Time within the allocator, in nanoseconds.
    pub allocator_ns: f64,
}

impl Measured {
    /// The allocator's part of the time, in percent.
    pub fn allocator_percent(&self) -> f64 {
        if self.ns > 0.0 { self.allocator_ns / self.ns * 100.0 } else { 0.0 }
    }
}

/// Measures a row in so many rounds, each on a fresh engine.
///
/// # Errors
/// Steps that do not move what they should.
pub fn measure(row: &Row, steps: u64, rounds: u32) -> Result<Measured, String> {
    round(row, steps, Mode::Off)?; // warms caches and the processor
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(per(round(row, steps, Mode::Off)?.0.as_nanos() as f64, steps * row.messages));
    }
    let times: Samples = times.into_iter().collect();
    let (_, counted) = round(row, steps, Mode::Count)?;
    let (_, timed) = round(row, steps, Mode::Time)?;
    let messages = steps * row.messages;
    Ok(Measured {
        ns: times.median(),
        spread_percent: times.spread_percent(),
        allocs: per(counted.allocations as f64, messages),
        bytes: per(counted.bytes as f64, messages),
        allocator_ns: per(timed.time().as_nanos() as f64, messages),
    })
}

/// One round: how long its steps took, and what they took from the allocator.
///
/// # Errors
/// Steps that do not move what they should.
pub fn round(row: &Row, steps: u64, mode: Mode) -> Result<(Duration, Counts), String> {
    let mut prepared = row.prepare(steps);
    set_mode(mode);
    let before = counts();
    let start = Instant::now();
    take_counted_steps(&mut prepared, steps);
    let elapsed = start.elapsed();
    let taken = counts().since(&before);
    set_mode(Mode::Off);
    prepared.verify().map_err(|failure| format!("row {}: {failure}", row.name))?;
    Ok((elapsed, taken))
}

/// Name of the function that callgrind counts in.
pub const COUNTED_FUNCTION: &str = "take_counted_steps";

#[inline(never)]
fn take_counted_steps(prepared: &mut Prepared, steps: u64) {
    for _ in 0..steps {
        prepared.step();
    }
}

/// The time of every single step, in nanoseconds and sorted. Reading the clock once a step is in each of
/// them.
///
/// # Errors
/// Steps that do not move what they should.
pub fn step_times(row: &Row, steps: u64) -> Result<Vec<u64>, String> {
    let mut prepared = row.prepare(steps);
    let mut times = Vec::with_capacity(steps as usize);
    let mut last = Instant::now();
    for _ in 0..steps {
        prepared.step();
        let now = Instant::now();
        times.push((now - last).as_nanos() as u64);
        last = now;
    }
    prepared.verify().map_err(|failure| format!("row {}: {failure}", row.name))?;
    times.sort_unstable();
    Ok(times)
}
