//! Waits before campaigns, drawn from a seed.
//!
//! The library draws a wait of its own, from the system's randomness, whenever it begins a role or a term. It
//! is told a range that reaches to the end of the numbers, so that its draw lies beyond any wait of ours:
//! that shows that it has drawn, and ours takes its place before anything can depend on it.

use raft::Raft;

use super::log::Log;

/// A source of waits.
pub(super) struct Timeouts {
    state: u64,
    election_ticks: usize,
}

impl Timeouts {
    /// Waits between so many ticks and the double.
    pub(super) fn new(seed: u64, election_ticks: usize) -> Timeouts {
        Timeouts { state: seed, election_ticks }
    }

    /// Puts a wait in the place of one that the library has drawn.
    pub(super) fn replace(&mut self, raft: &mut Raft<Log>) {
        if raft.randomized_election_timeout() >= 2 * self.election_ticks {
            let wait = self.election_ticks + (self.draw() % self.election_ticks as u64) as usize;
            raft.set_randomized_election_timeout(wait);
        }
    }

    /// The next number of splitmix64.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
