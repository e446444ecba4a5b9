//! Fields kept until they can be encoded: trailers that wait for the body before them.

use crate::hpack::Field;

/// Bytes of a length.
const LENGTH: usize = size_of::<u32>();

/// Appends a field.
pub(crate) fn push(out: &mut Vec<u8>, field: Field<'_>) {
    out.push(field.is_secret.into());
    for part in [field.name, field.value] {
        out.extend_from_slice(&(part.len() as u32).to_ne_bytes());
        out.extend_from_slice(part);
    }
}

/// The fields that were pushed, in order.
pub(crate) fn iter(mut from: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || {
        let is_secret = *from.split_off_first()? != 0;
        Some(Field { name: take(&mut from)?, value: take(&mut from)?, is_secret })
    })
}

fn take<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&length, rest) = from.split_first_chunk::<LENGTH>()?;
    let (part, rest) = rest.split_at_checked(u32::from_ne_bytes(length) as usize)?;
    *from = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_order() {
        let fields =
            [Field::new("grpc-status", "0"), Field::new("empty", "").secret(), Field::new("x", &[7u8; 300])];
        let mut out = Vec::new();
        fields.into_iter().for_each(|field| push(&mut out, field));
        assert_eq!(iter(&out).collect::<Vec<_>>(), fields);
    }
}
