//! State of a redrive at a rate.

use crate::wire::{Put, Reader};

/// Slices per second of a fast redrive; a slow one gives one message at a time.
const SLICES_PER_SECOND: u32 = 100;

/// The state of a queue's redrive at a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Redrive {
    /// 0: none runs.
    pub(crate) per_second: u32,
    /// Generation below which dead letters are redriven.
    pub(crate) below: u32,
    /// Dead letters that are left to redrive.
    pub(crate) left: u64,
    /// When the next slice is due.
    pub(crate) next_us: u64,
}

impl Redrive {
    /// True if it is about dead letters of this generation.
    pub(crate) fn covers(&self, generation: u32) -> bool {
        self.per_second > 0 && generation < self.below
    }

    /// Messages of one slice.
    pub(crate) fn slice(&self) -> u32 {
        (self.per_second / SLICES_PER_SECOND).max(1)
    }

    /// A slice has given so many. One that came late is not made up for: that would be a burst.
    pub(crate) fn step(&mut self, given: u32, now_us: u64) {
        let pause_us = (u64::from(given) * 1_000_000).div_ceil(u64::from(self.per_second.max(1)));
        let next_us = self.next_us + pause_us;
        self.next_us = if next_us > now_us { next_us } else { now_us + pause_us };
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.per_second);
        out.u32(self.below);
        out.u64(self.left);
        out.u64(self.next_us);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Redrive> {
        Some(Redrive {
            per_second: reader.u32()?,
            below: reader.u32()?,
            left: reader.u64()?,
            next_us: reader.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_the_rate() {
        for per_second in [1, 7, 99, 100, 1_234, 100_000] {
            let mut redrive = Redrive { per_second, ..Redrive::default() };
            let mut given = 0;
            while redrive.next_us < 10_000_000 {
                given += redrive.slice();
                redrive.step(redrive.slice(), redrive.next_us);
            }
            let slack = redrive.slice() + per_second / 100;
            assert!(
                given <= per_second * 10 + slack && given + slack >= per_second * 10,
                "{per_second}: {given}"
            );
        }
    }

    #[test]
    fn what_comes_late_is_no_burst() {
        let mut redrive = Redrive { per_second: 10, ..Redrive::default() };
        redrive.step(1, 5_000_000);
        assert_eq!(redrive.next_us, 5_100_000);
    }
}
