//! Bits to text: 12 bits a step, which are two symbols mostly, through a table of 16 KiB. Longer codes are
//! rare (control characters and what is not ASCII) and are found by their length.

use super::code::{CODE, CODE_BITS_MAX, END};

const STEP_BITS: u32 = 12;

/// Bits of the shortest code, and so what bounds how much longer a text can become.
const CODE_BITS_MIN: usize = 5;

/// The symbols that begin with 12 given bits.
#[derive(Clone, Copy)]
struct CodeStep {
    symbols: [u8; 2],
    /// Bits of the first symbol's code; 0 when it has more than there are.
    first_bits: u8,
    /// Bits of all symbols that lie in these 12; as `first_bits` when that is one only.
    all_bits: u8,
}

static STEPS: [CodeStep; 1 << STEP_BITS] = steps();

const fn steps() -> [CodeStep; 1 << STEP_BITS] {
    let mut steps = [CodeStep { symbols: [0; 2], first_bits: 0, all_bits: 0 }; 1 << STEP_BITS];
    let mut word = 0;
    while word < steps.len() {
        let (first, first_bits) = short_symbol(word as u32, STEP_BITS);
        let left = STEP_BITS - first_bits;
        let (second, second_bits) = match first_bits {
            0 => (0, 0),
            _ => short_symbol(word as u32 & ((1 << left) - 1), left),
        };
        let all_bits = (first_bits + second_bits) as u8;
        steps[word] = CodeStep { symbols: [first, second], first_bits: first_bits as u8, all_bits };
        word += 1;
    }
    steps
}

/// The symbol with which a word of so many bits begins, and the bits of its code; 0 bits when the code is
/// longer than the word.
const fn short_symbol(word: u32, word_bits: u32) -> (u8, u32) {
    let mut bits = CODE_BITS_MIN as u32;
    while bits <= word_bits {
        let length = CODE.lengths[bits as usize];
        let code = word >> (word_bits - bits);
        if code < length.first_code + length.count {
            return (CODE.symbols[(length.symbols_from + code - length.first_code) as usize] as u8, bits);
        }
        bits += 1;
    }
    (0, 0)
}

/// A code of more than 12 bits with which `bits` (left-aligned) begin: its symbol, and its length in bits.
#[cold]
fn long_symbol(bits: u64) -> (u16, u32) {
    static LENGTHS: [super::code::Length; CODE_BITS_MAX as usize + 1] = CODE.lengths;
    static SYMBOLS: [u16; 257] = CODE.symbols;
    for code_bits in STEP_BITS + 1..=CODE_BITS_MAX {
        let length = LENGTHS[code_bits as usize];
        let code = (bits >> (64 - code_bits)) as u32;
        // Shorter codes are lower numbers, so that what reaches this length begins at its first code.
        if code < length.first_code + length.count {
            return (SYMBOLS[(length.symbols_from + code - length.first_code) as usize], code_bits);
        }
    }
    (END, CODE_BITS_MAX)
}

/// Appends the decoded text. `None`: it holds the symbol for its end, or what is left behind the last symbol
/// is longer than 7 bits or not all ones (§5.2); what was appended until then is rubbish.
pub(in crate::hpack) fn decode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    // Each step writes two bytes and keeps those that are meant.
    out.resize(start + text.len() * 8 / CODE_BITS_MIN + 2, 0);
    let written = decode_into(text, &mut out[start..])?;
    out.truncate(start + written);
    Some(())
}

fn decode_into(mut text: &[u8], out: &mut [u8]) -> Option<usize> {
    // The next bits, left-aligned, and how many they are; those behind them are zero.
    let (mut bits, mut held, mut at) = (0u64, 0u32, 0);
    loop {
        if held < 32 {
            let Some((word, rest)) = text.split_first_chunk::<4>() else { break };
            bits |= u64::from(u32::from_be_bytes(*word)) << (32 - held);
            held += 32;
            text = rest;
        }
        let step = STEPS[(bits >> (64 - STEP_BITS)) as usize];
        let used = if step.first_bits > 0 {
            out[at..at + 2].copy_from_slice(&step.symbols);
            at += 1 + usize::from(step.all_bits > step.first_bits);
            u32::from(step.all_bits)
        } else {
            let (symbol, code_bits) = long_symbol(bits);
            out[at] = u8::try_from(symbol).ok()?;
            at += 1;
            code_bits
        };
        bits <<= used;
        held -= used;
    }
    for &byte in text {
        bits |= u64::from(byte) << (56 - held);
        held += 8;
    }
    decode_end(bits, held, out, at)
}

