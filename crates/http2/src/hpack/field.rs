//! One field, as it is given to the encoder.

/// A field: name and value. The name must be in lower case (RFC 9113 §8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// True when it is secret although its name does not tell: nobody on the way may put it into a table (RFC
    /// 7541 §6.2.3).
    pub is_secret: bool,
}

impl<'a> Field<'a> {
    /// A field.
    pub fn new<N, V>(name: &'a N, value: &'a V) -> Self
    where
        N: AsRef<[u8]> + ?Sized,
        V: AsRef<[u8]> + ?Sized,
    {
        Self { name: name.as_ref(), value: value.as_ref(), is_secret: false }
    }

    /// The field marked as sensitive: it is encoded as never indexed (RFC 7541 §7.1.3).
    pub fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

impl<'a> From<(&'a [u8], &'a [u8])> for Field<'a> {
    fn from((name, value): (&'a [u8], &'a [u8])) -> Self {
        Self { name, value, is_secret: false }
    }
}
