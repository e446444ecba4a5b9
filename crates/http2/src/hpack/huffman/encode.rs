//! Text to bits.

use super::code::{BITS, CODE};

static CODES: [u32; 257] = CODE.codes;

/// Bytes of the encoded text.
pub(in crate::hpack) fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(BITS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded text, filled to a whole octet with ones.
pub(in crate::hpack) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The low `held` bits wait to be written; above them stands what was written before.
    let (mut bits, mut held) = (0u64, 0u32);
    for &byte in text {
        let code_bits = u32::from(BITS[usize::from(byte)]);
        bits = (bits << code_bits) | u64::from(CODES[usize::from(byte)]);
        held += code_bits;
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    let padding = held.wrapping_neg() % 8;
    bits = (bits << padding) | ((1 << padding) - 1);
    held += padding;
    while held > 0 {
        held -= 8;
        out.push((bits >> held) as u8);
    }
}
