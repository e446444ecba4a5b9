//! The share of a log's bandwidth that uploads take: a quarter at most.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Pause after a chunk, in multiples of the time that it took: so uploads take a quarter of the time.
const PAUSE_PER_TIME: u32 = 3;
/// Longest pause: a chunk that waited for a leader has not burdened the log for so long.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Pause behind a chunk that nobody waits for any more, from its beginning.
const PAUSE_OF_GONE: Duration = Duration::from_millis(500);

/// The uploads of a shard: one chunk at a time, in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Time before which no chunk is taken; `None`: any time.
    next: Mutex<Option<Instant>>,
}

/// One for each shard.
pub(crate) fn of_shards(shards: u32) -> Vec<Pace> {
    (0..shards).map(|_| Pace::default()).collect()
}

impl Pace {
    /// Takes a chunk when it is its turn.
    pub(crate) async fn take<T>(&self, chunk: impl Future<Output = T>) -> T {
        let mut next = self.next.lock().await;
        if let Some(next) = *next {
            sleep_until(next).await;
        }
        let begun = Instant::now();
        // For a caller that goes away while its chunk is on its way to the disk.
        *next = Some(begun + PAUSE_OF_GONE);
        let taken = chunk.await;
        let now = Instant::now();
        *next = Some(now + ((now - begun) * PAUSE_PER_TIME).min(PAUSE_MAX));
        taken
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Checks a time up to the rounding of timers, a millisecond each.
    fn is_about(found: Duration, expected_ms: u64, timers: u64) {
        let expected = Duration::from_millis(expected_ms)..=Duration::from_millis(expected_ms + timers);
        assert!(expected.contains(&found), "{found:?} is not in {expected:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn uploads_take_a_quarter_of_the_time() {
        let (pace, begun) = (Pace::default(), Instant::now());
        let chunk = || pace.take(async { sleep(Duration::from_millis(10)).await });
        tokio::join!(chunk(), chunk(), chunk());
        // Each pause is three times as long as its chunk took, rounding included.
        is_about(begun.elapsed(), 10 + 30 + 10 + 30 + 10, 11);
        sleep(Duration::from_millis(100)).await;
        let later = Instant::now();
        chunk().await;
        is_about(later.elapsed(), 10, 1);
        pace.take(sleep(Duration::from_secs(60))).await;
        let last = Instant::now();
        chunk().await;
        is_about(last.elapsed(), PAUSE_MAX.as_millis() as u64 + 10, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_goes_away_leaves_its_turn() {
        let pace = Pace::default();
        let gone = tokio::time::timeout(Duration::from_millis(5), pace.take(sleep(Duration::from_secs(1))));
        assert!(gone.await.is_err());
        let begun = Instant::now();
        pace.take(async {}).await;
        is_about(begun.elapsed(), PAUSE_OF_GONE.as_millis() as u64 - 5, 1);
    }
}
