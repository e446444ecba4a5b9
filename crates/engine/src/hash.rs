//! The one hash function: fixed, so that every machine agrees.

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles a number (the finalizer of splitmix64); a bijection.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hashes bytes. Each step is a bijection of what came before, so that a single damaged word is always seen.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = step(state, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut last = [0u8; 8];
        last[..rest.len()].copy_from_slice(rest);
        state = step(state, u64::from_le_bytes(last));
    }
    mix(state)
}

fn step(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_changes_the_hash() {
        let bytes: Vec<u8> = (0..29).collect();
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash(1, &bytes), hash(1, &other), "bit {bit}");
        }
        assert_ne!(hash(1, b"a"), hash(1, b"a\0"));
        assert_ne!(hash(1, b"a"), hash(2, b"a"));
    }
}
