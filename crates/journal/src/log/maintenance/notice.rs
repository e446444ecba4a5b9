//! Notices for the operator.

use std::io;

/// Shortest time between two notices of missing file handles, in microseconds.
const HANDLES_EVERY_US: u64 = 60_000_000;

/// Notice for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Free space has fallen below the low-water mark.
    LowWater {
        /// Bytes that are free.
        free_bytes: u64,
        /// The mark: [`crate::Options::low_water_bytes`].
        low_water_bytes: u64,
    },
    /// There is more free space than the low-water mark again.
    Room {
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// The process, or the system, has no file handles left: background work waits, and is tried again.
    OutOfHandles {
        /// Error of the system.
        error: String,
    },
}

/// Notices that were not collected yet.
#[derive(Debug, Default)]
pub(super) struct Notices {
    low: bool,
    handles_at_us: u64,
    waiting: Vec<Notice>,
}

impl Notices {
    pub(super) fn space(&mut self, free_bytes: u64, low_water_bytes: u64) {
        // A little more than the mark, so that it is not told again and again.
        if !self.low && free_bytes < low_water_bytes {
            self.low = true;
            self.waiting.push(Notice::LowWater { free_bytes, low_water_bytes });
        } else if self.low && free_bytes >= low_water_bytes + low_water_bytes / 8 {
            self.low = false;
            self.waiting.push(Notice::Room { free_bytes });
        }
    }

    pub(super) fn out_of_handles(&mut self, now_us: u64, error: &io::Error) {
        if now_us >= self.handles_at_us {
            self.handles_at_us = now_us + HANDLES_EVERY_US;
            self.waiting.push(Notice::OutOfHandles { error: error.to_string() });
        }
    }

    fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.waiting)
    }
}

impl super::Maintenance {
    /// Takes the notices since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }
}
