//! The simulator's only source of randomness: xoshiro256** seeded by splitmix64. It is the simulator's own
//! code, so that a seed gives the same run on every machine and with every version of every library.

/// A deterministic generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of this seed; any seed is valid, 0 too.
    pub fn new(seed: u64) -> Rng {
        let mut mix = seed;
        Rng { state: std::array::from_fn(|_| splitmix(&mut mix)) }
    }

    /// A separate generator for one part of the run, so that more draws in one part do not shift another.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let result = self.state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.state[1] << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= shifted;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with probability `times` / `of`.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    /// An index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of these at random; the slice must not be empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// One of these at random, in proportion to the weights.
    pub fn weighted<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let mut at = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in from {
            if at < *weight {
                return *item;
            }
            at -= weight;
        }
        from[from.len() - 1].1
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_run_for_ever() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(drawn, [12966619160104079557, 9600361134598540522, 10590380919521690900]);
        assert!((0..1000).all(|_| (3..=9).contains(&rng.between(3, 9))));
    }

    #[test]
    fn weights_are_kept() {
        let mut rng = Rng::new(7);
        let ones = (0..10_000).filter(|_| rng.weighted(&[(3, 0), (1, 1)]) == 1).count();
        assert!((2_200..2_800).contains(&ones), "{ones}");
    }
}
