//! The rate of an identity's requests: GCRA, one number per identity, without a lock.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Largest rate and burst.
pub(super) const RATE_MAX: u32 = 10_000_000;

/// A rate of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestRate {
    /// Requests per second, on average.
    pub per_s: u32,
    /// Requests that may come at once.
    pub burst: u32,
}

/// The count of one identity.
pub(crate) struct Limiter {
    rate: RequestRate,
    began: Instant,
    interval_ns: u64,
    burst_ns: u64,
    /// Time at which all requests so far would conform to an even rate, in ns after `began`.
    next_ns: AtomicU64,
}

/// Shows the rate, which is all that a person chooses.
impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("rate", &self.rate).finish_non_exhaustive()
    }
}

impl Limiter {
    pub(crate) fn new(rate: RequestRate) -> Limiter {
        let interval_ns = 1_000_000_000 / u64::from(rate.per_s.max(1));
        let burst_ns = interval_ns * u64::from(rate.burst.max(1));
        Limiter { rate, began: Instant::now(), interval_ns, burst_ns, next_ns: AtomicU64::new(0) }
    }

    pub(crate) fn rate(&self) -> RequestRate {
        self.rate
    }

    /// Counts a request, or tells after how many milliseconds there is room for it. One that `relieves` makes
    /// less of what there is to do: it counts, and is refused only far beyond the burst.
    pub(crate) fn take(&self, relieves: bool) -> Result<(), u64> {
        let (now_ns, allowed_ns) = self.now_and_allowed_ns(relieves);
        let took = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_ns| {
            let next_ns = next_ns.max(now_ns) + self.interval_ns;
            (next_ns - now_ns <= allowed_ns).then_some(next_ns)
        });
        took.map(drop).map_err(|next_ns| {
            (next_ns.max(now_ns) + self.interval_ns - now_ns - allowed_ns).div_ceil(1_000_000).max(1)
        })
    }

    /// True if the rate leaves room for a request at this moment; counts none.
    pub(crate) fn has_room(&self, relieves: bool) -> bool {
        let (now_ns, allowed_ns) = self.now_and_allowed_ns(relieves);
        self.next_ns.load(Ordering::Relaxed).max(now_ns) + self.interval_ns - now_ns <= allowed_ns
    }

    fn now_and_allowed_ns(&self, relieves: bool) -> (u64, u64) {
        let bursts = if relieves { RELIEVES } else { 1 };
        (self.began.elapsed().as_nanos() as u64, self.burst_ns.saturating_mul(bursts))
    }
}

/// Bursts that requests which settle or extend may use.
const RELIEVES: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_then_no_more() {
        let limiter = Limiter::new(RequestRate { per_s: 1, burst: 3 });
        assert_eq!((0..3).filter(|_| limiter.has_room(false) && limiter.take(false).is_ok()).count(), 3);
        assert!(!limiter.has_room(false) && limiter.has_room(true));
        let wait_ms = limiter.take(false).unwrap_err();
        assert_eq!(wait_ms, 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn settling_goes_on_when_sending_may_not() {
        let limiter = Limiter::new(RequestRate { per_s: 1, burst: 2 });
        while limiter.take(false).is_ok() {}
        assert!(limiter.take(true).is_ok());
        assert!((0..100).any(|_| limiter.take(true).is_err()), "not for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn room_comes_back_with_time() {
        let limiter = Limiter::new(RequestRate { per_s: 200, burst: 1 });
        assert!(limiter.take(false).is_ok() && limiter.take(false).is_err());
        tokio::time::advance(std::time::Duration::from_millis(5)).await;
        assert!(limiter.take(false).is_ok());
    }
}
