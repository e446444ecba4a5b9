//! Sets of fields that are the same in many blocks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::representation::{Literal, indexed, literal};
use super::static_table::{self, Indexing};
use super::{Field, HeaderArena};

/// A set of fields that many header blocks share, encoded in advance, for
/// [`Encoder::append_set`](super::Encoder::append_set).
#[derive(Debug)]
pub struct Encoded {
    /// No other set has it.
    id: u64,
    /// The fields by themselves: they touch no dynamic table, and so are right in every block of every
    /// connection.
    literals: Vec<u8>,
    fields: HeaderArena,
    /// For each field, whether it is sensitive.
    secret: Vec<bool>,
}

impl Encoded {
    /// A set of these fields.
    pub fn new<'a, F: Into<Field<'a>>>(fields: impl IntoIterator<Item = F>) -> Encoded {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let mut set = Encoded {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            literals: Vec::new(),
            fields: HeaderArena::new(),
            secret: Vec::new(),
        };
        for field in fields.into_iter().map(Into::into) {
            set.fields.push(field.name, field.value);
            set.secret.push(field.is_secret);
            encode_alone(field, &mut set.literals);
        }
        set
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn literals(&self) -> &[u8] {
        &self.literals
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        let fields = self.fields.iter().zip(&self.secret);
        fields.map(|((name, value), &is_secret)| Field { name, value, is_secret })
    }
}

/// Encodes a field without a dynamic table.
fn encode_alone(Field { name, value, is_secret }: Field<'_>, out: &mut Vec<u8>) {
    let known = static_table::find_name(name);
    let in_table = known.and_then(|(first, _)| static_table::find_value(first, value));
    if let Some(index) = in_table.filter(|_| !is_secret) {
        return indexed(index, out);
    }
    let kind = match known {
        _ if is_secret => Literal::NeverIndexed,
        Some((_, row)) if row.indexing_of(value) == Indexing::Never => Literal::NeverIndexed,
        _ => Literal::Plain,
    };
    literal(kind, known.map(|(first, _)| first), name, value, out);
}