/// The last bits, fewer than 64, one symbol at a time; then the padding.
fn decode_end(mut bits: u64, mut held: u32, out: &mut [u8], mut at: usize) -> Option<usize> {
    loop {
        // Ones behind the end: padding then reads as the beginning of a longer code.
        let filled = bits | (u64::MAX >> held);
        let step = STEPS[(filled >> (64 - STEP_BITS)) as usize];
        let (symbol, used) = match step.first_bits {
            0 => long_symbol(filled),
            first_bits => (u16::from(step.symbols[0]), u32::from(first_bits)),
        };
        if used > held {
            return (held < 8 && filled == u64::MAX).then_some(at);
        }
        out[at] = u8::try_from(symbol).ok()?;
        at += 1;
        bits <<= used;
        held -= used;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{encode, encoded_bytes};
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        decode(bytes, &mut out)?;
        Some(out.strip_prefix(b"before").expect("what was there stays").to_vec())
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_bytes(text));
        out
    }

    #[test]
    fn each_symbol_alone_between_others_and_in_each_position_of_an_octet() {
        for byte in 0..=255u8 {
            for before in 0..9 {
                // "0" has 5 bits, so that each text begins the symbol at another bit.
                let text = [&b"00000000"[..before], &[byte], &b"0a~"[..before % 4]].concat();
                assert_eq!(decoded(&encoded(&text)).as_deref(), Some(&text[..]));
            }
        }
    }

    #[test]
    fn texts_of_every_length() {
        let text: Vec<u8> = (0..2_000u32).map(|i| (i * i % 251 + i % 7) as u8).collect();
        for len in (0..200).chain([1_000, 2_000]) {
            assert_eq!(decoded(&encoded(&text[..len])).as_deref(), Some(&text[..len]));
        }
        let zeros = [b'0'; 500];
        assert_eq!(decoded(&encoded(&zeros)).as_deref(), Some(&zeros[..]), "the longest for its encoding");
    }

    /// Some rows of Appendix B, one for each place where lengths could have been mixed up.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let rows = [
            (b'0', 0x0, 5),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b'A', 0x21, 6),
            (b':', 0x5c, 7),
            (b'&', 0xf8, 8),
            (b'Z', 0xfd, 8),
            (b'!', 0x3f8, 10),
            (b'+', 0x7fb, 11),
            (b'#', 0xffa, 12),
            (0, 0x1ff8, 13),
            (b'^', 0x3ffc, 14),
            (b'{', 0x7ffe, 15),
            (b'\\', 0x7fff0, 19),
            (128, 0xfffe6, 20),
            (224, 0xfffec, 20),
            (153, 0x1fffdc, 21),
            (129, 0x3fffd2, 22),
            (255, 0x3ff_ffee, 26),
            (249, 0xfff_fffe, 28),
            (b'\n', 0x3fff_fffc, 30),
            (22, 0x3fff_fffe, 30),
        ];
        for (symbol, code, bits) in rows {
            assert_eq!(
                (CODE.codes[usize::from(symbol)], super::super::code::BITS[usize::from(symbol)]),
                (code, bits)
            );
        }
        assert_eq!(CODE.codes[usize::from(END)], 0x3fff_ffff);
    }

    /// §5.2: padding longer than 7 bits, padding that is not ones, and the symbol for the end are errors.
    #[test]
    fn padding_and_the_end_symbol() {
        assert_eq!(decoded(&[]).as_deref(), Some(&b""[..]));
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Some(&b"0"[..]), "3 ones");
        assert_eq!(decoded(&[0b0000_0110]), None, "not ones");
        assert_eq!(decoded(&[0b0000_0011]), None, "a zero first");
        assert_eq!(decoded(&[0xff]), None, "8 ones");
        assert_eq!(decoded(&[0b0000_0111, 0xff]), None, "11 ones");
        assert_eq!(decoded(&[0b1111_1000, 0xff]), None, "'&' fills its octet, then 8 ones");
        assert_eq!(decoded(&[0b1111_1000]).as_deref(), Some(&b"&"[..]));
        assert_eq!(decoded(&[0b1111_1110]), None, "7 ones and a zero: the beginning of a longer code");
        assert_eq!(decoded(&[0xff; 4]), None, "the end, 30 ones, and 2 more");
        assert_eq!(
            decoded(&[&[0x07, 0xff, 0xff, 0xff, 0xff][..], &[0; 20]].concat()),
            None,
            "the end in the middle"
        );
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xf3]).as_deref(), Some(&b"\n"[..]), "its neighbour, 2 ones");
    }

    #[test]
    fn every_two_octets_decode_to_what_encodes_to_them_or_not_at_all() {
        for word in 0..=u16::MAX {
            let bytes = word.to_be_bytes();
            if let Some(text) = decoded(&bytes) {
                assert_eq!(encoded(&text), bytes);
            }
        }
    }
}
