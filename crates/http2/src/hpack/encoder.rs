//! Fields to header blocks (RFC 7541 §6), and what is worth a place in the dynamic table.
//!
//! A field that the tables have costs a byte or two. Of the others, those go into the table that will come again: by name where the name
//! tells (a content type does, a date does not, a secret never may), else when they are seen a second time. So identifiers that
//! differ with each response never push out what is worth its place.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::dynamic_table::DynamicTable;
use super::static_table::{self, Indexing, Row};
use super::{DEFAULT_TABLE_BYTES, Field, field_bytes, huffman, integer};

/// Most bytes that the encoder uses of a larger table that the peer offers: it is memory of this side.
const TABLE_BYTES_MAX: u32 = DEFAULT_TABLE_BYTES;

/// A field that would take more than this part of the table does not go into it.
const TABLE_PART: usize = 2;

/// Cookies below this could be guessed, one byte after the other, by what they compress to (§7.1.3): they are never indexed.
const GUESSABLE_COOKIE_BYTES: usize = 20;

/// How many of the latest fields are remembered that did not go into the table.
const SEEN: usize = 64;

/// Encodes the header blocks of one direction of one connection. Blocks have to be sent in the order in which they were encoded.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// The smallest size since the last block, when the peer has changed it: the next block tells (§4.2).
    smallest_bytes: Option<u32>,
    /// Hashes of fields that were sent and did not go into the table, each in the place that its low bits name.
    seen: [u32; SEEN],
}

/// Fields that were encoded once, for [`Encoder::append_static`]. They touch no dynamic table, and so are right in every block of every
/// connection.
#[derive(Clone, Debug, Default)]
pub struct Encoded(pub(super) Vec<u8>);

/// The three kinds of literal fields (§6.2), each with its first bits and its prefix.
#[derive(Clone, Copy)]
enum Literal {
    Indexed,
    Plain,
    NeverIndexed,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// An encoder for a peer that has not sent its settings.
    pub fn new() -> Encoder {
        Encoder { table: DynamicTable::new(), smallest_bytes: None, seen: [0; SEEN] }
    }

    /// Takes the peer's `SETTINGS_HEADER_TABLE_SIZE`, in bytes. To be called before the settings are acknowledged, for each in its turn:
    /// the next block says by which sizes the table went (§4.2, §6.3).
    pub fn set_max_table_size(&mut self, max_table_size: u32) {
        let bytes = max_table_size.min(TABLE_BYTES_MAX);
        if bytes as usize == self.table.max_bytes() {
            return;
        }
        self.smallest_bytes = Some(self.smallest_bytes.map_or(bytes, |smallest| smallest.min(bytes)));
        self.table.set_max_bytes(bytes as usize);
    }

    /// Appends fields to a block. A block may be made by several calls, of this and of the other; a change of the table's size
    /// must not come between them.
    pub fn encode<'a, F>(&mut self, fields: impl IntoIterator<Item = F>, out: &mut Vec<u8>)
    where
        F: Into<Field<'a>>,
    {
        self.tell_sizes(out);
        for field in fields {
            let Field { name, value, is_secret } = field.into();
            if is_secret {
                let known = static_table::find_name(name).map(|(first, _)| first);
                literal(Literal::NeverIndexed, known, name, value, out);
            } else {
                self.field(name, value, out);
            }
        }
    }

    /// Appends fields to a block that were encoded before.
    pub fn append_static(&mut self, fields: &Encoded, out: &mut Vec<u8>) {
        self.tell_sizes(out);
        out.extend_from_slice(&fields.0);
    }

    /// What the table's fields count for.
    #[cfg(test)]
    pub(super) fn table_size_bytes(&self) -> usize {
        self.table.size_bytes()
    }

    /// A block begins with the sizes since the last one: the smallest, which is what was evicted by, and the one that is.
    fn tell_sizes(&mut self, out: &mut Vec<u8>) {
        if let Some(smallest) = self.smallest_bytes.take() {
            let bytes = self.table.max_bytes();
            if (smallest as usize) < bytes {
                integer::encode(smallest as usize, 0x20, 5, out);
            }
            integer::encode(bytes, 0x20, 5, out);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let Some((first, row)) = static_table::find_name(name) else {
            return self.dynamic_field(None, name, value, out);
        };
        if let Some(index) = static_table::find_value(first, value) {
            return indexed(index, out);
        }
        match indexing(row, value) {
            Indexing::AtOnce => self.dynamic_field(Some(first), name, value, out),
            Indexing::Varying => literal(Literal::Plain, Some(first), name, value, out),
            Indexing::Never => literal(Literal::NeverIndexed, Some(first), name, value, out),
        }
    }

    /// A field that may be in the dynamic table, or come into it.
    fn dynamic_field(&mut self, known: Option<usize>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let hash = hash(name, value);
        if let Some(position) = self.table.find(hash, name, value) {
            return indexed(static_table::ROWS + 1 + position, out);
        }
        let named =
            known.or_else(|| self.table.find_name(name).map(|position| static_table::ROWS + 1 + position));
        // A name that is in no table is worth its place by itself.
        let comes_again = known.is_some() || named.is_none() || self.is_seen(hash);
        if comes_again && field_bytes(name, value) <= self.table.max_bytes() / TABLE_PART {
            literal(Literal::Indexed, named, name, value, out);
            self.table.insert(hash, name, value);
        } else {
            literal(Literal::Plain, named, name, value, out);
        }
    }

    /// Whether the field is one of the latest; it is from now on.
    fn is_seen(&mut self, hash: u32) -> bool {
        std::mem::replace(&mut self.seen[hash as usize % SEEN], hash) == hash
    }
}

impl Encoded {
    /// Encodes fields whose names and values are the same in many blocks.
    pub fn new<'a, F: Into<Field<'a>>>(fields: impl IntoIterator<Item = F>) -> Encoded {
        let mut out = Vec::new();
        for Field { name, value, is_secret } in fields.into_iter().map(Into::into) {
            let known = static_table::find_name(name);
            let in_table = known.and_then(|(first, _)| static_table::find_value(first, value));
            if let Some(index) = in_table.filter(|_| !is_secret) {
                indexed(index, &mut out);
                continue;
            }
            let kind = match known {
                _ if is_secret => Literal::NeverIndexed,
                Some((_, row)) if indexing(row, value) == Indexing::Never => Literal::NeverIndexed,
                _ => Literal::Plain,
            };
            literal(kind, known.map(|(first, _)| first), name, value, &mut out);
        }
        Encoded(out)
    }

    /// How many bytes of a block they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn indexing(row: &Row, value: &[u8]) -> Indexing {
    if row.name == b"cookie" && value.len() < GUESSABLE_COOKIE_BYTES { Indexing::Never } else { row.indexing }
}

fn hash(name: &[u8], value: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.write(value);
    // 0 is what an unused place of the seen ones holds.
    (hasher.finish() as u32).max(1)
}

/// A field of a table (§6.1).
fn indexed(index: usize, out: &mut Vec<u8>) {
    integer::encode(index, 0x80, 7, out);
}

/// A field that is spelled out (§6.2), but for its name when a table has it at `named`.
fn literal(kind: Literal, named: Option<usize>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
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
