//! Capacity of a mailbox in number and in bytes, counted exactly. Both are in one word, so that a request is
//! accepted or refused at once, and none is refused for the sake of another that was refused as well.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// Bits of a load that count bytes; those above count requests.
const BYTES_BITS: u32 = 40;
/// Upper limit of the bytes of a load: half of what it can tell, so that no sum overflows.
const BYTES_LIMIT: u64 = 1 << (BYTES_BITS - 1);
/// Divisor of the limits: reserve for requests that relieve.
const RESERVE_DIVISOR: u64 = 8;

/// A number of requests and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load(u64);

impl Load {
    /// Load of one request.
    pub(super) fn of(bytes: usize) -> Load {
        debug_assert!((bytes as u64) >> BYTES_BITS == 0);
        Load(1 << BYTES_BITS | bytes as u64)
    }

    /// Adds another load.
    pub(super) fn add(&mut self, other: Load) {
        self.0 += other.0;
    }

    fn requests(self) -> u64 {
        self.0 >> BYTES_BITS
    }

    fn bytes(self) -> u64 {
        self.0 & ((1 << BYTES_BITS) - 1)
    }
}

/// Limits, and the part of them in use.
#[derive(Debug)]
pub(super) struct Capacity {
    taken: CachePadded<AtomicU64>,
    requests_max: u64,
    bytes_max: u64,
    /// The same limits for requests that relieve.
    reserve_requests_max: u64,
    reserve_bytes_max: u64,
}

impl Capacity {
    pub(super) fn new(requests_max: usize, bytes_max: u64) -> Capacity {
        let (requests_max, bytes_max) = (requests_max as u64, bytes_max.min(BYTES_LIMIT));
        Capacity {
            taken: CachePadded::default(),
            requests_max,
            bytes_max,
            reserve_requests_max: with_reserve(requests_max),
            reserve_bytes_max: with_reserve(bytes_max),
        }
    }

    /// Capacity for this number of requests of any size, without a reserve.
    pub(super) fn of_requests(requests_max: usize) -> Capacity {
        let requests_max = requests_max as u64;
        Capacity {
            taken: CachePadded::default(),
            requests_max,
            bytes_max: BYTES_LIMIT,
            reserve_requests_max: requests_max,
            reserve_bytes_max: BYTES_LIMIT,
        }
    }

    /// Reserves capacity for one request; false when there is none. `reserve`: from the reserve too.
    pub(super) fn enter(&self, one: Load, reserve: bool) -> bool {
        let fits = |taken| self.fits(Load(taken), one, reserve).then_some(taken + one.0);
        self.taken.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// True when one more request fits. A request that is alone fits whatever its size.
    fn fits(&self, taken: Load, one: Load, reserve: bool) -> bool {
        let (requests_max, bytes_max) = if reserve {
            (self.reserve_requests_max, self.reserve_bytes_max)
        } else {
            (self.requests_max, self.bytes_max)
        };
        let is_alone = taken.requests() == 0;
        taken.requests() < requests_max && (is_alone || taken.bytes() + one.bytes() <= bytes_max)
    }

    /// Frees capacity.
    pub(super) fn leave(&self, load: Load) {
        if load != Load::default() {
            self.taken.fetch_sub(load.0, Ordering::Relaxed);
        }
    }
}

fn with_reserve(most: u64) -> u64 {
    most + (most / RESERVE_DIVISOR).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_hold_and_each_has_a_reserve() {
        let room = Capacity::new(16, 800);
        assert!(room.enter(Load::of(700), false) && !room.enter(Load::of(101), false));
        assert!(room.enter(Load::of(100), false) && !room.enter(Load::of(1), false));
        assert!(room.enter(Load::of(100), true) && !room.enter(Load::of(1), true));
        for _ in 3..16 {
            assert!(room.enter(Load::of(0), true));
        }
        room.leave(Load::of(0));
        room.leave(Load::of(100));
        assert!(room.enter(Load::of(0), false) && room.enter(Load::of(0), false));
        assert!(!room.enter(Load::of(0), false), "sixteen are in");
        assert!(room.enter(Load::of(0), true) && room.enter(Load::of(0), true));
        assert!(!room.enter(Load::of(0), true), "and the reserve of two");
    }

    #[test]
    fn a_request_that_is_alone_fits_whatever_its_size() {
        let room = Capacity::new(16, 10);
        assert!(room.enter(Load::of(11), false) && !room.enter(Load::of(0), false));
        room.leave(Load::of(11));
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
    }
}
