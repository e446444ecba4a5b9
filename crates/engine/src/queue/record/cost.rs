//! A cost beside another number: most records have none, and none is longer for it.

use crate::limit::COST_MAX;
use crate::limits::{DELAY_MS_MAX, LEASE_MS_MAX, RESULT_BYTES_MAX};

/// Bytes of the number, in front of the three of the cost.
pub(crate) const NUMBER_BYTES: usize = 5;

const NUMBER_BITS: u32 = 8 * NUMBER_BYTES as u32;
const NUMBER_MAX: u64 = (1 << NUMBER_BITS) - 1;
const _: () = assert!(DELAY_MS_MAX <= NUMBER_MAX && LEASE_MS_MAX <= NUMBER_MAX);
const _: () = assert!((RESULT_BYTES_MAX as u64) < NUMBER_MAX / 2 && COST_MAX < 1 << (64 - NUMBER_BITS));

/// Both as one number.
pub(crate) fn with_cost(number: u64, cost: u32) -> u64 {
    number.min(NUMBER_MAX) | u64::from(cost) << NUMBER_BITS
}

/// Both again.
#[inline]
pub(crate) fn without_cost(both: u64) -> (u64, u32) {
    (both & NUMBER_MAX, (both >> NUMBER_BITS) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_come_back() {
        for number in [0, 1, DELAY_MS_MAX, NUMBER_MAX] {
            for cost in [1, COST_MAX] {
                assert_eq!(without_cost(with_cost(number, cost)), (number, cost));
            }
        }
        assert_eq!(without_cost(with_cost(u64::MAX, 7)), (NUMBER_MAX, 7));
    }
}
