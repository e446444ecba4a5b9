//! Fields to header blocks (RFC 7541 §6), and what is worth a place in the dynamic table.
//!
//! A field that the tables have costs a byte or two. Of the others, those go into the table that will come
//! again: by name where the name tells (a content type does, a date does not, a secret never may), else when
//! they are seen a second time. So identifiers that differ with each response never push out what is worth
//! its place.
//!
//! Sets of fields that are the same in many blocks ([`Encoded`]) go into the table when they are used a
//! second time, and what they come to there is remembered as long as the table does not change: after that a
//! set costs a comparison and a copy of some bytes.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::dynamic_table::DynamicTable;
use super::representation::{Literal, indexed, literal};
use super::static_table::{self, Indexing};
use super::{DEFAULT_TABLE_BYTES, Encoded, Field, field_bytes, integer};

/// Most bytes that the encoder uses of a larger table that the peer offers: it is memory of this side.
const TABLE_BYTES_MAX: u32 = DEFAULT_TABLE_BYTES;

/// A field that would take more than this part of the table does not go into it.
const TABLE_PART: usize = 2;

/// Number of recent fields that are remembered although they are not in the table.
const SEEN: usize = 64;

/// Number of recent sets of fields that are remembered.
const SETS: usize = 4;

/// Encodes the header blocks of one direction of one connection. Blocks have to be sent in the order in which
/// they were encoded.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// The smallest size since the last block, when the peer has changed it: the next block tells (§4.2).
    smallest_bytes: Option<u32>,
    /// Hashes of fields that were sent and did not go into the table, each in the place that its low bits
    /// name.
    seen: [u32; SEEN],
    /// The latest sets, oldest overwritten first.
    sets: [RememberedSet; SETS],
    next_set: usize,
    /// Number of changes of the table.
    changes: u64,
}

/// A set that was used before.
#[derive(Default, Debug)]
struct RememberedSet {
    /// The set's, or 0.
    id: u64,
    /// Its encoding.
    block: Vec<u8>,
    /// The state of the table for which that is right.
    right_for: Option<u64>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// An encoder for a peer that has not sent its settings.
    pub fn new() -> Encoder {
        Encoder {
            table: DynamicTable::new(),
            smallest_bytes: None,
            seen: [0; SEEN],
            sets: Default::default(),
            next_set: 0,
            changes: 0,
        }
    }

    /// Takes the peer's `SETTINGS_HEADER_TABLE_SIZE`, in bytes. To be called before the settings are
    /// acknowledged, for each in its turn: the next block says by which sizes the table went (§4.2, §6.3).
    pub fn set_max_table_size(&mut self, max_table_size: u32) {
        let bytes = max_table_size.min(TABLE_BYTES_MAX);
        if bytes as usize == self.table.max_bytes() {
            return;
        }
        self.smallest_bytes = Some(self.smallest_bytes.map_or(bytes, |smallest| smallest.min(bytes)));
        self.table.set_max_bytes(bytes as usize);
        self.changes += 1;
    }

    /// Appends fields to a block. A block may be made by several calls, of this and of the other; a change of
    /// the table's size must not come between them.
    pub fn encode<'a, F>(&mut self, fields: impl IntoIterator<Item = F>, out: &mut Vec<u8>)
    where
        F: Into<Field<'a>>,
    {
        self.tell_sizes(out);
        for field in fields {
            self.field(field.into(), false, out);
        }
    }

    /// Appends the status of a response to a block.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        self.tell_sizes(out);
        if let Some(at) = static_table::STATUSES.iter().position(|known| *known == status) {
            return indexed(static_table::FIRST_STATUS + at, out);
        }
        let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        self.field(Field::new(":status", &digits), false, out);
    }

    /// Appends the fields of a set to a block.
    pub fn append_set(&mut self, set: &Encoded, out: &mut Vec<u8>) {
        self.tell_sizes(out);
        let Some(at) = self.sets.iter().position(|remembered| remembered.id == set.id()) else {
            self.sets[self.next_set].id = set.id();
            self.sets[self.next_set].right_for = None;
            self.next_set = (self.next_set + 1) % SETS;
            return out.extend_from_slice(set.literals());
        };
        if self.sets[at].right_for == Some(self.changes) {
            return out.extend_from_slice(&self.sets[at].block);
        }
        let (start, changes) = (out.len(), self.changes);
        set.fields().for_each(|field| self.field(field, true, out));
        let remembered = &mut self.sets[at];
        remembered.block.clear();
        remembered.block.extend_from_slice(&out[start..]);
        // Not what has put fields into the table: next time they are there.
        remembered.right_for = (changes == self.changes).then_some(changes);
    }

    /// Size of the table's fields, as RFC 7541 §4.1 counts it.
    #[cfg(test)]
    pub(super) fn table_size_bytes(&self) -> usize {
        self.table.size_bytes()
    }

    /// A block begins with the sizes since the last one: the smallest, which is what was evicted by, and the
    /// one that is.
    #[inline]
    fn tell_sizes(&mut self, out: &mut Vec<u8>) {
        if let Some(smallest) = self.smallest_bytes.take() {
            let bytes = self.table.max_bytes();
            if (smallest as usize) < bytes {
                integer::encode(smallest as usize, 0x20, 5, out);
            }
            integer::encode(bytes, 0x20, 5, out);
        }
    }

    /// A field, of which may be known that it comes again.
    fn field(&mut self, field: Field<'_>, comes_again: bool, out: &mut Vec<u8>) {
        let Field { name, value, is_secret } = field;
        let known = static_table::find_name(name);
        if is_secret {
            return literal(Literal::NeverIndexed, known.map(|(first, _)| first), name, value, out);
        }
        let Some((first, row)) = known else {
            return self.dynamic_field(None, name, value, comes_again, out);
        };
        if let Some(index) = static_table::find_value(first, value) {
            return indexed(index, out);
        }
        match row.indexing_of(value) {
            Indexing::Varying if !comes_again => literal(Literal::Plain, Some(first), name, value, out),
            Indexing::AtOnce | Indexing::Varying => {
                self.dynamic_field(Some(first), name, value, comes_again, out);
            }
            Indexing::Never => literal(Literal::NeverIndexed, Some(first), name, value, out),
        }
    }

    /// A field that may be in the dynamic table, or come into it.
    fn dynamic_field(
        &mut self,
        known: Option<usize>,
        name: &[u8],
        value: &[u8],
        comes_again: bool,
        out: &mut Vec<u8>,
    ) {
        let hash = hash(name, value);
        if let Some(position) = self.table.find(hash, name, value) {
            return indexed(static_table::ROWS + 1 + position, out);
        }
        let named =
            known.or_else(|| self.table.find_name(name).map(|position| static_table::ROWS + 1 + position));
        // A name that is in no table is worth its place by itself.
        let comes_again = comes_again || known.is_some() || named.is_none() || self.is_seen(hash);
        if comes_again && field_bytes(name, value) <= self.table.max_bytes() / TABLE_PART {
            literal(Literal::Indexed, named, name, value, out);
            self.table.insert(hash, name, value);
            self.changes += 1;
        } else {
            literal(Literal::Plain, named, name, value, out);
        }
    }

    /// True when the field is one of the recent ones; adds it to them.
    fn is_seen(&mut self, hash: u32) -> bool {
        std::mem::replace(&mut self.seen[hash as usize % SEEN], hash) == hash
    }
}

fn hash(name: &[u8], value: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.write(value);
    // 0 is what an unused place of the seen ones holds.
    (hasher.finish() as u32).max(1)
}
