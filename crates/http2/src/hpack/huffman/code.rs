//! The code itself. It is canonical: codes of one length are consecutive numbers in the order of their
//! symbols, and continue from those that are shorter. So the lengths tell everything.

/// The end of a string, which never stands in one (§5.2).
pub(super) const END: u16 = 256;

const SYMBOLS: usize = 257;

/// Bits of the longest code.
pub(super) const CODE_BITS_MAX: u32 = 30;

/// Bits of each symbol's code (Appendix B); the last is [`END`].
pub(super) static BITS: [u8; SYMBOLS] = CODE_BITS;

#[rustfmt::skip]
const CODE_BITS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct Length {
    /// The lowest code.
    pub(super) first_code: u32,
    /// Number of codes of this length.
    pub(super) count: u32,
    /// Index of their first symbol in [`Code::symbols`].
    pub(super) symbols_from: u32,
}

/// All that follows from the lengths.
pub(super) struct Code {
    /// By length in bits.
    pub(super) lengths: [Length; CODE_BITS_MAX as usize + 1],
    /// Symbols in the order of their codes.
    pub(super) symbols: [u16; SYMBOLS],
    /// The code of each symbol, in the low bits.
    pub(super) codes: [u32; SYMBOLS],
}

pub(super) const CODE: Code = canonical();

const fn canonical() -> Code {
    let mut lengths = [Length { first_code: 0, count: 0, symbols_from: 0 }; CODE_BITS_MAX as usize + 1];
    let mut symbols = [0; SYMBOLS];
    let mut codes = [0; SYMBOLS];
    let (mut bits, mut next_code, mut placed) = (1, 0, 0);
    while bits <= CODE_BITS_MAX as usize {
        next_code <<= 1;
        lengths[bits] = Length { first_code: next_code, count: 0, symbols_from: placed };
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if CODE_BITS[symbol] as usize == bits {
                symbols[placed as usize] = symbol as u16;
                codes[symbol] = next_code;
                lengths[bits].count += 1;
                next_code += 1;
                placed += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    assert!(
        placed as usize == SYMBOLS && next_code == 1 << CODE_BITS_MAX,
        "the lengths make no complete code"
    );
    Code { lengths, symbols, codes }
}
