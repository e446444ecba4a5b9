//! The scan that reading and writing of strings share.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Number of bytes at the start of `bytes` that stand for themselves in a JSON string: no quote, backslash or
/// control character.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<32>();
    let plain = 32 * blocks.iter().take_while(|block| is_plain(block)).count();
    plain + plain_len_by_words(&bytes[plain..])
}

/// Without branches, so that the compiler makes vector instructions of it.
#[inline]
fn is_plain(block: &[u8; 32]) -> bool {
    block.iter().fold(true, |plain, byte| plain & (*byte >= 0x20) & (*byte != b'"') & (*byte != b'\\'))
}

/// Eight at a time: the lowest marked byte is exact, and only that is used.
fn plain_len_by_words(bytes: &[u8]) -> usize {
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
        for length in [0, 1, 7, 8, 9, 15, 20, 31, 32, 33, 50, 64, 70] {
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
