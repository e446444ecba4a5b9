//! Header compression (RFC 7541): a decoder of whole header blocks into storage that is used again, and an
//! encoder. In the steady state neither allocates.
//!
//! | module | |
//! |---|---|
//! | `decoder` | header blocks to fields, with the rules that keep both tables in step |
//! | `arena` | where the fields of one block are put |
//! | `encoded` | sets of fields that are the same in many blocks |
//! | `encoder` | fields to header blocks, and what is worth a place in the table |
//! | `representation` | single fields in a block (§6) |
//! | `field` | what the encoder is given |
//! | `dynamic_table` | the fields that were sent before, oldest evicted first (§2.3.2, §4) |
//! | `static_table` | the 61 fields that everybody knows (Appendix A) |
//! | `huffman`, `integer` | the two primitives (§5) |

mod arena;
mod decoder;
mod dynamic_table;
mod encoded;
mod encoder;
mod field;
mod huffman;
mod integer;
mod representation;
mod static_table;
#[cfg(test)]
mod tests;

pub use arena::HeaderArena;
pub use decoder::{DecodeError, Decoder, Malformed};
pub use encoded::Encoded;
pub use encoder::Encoder;
pub use field::Field;

/// Bytes of a dynamic table before either side has said otherwise (`SETTINGS_HEADER_TABLE_SIZE`, RFC 9113
/// §6.5.2).
pub const DEFAULT_TABLE_BYTES: u32 = 4_096;

/// Overhead of a field in bytes, counted beside its name and value, in tables and in lists (§4.1; RFC 9113
/// §6.5.2).
const FIELD_OVERHEAD_BYTES: usize = 32;

/// Bytes that a field counts for.
fn field_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + FIELD_OVERHEAD_BYTES
}
