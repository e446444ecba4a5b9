//! Counters, and the switch for counting.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Interval of the calls that are timed in [`Mode::Time`]. It is a prime, so that it does not coincide with
/// the period of a loop.
pub const TIMED_ONE_IN: u64 = 7;

/// The counting that the allocator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Count nothing.
    Off,
    /// Count calls and bytes of each thread.
    Count,
    /// Count, and measure the time of one call in [`TIMED_ONE_IN`].
    Time,
    /// Count the blocks that all threads allocate, for [`total_allocations`].
    Total,
}

static MODE: AtomicU8 = AtomicU8::new(0);
/// Time of reading the clock twice, in picoseconds; it is subtracted from each timed call.
static CLOCK_PS: AtomicU64 = AtomicU64::new(0);

/// One cell of [`TOTALS`], alone on its cache line.
#[repr(align(128))]
struct Total(AtomicU64);

/// Blocks taken by all threads, which share so many cells in turn: each has mostly one of its own.
static TOTALS: [Total; 32] = [const { Total(AtomicU64::new(0)) }; 32];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CELL: usize = THREADS.fetch_add(1, Ordering::Relaxed) % TOTALS.len();
    // Without a destructor and initialised by the compiler: the first touch allocates nothing.
    static COUNTS: Cell<Counts> = const { Cell::new(Counts::ZERO) };
}

/// Counts of the calling thread while counting was on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Number of blocks allocated; growing or shrinking a block counts as one.
    pub allocations: u64,
    /// Number of bytes requested; a block that grows counts by the difference.
    pub bytes: u64,
    /// Bytes held: allocated less freed, each block as mimalloc rounds it: to 16 bytes, and from 64 bytes on
    /// to a quarter of the next lower power of two. Negative when a thread frees what another has allocated.
    pub held_bytes: i64,
    /// Number of calls that were timed.
    pub timed_calls: u64,
    /// Number of all calls, frees included.
    pub calls: u64,
    /// Time of the timed calls, in picoseconds, without that of reading the clock.
    timed_ps: i64,
}

impl Counts {
    const ZERO: Counts =
        Counts { allocations: 0, bytes: 0, held_bytes: 0, timed_calls: 0, calls: 0, timed_ps: 0 };

    /// The difference to `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            allocations: self.allocations - before.allocations,
            bytes: self.bytes - before.bytes,
            held_bytes: self.held_bytes - before.held_bytes,
            timed_calls: self.timed_calls - before.timed_calls,
            calls: self.calls - before.calls,
            timed_ps: self.timed_ps - before.timed_ps,
        }
    }

    /// Time of all calls, extrapolated from those that were timed.
    pub fn time(&self) -> Duration {
        if self.timed_calls == 0 {
            return Duration::ZERO;
        }
        let mean_ps = self.timed_ps.max(0) as f64 / self.timed_calls as f64;
        Duration::from_secs_f64(mean_ps * self.calls as f64 / 1e12)
    }
}

/// Counts of the calling thread so far.
pub fn counts() -> Counts {
    COUNTS.get()
}

/// Number of blocks that all threads have allocated while [`Mode::Total`] was on; growing or shrinking one
/// counts as one.
pub fn total_allocations() -> u64 {
    TOTALS.iter().map(|total| total.0.load(Ordering::Relaxed)).sum()
}

/// Switches counting for the whole process. The first switch to [`Mode::Time`] calibrates the clock, for some
/// milliseconds.
pub fn set_mode(mode: Mode) {
    if mode == Mode::Time && CLOCK_PS.load(Ordering::Relaxed) == 0 {
        CLOCK_PS.store(clock_cost_ps(), Ordering::Relaxed);
    }
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// True when counting is on: the only cost outside of benchmarks.
#[inline(always)]
pub(crate) fn off() -> bool {
    MODE.load(Ordering::Relaxed) == Mode::Off as u8
}

/// Runs one call of the allocator beneath and counts it.
#[cold]
#[inline(never)]
pub(crate) fn counted<T>(taken: Option<usize>, given_back: Option<usize>, call: impl FnOnce() -> T) -> T {
    if MODE.load(Ordering::Relaxed) == Mode::Total as u8 {
        if taken.is_some() {
            // A thread that is ending has no cell any more.
            let cell = CELL.try_with(|cell| *cell).unwrap_or(0);
            TOTALS[cell].0.fetch_add(1, Ordering::Relaxed);
        }
        return call();
    }
    let mut counts = COUNTS.get();
    counts.calls += 1;
    if let Some(bytes) = taken {
        counts.allocations += 1;
        counts.bytes += bytes.saturating_sub(given_back.unwrap_or(0)) as u64;
        counts.held_bytes += block_bytes(bytes);
    }
    counts.held_bytes -= given_back.map_or(0, block_bytes);
    let timed = MODE.load(Ordering::Relaxed) == Mode::Time as u8 && counts.calls.is_multiple_of(TIMED_ONE_IN);
    let result = if timed {
        let start = Instant::now();
        let result = call();
        let ps = start.elapsed().as_nanos() as i64 * 1_000;
        counts.timed_calls += 1;
        counts.timed_ps += ps - CLOCK_PS.load(Ordering::Relaxed) as i64;
        result
    } else {
        call()
    };
    COUNTS.set(counts);
    result
}

fn block_bytes(asked: usize) -> i64 {
    let step = if asked <= 64 { 16 } else { asked.next_power_of_two() / 8 };
    asked.next_multiple_of(step.min(4096)).max(8) as i64
}

/// Mean of many empty measurements; the least of some rounds, since an interruption only adds.
fn clock_cost_ps() -> u64 {
    const ROUNDS: u32 = 50;
    const READS: u32 = 2_000;
    let round = || {
        let mut sum = Duration::ZERO;
        for _ in 0..READS {
            let start = Instant::now();
            sum += std::hint::black_box(start.elapsed());
        }
        (sum.as_nanos() * 1_000) as u64 / u64::from(READS)
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_rounded_as_mimalloc_does() {
        assert_eq!([1, 17, 64, 65, 81, 128, 129, 161].map(block_bytes), [16, 32, 64, 80, 96, 128, 160, 192]);
    }

    #[test]
    fn a_grown_block_counts_its_growth_and_holds_its_whole() {
        let before = counts();
        counted(Some(100), None, || ());
        counted(Some(300), Some(100), || ());
        let done = counts().since(&before);
        assert_eq!((done.allocations, done.bytes, done.calls), (2, 300, 2));
        assert_eq!(done.held_bytes, block_bytes(300));
        counted(None, Some(300), || ());
        assert_eq!(counts().since(&before).held_bytes, 0);
    }

    #[test]
    fn time_is_inferred_from_the_timed_calls() {
        let counts = Counts { calls: 700, timed_calls: 100, timed_ps: 2_000_000, ..Counts::ZERO };
        assert_eq!(counts.time(), Duration::from_nanos(14_000));
        assert_eq!(Counts::ZERO.time(), Duration::ZERO);
    }
}
