//! The fields of one header block, in storage that the next block uses again.

/// Largest storage that [`HeaderArena::clear`] keeps, so that one large block does not hold its memory for
/// ever.
const KEPT_BYTES: usize = 16 << 10;
const KEPT_FIELDS: usize = 256;

/// The decoded fields of one header block, in order. Reading a block into an arena that was used before
/// allocates only when the block is larger than those before it.
#[derive(Debug, Default)]
pub struct HeaderArena {
    /// Names and values, one behind the other.
    pub(super) bytes: Vec<u8>,
    fields: Vec<FieldEnds>,
}

/// The ends of a field's name and value; it begins where the field before it ends.
#[derive(Clone, Copy, Debug)]
struct FieldEnds {
    name_end: usize,
    value_end: usize,
}

impl HeaderArena {
    /// An arena without storage.
    pub fn new() -> HeaderArena {
        HeaderArena::default()
    }

    /// Removes the fields, and keeps the storage unless it is unusually large.
    pub fn clear(&mut self) {
        self.clear_to(KEPT_BYTES, KEPT_FIELDS);
    }

    /// Takes over the fields of another arena.
    pub(crate) fn copy_from(&mut self, other: &HeaderArena) {
        self.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.fields.extend_from_slice(&other.fields);
    }

    /// Forgets the fields, and keeps at most so much of the storage.
    pub(crate) fn clear_to(&mut self, bytes: usize, fields: usize) {
        self.bytes.clear();
        self.fields.clear();
        self.bytes.shrink_to(bytes);
        self.fields.shrink_to(fields);
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// True when there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Value of the field at `index`, if there is one.
    pub(crate) fn value(&self, index: usize) -> Option<&[u8]> {
        let field = self.fields.get(index)?;
        Some(&self.bytes[field.name_end..field.value_end])
    }

    /// Name and value of each field, in the order of the block. Names are as they were sent: whether they are
    /// names at all, the caller has to check.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.fields.iter().map(move |field| {
            let name_start = std::mem::replace(&mut start, field.value_end);
            (&self.bytes[name_start..field.name_end], &self.bytes[field.name_end..field.value_end])
        })
    }

    /// Appends a field.
    pub(super) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.finish_field(name_end);
    }

    /// Makes a field of the bytes behind the last one, of which those before `name_end` are its name.
    pub(super) fn finish_field(&mut self, name_end: usize) {
        self.fields.push(FieldEnds { name_end, value_end: self.bytes.len() });
    }
}
