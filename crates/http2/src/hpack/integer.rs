//! Integers with a prefix (RFC 7541 §5.1).

/// Most octets behind the prefix. Five are enough for every `u32`; more can only be padding.
const OCTETS_MAX: u32 = 5;

/// Reads an integer whose prefix is the low `prefix_bits` (1 to 8) of `first`; takes the octets behind it off
/// `rest`. `None`: it ends early, or is larger than a `u32`, or longer than one needs to be.
#[inline]
pub(super) fn decode(first: u8, prefix_bits: u32, rest: &mut &[u8]) -> Option<u32> {
    let largest = (1 << prefix_bits) - 1;
    let prefix = u32::from(first) & largest;
    if prefix < largest { Some(prefix) } else { decode_octets(largest, rest) }
}

fn decode_octets(prefix: u32, rest: &mut &[u8]) -> Option<u32> {
    let mut value = u64::from(prefix);
    for octet in 0..OCTETS_MAX {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value += u64::from(byte & 0x7f) << (7 * octet);
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}

/// Writes an integer with a prefix of `prefix_bits` (1 to 8); `flags` are the bits of the first octet above
/// the prefix.
#[inline]
pub(super) fn encode(value: usize, flags: u8, prefix_bits: u32, out: &mut Vec<u8>) {
    let largest = (1usize << prefix_bits) - 1;
    if value < largest {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | largest as u8);
    let mut left = value - largest;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: usize, prefix_bits: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, 0, prefix_bits, &mut out);
        out
    }

    fn decoded(bytes: &[u8], prefix_bits: u32) -> Option<u32> {
        let (&first, mut rest) = bytes.split_first()?;
        decode(first, prefix_bits, &mut rest).filter(|_| rest.is_empty())
    }

    /// RFC 7541 C.1.1 to C.1.3.
    #[test]
    fn the_examples_of_the_rfc() {
        for (value, prefix_bits, bytes) in
            [(10, 5, &[0x0a][..]), (1_337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])]
        {
            assert_eq!(encoded(value, prefix_bits), bytes);
            assert_eq!(decoded(bytes, prefix_bits), Some(value as u32));
        }
    }

    #[test]
    fn every_prefix_keeps_every_value_and_the_flags() {
        let edges = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0xffff_fffe, 0xffff_ffff];
        for prefix_bits in 1..=8 {
            let largest = (1u32 << prefix_bits) - 1;
            for value in
                edges.into_iter().chain([largest - 1, largest, largest + 1, largest + 0x7f, largest + 0x80])
            {
                let bytes = encoded(value as usize, prefix_bits);
                assert_eq!(decoded(&bytes, prefix_bits), Some(value), "{value} behind {prefix_bits} bits");
                let mut flagged = Vec::new();
                encode(value as usize, !(largest as u8), prefix_bits, &mut flagged);
                assert_eq!(flagged[0], bytes[0] | !(largest as u8));
                for cut in 1..bytes.len() {
                    assert_eq!(decoded(&bytes[..cut], prefix_bits), None, "cut off");
                }
            }
        }
    }

    /// §5.1: what exceeds the limits of an implementation, in value or in length, is an error.
    #[test]
    fn what_is_too_large_or_too_long_is_refused() {
        assert_eq!(decoded(&[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f], 7), Some(u32::MAX));
        assert_eq!(decoded(&[0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f], 7), None, "one more");
        assert_eq!(decoded(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f], 7), None);
        assert_eq!(decoded(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Some(0x7f), "padded, within five");
        assert_eq!(decoded(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 7), None, "padded without end");
    }
}
