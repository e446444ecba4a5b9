//! The Huffman code of strings (RFC 7541 §5.2, Appendix B).

mod code;
mod decode;
mod encode;

pub(super) use decode::decode;
pub(super) use encode::{encode, encoded_bytes};
