//! A network that loses, repeats, delays and reorders messages, damages some, and has links that are cut.

use std::collections::BTreeSet;

use crate::rng::Rng;

/// Longest delay of a message that is not late, in microseconds, when nothing is worse than usual.
const DELAY_US: u64 = 2_000;

#[derive(Debug)]
pub(super) struct Network {
    /// Number of nodes, by whose places links are named.
    pub(super) nodes: usize,
    /// Links that are cut, by sender and receiver.
    cut: BTreeSet<(usize, usize)>,
    /// Longest delay of a message that is not late, in microseconds.
    pub(super) delay_us: u64,
    /// Messages lost, repeated and late, each of 1,000.
    pub(super) lost: u64,
    pub(super) repeated: u64,
    pub(super) late: u64,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Network {
        Network { nodes, cut: BTreeSet::new(), delay_us: DELAY_US, lost: 0, repeated: 0, late: 0 }
    }

    /// Repairs all links and loses nothing any more.
    pub(super) fn heal(&mut self) {
        *self = Network::new(self.nodes);
    }

    /// Cuts the links between those of this side and the others, one way or both.
    pub(super) fn cut(&mut self, side: &[usize], outwards: bool, inwards: bool) {
        for (from, to) in (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to))) {
            let (from_side, to_side) = (side.contains(&from), side.contains(&to));
            if (from_side && !to_side && outwards) || (!from_side && to_side && inwards) {
                self.cut.insert((from, to));
            }
        }
    }

    /// Repairs all links.
    pub(super) fn join(&mut self) {
        self.cut.clear();
    }

    /// True when nothing comes over this link.
    pub(super) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cut.contains(&(from, to))
    }

    /// Delays after which copies of a message arrive, in microseconds.
    pub(super) fn send(&self, from: usize, to: usize, rng: &mut Rng) -> Vec<u64> {
        if self.is_cut(from, to) || rng.chance(self.lost, 1_000) {
            return Vec::new();
        }
        let copies = 1 + u64::from(rng.chance(self.repeated, 1_000));
        (0..copies)
            .map(|_| match rng.chance(self.late, 1_000) {
                true => rng.between(self.delay_us, 800_000),
                false => rng.between(100, self.delay_us),
            })
            .collect()
    }
}
