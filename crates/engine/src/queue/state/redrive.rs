//! State of a redrive at a rate.

use crate::pace::{next_due_us, portion};
use crate::wire::{Put, Reader};

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
        portion(self.per_second)
    }

    /// A slice has given so many.
    pub(crate) fn step(&mut self, given: u32, now_us: u64) {
        self.next_us = next_due_us(self.next_us, now_us, given, self.per_second);
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
