//! Decoder and encoder together.

mod appendix_c;
mod encoding;
mod malformed;
mod random;

use super::{Decoder, HeaderArena, Malformed};

/// Fields as tests write them.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

const LIST_BYTES_MAX: u32 = 16 << 10;

fn decoder() -> Decoder {
    Decoder::new(super::DEFAULT_TABLE_BYTES, LIST_BYTES_MAX)
}

fn fields(texts: &[(&str, &str)]) -> Fields {
    texts.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn slices(fields: &Fields) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields.iter().map(|(name, value)| (&name[..], &value[..]))
}

fn listed(arena: &HeaderArena) -> Fields {
    assert_eq!(arena.iter().count(), arena.len());
    arena.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// The fields of a block that is well-formed, or what is wrong with it.
fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Malformed> {
    let mut arena = HeaderArena::new();
    match decoder.decode(block, &mut arena) {
        Ok(()) => Ok(listed(&arena)),
        Err(super::DecodeError::Compression(malformed)) => Err(malformed),
        Err(other) => panic!("{other}"),
    }
}

/// Bytes in hexadecimal, with spaces anywhere.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let octet =
        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("two digits");
    digits.chunks(2).map(octet).collect()
}
