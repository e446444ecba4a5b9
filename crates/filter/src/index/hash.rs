//! The hash in terms: FNV-1a with 64 bits, as draft-eastlake-fnv has it. It is fixed for ever, since terms
//! are stored and replicated. Anybody can make texts of the same hash; all that comes of it is candidates
//! that do not match.

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of bytes.
pub(super) fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the test suite in the draft's appendix.
    #[test]
    fn the_hash_is_that_of_the_draft() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("b", 0xaf63_df4c_8601_f1a5),
            ("foo", 0xdcb2_7518_fed9_d577),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv_1a(text.as_bytes()), hash, "{text}");
        }
    }
}
