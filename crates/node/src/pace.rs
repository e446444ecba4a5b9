//! The share of a log's bandwidth that uploads take: a quarter at most, while others write too.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Pause after a chunk beside other writes, in multiples of the time that it took: so uploads take a quarter
/// of the time.
const PAUSE_PER_TIME: u32 = 3;
/// Longest pause: a chunk that waited for a leader has not burdened the log for so long.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Pause behind a chunk that nobody waits for any more, from its beginning.
const PAUSE_OF_GONE: Duration = Duration::from_millis(500);

/// The uploads of a shard: one chunk at a time, in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Mutex<Last>,
}

/// The chunk before.
#[derive(Debug, Default)]
struct Last {
    /// Time before which no chunk is taken beside other writes; `None`: any time.
    next: Option<Instant>,
    /// Number of records that there are if nothing else was written since that chunk began.
    records: u64,
}

/// One for each shard.
pub(crate) fn of_shards(shards: u32) -> Vec<Pace> {
    (0..shards).map(|_| Pace::default()).collect()
}

impl Pace {
    /// Takes a chunk, one record, when it is its turn. `records` counts the records that were written, chunks
    /// among them.
    pub(crate) async fn take<T>(
        &self,
        records: impl Future<Output = u64>,
        chunk: impl Future<Output = T>,
    ) -> T {
        let mut last = self.last.lock().await;
        let records = records.await;
        if let Some(next) = last.next.filter(|_| records != last.records) {
            sleep_until(next).await;
        }
        let begun = Instant::now();
        // For a caller that goes away while its chunk is on its way to the disk.
        *last = Last { next: Some(begun + PAUSE_OF_GONE), records: records + 1 };
        let taken = chunk.await;
        let now = Instant::now();
        last.next = Some(now + ((now - begun) * PAUSE_PER_TIME).min(PAUSE_MAX));
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::sleep;

    use super::*;

    /// Checks a time up to the rounding of timers, a millisecond each.
    fn is_about(found: Duration, expected_ms: u64, timers: u64) {
        let expected = Duration::from_millis(expected_ms)..=Duration::from_millis(expected_ms + timers);
        assert!(expected.contains(&found), "{found:?} is not in {expected:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn uploads_take_a_quarter_of_the_time() {
        let (pace, begun, records) = (Pace::default(), Instant::now(), Cell::new(0));
        // Between any two chunks there is another write.
        let count = || async { records.replace(records.get() + 2) };
        let chunk = || pace.take(count(), async { sleep(Duration::from_millis(10)).await });
        tokio::join!(chunk(), chunk(), chunk());
        // Each pause is three times as long as its chunk took, rounding included.
        is_about(begun.elapsed(), 10 + 30 + 10 + 30 + 10, 11);
        sleep(Duration::from_millis(100)).await;
        let later = Instant::now();
        chunk().await;
        is_about(later.elapsed(), 10, 1);
        pace.take(count(), sleep(Duration::from_secs(60))).await;
        let last = Instant::now();
        chunk().await;
        is_about(last.elapsed(), PAUSE_MAX.as_millis() as u64 + 10, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn uploads_that_are_alone_do_not_wait() {
        let (pace, begun, records) = (Pace::default(), Instant::now(), Cell::new(0));
        let chunk = || {
            let count = async { records.replace(records.get() + 1) };
            pace.take(count, async { sleep(Duration::from_millis(10)).await })
        };
        tokio::join!(chunk(), chunk(), chunk());
        is_about(begun.elapsed(), 30, 3);
        records.set(records.get() + 1);
        chunk().await;
        is_about(begun.elapsed(), 30 + 30 + 10, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_goes_away_leaves_its_turn() {
        let pace = Pace::default();
        let chunk = pace.take(async { 7 }, sleep(Duration::from_secs(1)));
        assert!(tokio::time::timeout(Duration::from_millis(5), chunk).await.is_err());
        let begun = Instant::now();
        pace.take(async { 9 }, async {}).await;
        is_about(begun.elapsed(), PAUSE_OF_GONE.as_millis() as u64 - 5, 1);
    }
}
