//! Times in which a node applies one batch after the other, since a majority agrees.

/// Longest pause between two batches of one such time, in microseconds.
const PAUSE_US: u64 = 200_000;

/// Such a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreeing {
    from_us: u64,
    last_us: u64,
}

impl Agreeing {
    /// Notes that a batch is applied now.
    pub(super) fn note(&mut self, now_us: u64) {
        if self.last_us + PAUSE_US < now_us {
            self.from_us = now_us;
        }
        self.last_us = now_us;
    }

    /// True when it has lasted for so long, and goes on.
    pub(super) fn lasts(&self, for_us: u64, now_us: u64) -> bool {
        now_us <= self.last_us + PAUSE_US && self.from_us + for_us <= now_us
    }
}
