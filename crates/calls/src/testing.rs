//! Helpers for tests: a node in memory, and numbers that repeat.

use sluice_node::{Durability, Node, Options};

/// A node in memory, with one shard.
pub fn node() -> Node {
    let options = Options {
        data_dir: None,
        shards: 1,
        durability: Durability::Os,
        cache_bytes: 1 << 20,
        limits: Default::default(),
        mailbox_requests: 1_024,
        mailbox_bytes: 256 << 20,
        waiting_receives: 100,
        events: Default::default(),
        reserve_bytes: 0,
        low_water_bytes: 0,
        accept_clock_jump: false,
        encryption: Default::default(),
        key_source: None,
    };
    Node::start(options).unwrap()
}

/// A small generator with a fixed seed (splitmix64), so that a failure repeats.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Changes `bytes` in one to four places.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const TOKENS: &[&[u8]] = &[
            b"\"",
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"null",
            b"-1",
            b"1e9",
            b"\\ud800",
            b"\xff",
            b"99999999999999999999",
        ];
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = self.next() as u8,
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                2 => bytes.truncate(at),
                3 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    bytes.splice(at..at, token.iter().copied());
                }
                _ => {
                    let to = at + self.below(bytes.len() - at + 1);
                    let piece = bytes[at..to].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
}
