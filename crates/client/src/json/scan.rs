//! Scan for the part of a JSON string that needs no decoding.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// Names and ids end within so many bytes mostly; only behind them blocks pay.
const SHORT: usize = 16;
/// Bytes that are looked at together; compilers turn such a loop into a few vector instructions.
const BLOCK: usize = 32;

/// Number of bytes at the start of `bytes` that stand for themselves in a JSON string: no quote, backslash or
/// control character.
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let short = plain_len_by_words(bytes.get(..SHORT).unwrap_or(bytes));
    if short < SHORT {
        return short;
    }
    let mut from = SHORT;
    while let Some(block) = bytes.get(from..from + BLOCK) {
        if block.iter().fold(false, |found, byte| found | is_special(*byte)) {
            break;
        }
        from += BLOCK;
    }
    from + plain_len_by_words(&bytes[from..])
}

/// Eight at a time. The lowest marked byte is exact, those above it may be marked by a borrow; only the
/// lowest is used.
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
    words.len() * 8 + rest.iter().take_while(|byte| !is_special(**byte)).count()
}

fn is_special(byte: u8) -> bool {
    // Without short cuts, which would keep the loop above from being vectorised.
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_at_each_place_is_judged_as_one_by_one() {
        for length in (0..20).chain(30..36).chain(62..70) {
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
