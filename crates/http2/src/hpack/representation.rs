//! Representations of single fields in a header block (RFC 7541 §6).

use super::{huffman, integer};

/// The three kinds of literal fields (§6.2), each with its first bits and its prefix.
#[derive(Clone, Copy)]
pub(super) enum Literal {
    Indexed,
    Plain,
    NeverIndexed,
}

/// A field of a table (§6.1).
pub(super) fn indexed(index: usize, out: &mut Vec<u8>) {
    integer::encode(index, 0x80, 7, out);
}

/// A field that is spelled out (§6.2), but for its name when a table has it at `named`.
pub(super) fn literal(kind: Literal, named: Option<usize>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (flags, prefix_bits) = match kind {
        Literal::Indexed => (0x40, 6),
        Literal::Plain => (0x00, 4),
        Literal::NeverIndexed => (0x10, 4),
    };
    integer::encode(named.unwrap_or(0), flags, prefix_bits, out);
    if named.is_none() {
        string(name, out);
    }
    string(value, out);
}

/// A string (§5.2), in Huffman code when that is shorter.
fn string(text: &[u8], out: &mut Vec<u8>) {
    let encoded_bytes = huffman::encoded_bytes(text);
    if encoded_bytes < text.len() {
        integer::encode(encoded_bytes, 0x80, 7, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len(), 0x00, 7, out);
        out.extend_from_slice(text);
    }
}
