//! Waits before campaigns, drawn from a seed.
//!
//! The library draws a wait of its own, from the system's randomness, whenever it begins a role or a term. It
//! is told a range that reaches to the end of the numbers, so that its draw lies beyond any wait of ours:
//! that shows that it has drawn, and ours takes its place before anything can depend on it.

use raft::Raft;

use super::log::Log;

/// Number of ticks between the campaigns of two followers that have lost their leader: the votes of the first
/// are synced meanwhile, so that the second does not split them.
const TURN_TICKS: usize = 3;

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

    /// Ends the wait for a leader that is lost, so that the voter with this turn, from 0, campaigns soon.
    pub(super) fn hasten(&self, raft: &mut Raft<Log>, turn: usize) {
        let wait = self.election_ticks + 1 + turn * TURN_TICKS;
        raft.election_elapsed = raft.election_elapsed.max(self.election_ticks);
        raft.set_randomized_election_timeout(wait.min(raft.randomized_election_timeout()));
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
