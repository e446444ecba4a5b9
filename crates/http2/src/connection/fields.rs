//! Fields kept until they can be encoded: trailers that wait for the body before them.

/// Bytes of a length.
const LENGTH: usize = size_of::<u32>();

/// Appends a field.
pub(super) fn push(out: &mut Vec<u8>, (name, value): (&[u8], &[u8])) {
    for part in [name, value] {
        out.extend_from_slice(&(part.len() as u32).to_ne_bytes());
        out.extend_from_slice(part);
    }
}

/// The fields that were pushed, in order.
pub(super) fn iter(mut from: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || Some((take(&mut from)?, take(&mut from)?)))
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
        let fields: [(&[u8], &[u8]); 3] = [(b"grpc-status", b"0"), (b"empty", b""), (b"x", &[7; 300])];
        let mut out = Vec::new();
        fields.into_iter().for_each(|field| push(&mut out, field));
        assert_eq!(iter(&out).collect::<Vec<_>>(), fields);
    }
}
