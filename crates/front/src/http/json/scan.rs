//! The scan that reading and writing of strings share.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// How many bytes at the start of `bytes` stand for themselves in a JSON string: no quote, backslash or control
/// character. Eight at a time: the lowest marked byte is exact, and only that is used.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let special = zero_bytes(word ^ (ONES * u64::from(b'"')))
            | zero_bytes(word ^ (ONES * u64::from(b'\\')))
            | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS);
        if special != 0 {
            return at * 8 + (special.trailing_zeros() / 8) as usize;
        }
    }
    let plain = rest.iter().take_while(|byte| !matches!(**byte, b'"' | b'\\' | 0..0x20)).count();
    words.len() * 8 + plain
}

fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_at_each_place_is_judged_as_one_by_one() {
        for length in 0..20 {
            for place in 0..length {
                for byte in 0..=255u8 {
                    for filler in [b'a', 0xff, 0x20, 0x21] {
                        let mut bytes = vec![filler; length];
                        bytes[place] = byte;
                        let special = matches!(byte, b'"' | b'\\' | 0..0x20);
                        assert_eq!(plain_len(&bytes), if special { place } else { length });
                    }
                }
            }
        }
    }
}
